// Races: two threads of a launch touch one byte, one of them writes, and nothing orders them.
//
// Threads of a block meet at a barrier of the block; those of a warp also at __syncwarp, but not at a shuffle or a vote, which
// order no memory. Threads of two blocks never meet. Two accesses that are atomic or volatile are no race. Nor are writes of one
// value by lanes of one warp: whoever comes last, that value stays. Times are counted up at each meeting. Of each byte the last writer and two readers are known, with their times. So of a race among many readers
// one at least is seen.

#include <algorithm>
#include <array>

#include "block.h"
#include "regions.h"

namespace cudasim {
namespace {

struct Race {
    const Region* region = nullptr;  // null: none was found
    uintptr_t at = 0;
    Visit before = {}, now = {};
    bool writes = false;
};

// A write where another lane of the warp has written: a race unless it leaves the bytes that it finds.
struct Rewrite {
    Race race = {};
    std::vector<std::pair<const unsigned char*, unsigned char>> found = {};
};

struct Watched {
    const CudasimState* state = nullptr;
    std::string kernel;
    Race first = {};
    Rewrite undecided = {};
    uint32_t time = 0, block_met = 0;
    std::array<uint32_t, MOST_THREADS / 32> warp_met{};
    std::vector<std::pair<uint32_t, CudasimTriple>> blocks = {};  // when each began
};

Watched watched;

bool one_warp(const Visit& a, const Visit& b) { return (a.thread - 1) / 32 == (b.thread - 1) / 32; }

bool in_this_block(const Visit& before) { return before.time >= watched.blocks.back().first; }

bool unordered(const Visit& before, const Visit& now, const Region& region) {
    if (!before.thread || (before.strong && now.strong)) return false;
    if (!in_this_block(before)) return !region.shared;
    if (before.thread == now.thread || before.time < watched.block_met) return false;
    return !one_warp(before, now) || before.time >= watched.warp_met[(now.thread - 1) / 32];
}

// Called behind every access, before the next: what was written is there now.
void decide() {
    Rewrite& last = watched.undecided;
    if (!last.race.region) return;
    for (auto& [at, found] : last.found)
        if (*at != found) watched.first = last.race;
    last = {};
}

void visit(Region& region, uintptr_t at, const Visit& now, bool writes) {
    Visits& byte = region.visits.of(region.bytes())[at - region.begin];
    for (const Visit* before : {&byte.writer, &byte.reader, &byte.other}) {
        const bool wrote = before == &byte.writer;
        if ((!writes && !wrote) || !unordered(*before, now, region)) continue;
        const Race race{&region, at, *before, now, writes};
        if (writes && wrote && in_this_block(*before) && one_warp(*before, now)) {
            const auto* there = reinterpret_cast<const unsigned char*>(at);
            watched.undecided.race = race;
            watched.undecided.found.emplace_back(there, *there);
        } else {
            watched.first = race;
            return;
        }
    }
    if (writes) {
        byte.writer = now;
        return;
    }
    if (byte.reader.thread != now.thread || !in_this_block(byte.reader)) byte.other = byte.reader;
    byte.reader = now;
}

std::string thread_of(const Visit& visit) {
    auto after = std::upper_bound(watched.blocks.begin(), watched.blocks.end(), visit.time,
                                  [](uint32_t time, const auto& block) { return time < block.first; });
    return text("thread %u of block ", visit.thread - 1) + coordinates(std::prev(after)->second);
}

std::string memory_of(const Race& race) {
    if (!race.region->shared) return describe(race.at);
    return text("byte %zu of %zu of shared memory", static_cast<size_t>(race.at - race.region->begin), race.region->bytes());
}

}  // namespace

void begin_watch(const Launch& launch) {
    watched = {};
    watched.kernel = launch.function->kernel->name;
    watched.state = launch.function->module->image->state;
}

void end_watch() {
    decide();
    const Race& race = watched.first;
    if (race.region)
        problem("race", "kernel " + watched.kernel + ": " + thread_of(race.before) + " and " + thread_of(race.now) + " touch " +
                            memory_of(race) + ", and nothing orders them; the second " + (race.writes ? "writes" : "reads"));
    watched = {};
}

void watch_block() {
    if (!watched.state) return;
    decide();
    block_met();
    watched.blocks.emplace_back(watched.time, watched.state->block);
}

void watch(uintptr_t address, size_t bytes, bool writes, bool strong) {
    if (!watched.state || watched.first.region) return;
    decide();
    Region* region = find_region(address);
    if (!region || watched.first.region) return;
    const Visit now{watched.time, static_cast<uint16_t>(running_thread() + 1), strong};
    for (uintptr_t at = address; at < std::min(address + bytes, region->end) && !watched.first.region; ++at)
        visit(*region, at, now, writes);
}

void block_met() { watched.block_met = ++watched.time; }
void warp_met(unsigned warp) { watched.warp_met[warp] = ++watched.time; }

}  // namespace cudasim

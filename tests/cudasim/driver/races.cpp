// Races: two threads of a launch touch one byte, one of them writes, and nothing orders them.
//
// Threads of a block meet at a barrier of the block; those of a warp also at __syncwarp, but not at a shuffle or a vote, which
// order no memory. Threads of two blocks meet at a barrier of their cluster, others never. Two accesses that are atomic or
// volatile are no race. Nor are writes of one value by lanes of one warp: whoever comes last, that value stays. Times are counted
// up at each meeting. Of each byte the last writer and two readers are known, with their times. So of a race among many readers
// one at least is seen.
#include "races.h"

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
    uint32_t time = 0, cluster_met = 0;
    std::array<uint32_t, MOST_BLOCKS> block_met{};
    std::array<uint32_t, MOST_BLOCKS * MOST_THREADS / 32> warp_met{};
    std::array<uint32_t, MOST_BLOCKS * MOST_THREADS> fenced{};  // when each thread last fenced what it wrote
    std::vector<std::pair<uint32_t, CudasimTriple>> clusters = {};  // when each began, and its first block
};

Watched watched;

unsigned rank(const Visit& visit) { return (visit.thread - 1u) / MOST_THREADS; }

bool one_warp(const Visit& a, const Visit& b) { return (a.thread - 1) / 32 == (b.thread - 1) / 32; }

bool in_this_cluster(const Visit& before) { return before.time >= watched.clusters.back().first; }

// What is known of a byte; shared memory of the blocks of a cluster has one place.
Visits& visits_of(Region& region, uintptr_t at) {
    const size_t bytes = region.bytes(), first = region.shared ? running_rank() * bytes : 0;
    return region.visits.of(region.shared ? MOST_BLOCKS * bytes : bytes)[first + (at - region.begin)];
}

bool unordered(const Visit& before, const Visit& now, const Region& region) {
    if (!before.thread || (before.strong && now.strong)) return false;
    if (!in_this_cluster(before)) return !region.shared;
    if (rank(before) != rank(now)) return before.time >= watched.cluster_met;
    if (before.thread == now.thread || before.time < watched.block_met[rank(now)]) return false;
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
    Visits& byte = visits_of(region, at);
    for (const Visit* before : {&byte.writer, &byte.reader, &byte.other}) {
        const bool wrote = before == &byte.writer;
        if ((!writes && !wrote) || !unordered(*before, now, region)) continue;
        const Race race{&region, at, *before, now, writes};
        if (writes && wrote && in_this_cluster(*before) && one_warp(*before, now)) {
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
    if (byte.reader.thread != now.thread || !in_this_cluster(byte.reader)) byte.other = byte.reader;
    byte.reader = now;
}

std::string thread_of(const Visit& visit) {
    auto after = std::upper_bound(watched.clusters.begin(), watched.clusters.end(), visit.time,
                                  [](uint32_t time, const auto& cluster) { return time < cluster.first; });
    const CudasimTriple& first = std::prev(after)->second;
    return text("thread %u of block (%u, %u, %u)", (visit.thread - 1) % MOST_THREADS, first.x + rank(visit), first.y, first.z);
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

void watch_cluster() {
    if (!watched.state) return;
    decide();
    cluster_met();
    watched.clusters.emplace_back(watched.time, watched.state->block);
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

bool fenced(uintptr_t address, size_t bytes) {
    Region* region = find_region(address);
    if (!region) return true;
    for (uintptr_t at = address; at < std::min(address + bytes, region->end); ++at) {
        const Visit& writer = visits_of(*region, at).writer;
        if (writer.thread && in_this_cluster(writer) && writer.time >= watched.fenced[writer.thread - 1]) return false;
    }
    return true;
}

void fence_async() {
    if (watched.state) watched.fenced[running_thread()] = ++watched.time;
}

void block_met() { watched.block_met[running_rank()] = ++watched.time; }
void cluster_met() { watched.block_met.fill(watched.cluster_met = ++watched.time); }
void warp_met(unsigned warp) { watched.warp_met[warp] = ++watched.time; }

}  // namespace cudasim

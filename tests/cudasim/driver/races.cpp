// Races between the threads of a block: two touch one byte of shared memory, one of them writes, and they do not meet between.
//
// Threads meet at a barrier of the block; those of a warp also at __syncwarp, but not at a shuffle or a vote, which order no
// memory. Times are counted: how often the block has met, how often each warp has. Of each byte the last writer and two readers
// are known, with their times. So of a race among many readers one at least is seen.
#include "races.h"

#include <algorithm>
#include <array>

namespace cudasim {
namespace {

struct Visit {
    uint32_t thread = 0;  // its number in the block and one; 0: nobody
    uint32_t block_time = 0, warp_time = 0, fences = 0;
};

struct Byte {
    Visit writer, reader, other;  // two readers of different threads
};

struct Piece {
    uintptr_t begin, end;
    std::vector<Byte> bytes;
};

struct Watched {
    const CudasimState* state = nullptr;
    std::string kernel, found;  // the first race
    std::vector<Piece> pieces;  // of shared memory
    uint32_t block_time = 0;
    std::array<uint32_t, 32> warp_time{};
    std::array<uint32_t, 1024> fences{};  // before bulk copies, of each thread
};

Watched watched;

bool unordered(const Visit& before, const Visit& now) {
    if (!before.thread || before.thread == now.thread || before.block_time != now.block_time) return false;
    const bool one_warp = (before.thread - 1) / 32 == (now.thread - 1) / 32;
    return !one_warp || before.warp_time == now.warp_time;
}

unsigned running_number() {
    const CudasimTriple &thread = watched.state->thread, &size = watched.state->block_size;
    return (thread.z * size.y + thread.y) * size.x + thread.x;
}

void tell(const Visit& before, const Visit& now, const Piece& piece, uintptr_t at, bool writes) {
    const CudasimTriple& block = watched.state->block;
    watched.found = text("kernel %s: threads %u and %u of block (%u, %u, %u) touch byte %zu of %zu of shared memory and do not "
                         "meet between; the second %s",
                         watched.kernel.c_str(), before.thread - 1, now.thread - 1, block.x, block.y, block.z,
                         static_cast<size_t>(at - piece.begin), piece.bytes.size(), writes ? "writes" : "reads");
}

void visit(Piece& piece, uintptr_t at, const Visit& now, bool writes) {
    if (!watched.found.empty()) return;
    Byte& byte = piece.bytes[at - piece.begin];
    for (const Visit* before : {&byte.writer, &byte.reader, &byte.other})
        if ((writes || before == &byte.writer) && unordered(*before, now)) return tell(*before, now, piece, at, writes);
    if (writes) {
        byte.writer = now;
        return;
    }
    if (byte.reader.thread != now.thread) byte.other = byte.reader;
    byte.reader = now;
}

}  // namespace

void begin_watch(const Launch& launch) {
    watched = {};
    watched.kernel = launch.function->kernel->name;
    auto add = [](const unsigned char* begin, size_t bytes) {
        const auto at = reinterpret_cast<uintptr_t>(begin);
        if (bytes) watched.pieces.push_back({at, at + bytes, std::vector<Byte>(bytes)});
    };
    for (auto& [begin, bytes] : launch.function->shared) add(begin, bytes);
    add(launch.function->module->image->dynamic_shared, launch.dynamic_bytes);
    watched.state = launch.function->module->image->state;
}

void end_watch() {
    if (!watched.found.empty()) problem("race", watched.found);
    watched = {};
}

void watch_block() {
    watched.fences = {};
    for (Piece& piece : watched.pieces) std::fill(piece.bytes.begin(), piece.bytes.end(), Byte{});
}

void watch(uintptr_t address, size_t bytes, bool writes) {
    if (!watched.state || !watched.found.empty()) return;
    const unsigned number = running_number();
    const Visit now{number + 1, watched.block_time, watched.warp_time[number / 32], watched.fences[number]};
    for (Piece& piece : watched.pieces)
        for (uintptr_t at = std::max(address, piece.begin); at < std::min(address + bytes, piece.end); ++at)
            visit(piece, at, now, writes);
}

bool fenced(uintptr_t address, size_t bytes) {
    for (const Piece& piece : watched.pieces)
        for (uintptr_t at = std::max(address, piece.begin); at < std::min(address + bytes, piece.end); ++at) {
            const Visit& writer = piece.bytes[at - piece.begin].writer;
            if (writer.thread && watched.fences[writer.thread - 1] == writer.fences) return false;
        }
    return true;
}

void fence_async() {
    if (watched.state) ++watched.fences[running_number()];
}

void block_met() { ++watched.block_time; }
void warp_met(unsigned warp) { ++watched.warp_time[warp]; }

}  // namespace cudasim

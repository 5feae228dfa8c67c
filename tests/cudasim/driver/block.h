// A block that runs: its threads, which are fibers, and where each of them is. Its turns are in block.cpp, the grid's in grid.cpp.
#pragma once
#include <cstring>
#include <string>
#include <vector>

#include "fibers.h"
#include "sim.h"

namespace cudasim {

constexpr unsigned MOST_THREADS = 1024;  // of a block

enum class State { fresh, ready, barrier, collective, finished };

// Where in a kernel.
struct Site {
    const char* file = "";
    int line = 0;
    bool operator==(const Site& other) const {
        return line == other.line && (file == other.file || !strcmp(file, other.file));
    }
    std::string name() const { return text("%s:%d", file, line); }
};

struct Thread {
    Fiber fiber;
    void* stack = nullptr;
    CudasimTriple index;
    unsigned lane;
    State state;
    Site site;
    int what;          // the collective, or a barrier's predicate
    unsigned mask, source;
    uint64_t value, result;
};

struct Warp {
    Thread *first, *last;
    std::vector<Thread*> order;

    Thread* lane(unsigned number) const { return first + number < last ? first + number : nullptr; }
};

struct Block {
    CudasimTriple index;
    std::vector<Thread> threads;
    std::vector<Warp> warps;
    Thread* running;
    size_t live;
};

extern Block block;  // the one that runs
extern const CudasimCalls calls;

void begin_threads(const Launch& launch, CudasimState* state);  // of a grid, before its first block
void prepare_threads(const CudasimTriple& size);                // of the block that runs
void run_turn();                                                // of the block that runs
unsigned running_thread();                                      // its number in the block

// pipeline.cpp: asynchronous copies into shared memory, of 4 to 16 bytes
void begin_pipelines();  // of a block
void pipeline_copy(void* to, const void* from, size_t bytes);
void pipeline_commit();
void pipeline_wait(size_t left);

// traffic.cpp: what kernels that are counted do
bool counts_traffic();  // whether CUDASIM_COUNT asks for it
void begin_traffic(const Launch& launch);
void begin_block_traffic();
void end_traffic();
// An asynchronous copy into shared memory reads these bytes; `caller` is the place in the kernel.
void count_copy(const void* from, size_t bytes, const void* caller);
void count_atomic(const void* at, size_t bytes, const void* caller);
enum class Meeting { block, warp };
void count_meeting(Meeting who);
void count_step();  // of a chain, by the thread that runs

// races.cpp: races between the threads of a launch; only kernels that are counted are watched
void begin_watch(const Launch& launch);
void end_watch();  // notes the first race as a problem; its caller holds the lock
void watch_block();  // which begins
// A thread touches these bytes: shared memory, memory of a device, or neither. Strong: by an atomic or a volatile access.
void watch(uintptr_t address, size_t bytes, bool writes, bool strong = false);
// All threads of the block that runs have met; lanes of a warp, at __syncwarp.
void block_met();
void warp_met(unsigned warp);  // its number in the block

}  // namespace cudasim

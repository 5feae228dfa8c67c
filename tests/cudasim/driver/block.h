// A block that runs: its threads, which are fibers, and where each of them is. Its turns are in block.cpp, the grid's in grid.cpp.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "bulk.h"
#include "fibers.h"
#include "sim.h"

namespace cudasim {

constexpr unsigned MOST_THREADS = 1024;  // of a block
constexpr unsigned MOST_BLOCKS = 8;      // of a cluster

enum class State { fresh, ready, barrier, cluster, collective, waiting, finished };

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
    std::function<bool()> done;  // what it waits for
};

struct Warp {
    Thread *first, *last;
    std::vector<Thread*> order;

    Thread* lane(unsigned number) const { return first + number < last ? first + number : nullptr; }
};

struct Block {
    unsigned rank;  // in its cluster
    CudasimTriple index;
    std::vector<Thread> threads;
    std::vector<Warp> warps;
    Thread* running;
    size_t live;
    std::vector<unsigned char> shared;  // its shared memory, while another block of the cluster runs
};

extern Block* block;  // the one that runs
extern const CudasimCalls calls;

void begin_threads(const Launch& launch, CudasimState* state);  // of a grid, before its first block
void prepare_threads(const CudasimTriple& size);                // of the block that runs
bool run_turn();  // of the block that runs; false: all of its threads that are left wait for other blocks of the cluster
std::string where(const Block& block, const Thread& thread);

}  // namespace cudasim

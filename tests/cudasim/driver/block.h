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

}  // namespace cudasim

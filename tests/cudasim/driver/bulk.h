// Bulk copies and the barriers that go with them; see bulk.cpp. And what they ask of the block that runs, see block.cpp.
#pragma once
#include <cstring>
#include <functional>
#include <string>

#include "sim.h"

namespace cudasim {

// Where in a kernel.
struct Site {
    const char* file = "";
    int line = 0;
    bool operator==(const Site& other) const {
        return line == other.line && (file == other.file || !strcmp(file, other.file));
    }
    std::string name() const { return text("%s:%d", file, line); }
};

extern const CudasimBulk bulk_calls;
void begin_bulk();  // of a block
void end_bulk();    // throws the problem of copies that are still under way
bool lands_early();  // whether one may land although threads can go on
bool land_a_load();  // one that is under way, drawn; whether there was one
std::string what_barriers_lack();

void wait_until(std::function<bool()> done, const char* file, int line);  // the thread that runs goes on when it is
void block_aborts(const char* kind, const char* file, int line, const char* what);
unsigned running_rank();    // of the block that runs in its cluster
unsigned running_thread();  // its number in the cluster, of which each block has MOST_THREADS

}  // namespace cudasim

// What a compiled kernel file and the simulated driver know of each other.
#pragma once
#include <stddef.h>
#include <stdint.h>

struct CudasimTriple {
    unsigned x, y, z;
};

// The built-in variables of the thread that runs now; the driver writes them at every switch.
struct CudasimState {
    CudasimTriple thread, block, block_size, grid_size;
    unsigned lane;
};

enum CudasimCollective { CUDASIM_SYNCWARP, CUDASIM_SHUFFLE, CUDASIM_BALLOT, CUDASIM_MATCH };

// What a kernel asks of the driver. A site (file, line) is passed where threads must meet at the same place.
struct CudasimCalls {
    int (*barrier)(int predicate, const char* file, int line);
    uint64_t (*collective)(int what, unsigned mask, uint64_t value, unsigned source, const char* file, int line);
    void (*pipeline_copy)(void* to, const void* from, size_t bytes);
    void (*pipeline_commit)();
    void (*pipeline_wait)(size_t groups_left);
    void (*atomic)(const void* at, size_t bytes);
    void (*step_of_chain)();
    void (*abort)(const char* kind, const char* file, int line, const char* text);
};

struct CudasimParameter {
    size_t offset, bytes;
    bool pointer;
};

struct CudasimKernel {
    const char* name;
    void (*run)(const unsigned char* arguments);
    const CudasimParameter* parameters;
    size_t parameter_count, parameter_bytes;
    unsigned threads_bound;  // __launch_bounds__, 0 without
    const char* const* functions;  // all that it may call, as parts of mangled names: "5total"
};

constexpr unsigned CUDASIM_MAGIC = 0xC0DA51u;
constexpr size_t CUDASIM_DYNAMIC_BYTES = 256 * 1024;  // above every device's opt-in limit, the rest is a guard zone

struct CudasimImage {
    unsigned magic;
    int toolkit;       // 13000 for nvcc 13.0
    int architecture;  // 90 for sm_90
    bool portable;     // PTX: runs on any later architecture
    const CudasimKernel* kernels;
    size_t kernel_count;
    CudasimState* state;
    const CudasimCalls** calls;
    unsigned char* dynamic_shared;
};

// The figures of real devices, and what is said of the one that was chosen.
#include "profile.h"

#include <cstdlib>
#include <cstring>

#include "sim.h"

namespace cudasim {
namespace {

const Profile PROFILES[] = {
    {"h200", "NVIDIA H200", 9, 0, 132, 227, 228, 2048, 32, 143771, 61440, 1980000, 3201000, 6016},
    {"a100", "NVIDIA A100-SXM4-80GB", 8, 0, 108, 163, 164, 2048, 32, 81154, 40960, 1410000, 1593000, 5120},
    {"rtx4090", "NVIDIA GeForce RTX 4090", 8, 9, 128, 99, 100, 1536, 24, 24081, 73728, 2520000, 10501000, 384},
    {"t4", "Tesla T4", 7, 5, 40, 64, 64, 1024, 16, 14914, 4096, 1590000, 5001000, 256},
};

}  // namespace

const Profile& profile() {
    static const Profile* chosen = [] {
        const char* key = getenv("CUDASIM_DEVICE");
        for (const Profile& p : PROFILES)
            if (key && !strcmp(key, p.key)) return &p;
        return &PROFILES[0];
    }();
    return *chosen;
}

int attribute(CUdevice_attribute which) {
    const Profile& p = profile();
    switch (which) {
        case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED: return !getenv("CUDASIM_POOLS") || atoi(getenv("CUDASIM_POOLS"));
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: return 1024;
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: return 64;
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: return 2147483647;
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: return 65535;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: return 48 * 1024;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: return p.opt_in_kb * 1024;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: return p.per_processor_kb * 1024;
        case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK: return p.major >= 8 ? 1024 : 0;
        case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
        case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
        case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR: return 65536;
        case CU_DEVICE_ATTRIBUTE_WARP_SIZE: return 32;
        case CU_DEVICE_ATTRIBUTE_MAX_PITCH: return 2147483647;
        case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: return p.clock_khz;
        case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: return p.memory_clock_khz;
        case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: return p.bus_bits;
        case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT: return 512;
        case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: return p.processors;
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: return p.threads_per_processor;
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR: return p.blocks_per_processor;
        case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: return static_cast<int>(p.l2_kb * 1024);
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return p.major;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: return p.minor;
        case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT: return 3;
        case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
        case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
        case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
        case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
        case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED: return 1;
        default: return 0;
    }
}

}  // namespace cudasim

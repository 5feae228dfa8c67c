// The figures of real devices, and what is said of the one that was chosen.
#include <cstdlib>
#include <cstring>

#include "sim.h"

namespace cudasim {
namespace {

const Profile PROFILES[] = {
    {"h200", "NVIDIA H200", 9, 0, 132, 227, 228, 143771, 61440},
    {"a100", "NVIDIA A100-SXM4-80GB", 8, 0, 108, 163, 164, 81154, 40960},
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
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: return p.opt_in_kb * 1024;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: return p.per_processor_kb * 1024;
        case CU_DEVICE_ATTRIBUTE_WARP_SIZE: return 32;
        case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: return p.processors;
        case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: return p.l2_kb * 1024;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return p.major;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: return p.minor;
        case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING: return 1;
        default: return 0;
    }
}

}  // namespace cudasim

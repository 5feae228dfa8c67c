// What a simulated device is: the figures of a real one.
#pragma once
#include <cstddef>

namespace cudasim {

struct Profile {
    const char *key, *name;
    int major, minor, processors, opt_in_kb, per_processor_kb, threads_per_processor, blocks_per_processor;
    size_t memory_mb, l2_kb;
    int clock_khz, memory_clock_khz, bus_bits;
};

// The one that CUDASIM_DEVICE names.
const Profile& profile();

}  // namespace cudasim

// Races between the threads of a launch; see races.cpp. Only kernels that are counted are watched.
#pragma once
#include "sim.h"

namespace cudasim {

void begin_watch(const Launch& launch);
void end_watch();  // notes the first race as a problem; its caller holds the lock
void watch_block();  // which begins
// A thread touches these bytes: shared memory, memory of a device, or neither. Strong: by an atomic or a volatile access.
void watch(uintptr_t address, size_t bytes, bool writes, bool strong = false);
// All threads of the block that runs have met; lanes of a warp, at __syncwarp.
void block_met();
void warp_met(unsigned warp);  // its number in the block

}  // namespace cudasim

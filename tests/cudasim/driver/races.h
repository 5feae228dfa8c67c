// Races between the threads of a launch; see races.cpp. Only kernels that are counted are watched.
#pragma once
#include "sim.h"

namespace cudasim {

void begin_watch(const Launch& launch);
void end_watch();  // notes the first race as a problem; its caller holds the lock
void watch_cluster();  // which begins: a block, or some that run together
// A thread touches these bytes: shared memory, memory of a device, or neither. Strong: by an atomic or a volatile access.
void watch(uintptr_t address, size_t bytes, bool writes, bool strong = false);
// Whether each thread that wrote these bytes has fenced them since, for bulk copies, which are of another proxy.
bool fenced(uintptr_t address, size_t bytes);
void fence_async();
// All threads of the block that runs have met; those of all blocks of its cluster; lanes of a warp, at __syncwarp.
void block_met();
void cluster_met();
void warp_met(unsigned warp);  // its number in the cluster

}  // namespace cudasim

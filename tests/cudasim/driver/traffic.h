// What kernels that are counted do; see traffic.cpp.
#pragma once
#include <cstddef>

#include "sim.h"

namespace cudasim {

bool counts_traffic();  // whether CUDASIM_COUNT asks for it
void begin_traffic(const Launch& launch);
void begin_cluster_traffic();  // of one block, or of some that run together
void end_traffic();
// An asynchronous copy into shared memory reads these bytes, of which somebody looks at `wanted` from `first` on; `caller` is
// the place in the kernel.
void count_copy(const void* from, size_t bytes, const void* caller, size_t first, size_t wanted);
void count_store(const void* to, size_t bytes, const void* caller);  // a bulk copy out of it writes them
void count_atomic(const void* at, size_t bytes, const void* caller);
enum class Meeting { block, warp };
void count_meeting(Meeting who);
void count_step();  // of a chain, by the thread that runs

}  // namespace cudasim

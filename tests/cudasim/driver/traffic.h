// What kernels that are counted do; see traffic.cpp.
#pragma once
#include <cstddef>

#include "sim.h"

namespace cudasim {

bool counts_traffic();  // whether CUDASIM_COUNT asks for it
void begin_traffic(const Launch& launch);
void begin_block_traffic();
void end_traffic();
// An asynchronous copy into shared memory reads these bytes; `caller` is the place in the kernel.
void count_copy(const void* from, size_t bytes, const void* caller);
void count_atomic(const void* at, size_t bytes, const void* caller);
enum class Meeting { block, warp };
void count_meeting(Meeting who);
void count_step();  // of a chain, by the thread that runs

}  // namespace cudasim

// What kernels move to and from the memory of a device; see traffic.cpp.
#pragma once
#include <cstddef>

#include "sim.h"

namespace cudasim {

bool counts_traffic();  // whether CUDASIM_COUNT asks for it
void begin_traffic(const Launch& launch);
void end_traffic();
// An asynchronous copy into shared memory reads these bytes; `caller` is the place in the kernel.
void count_copy(const void* from, size_t bytes, const void* caller);
void count_store(const void* to, size_t bytes, const void* caller);  // a bulk copy out of it writes them

}  // namespace cudasim

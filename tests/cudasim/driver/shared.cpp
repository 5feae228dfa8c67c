// Shared memory of a block: poisoned before, its guard zone checked behind.
#include <algorithm>
#include <cstring>

#include "sim.h"

namespace cudasim {
namespace {

constexpr size_t SHARED_GUARD = 4096;  // bytes behind the dynamic shared memory

// Calls body(begin, bytes) for each variable, and for what is dynamic with its guard zone.
template <class Body> void each_part(const Launch& launch, Body body) {
    for (auto& [begin, bytes] : launch.function->shared) body(begin, bytes);
    body(launch.function->module->image->dynamic_shared, launch.dynamic_bytes + SHARED_GUARD);
}

}  // namespace

void poison_shared(const Launch& launch) {
    each_part(launch, [](unsigned char* begin, size_t bytes) { memset(begin, POISON, bytes); });
}

void check_shared(const Launch& launch, const CudasimTriple& block) {
    const unsigned char* end = launch.function->module->image->dynamic_shared + launch.dynamic_bytes;
    auto changed = [](unsigned char byte) { return byte != POISON; };
    const unsigned char* written = std::find_if(end, end + SHARED_GUARD, changed);
    if (written == end + SHARED_GUARD) return;
    throw Problem{"out_of_bounds",
                  text("a write %zu bytes beyond the %zu bytes of dynamic shared memory, in block ",
                       static_cast<size_t>(written - end), launch.dynamic_bytes) +
                      coordinates(block),
                  CUDA_ERROR_ILLEGAL_ADDRESS};
}

}  // namespace cudasim

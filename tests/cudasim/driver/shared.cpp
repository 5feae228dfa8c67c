// Shared memory of a block: poisoned before, its guard zone checked behind.
#include <algorithm>
#include <cstring>

#include "sim.h"

namespace cudasim {
namespace {

constexpr size_t SHARED_GUARD = 4096;  // bytes behind the dynamic shared memory

}  // namespace

void poison_shared(const Launch& launch) {
    for (auto& [begin, bytes] : launch.function->shared) memset(begin, POISON, bytes);
    memset(launch.function->module->image->dynamic_shared, POISON, launch.dynamic_bytes + SHARED_GUARD);
}

void check_shared(const Launch& launch, const std::string& block) {
    const unsigned char* end = launch.function->module->image->dynamic_shared + launch.dynamic_bytes;
    auto changed = [](unsigned char byte) { return byte != POISON; };
    const unsigned char* written = std::find_if(end, end + SHARED_GUARD, changed);
    if (written == end + SHARED_GUARD) return;
    throw Problem{"out_of_bounds",
                  text("a write %zu bytes beyond the %zu bytes of dynamic shared memory, in block ",
                       static_cast<size_t>(written - end), launch.dynamic_bytes) +
                      block,
                  CUDA_ERROR_ILLEGAL_ADDRESS};
}

}  // namespace cudasim

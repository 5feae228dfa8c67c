// Every choice comes from one seed: a counter, scrambled by SplitMix64, so that threads may draw without a lock.
#include <atomic>

#include "sim.h"

namespace cudasim {

static std::atomic<uint64_t> counter{0};
static std::atomic<bool> odd{false};

uint64_t draw(uint64_t below) {
    uint64_t z = counter.fetch_add(0x9E3779B97F4A7C15u, std::memory_order_relaxed);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return below ? (z ^ (z >> 31)) % below : 0;
}

void reseed(uint64_t seed) {
    counter = seed * 0xD1342543DE82EF95u + 0x632BE59BD9B4E019u;
    odd = seed % 2;
}

bool odd_seed() { return odd; }

}  // namespace cudasim

extern "C" void cudasim_seed(uint64_t seed) { cudasim::reseed(seed); }

// In which order the blocks of a grid run.
#pragma once
#include <numeric>

#include "sim.h"

namespace cudasim {

// A permutation of the blocks without a list of them: a step that has no divisor in common with their number.
struct BlockOrder {
    uint64_t count, step, at;

    explicit BlockOrder(uint64_t count) : count(count), step(1 + draw(count)), at(draw(count)) {
        while (std::gcd(step, count) != 1) ++step;
    }
    uint64_t next() { return at = (at + step) % count; }
};

}  // namespace cudasim

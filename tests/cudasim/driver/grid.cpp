// Runs the blocks of a grid, one after another in a drawn order.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "block.h"

namespace cudasim {
namespace {

// A permutation of the blocks without a list of them: a step that has no divisor in common with their number.
struct BlockOrder {
    uint64_t count, step, at;

    explicit BlockOrder(uint64_t count) : count(count), step(1 + draw(count)), at(draw(count)) {
        while (std::gcd(step, count) != 1) ++step;
    }
    uint64_t next() { return at = (at + step) % count; }
};

constexpr size_t SHARED_GUARD = 4096;  // bytes behind the dynamic shared memory

// Calls body(begin, bytes) for each variable, and for what is dynamic with its guard zone.
template <class Body> void each_part(const Launch& launch, Body body) {
    for (auto& [begin, bytes] : launch.function->shared) body(begin, bytes);
    body(launch.function->module->image->dynamic_shared, launch.dynamic_bytes + SHARED_GUARD);
}

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

void run_block(const Launch& launch, uint64_t at) {
    const CudasimTriple& grid = launch.grid;
    block.index = {static_cast<unsigned>(at % grid.x), static_cast<unsigned>(at / grid.x % grid.y),
                   static_cast<unsigned>(at / grid.x / grid.y)};
    launch.function->module->image->state->block = block.index;
    begin_pipelines();
    begin_block_traffic();
    poison_shared(launch);
    prepare_threads(launch.block);
    while (block.live) run_turn();
    check_shared(launch, block.index);
}

void run_blocks(const Launch& launch) {
    const CudasimTriple& grid = launch.grid;
    BlockOrder order(uint64_t{grid.x} * grid.y * grid.z);
    for (uint64_t left = order.count; left > 0; --left) run_block(launch, order.next());
}

}  // namespace

void run_grid(const Launch& launch) {
    const CudasimImage& image = *launch.function->module->image;
    *image.calls = &calls;
    image.state->block_size = launch.block;
    image.state->grid_size = launch.grid;
    begin_threads(launch, image.state);
    begin_traffic(launch);
    run_guarded([&] { run_blocks(launch); });
    end_traffic();
}

}  // namespace cudasim

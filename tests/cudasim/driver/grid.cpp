// Runs the blocks of a grid, one after another in a drawn order.
#include "block.h"
#include "block_order.h"
#include "pipeline.h"
#include "traffic.h"

namespace cudasim {
namespace {

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

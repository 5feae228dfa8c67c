// Runs the blocks of a grid: one after another, or those of a cluster together, in a drawn order.
//
// Blocks of a cluster have one place for their shared memory, so it is exchanged when another of them goes on. They take turns of
// drawn lengths, and go on behind a barrier of the cluster when all of their threads that are left have come to it.
#include <array>

#include "block.h"
#include "block_order.h"
#include "pipeline.h"
#include "races.h"
#include "traffic.h"

namespace cudasim {
namespace {

std::array<Block, MOST_BLOCKS> cluster;

unsigned cluster_size(const Launch& launch) { return launch.function->kernel->cluster; }

void enter(Block& next, const Launch& launch) {
    if (block == &next) return;
    if (cluster_size(launch) > 1) {
        if (block) save_shared(launch, block->shared);
        restore_shared(launch, next.shared);
    }
    block = &next;
    launch.function->module->image->state->block = next.index;
}

// Of a grid without clusters each block is one of its own.
void prepare_cluster(const Launch& launch, uint64_t at) {
    const CudasimTriple& grid = launch.grid;
    block = nullptr;
    for (unsigned rank = 0; rank < cluster_size(launch); ++rank, ++at) {
        Block& one = cluster[rank];
        one.rank = rank;
        one.index = {static_cast<unsigned>(at % grid.x), static_cast<unsigned>(at / grid.x % grid.y),
                     static_cast<unsigned>(at / grid.x / grid.y)};
        one.shared.clear();
        enter(one, launch);
        if (rank == 0) begin_cluster_traffic();
        poison_shared(launch);
        begin_bulk();
        prepare_threads(launch.block);
    }
}

void release_cluster(unsigned size) {
    const Thread *first = nullptr, *odd = nullptr;
    const Block *its = nullptr, *odd_one = nullptr;
    for (unsigned rank = 0; rank < size; ++rank)
        for (const Thread& thread : cluster[rank].threads) {
            if (thread.state == State::finished) continue;
            const bool there = thread.state == State::cluster;
            (there ? first : odd) = &thread;
            (there ? its : odd_one) = &cluster[rank];
        }
    if (odd)
        throw Problem{"barrier",
                      where(*its, *first) + " waits for its cluster at " + first->site.name() + ", " + where(*odd_one, *odd) +
                          " for others at " + odd->site.name() + what_barriers_lack(),
                      CUDA_ERROR_LAUNCH_FAILED};
    cluster_met();
    for (unsigned rank = 0; rank < size; ++rank) {
        count_meeting(Meeting::block);
        for (Thread& thread : cluster[rank].threads)
            if (thread.state == State::cluster) thread.state = State::ready;
    }
}

void run_cluster(const Launch& launch) {
    const unsigned size = cluster_size(launch);
    for (bool live = true; live;) {
        bool any = live = false;
        for (unsigned k = 0, first = size > 1 ? static_cast<unsigned>(draw(size)) : 0; k < size; ++k) {
            Block& one = cluster[(first + k) % size];
            if (!one.live) continue;
            live = true;
            enter(one, launch);
            for (uint64_t turns = size > 1 ? 1 + draw(16) : 0; one.live && run_turn();) {
                any = true;
                if (turns && !--turns) break;
            }
        }
        if (live && !any) release_cluster(size);
    }
    for (unsigned rank = 0; rank < size; ++rank) {
        enter(cluster[rank], launch);
        end_bulk();
        check_shared(launch, cluster[rank].index);
    }
}

void run_clusters(const Launch& launch) {
    const CudasimTriple& grid = launch.grid;
    const unsigned size = cluster_size(launch);
    BlockOrder order(uint64_t{grid.x} * grid.y * grid.z / size);
    for (uint64_t left = order.count; left > 0; --left) {
        begin_pipelines();
        prepare_cluster(launch, order.next() * size);
        run_cluster(launch);
    }
}

}  // namespace

void run_grid(const Launch& launch) {
    const CudasimImage& image = *launch.function->module->image;
    *image.calls = &calls;
    image.state->block_size = launch.block;
    image.state->grid_size = launch.grid;
    begin_threads(launch, image.state);
    begin_traffic(launch);
    run_guarded([&] { run_clusters(launch); });
    end_traffic();
}

}  // namespace cudasim

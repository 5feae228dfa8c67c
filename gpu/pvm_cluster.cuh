// A unit of one stream that the blocks of a cluster share, each with a ring of its own (pvm_ring.cuh).
//
// What is divided: runs of the world when the unit gathers, columns when errors are pulled back, rows of each matrix when it is
// visited. What is small is done by the first block: errors, publishing. What a block hands to others lies in memory, on the tape
// or beside it, and between two phases they meet. No sum is divided, so a unit has the bits that one block gives it.
//
// A row of a matrix is pulled back through by several blocks and visited by one, so none keeps a matrix of a shared unit.
#pragma once
#include "cluster.cuh"
#include "pvm_ring.cuh"

// The computing warps of all blocks that share the unit. The movers come to their meetings too: all threads are counted there.
struct Sharing : Computing {
    using Computing::meet;
    static __device__ int rank(const Unit &unit) { return unit.rank; }
    static __device__ int blocks(const Unit &unit) { return unit.blocks; }
    static __device__ void meet(const Unit &unit)
    {
        if (unit.blocks == 1)
            meet();
        else
            meet_cluster();
    }
    static __device__ void attend(const Unit &unit)
    {
        if (unit.blocks > 1) meet_cluster();
    }
};

// Hierarchical softmax by Hogwild, a rival of our trees: examples race, and what a node is when it is read depends on who came first.
#include "../../gpu/include/logistic.cuh"
#include "../../gpu/include/warp.cuh"

constexpr int CHUNKS = 8;  // columns of a lane, 32 apart: rows of up to 256 numbers

// grad[b] and loss[b], and the nodes of b's path moved: no order, no lock, no number lost
//   work    a warp an example, up from its leaf
//   launch  grid: B / 8, block: 256
//   bound   memory: 12 D bytes a node of a path, most of them in the L2 cache; then the root, where all atomic additions meet
extern "C" __global__ void hogwild(float *grad, float *loss, float *nodes, const int *leaf_up, const int *node_up,
                                   const float *hidden, const int *target, float rate, int B, int D)
{
    const int b = blockIdx.x * warps() + warp();
    if (b >= B) return;
    float h[CHUNKS], g[CHUNKS], total = 0;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
        const int d = 32 * c + lane();
        h[c] = d < D ? hidden[(int64)b * D + d] : 0;
        g[c] = 0;
    }
    for (int up = leaf_up[target[b]], above; up >= 0; up = above) {
        above = node_up[up >> 1];  // asked for before the row
        float *row = nodes + (int64)(up >> 1) * D, w[CHUNKS], product[1] = {0};
#pragma unroll
        for (int c = 0; c < CHUNKS; ++c) {
            const int d = 32 * c + lane();
            w[c] = d < D ? row[d] : 0;
            product[0] = fmaf(w[c], h[c], product[0]);
        }
        const float score = sums<1>(product), toward = up & 1 ? score : -score, miss = miss_of(toward, up & 1);
        total += cost(toward);
#pragma unroll
        for (int c = 0; c < CHUNKS; ++c) {
            const int d = 32 * c + lane();
            g[c] = fmaf(-miss, w[c], g[c]);
            if (d < D) atomicAdd(row + d, rate * miss * h[c]);
        }
    }
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c)
        if (32 * c + lane() < D) grad[(int64)b * D + 32 * c + lane()] = g[c];
    if (lane() == 0) loss[b] = total;
}

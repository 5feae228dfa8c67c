// Hierarchical softmax whose nodes learn from up to `together` examples at once.
//
// Examples are sorted by their classes' place in the tree, from left to right: so the examples of any node are neighbours at
// every level, and who is first among them is told by a look at the one before. All arrays but those of the batch are in that
// order, p for a place in it and b for an example.
//
// entries (depth, B)     2 * node + turn at each level of each example's path, the root's level first; -1 past its end
// seen    (depth, B)     which row of `found` the example meets there; -1: the node's own. Null: always that
// misses  (depth, B)     turn - logistic(score), times the example's weight
// found   (depth S, D)   rows of crowded nodes, those with more than `together` examples, as their groups found them;
//                        found_biases (depth S,) the same of their biases
// parts   (depth, B / SPAN, 2, D)  gradients of nodes whose examples stand in several spans, of each span's examples alone:
//                        of the node that goes on beyond the span, and of the one that came into it; part_biases the same
#include "include/tree_groups.cuh"
#include "include/tree_paths.cuh"

constexpr int WARPS = 4;        // of a block of `judge`
constexpr int MOVERS = 8;       // warps of a block of `move`, at most
constexpr int SPAN = 32;        // places of a block of `move`: a lane each
constexpr int PARTS = 16;       // gradients of spans that `finish` asks for at once

// Blocks of `judge` on a multiprocessor: by 8 on each of 132 all of 1,024 examples are under way at once. Before sm_90 they
// would spill registers.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define RESIDENT 7
#else
#define RESIDENT 8
#endif

// grad[b] and loss[b], the sums over b's path, and the misses there
//   work    a block an example, a warp every fourth level of its path: so IN_FLIGHT rows of each are on their way at once
//   launch  grid: B, block: 128, shared memory: 4 WARPS D bytes where D > NARROW
//   bound   latency: an entry, then the rows; 4 D bytes a node of a path, mostly from the L2 cache; 8 D an example
//   order   from the root down, a warp its levels, then the warps in turn; a score: lanes stride over the columns, then a
//           butterfly
extern "C" __global__ void __launch_bounds__(32 * WARPS, RESIDENT)
    judge(float *grad, float *loss, float *misses, const float *rows, const float *biases, const float *found,
          const float *found_biases, const int *entries, const int *seen, const int *order, const float *hidden,
          const float *weight, int depth, int B, int D)
{
    ROOM(space, WARPS);
    __shared__ float totals[WARPS];
    const int p = blockIdx.x, b = order[p];
    const float *h = hidden + (int64)b * D, times = weight ? weight[b] : 1;
    float *g = space + warp() * D, total = 0;
    for (int d = lane(); d < D; d += 32) g[d] = 0;
    for (int first = warp(); first < depth; first += WARPS * IN_FLIGHT) {  // lane k knows the k-th level from there
        const int level = first + WARPS * lane();
        const int64 at = (int64)level * B + p;
        const bool there = lane() < IN_FLIGHT && level < depth;
        const int entry = there ? entries[at] : -1, slot = there && seen ? seen[at] : -1;
        const int row = slot < 0 ? max(entry, 0) >> 1 : ~slot, many = __popc(__ballot_sync(FULL, entry >= 0));
        if (!many) break;
        const float bias = entry < 0 || !biases ? 0 : slot < 0 ? biases[row] : found_biases[slot];
        float w[IN_FLIGHT][EACH], product[IN_FLIGHT] = {};
        for (int d0 = 0; d0 < D; d0 += 32 * EACH) {
            take(w, row, many, rows, found, d0, D);
#pragma unroll
            for (int c = 0; c < EACH; ++c) {
                const float mine = d0 + 32 * c + lane() < D ? h[d0 + 32 * c + lane()] : 0;
#pragma unroll
                for (int k = 0; k < IN_FLIGHT; ++k) product[k] = fmaf(w[k][c], mine, product[k]);
            }
        }
        const float sum = sums<IN_FLIGHT>(product);  // lane l has that of row l / (32 / IN_FLIGHT)
        const float score = __shfl_sync(FULL, sum, lane() * (32 / IN_FLIGHT) % 32) + bias;
        const bool turn = entry & 1;
        const float toward = turn ? score : -score, miss = entry < 0 ? 0 : times * miss_of(toward, turn);
        total += entry < 0 ? 0 : cost(toward);
        if (entry >= 0) misses[at] = miss;
        for (int d0 = 0; d0 < D; d0 += 32 * EACH) {
            if (D > 32 * EACH) take(w, row, many, rows, found, d0, D);  // else it has them still
#pragma unroll
            for (int c = 0; c < EACH; ++c) {
                const int d = d0 + 32 * c + lane();
                float down = d < D ? g[d] : 0;
#pragma unroll
                for (int k = 0; k < IN_FLIGHT; ++k) down = fmaf(-__shfl_sync(FULL, miss, k), w[k][c], down);
                if (d < D) g[d] = down;
            }
        }
    }
    total = sums<1>(&total);
    if (lane() == 0) totals[warp()] = total;
    __syncthreads();
    for (int d = threadIdx.x; d < D; d += blockDim.x) {
        float down = space[d];
        for (int k = 1; k < WARPS; ++k) down += space[k * D + d];
        grad[(int64)b * D + d] = down;
    }
    if (threadIdx.x) return;
    for (int k = 1; k < WARPS; ++k) total += totals[k];
    loss[b] = times * total;
}

// g (D) = the sum of -miss hidden[b] over the lanes first:last, each of which knows b and miss.
__device__ __forceinline__ void gather(float *g, const float *hidden, int b, float miss, int first, int last, int D)
{
    for (int d0 = 0; d0 < D; d0 += 32 * EACH) {
        float down[EACH] = {};
        for (int i = first; i < last; i += IN_FLIGHT) {
            float h[IN_FLIGHT][EACH];
            take(h, __shfl_sync(FULL, b, (i + lane()) % 32), last - i, hidden, hidden, d0, D);
#pragma unroll
            for (int k = 0; k < IN_FLIGHT; ++k) {
                const float push = __shfl_sync(FULL, miss, (i + k) % 32);
#pragma unroll
                for (int c = 0; c < EACH; ++c) down[c] = fmaf(-push, h[k][c], down[c]);
            }
        }
#pragma unroll
        for (int c = 0; c < EACH; ++c)
            if (d0 + 32 * c + lane() < D) g[d0 + 32 * c + lane()] = down[c];
    }
}

// The examples of SPAN places: nodes without a crowd that have no others move once, against their sum; of a node that has, the
// sum is noted, and `finish` moves it.
//   work    a block a span of a level, its warps the nodes there in turn
//   launch  grid: (B / SPAN, depth), block: 32 MOVERS, or 128 and shared memory of 16 D bytes where D > NARROW
//   bound   latency: entries, then vectors, then rows; 4 D bytes an example of a node, from the L2 cache, and 8 D a node
//   order   over examples from left to right
extern "C" __global__ void __launch_bounds__(32 * MOVERS)
    move(NODES, float *parts, float *part_biases, const float *misses, const int *entries, const int *seen, const int *order,
         const float *hidden, float rate, int B, int D)
{
    ROOM(space, MOVERS);
    const int first = blockIdx.x * SPAN, p = first + lane();
    const int64 level = (int64)blockIdx.y * B, at = level + p;
    const int *here = entries + level;
    const bool passes = p < B && here[p] >= 0 && !(seen && seen[at] >= 0);
    const int node = passes ? here[p] >> 1 : -1, b = passes ? order[p] : 0;
    const int before = first ? here[first - 1] >> 1 : -1, after = first + SPAN < B ? here[first + SPAN] >> 1 : -1;
    const float miss = passes ? misses[at] : 0;
    const int left = __shfl_up_sync(FULL, node, 1);
    unsigned begins = __ballot_sync(FULL, passes && (lane() == 0 || left != node));
    float *g = space + warp() * D;
    for (int turn = 0; begins; ++turn, begins &= begins - 1) {
        if (turn % warps() != warp()) continue;
        const int from = __ffs(begins) - 1, its = __shfl_sync(FULL, node, from);
        const int to = from + __popc(__ballot_sync(FULL, node == its));
        gather(g, hidden, b, miss, from, to, D);
        float g_bias = 0;
        if (biases)
            for (int i = from; i < to; ++i) g_bias -= __shfl_sync(FULL, miss, i);
        const bool came = from == 0 && before == its;
        if (came || (to == SPAN && after == its)) {
            const int64 part = 2 * ((int64)blockIdx.y * gridDim.x + blockIdx.x) + came;
            for (int d = lane(); d < D; d += 32) parts[part * D + d] = g[d];
            if (lane() == 0) part_biases[part] = g_bias;
        } else {
            visit_row(row_of(rows, biases, squares, bias_squares, each, its, D), g, g_bias, rate, D);
        }
        __syncwarp();  // g is free again
    }
}

// The node at the end of a span that began there and goes on beyond: -1 where there is none; the block asks as one.
__device__ __forceinline__ int going_on(const int *here, const int *seen, int first, int B)
{
    const int last = first + SPAN - 1, entry = here[last], node = entry >> 1;
    if (entry < 0 || here[last + 1] >> 1 != node || (seen && seen[last] >= 0)) return -1;
    return first && here[first] >> 1 == node && here[first - 1] >> 1 == node ? -1 : node;
}

// Nodes whose examples stand in several spans move once, against the sum of their parts.
//   work    a block a span of a level: it moves the node that begins there and goes on, if any
//   launch  grid: (B / SPAN - 1, depth), block: 128, shared memory: 4 D bytes where D > NARROW
//   bound   latency: entries, parts, the row; of the root B / SPAN parts
//   order   over spans from left to right
extern "C" __global__ void __launch_bounds__(128)
    finish(NODES, const float *parts, const float *part_biases, const int *entries, const int *seen, float rate, int B, int D, int spans)
{
    ROOM(g, 1);
    const int first = blockIdx.x * SPAN;
    const int64 level = (int64)blockIdx.y * B;
    const int *here = entries + level, node = going_on(here, seen ? seen + level : nullptr, first, B);
    if (node < 0) return;
    int many = 1;
    for (int count = 32; count == 32; many += count) {
        const int p = first + SPAN * (many + lane());
        count = __popc(__ballot_sync(FULL, p < B && here[p] >> 1 == node));
    }
    const int64 part = 2 * ((int64)blockIdx.y * spans + blockIdx.x);  // the k-th after it is at part + 2 k + 1
    for (int d = threadIdx.x; d < D; d += blockDim.x) {
        float down = parts[part * D + d];
        for (int i = 1; i < many; i += PARTS) {
            float more[PARTS];
#pragma unroll
            for (int k = 0; k < PARTS; ++k) more[k] = i + k < many ? parts[(part + 2 * (i + k) + 1) * D + d] : 0;
#pragma unroll
            for (int k = 0; k < PARTS; ++k) down += more[k];
        }
        g[d] = down;
    }
    __syncthreads();
    if (warp()) return;
    float g_bias = 0;
    if (biases)
        for (int k = 0; k < many; ++k) g_bias += part_biases[part + 2 * k + (k > 0)];
    visit_row(row_of(rows, biases, squares, bias_squares, each, node, D), g, g_bias, rate, D);
}

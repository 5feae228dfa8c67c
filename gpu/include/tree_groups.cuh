// Crowded nodes of a batch, those with more examples than learn together: for tree_batch.cu, which says what the arrays are.
#pragma once

#include "logistic.cuh"
#include "row_visit.cuh"

constexpr int IN_FLIGHT = 8;    // rows that a warp asks for at once
constexpr int EACH = 4;         // columns of a lane, 32 apart, that it holds of each
constexpr int CROWD = 256;      // threads of a block of `meet`
constexpr int CHUNK = CROWD / 32 * IN_FLIGHT;  // examples of a crowded node that are judged at once
constexpr int LIST = 512;       // places of a list that is filled by CROWD at a time and emptied by CHUNK
constexpr int NARROW = 256;     // numbers of a row up to which shared memory is fixed

// Shared memory for COUNT rows: dynamic where they are wide. What is asked for dynamically is taken from the L1 cache.
#define ROOM(NAME, COUNT)                                                                                                      \
    __shared__ float narrow[(COUNT) * NARROW];                                                                                 \
    extern __shared__ float wide[];                                                                                            \
    float *const NAME = D > NARROW ? wide : narrow

// The nodes, and what is kept beside them; null: there is none.
#define NODES float *rows, float *biases, float *squares, float *bias_squares, int each

// Of IN_FLIGHT rows the lane's columns from d0 on; a row is one of `rows`, or ~row one of `found`. All are asked for at once.
__device__ __forceinline__ void take(float (*w)[EACH], int row, int many, const float *rows, const float *found, int d0, int D)
{
#pragma unroll
    for (int k = 0; k < IN_FLIGHT; ++k) {
        const int at = __shfl_sync(FULL, row, k);
        const float *from = at < 0 ? found + (int64)~at * D : rows + (int64)at * D;
#pragma unroll
        for (int c = 0; c < EACH; ++c) {
            const int d = d0 + 32 * c + lane();
            w[k][c] = k < many && d < D ? from[d] : 0;
        }
    }
}

// The first place of [first, last) where a crowded node's examples begin, or -1; there is one at most, as each has more than
// `together`. The block asks together.
__device__ __forceinline__ int begun(const int *here, int first, int together, int B)
{
    __shared__ int found;
    if (threadIdx.x == 0) found = -1;
    __syncthreads();
    const int last = min(first + together, B - together);
    for (int p = first + threadIdx.x; p < last; p += blockDim.x) {
        const int node = here[p] >> 1;
        if (node >= 0 && (p == 0 || here[p - 1] >> 1 != node) && here[p + together] >> 1 == node) found = p;
    }
    __syncthreads();
    return found;
}

// Where the examples of the node at `begin` end.
__device__ __forceinline__ int ended(const int *here, int begin, int B)
{
    const int node = here[begin] >> 1;
    int end = begin;
    for (int count = blockDim.x; count == blockDim.x; end += count) {
        const int p = end + threadIdx.x;
        count = __syncthreads_count(p < B && here[p] >> 1 == node);
    }
    return end;
}

// Of the CROWD examples from `first` on those of the node at begin:end take their places in the list, as 2 b + turn, and learn
// which row they will meet; the node has `filled` of those before. Returns how many it has then.
__device__ __forceinline__ int enlisted(int *members, int *seen, const int *here, const int *place, int first, int begin,
                                        int end, int filled, int slot, int together, int B)
{
    __shared__ int counts[CROWD / 32];
    const int b = first + threadIdx.x, p = b < B ? place[b] : -1;
    const bool mine = p >= begin && p < end;
    const int turn = mine ? here[p] & 1 : 0;
    const unsigned same = __ballot_sync(FULL, mine);
    if (lane() == 0) counts[warp()] = __popc(same);
    __syncthreads();
    int at = filled + __popc(same & ((1u << lane()) - 1));
    for (int k = 0; k < CROWD / 32; ++k) {
        if (k < warp()) at += counts[k];
        filled += counts[k];
    }
    if (mine) {
        members[at % LIST] = 2 * b + turn;
        seen[p] = slot + at / together;
    }
    __syncthreads();
    return filled;
}

// `many` examples from place `done` of the list on are judged by the row w, and their gradient is added to g and g_bias.
//   work    a warp IN_FLIGHT examples, whose vectors it asks for at once; rows of up to 32 EACH numbers are read once
//   order   a warp its examples in turn, then the warps in turn
__device__ __forceinline__ void judge_chunk(float *g, float &g_bias, const float *w, const float *bias, const int *members,
                                            int done, int many, const float *hidden, const float *weight, int D)
{
    __shared__ float misses[CHUNK], sides[CROWD / 32][32 * EACH];
    const int first = warp() * IN_FLIGHT, mine = many - first;
    const bool there = lane() < min(mine, IN_FLIGHT), once = D <= 32 * EACH;
    const int member = there ? members[(done + first + lane()) % LIST] : 0, b = member >> 1;
    const float times = weight && there ? weight[b] : 1;
    float h[IN_FLIGHT][EACH], product[IN_FLIGHT] = {};
    for (int d0 = 0; d0 < D; d0 += 32 * EACH) {
        take(h, b, mine, hidden, hidden, d0, D);
#pragma unroll
        for (int c = 0; c < EACH; ++c) {
            const float own = d0 + 32 * c + lane() < D ? w[d0 + 32 * c + lane()] : 0;
#pragma unroll
            for (int k = 0; k < IN_FLIGHT; ++k) product[k] = fmaf(h[k][c], own, product[k]);
        }
    }
    const float sum = sums<IN_FLIGHT>(product);  // lane l has that of example l / (32 / IN_FLIGHT)
    const float score = __shfl_sync(FULL, sum, lane() * (32 / IN_FLIGHT) % 32) + (bias ? *bias : 0);
    const bool turn = member & 1;
    const float miss = there ? times * miss_of(turn ? score : -score, turn) : 0;
    if (there) misses[first + lane()] = miss;
#pragma unroll
    for (int c = 0; c < EACH; ++c) {
        float down = 0;
#pragma unroll
        for (int k = 0; k < IN_FLIGHT; ++k) down = fmaf(-__shfl_sync(FULL, miss, k), h[k][c], down);
        sides[warp()][32 * c + lane()] = down;
    }
    __syncthreads();
    for (int d = threadIdx.x; d < D; d += CROWD) {
        float down = g[d];
        if (once) {
#pragma unroll
            for (int k = 0; k < CROWD / 32; ++k) down += sides[k][d];
        } else {
#pragma unroll 8
            for (int i = 0; i < many; ++i)
                down = fmaf(-misses[i], hidden[(int64)(members[(done + i) % LIST] >> 1) * D + d], down);
        }
        g[d] = down;
    }
    if (bias)
        for (int i = 0; i < many; ++i) g_bias -= misses[i];
}

// Crowded nodes meet their examples in the order of the batch, up to `together` at a time. Each group notes the row that it
// finds; the row moves against the group's gradient before the next group comes.
//   work    a block a stretch of `together` places of a level: it takes the crowded node whose examples begin there, if any
//   launch  grid: (B / together, depth), block: CROWD, shared memory: 8 D bytes where D > NARROW
//   bound   latency: the root's B / CHUNK rounds in turn, each a load from the L2 cache, a sum over a warp, an exponential, a
//           sum over the warps; and B / CROWD looks at where examples stand
//   order   over examples, see `judge_chunk`; a score: lanes stride over the columns, then a butterfly
extern "C" __global__ void __launch_bounds__(CROWD, 1)
    meet(NODES, int *seen, float *found, float *found_biases, const int *place, const int *entries, const float *hidden,
         const float *weight, float rate, int B, int D, int slots, int together)
{
    ROOM(space, 2);
    __shared__ int members[LIST];  // examples of the node, the oldest at `done`
    __shared__ float bias, square, bias_square;
    const int64 level = (int64)blockIdx.y * B;
    const int *here = entries + level, begin = begun(here, blockIdx.x * together, together, B);
    if (begin < 0) return;
    const int end = ended(here, begin, B), node = here[begin] >> 1, chunk = min(together, CHUNK);
    const Row row = row_of(rows, biases, squares, bias_squares, each, node, D);
    float *w = space, *g = space + D, g_bias = 0;
    const Row held = {w, row.bias ? &bias : nullptr, row.square ? &square : nullptr, row.squares,
                      row.bias_square ? &bias_square : nullptr};
    for (int d = threadIdx.x; d < D; d += blockDim.x) {
        w[d] = row.numbers[d];
        g[d] = 0;
    }
    if (threadIdx.x == 0) {
        if (row.bias) bias = *row.bias;
        if (row.square) square = *row.square;
        if (row.bias_square) bias_square = *row.bias_square;
    }
    int slot = blockIdx.y * slots + 2 * blockIdx.x, filled = 0, done = 0;
    const int first_slot = slot;
    for (int first = 0; done < end - begin; first += CROWD) {
        filled = enlisted(members, seen + level, here, place, first, begin, end, filled, first_slot, together, B);
        while (filled - done >= chunk || (filled == end - begin && done < filled)) {
            const int left = done % together, many = min(chunk, min(filled - done, together - left));
            if (left == 0) {  // a group begins
                for (int d = threadIdx.x; d < D; d += blockDim.x) found[(int64)slot * D + d] = w[d];
                if (row.bias && threadIdx.x == 0) found_biases[slot] = bias;
            }
            judge_chunk(g, g_bias, w, held.bias, members, done, many, hidden, weight, D);
            done += many;
            __syncthreads();
            if (done % together && done < end - begin) continue;  // the group goes on
            step_of_chain();
            if (warp() == 0) visit_row(held, g, g_bias, rate, D);
            __syncthreads();
            for (int d = threadIdx.x; d < D; d += blockDim.x) g[d] = 0;
            g_bias = 0;
            ++slot;
        }
    }
    __syncthreads();
    for (int d = threadIdx.x; d < D; d += blockDim.x) row.numbers[d] = w[d];
    if (threadIdx.x) return;
    if (row.bias) *row.bias = bias;
    if (row.square) *row.square = square;
    if (row.bias_square) *row.bias_square = bias_square;
}

// Hierarchical softmax whose nodes learn from up to `together` examples at once. Twin of cpu/tree_batch.py.
//
// Examples are sorted by their classes' place in the tree, from left to right: so the examples of any node are neighbours at
// every level, and who is first among them is told by a look at the one before. All arrays but those of the batch are in that
// order, p for a place in it and b for an example.
//
// entries (depth, B)     2 * node + turn at each level of each example's path, the root's level first; -1 past its end
// seen    (depth, B)     which row of `found` the example meets there; -1: the node's own
// misses  (depth, B)     turn - logistic(score), times the example's weight
// found   (depth S, D)   rows of crowded nodes, those with more than `together` examples, as their groups found them;
//                        found_biases (depth S,) the same of their biases
#include "logistic.cuh"
#include "row_visit.cuh"

constexpr int WARPS = 4;        // of a block of `judge` and `move`
constexpr int CROWD = 256;      // threads of a block of `meet`
constexpr int CHUNK = 64;       // examples of a crowded node that are judged before its gradient takes them in
constexpr int LIST = 512;       // places of a list that is filled by CROWD at a time and emptied by CHUNK
constexpr int IN_FLIGHT = 4;    // rows of a path that are asked for at once
constexpr int NARROW = 256;     // numbers of a row up to which shared memory is fixed

// Shared memory for COUNT rows: dynamic where they are wide. What is asked for dynamically is taken from the L1 cache.
#define ROOM(NAME, COUNT)                                                                                                      \
    __shared__ float narrow[(COUNT) * NARROW];                                                                                 \
    extern __shared__ float wide[];                                                                                            \
    float *const NAME = D > NARROW ? wide : narrow

// The nodes, and what is kept beside them; null: there is none.
#define NODES float *rows, float *biases, float *squares, float *bias_squares, int each

// keys[b] = rank[target[b]]: what examples are sorted by
//   launch  grid: B / 256, block: 256
extern "C" __global__ void label(int *keys, const int *rank, const int *target, int B)
{
    const int b = blockIdx.x * blockDim.x + threadIdx.x;
    if (b < B) keys[b] = rank[target[b]];
}

// place[order[p]] = p, and the path of the example at each p
//   work    a thread an example: climbs to learn how long its path is, then writes it
//   launch  grid: B / 64, block: 64
//   bound   latency: a pointer after another, up to `depth` of them; neighbours have most of them in common
extern "C" __global__ void climb(int *place, int *entries, int *seen, const int *leaf_up, const int *node_up, const int *order,
                                 const int *target, int depth, int B)
{
    const int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= B) return;
    place[order[p]] = p;
    const int leaf = leaf_up[target[order[p]]];
    int length = 0;
    for (int up = leaf; up >= 0; up = node_up[up >> 1]) ++length;
    for (int level = length - 1, up = leaf; level >= 0; --level, up = node_up[up >> 1]) entries[(int64)level * B + p] = up;
    for (int level = length; level < depth; ++level) entries[(int64)level * B + p] = -1;
    for (int level = 0; level < depth; ++level) seen[(int64)level * B + p] = -1;
}

// The score of h at a row, in every lane.
__device__ __forceinline__ float score_of(const float *w, const float *h, int D)
{
    float product[1] = {0};
#pragma unroll 4
    for (int d = lane(); d < D; d += 32) product[0] = fmaf(w[d], h[d], product[0]);
    return sums<1>(product);
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

// Crowded nodes meet their examples in the order of the batch, up to `together` at a time. Each group notes the row that it
// finds; the row moves against the group's gradient before the next group comes.
//   work    a block a stretch of `together` places of a level: it takes the crowded node whose examples begin there, if any
//   launch  grid: (B / together, depth), block: CROWD, shared memory: 8 D bytes where D > NARROW
//   bound   latency: the root's B / CHUNK rounds in turn, each a load from the L2 cache, a sum over a warp, an exponential, and
//           CHUNK products for each column
//   order   over examples in order; a score: lanes stride over the columns, then a butterfly
extern "C" __global__ void __launch_bounds__(CROWD, 1)
    meet(NODES, int *seen, float *found, float *found_biases, const int *place, const int *entries, const float *hidden,
         const float *weight, float rate, float keep, float clip, int B, int D, int slots, int together)
{
    ROOM(space, 2);
    __shared__ int members[LIST];  // examples of the node, the oldest at `done`
    __shared__ int counts[CROWD / 32];
    __shared__ float misses[CHUNK], bias, square, bias_square;
    const int *here = entries + (int64)blockIdx.y * B;
    const int begin = begun(here, blockIdx.x * together, together, B);
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
    for (int first = 0; done < end - begin; first += CROWD) {
        const int b = first + threadIdx.x, p = b < B ? place[b] : -1;
        const bool mine = p >= begin && p < end;
        const unsigned same = __ballot_sync(FULL, mine);
        if (lane() == 0) counts[warp()] = __popc(same);
        __syncthreads();
        int at = filled + __popc(same & ((1u << lane()) - 1));
        for (int k = 0; k < CROWD / 32; ++k) {
            if (k < warp()) at += counts[k];
            filled += counts[k];
        }
        if (mine) members[at % LIST] = b;
        __syncthreads();
        while (filled - done >= chunk || (filled == end - begin && done < filled)) {
            const int many = min(chunk, filled - done);
            if (done % together == 0) {  // a group begins
                for (int d = threadIdx.x; d < D; d += blockDim.x) found[(int64)slot * D + d] = w[d];
                if (row.bias && threadIdx.x == 0) found_biases[slot] = bias;
            }
            for (int i = warp(); i < many; i += CROWD / 32) {
                const int one = members[(done + i) % LIST], its = place[one];
                const bool turn = here[its] & 1;
                const float score = score_of(w, hidden + (int64)one * D, D) + (row.bias ? bias : 0);
                if (lane() == 0) {
                    misses[i] = (weight ? weight[one] : 1) * miss_of(turn ? score : -score, turn);
                    seen[(int64)blockIdx.y * B + its] = slot;
                }
            }
            __syncthreads();
            for (int d = threadIdx.x; d < D; d += blockDim.x) {
                float down = g[d];
#pragma unroll 8
                for (int i = 0; i < many; ++i) down = fmaf(-misses[i], hidden[(int64)members[(done + i) % LIST] * D + d], down);
                g[d] = down;
            }
            if (row.bias)
                for (int i = 0; i < many; ++i) g_bias -= misses[i];
            done += many;
            __syncthreads();
            if (done % together && done < end - begin) continue;  // the group goes on
            step_of_chain();
            if (warp() == 0) visit_row(held, g, g_bias, {rate, keep, clip}, D);
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

// grad[b] and loss[b], the sums over b's path, and the misses there
//   work    a warp an example: IN_FLIGHT rows of its path at a time, from the root on
//   launch  grid: B / WARPS, block: 128, shared memory: 4 WARPS D bytes where D > NARROW
//   bound   memory: 4 D bytes a node of a path, read from the L2 cache and read again from the L1 cache; 8 D an example
//   order   from the root down; a score: lanes stride over the columns, then a butterfly
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    judge(float *grad, float *loss, float *misses, const float *rows, const float *biases, const float *found,
          const float *found_biases, const int *entries, const int *seen, const int *order, const float *hidden,
          const float *weight, int depth, int B, int D)
{
    ROOM(space, WARPS);
    const int p = blockIdx.x * WARPS + warp();
    if (p >= B) return;
    const int b = order[p];
    const float *h = hidden + (int64)b * D, times = weight ? weight[b] : 1;
    float *g = space + warp() * D, total = 0;
    for (int d = lane(); d < D; d += 32) g[d] = 0;
    for (int level = 0; level < depth; level += IN_FLIGHT) {
        const float *w[IN_FLIGHT];
        float product[IN_FLIGHT], miss[IN_FLIGHT];
        int entry[IN_FLIGHT];
#pragma unroll
        for (int k = 0; k < IN_FLIGHT; ++k) {
            const int64 at = (int64)min(level + k, depth - 1) * B + p;
            const int slot = seen[at];
            entry[k] = level + k < depth ? entries[at] : -1;
            const int row = slot < 0 ? max(entry[k], 0) >> 1 : slot;  // past the end of the path: any, and then no miss
            w[k] = (slot < 0 ? rows : found) + (int64)row * D;
            miss[k] = !biases ? 0 : slot < 0 ? biases[row] : found_biases[row];
            product[k] = 0;
        }
        if (__any_sync(FULL, entry[0] < 0)) break;
#pragma unroll 4
        for (int d = lane(); d < D; d += 32)
#pragma unroll
            for (int k = 0; k < IN_FLIGHT; ++k) product[k] = fmaf(w[k][d], h[d], product[k]);
        const float mine = sums<IN_FLIGHT>(product);  // lane l has that of row l / (32 / IN_FLIGHT)
#pragma unroll
        for (int k = 0; k < IN_FLIGHT; ++k) {
            const bool turn = entry[k] & 1;
            const float score = __shfl_sync(FULL, mine, k * (32 / IN_FLIGHT)) + miss[k], toward = turn ? score : -score;
            miss[k] = entry[k] < 0 ? 0 : times * miss_of(toward, turn);
            total += entry[k] < 0 ? 0 : cost(toward);
            if (lane() == 0 && entry[k] >= 0) misses[(int64)(level + k) * B + p] = miss[k];
        }
#pragma unroll 4
        for (int d = lane(); d < D; d += 32) {
            float down = g[d];
#pragma unroll
            for (int k = 0; k < IN_FLIGHT; ++k) down = fmaf(-miss[k], w[k][d], down);
            g[d] = down;
        }
    }
    for (int d = lane(); d < D; d += 32) grad[(int64)b * D + d] = g[d];
    if (lane() == 0) loss[b] = times * total;
}

// Every node without a crowd moves once, against the sum over its examples.
//   work    a warp a place of a level: the first of a node's examples moves it, the others leave
//   launch  grid: (B / WARPS, depth), block: 128, shared memory: 4 WARPS D bytes where D > NARROW
//   bound   memory: 4 D bytes an example of a node, from the L2 cache, and 8 D a node
//   order   over examples from left to right
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    move(NODES, const float *misses, const int *entries, const int *seen, const int *order, const float *hidden, float rate,
         float keep, float clip, int B, int D)
{
    ROOM(space, WARPS);
    const int p = blockIdx.x * WARPS + warp();
    if (p >= B) return;
    const int64 level = (int64)blockIdx.y * B;
    const int *here = entries + level, entry = here[p], node = entry >> 1;
    if (entry < 0 || seen[level + p] >= 0 || (p > 0 && here[p - 1] >> 1 == node)) return;
    float *g = space + warp() * D, g_bias = 0;
    for (int first = p; first < B; first += 32) {  // 32 examples at a time, one known to each lane
        const int q = first + lane();
        const bool passes = q < B && here[q] >> 1 == node;
        const int b = passes ? order[q] : 0, many = __popc(__ballot_sync(FULL, passes));
        const float miss = passes ? misses[level + q] : 0;
        for (int d0 = 0; d0 < D; d0 += 32) {
            const int d = d0 + lane();
            float down = first == p || d >= D ? 0 : g[d];
#pragma unroll 4
            for (int i = 0; i < many; ++i) {
                const int one = __shfl_sync(FULL, b, i);
                down = fmaf(-__shfl_sync(FULL, miss, i), d < D ? hidden[(int64)one * D + d] : 0, down);
            }
            if (d < D) g[d] = down;
        }
        for (int i = 0; i < many; ++i) g_bias -= __shfl_sync(FULL, miss, i);
        if (many < 32) break;
    }
    visit_row(row_of(rows, biases, squares, bias_squares, each, node, D), g, g_bias, {rate, keep, clip}, D);
}

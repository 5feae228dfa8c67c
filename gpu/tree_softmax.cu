// Hierarchical softmax: a logistic regression at each inner node of a binary tree. Twin of cpu/tree_softmax.py.
//
// leaf_up, node_up  2 * parent + turn of each class and of each node, -1 at the root (cpu/tree/tree.py)
// entries (depth, B)  2 * node + turn at each level of each example's path, the root's level first; -1 past its end
// terms   (B, depth, pitch), towards (B, depth): what each node of a path adds to the gradient and the loss; the pitch is D
//         rounded up to what the kernels take, so that a warp writes without asking where a row ends
//
// Between nodes and examples stands a warp a node: gpu/include/tree_node.cuh.
#include "include/tree_node.cuh"
#include "include/tree_ruled.cuh"

// entries[.][b] = the path of target[b] from the root, lengths[b] = its nodes.
//   work    a thread an example: climbs, then turns its path around
//   launch  grid: B / 64, block: 64
//   bound   latency: a pointer after another, up to `depth` of them
extern "C" __global__ void climb(int *entries, int *lengths, const int *leaf_up, const int *node_up, const int *target,
                                 int depth, int B)
{
    const int b = blockIdx.x * blockDim.x + threadIdx.x;
    if (b >= B) return;
    int length = 0;
    for (int up = leaf_up[target[b]]; up >= 0; up = node_up[up >> 1]) entries[(int64)length++ * B + b] = up;
    lengths[b] = length;
    for (int low = 0, high = length - 1; low < high; ++low, --high) {
        const int up = entries[(int64)low * B + b];
        entries[(int64)low * B + b] = entries[(int64)high * B + b];
        entries[(int64)high * B + b] = up;
    }
    for (int level = length; level < depth; ++level) entries[(int64)level * B + b] = -1;
}

// At node w, for its examples b in order: miss = turn - logistic(w . h[b]), terms[b][level] = miss w, w += rate miss h[b].
//   work    a warp a place of an example's path; the first example of a node takes all of them, near the root first
//   launch  grid: (B / WARPS, depth), block: 128
//   bound   latency: the root's B visits in turn, each 2 rounds of shuffles, an exponential and a reciprocal (some
//           200 cycles, estimated from the instructions and not measured); then memory: 4 D bytes read and 4 D written a
//           visit (in the L2 cache), 8 D a node
//   order   over examples in order; a score: lanes stride over the columns, then a butterfly
template <int CHUNKS, class Row, class Known>
__device__ __forceinline__ void learn(const Known &step, float *nodes, const int *entries, int B, unsigned short (*places)[SPAN])
{
    // the shuffle tells the compiler that b is the warp's, so its branches need no care for lanes that part
    const int b = blockIdx.x * WARPS + __shfl_sync(FULL, warp(), 0), level = blockIdx.y;
    const int *here = entries + (int64)level * B;
    const int entry = b < B ? here[b] : -1;
    if (entry < 0 || met(here, 1, entry >> 1, 0, b)) return;  // whole warps leave together
    const Node node = {entry >> 1, nodes + (int64)(entry >> 1) * step.D, here, level};
    if constexpr (CHUNKS > 0)
        narrow<CHUNKS, Row>(step, node, b, B, places[warp()]);
    else
        wide<Row>(step, node, b, B, places[warp()]);
}

#define LEARN(NAME, CHUNKS, ROW)                                                                                               \
    extern "C" __global__ void __launch_bounds__(32 * WARPS, 1)                                                                \
        NAME(float *terms, float *towards, float *nodes, const int *entries, const float *hidden, float rate, int depth,       \
             int B, int D, int pitch)                                                                                          \
    {                                                                                                                          \
        __shared__ unsigned short places[WARPS][SPAN];                                                                         \
        const Step step = {terms, towards, hidden, rate, depth, D, pitch};                                                     \
        learn<CHUNKS, ROW>(step, nodes, entries, B, places);                                                                   \
    }
LEARN(learn_4, 4, Plain<4>)
LEARN(learn_8, 8, Plain<8>)
LEARN(learn_wide, 0, PlainWide)

// The same as in `learn` with squares, with weights of the examples and with biases: gpu/include/tree_ruled.cuh.
#define LEARN_RULED(NAME, CHUNKS, ROW)                                                                                         \
    extern "C" __global__ void __launch_bounds__(32 * WARPS, 1)                                                                \
        NAME(float *terms, float *towards, float *nodes, float *biases, float *squares, float *bias_squares,                   \
             const int *entries, const float *hidden, const float *weight, float rate, int each, int depth, int B, int D,      \
             int pitch)                                                                                                        \
    {                                                                                                                          \
        __shared__ unsigned short places[WARPS][SPAN];                                                                         \
        const RuledStep step = {{terms, towards, hidden, rate, depth, D, pitch},                                               \
                                weight, biases, squares, bias_squares, each != 0};                                             \
        learn<CHUNKS, ROW>(step, nodes, entries, B, places);                                                                   \
    }
LEARN_RULED(learn_4_ruled, 4, Ruled<4>)
LEARN_RULED(learn_8_ruled, 8, Ruled<8>)
LEARN_RULED(learn_wide_ruled, 0, RuledWide)

// grad[b] = - sum of terms[b], loss[b] = sum of the costs, over the levels of b's path; the loss times weight[b] where it has one
//   work    a block an example: a thread a column, the first warp also the loss
//   launch  grid: B, block: D rounded up to warps, at most 256
//   bound   memory: 4 D bytes a node of a path (in the L2 cache) and 4 D an example
//   order   gradient: from the leaf up; loss: lanes stride over the levels, then a butterfly
extern "C" __global__ void add(float *grad, float *loss, const float *terms, const float *towards, const int *lengths,
                               const float *weight, int depth, int D, int pitch)
{
    const int b = blockIdx.x, length = lengths[b];
    const float *term = terms + (int64)b * depth * pitch;
    for (int d = threadIdx.x; d < D; d += blockDim.x) {
        float total = 0;
#pragma unroll 8
        for (int level = length - 1; level >= 0; --level) total -= term[(int64)level * pitch + d];
        grad[(int64)b * D + d] = total;
    }
    if (warp() > 0) return;
    float total = 0;
    for (int level = lane(); level < length; level += 32) total += cost(towards[(int64)b * depth + level]);
    total = sum(total);
    if (lane() == 0) loss[b] = weight ? weight[b] * total : total;
}

// out[b] = log p(target[b] | hidden[b]); biases: one a node, or null
//   work    a warp an example, up from its leaf
//   launch  grid: B / 8, block: 256
//   bound   memory: 4 D bytes a node of a path; while few examples are under way, latency: `depth` rows in turn
//   order   from the leaf up; a score as in `learn`
extern "C" __global__ void log_prob(float *out, const float *nodes, const float *biases, const int *leaf_up,
                                    const int *node_up, const float *hidden, const int *target, int B, int D)
{
    const int b = blockIdx.x * warps() + warp();
    if (b >= B) return;
    const float *h = hidden + (int64)b * D;
    float total = 0;
    for (int up = leaf_up[target[b]], above; up >= 0; up = above) {
        above = node_up[up >> 1];  // asked for before the row
        const float *w = nodes + (int64)(up >> 1) * D;
        float product = 0;
#pragma unroll 4
        for (int d = lane(); d < D; d += 32) product = fmaf(w[d], h[d], product);
        const float score = sum(product) + (biases ? biases[up >> 1] : 0);
        total -= cost(up & 1 ? score : -score);
    }
    if (lane() == 0) out[b] = total;
}

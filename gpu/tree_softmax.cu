// Hierarchical softmax: a logistic regression at each inner node of a binary tree. Twin of cpu/tree_softmax.py.
//
// leaf_up, node_up  2 * parent + turn of each class and of each node, -1 at the root (cpu/tree.py)
// entries (depth, B)  2 * node + turn at each level of each example's path, the root's level first; -1 past its end
// starts  (B,)      1 where a group of examples begins that learn together; in deterministic mode everywhere
// terms   (B, depth, pitch), towards (B, depth): what each node of a path adds to the gradient and the loss; the pitch is D
//         rounded up to what the kernels take, so that a warp writes without asking where a row ends
//
// Hidden vectors stand still within a step, so what becomes of a node depends on nothing but the node and the examples that
// pass it. So a warp takes all examples of a node, in their order, with the node in registers: the same numbers in every
// run. The root sees all B examples one after another, and what they wait for is the step's critical path.
#include "logistic.cuh"
#include "segments.cuh"

constexpr int SPAN = 1024;     // examples whose paths a warp looks through at once
constexpr int IN_FLIGHT = 4;  // examples computed at once; those that learn together are also judged at once
constexpr int WARPS = 4;      // warps of a block of `learn`

static_assert(SPAN <= WINDOW, "places within a window fit 16 bits");

// The sum over the warp, the same bits in every lane: a butterfly over 16, 8, 4, 2, 1 whose first three and last two steps
// are shuffled side by side, since one waits longer for a shuffle than for an addition.
__device__ __forceinline__ float sum(float v)
{
    const float v16 = __shfl_xor_sync(FULL, v, 16), v8 = __shfl_xor_sync(FULL, v, 8), v24 = __shfl_xor_sync(FULL, v, 24);
    const float v4 = __shfl_xor_sync(FULL, v, 4), v20 = __shfl_xor_sync(FULL, v, 20), v12 = __shfl_xor_sync(FULL, v, 12);
    const float v28 = __shfl_xor_sync(FULL, v, 28);
    v = ((v + v16) + (v8 + v24)) + ((v4 + v20) + (v12 + v28));
    const float v2 = __shfl_xor_sync(FULL, v, 2), v1 = __shfl_xor_sync(FULL, v, 1), v3 = __shfl_xor_sync(FULL, v, 3);
    return (v + v2) + (v1 + v3);
}

// Where the stretch of equal targets around b begins; the warp's lanes stand at neighbouring b, the first a multiple of 32.
__device__ __forceinline__ int stretch(const int *target, int b, int B)
{
    const int base = b - lane();
    const unsigned upto = FULL >> (31 - lane());
    unsigned changes = __ballot_sync(FULL, b < B && (b == 0 || target[b] != target[b - 1]));
    if (changes & upto) b = base + 31 - __clz(changes & upto);
    for (int at = base; !(changes & 1); at -= 32) {  // lane 0's stretch begins before this warp's examples
        const int a = at - 32 + lane();
        const unsigned earlier = __ballot_sync(FULL, a == 0 || target[a] != target[a - 1]);
        if (!earlier) continue;
        if (!(changes & upto)) b = at - 32 + 31 - __clz(earlier);
        break;
    }
    return b;
}

// entries[.][b] = the path of target[b] from the root, lengths[b] = its nodes, starts[b] = whether b begins a group: stretches
// of equal targets are cut into groups of at most `together` from their start.
//   work    a thread an example: climbs, then turns its path around
//   launch  grid: B / 64, block: 64
//   bound   latency: a pointer after another, up to `depth` of them
extern "C" __global__ void climb(int *entries, int *lengths, int *starts, const int *leaf_up, const int *node_up,
                                 const int *target, int together, int depth, int B)
{
    const int b = blockIdx.x * blockDim.x + threadIdx.x;
    const int begun = stretch(target, b, B);
    if (b >= B) return;
    starts[b] = (b - begun) % together == 0;
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

// What a warp needs to know of the step.
struct Step {
    float *terms, *towards;
    const int *starts;
    const float *hidden;
    float rate;
    int depth, D, pitch;
};

// A node: its row, its level and the entries there.
struct Node {
    float *row;
    const int *entries;
    int level;
};

// An example at a node, its hidden vector over the lanes: h[c] of lane l is column 32 c + l.
template <int CHUNKS> struct Example {
    float h[CHUNKS];
    int place;  // of this node on this example's path
    bool turn, start;
};

template <int CHUNKS>
__device__ __forceinline__ void load(Example<CHUNKS> &example, const Step &step, const Node &node, int b)
{
    example.place = b * step.depth + node.level;
    example.turn = node.entries[b] & 1;
    example.start = step.starts[b];
    const float *h = step.hidden + (int64)b * step.D;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
        const int d = 32 * c + lane();
        example.h[c] = d < step.D ? h[d] : 0;
    }
}

// The node meets COUNT examples, of which only the first may begin a group: w is the row before the group, `next` after it.
template <int CHUNKS, int COUNT>
__device__ __forceinline__ void visit(float *w, float *next, const Step &step, const Node &node,
                                      const Example<CHUNKS> *examples)
{
    if (examples[0].start) {
#pragma unroll
        for (int c = 0; c < CHUNKS; ++c) w[c] = next[c];
    }
    float miss[COUNT];
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        float product = w[0] * examples[k].h[0];
#pragma unroll
        for (int c = 1; c < CHUNKS; ++c) product = fmaf(w[c], examples[k].h[c], product);
        miss[k] = sum(product);
    }
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        const float toward = examples[k].turn ? miss[k] : -miss[k];
        step.towards[examples[k].place] = toward;  // all lanes the same: no branch
        miss[k] = miss_of(toward, examples[k].turn);
    }
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        float *term = step.terms + (int64)examples[k].place * step.pitch + lane();
#pragma unroll
        for (int c = 0; c < CHUNKS; ++c) {
            next[c] = fmaf(step.rate * miss[k], examples[k].h[c], next[c]);
            term[32 * c] = miss[k] * w[c];
        }
    }
}

// All examples of a node from `b` on, which is its first; D <= 32 CHUNKS. The next IN_FLIGHT examples are loaded before the
// current ones are judged.
template <int CHUNKS>
__device__ __forceinline__ void narrow(const Step &step, const Node &node, int b, int B, unsigned short *places)
{
    float w[CHUNKS], next[CHUNKS];
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) w[c] = next[c] = 32 * c + lane() < step.D ? node.row[32 * c + lane()] : 0;
    const int id = node.entries[b] >> 1;
    for (int first = b; first < B; first += SPAN) {
        const int count = collect(places, node.entries, 1, id, first, min(first + SPAN, B));
        Example<CHUNKS> now[IN_FLIGHT], later[IN_FLIGHT];
#pragma unroll
        for (int k = 0; k < IN_FLIGHT; ++k)
            if (k < count) load(now[k], step, node, first + places[k]);
        for (int i = 0; i < count; i += IN_FLIGHT) {
#pragma unroll
            for (int k = 0; k < IN_FLIGHT; ++k)
                if (i + IN_FLIGHT + k < count) load(later[k], step, node, first + places[i + IN_FLIGHT + k]);
            bool start = i + IN_FLIGHT > count;
#pragma unroll
            for (int k = 1; k < IN_FLIGHT; ++k) start = start || now[k].start;
            if (!__any_sync(FULL, start)) {  // so the compiler sees that the warp stays together
                visit<CHUNKS, IN_FLIGHT>(w, next, step, node, now);
            } else {
#pragma unroll
                for (int k = 0; k < IN_FLIGHT; ++k)
                    if (i + k < count) visit<CHUNKS, 1>(w, next, step, node, now + k);
            }
#pragma unroll
            for (int k = 0; k < IN_FLIGHT; ++k) now[k] = later[k];
        }
        __syncwarp();  // before the list is written again
    }
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c)
        if (32 * c + lane() < step.D) node.row[32 * c + lane()] = next[c];
}

// The row moves for the `count` examples of a group: lane e knows the b of the group's example e, and rate * miss.
__device__ __forceinline__ void move(const Step &step, const Node &node, int mine, float push, int count)
{
    for (int first = 0; first < step.D; first += 32) {
        const int d = first + lane();
        float value = d < step.D ? node.row[d] : 0;
        for (int e = 0; e < count; ++e) {
            const int b = __shfl_sync(FULL, mine, e);
            const float h = d < step.D ? step.hidden[(int64)b * step.D + d] : 0;
            value = fmaf(__shfl_sync(FULL, push, e), h, value);
        }
        if (d < step.D) node.row[d] = value;
    }
}

// The same for rows of any width: the row stays in memory, and moves when the next group begins.
__device__ __forceinline__ void wide(const Step &step, const Node &node, int b, int B, unsigned short *places)
{
    const int id = node.entries[b] >> 1;
    int mine = 0, members = 0;
    float push = 0;
    for (int first = b; first < B; first += SPAN) {
        const int count = collect(places, node.entries, 1, id, first, min(first + SPAN, B));
        for (int i = 0; i < count; ++i) {
            const int at = first + places[i];
            if (__any_sync(FULL, step.starts[at])) {
                move(step, node, mine, push, members);
                members = 0;
            }
            float product = 0;
#pragma unroll 8
            for (int d = lane(); d < step.D; d += 32) product = fmaf(node.row[d], step.hidden[(int64)at * step.D + d], product);
            const bool turn = node.entries[at] & 1;
            const float score = sum(product), toward = turn ? score : -score, miss = miss_of(toward, turn);
            const int place = at * step.depth + node.level;
            step.towards[place] = toward;
#pragma unroll 8
            for (int d = lane(); d < step.D; d += 32) step.terms[(int64)place * step.pitch + d] = miss * node.row[d];
            if (lane() == members) {
                mine = at;
                push = step.rate * miss;
            }
            ++members;
        }
        __syncwarp();
    }
    move(step, node, mine, push, members);
}

// At node w, for its examples b in order: miss = turn - logistic(w . h[b]), terms[b][level] = miss w, w += rate miss h[b];
// examples of one group all find w as the first of them does.
//   work    a warp a place of an example's path; the first example of a node takes all of them, near the root first
//   launch  grid: (B / WARPS, depth), block: 128
//   bound   latency: the root's B visits in turn, each 2 rounds of shuffles, an exponential and a reciprocal (some
//           200 cycles, estimated from the instructions and not measured); then memory: 4 D bytes read and 4 D written a
//           visit (in the L2 cache), 8 D a node
//   order   over examples in order; a score: lanes stride over the columns, then a butterfly
#define LEARN(NAME, TAKE)                                                                                                      \
    extern "C" __global__ void __launch_bounds__(32 * WARPS, 1)                                                                \
        NAME(float *terms, float *towards, float *nodes, const int *entries, const int *starts, const float *hidden,           \
             float rate, int depth, int B, int D, int pitch)                                                                   \
    {                                                                                                                          \
        __shared__ unsigned short places[WARPS][SPAN];                                                                         \
        /* the shuffle tells the compiler that b is the warp's, so its branches need no care for lanes that part */            \
        const int b = blockIdx.x * WARPS + __shfl_sync(FULL, warp(), 0), level = blockIdx.y;                                   \
        const int *here = entries + (int64)level * B;                                                                          \
        const int entry = b < B ? here[b] : -1;                                                                                \
        if (entry < 0 || met(here, 1, entry >> 1, 0, b)) return; /* whole warps leave together */                              \
        const Step step = {terms, towards, starts, hidden, rate, depth, D, pitch};                                             \
        TAKE(step, {nodes + (int64)(entry >> 1) * D, here, level}, b, B, places[warp()]);                                      \
    }
LEARN(learn_1, narrow<1>)
LEARN(learn_2, narrow<2>)
LEARN(learn_4, narrow<4>)
LEARN(learn_8, narrow<8>)
LEARN(learn_wide, wide)

// grad[b] = - sum of terms[b], loss[b] = sum of the costs, over the levels of b's path
//   work    a block an example: a thread a column, the first warp also the loss
//   launch  grid: B, block: D rounded up to warps, at most 256
//   bound   memory: 4 D bytes a node of a path (in the L2 cache) and 4 D an example
//   order   gradient: from the leaf up; loss: lanes stride over the levels, then a butterfly
extern "C" __global__ void add(float *grad, float *loss, const float *terms, const float *towards, const int *lengths,
                               int depth, int D, int pitch)
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
    if (lane() == 0) loss[b] = total;
}

// out[b] = log p(target[b] | hidden[b])
//   work    a warp an example, up from its leaf
//   launch  grid: B / 8, block: 256
//   bound   memory: 4 D bytes a node of a path; while few examples are under way, latency: `depth` rows in turn
//   order   from the leaf up; a score as in `learn`
extern "C" __global__ void log_prob(float *out, const float *nodes, const int *leaf_up, const int *node_up,
                                    const float *hidden, const int *target, int B, int D)
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
        const float score = sum(product);
        total -= cost(up & 1 ? score : -score);
    }
    if (lane() == 0) out[b] = total;
}

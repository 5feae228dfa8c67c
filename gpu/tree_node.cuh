// A node of a tree meets the examples that pass it, in their order: what a warp does in gpu/tree_softmax.cu.
//
// Hidden vectors stand still within a step, so what becomes of a node depends on nothing but the node and the examples that
// pass it. So a warp takes all examples of a node, in their order, with the node in registers: the same numbers in every
// run. The root sees all B examples one after another, and what they wait for is the step's critical path.
#pragma once

#include "logistic.cuh"
#include "segments.cuh"
#include "visit.cuh"

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

// What a warp needs to know of the step.
struct Step {
    float *terms, *towards;
    const int *starts;
    const float *hidden;
    float rate;
    int depth, D, pitch;
};

// A node: its number, its row, its level and the entries there.
struct Node {
    int id;
    float *row;
    const int *entries;
    int level;
};

// An example at a node, its hidden vector over the lanes: h[c] of lane l is column 32 c + l.
template <int CHUNKS> struct Example {
    float h[CHUNKS];
    int b, place;  // of this node on this example's path
    int entry, starts;  // as they are in memory: what is computed from them is computed where it is used, since it waits for them

    __device__ __forceinline__ bool turn() const { return entry & 1; }
    __device__ __forceinline__ bool start() const { return starts; }
};

template <int CHUNKS>
__device__ __forceinline__ void load(Example<CHUNKS> &example, const Step &step, const Node &node, int b)
{
    example.b = b;
    example.place = b * step.depth + node.level;
    example.entry = node.entries[b];
    example.starts = step.starts[b];
    const float *h = step.hidden + (int64)b * step.D;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
        const int d = 32 * c + lane();
        example.h[c] = d < step.D ? h[d] : 0;
    }
}

// The scores of COUNT examples at the row w, over the lanes.
template <int CHUNKS, int COUNT> __device__ __forceinline__ void score(float *scores, const float *w, const Example<CHUNKS> *examples)
{
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        float product = w[0] * examples[k].h[0];
#pragma unroll
        for (int c = 1; c < CHUNKS; ++c) product = fmaf(w[c], examples[k].h[c], product);
        scores[k] = sum(product);
    }
}

// A row that moves by plain SGD: w before a group of examples that learn together, `next` after those met so far.
template <int CHUNKS> struct Plain {
    float w[CHUNKS], next[CHUNKS];

    __device__ __forceinline__ void take(const Step &step, const Node &node)
    {
#pragma unroll
        for (int c = 0; c < CHUNKS; ++c) w[c] = next[c] = 32 * c + lane() < step.D ? node.row[32 * c + lane()] : 0;
    }

    // It meets COUNT examples, of which only the first may begin a group.
    template <int COUNT>
    __device__ __forceinline__ void visit(const Step &step, const Node &node, const Example<CHUNKS> *examples)
    {
        if (examples[0].start()) {
            step_of_chain();
#pragma unroll
            for (int c = 0; c < CHUNKS; ++c) w[c] = next[c];
        }
        float miss[COUNT];
        score<CHUNKS, COUNT>(miss, w, examples);
#pragma unroll
        for (int k = 0; k < COUNT; ++k) {
            const float toward = examples[k].turn() ? miss[k] : -miss[k];
            step.towards[examples[k].place] = toward;  // all lanes the same: no branch
            miss[k] = miss_of(toward, examples[k].turn());
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

    __device__ __forceinline__ void put(const Step &step, const Node &node)
    {
#pragma unroll
        for (int c = 0; c < CHUNKS; ++c)
            if (32 * c + lane() < step.D) node.row[32 * c + lane()] = next[c];
    }
};

// All examples of a node from `b` on, which is its first; D <= 32 CHUNKS. The next IN_FLIGHT examples are loaded before the
// current ones are judged.
template <int CHUNKS, class Row, class Known>
__device__ __forceinline__ void narrow(const Known &step, const Node &node, int b, int B, unsigned short *places)
{
    Row row;
    row.take(step, node);
    for (int first = b; first < B; first += SPAN) {
        const int count = collect(places, node.entries, 1, node.id, first, min(first + SPAN, B));
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
            for (int k = 1; k < IN_FLIGHT; ++k) start = start || now[k].start();
            if (!__any_sync(FULL, start)) {  // so the compiler sees that the warp stays together
                row.template visit<IN_FLIGHT>(step, node, now);
            } else {
#pragma unroll
                for (int k = 0; k < IN_FLIGHT; ++k)
                    if (i + k < count) row.template visit<1>(step, node, now + k);
            }
#pragma unroll
            for (int k = 0; k < IN_FLIGHT; ++k) now[k] = later[k];
        }
        __syncwarp();  // before the list is written again
    }
    row.put(step, node);
}

// A row of any width, which stays in memory and moves when the next group begins. Of a group's example e lane e knows the b,
// and how far the node missed.
struct Group {
    int mine, members;
    float miss;

    // The sum over the group of push * h in column d < D, 0 beyond; added to `value`, example after example.
    __device__ __forceinline__ float along(const Step &step, float push, int d, float value)
    {
        for (int e = 0; e < members; ++e) {
            const int b = __shfl_sync(FULL, mine, e);
            const float h = d < step.D ? step.hidden[(int64)b * step.D + d] : 0;
            value = fmaf(__shfl_sync(FULL, push, e), h, value);
        }
        return value;
    }
};

struct PlainWide {
    __device__ __forceinline__ void take(const Step &, const Node &) {}

    __device__ __forceinline__ float weigh(const Step &, float score, bool turn, float *toward, int)
    {
        *toward = turn ? score : -score;
        return miss_of(*toward, turn);
    }

    __device__ __forceinline__ void move(const Step &step, const Node &node, Group &group)
    {
        for (int first = 0; first < step.D; first += 32) {
            const int d = first + lane();
            const float value = group.along(step, step.rate * group.miss, d, d < step.D ? node.row[d] : 0);
            if (d < step.D) node.row[d] = value;
        }
    }
};

template <class Row, class Known>
__device__ __forceinline__ void wide(const Known &step, const Node &node, int b, int B, unsigned short *places)
{
    Row row;
    row.take(step, node);
    Group group = {0, 0, 0};
    for (int first = b; first < B; first += SPAN) {
        const int count = collect(places, node.entries, 1, node.id, first, min(first + SPAN, B));
        for (int i = 0; i < count; ++i) {
            const int at = first + places[i];
            if (__any_sync(FULL, step.starts[at])) {
                step_of_chain();
                row.move(step, node, group);
                group.members = 0;
            }
            float product = 0, toward;
#pragma unroll 8
            for (int d = lane(); d < step.D; d += 32) product = fmaf(node.row[d], step.hidden[(int64)at * step.D + d], product);
            const float miss = row.weigh(step, sum(product), node.entries[at] & 1, &toward, at);
            const int place = at * step.depth + node.level;
            step.towards[place] = toward;
#pragma unroll 8
            for (int d = lane(); d < step.D; d += 32) step.terms[(int64)place * step.pitch + d] = miss * node.row[d];
            if (lane() == group.members) {
                group.mine = at;
                group.miss = miss;
            }
            ++group.members;
        }
        __syncwarp();
    }
    row.move(step, node, group);
}

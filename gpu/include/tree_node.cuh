// A node of a tree meets the examples that pass it, in their order: what a warp does in gpu/tree_softmax.cu.
//
// Hidden vectors stand still within a step, so what becomes of a node depends on nothing but the node and the examples that
// pass it. So a warp takes all examples of a node, in their order, with the node in registers: the same numbers in every
// run. The root sees all B examples one after another, and what they wait for is the step's critical path.
#pragma once

#include "logistic.cuh"
#include "visit.cuh"
#include "warp.cuh"

// Equal keys of a batch, without sorting, atomics or memory: the first place of a key finds no equal key before it, so it
// leads. It collects the places of its key, in rising order, and does the work of all of them. Frequent keys stand early in a
// list, so the longest work begins first.
//   bound   n^2 comparisons: each place reads the list at most once, coalesced, from the L1 cache; 16 KB a place for a list
//           of WINDOW keys, instead of a hash table and the launches that fill and clear it
constexpr int WINDOW = 4096;  // the most places collected at once; places within a window fit 16 bits

// Lane l's keys at n + l, n + l + 32, ... of 128 keys: four loads under way at once. Past the last: another key than `key`.
__device__ __forceinline__ void load_keys(int *found, const int *keys, int shift, int key, int n, int last)
{
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        const int i = n + 32 * k + lane();
        found[k] = i < last ? keys[i] >> shift : ~key;
    }
}

// Is keys[i] >> shift == key for an i of [first, last)? The warp answers together.
__device__ __forceinline__ bool met(const int *keys, int shift, int key, int first, int last)
{
    for (int n = first; n < last; n += 128) {
        int found[4];
        load_keys(found, keys, shift, key, n, last);
        const bool same = found[0] == key || found[1] == key || found[2] == key || found[3] == key;
        if (__any_sync(FULL, same)) return true;
    }
    return false;
}

// Write i - first of all i of [first, last) with keys[i] >> shift == key to `places` in shared memory, in rising order, and
// return how many there are; the warp works together. last - first <= WINDOW.
__device__ __forceinline__ int collect(unsigned short *places, const int *keys, int shift, int key, int first, int last)
{
    int count = 0;
    for (int n = first; n < last; n += 128) {
        int found[4];
        load_keys(found, keys, shift, key, n, last);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const unsigned same = __ballot_sync(FULL, found[k] == key);
            if (found[k] == key) places[count + __popc(same & ((1u << lane()) - 1))] = n - first + 32 * k + lane();
            count += __popc(same);
        }
    }
    __syncwarp();
    return count;
}

constexpr int SPAN = 1024;     // examples whose paths a warp looks through at once
constexpr int IN_FLIGHT = 4;  // examples that are loaded before the current ones are judged
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
    int entry;  // as it is in memory: what is computed from it is computed where it is used, since it waits for it

    __device__ __forceinline__ bool turn() const { return entry & 1; }
};

template <int CHUNKS>
__device__ __forceinline__ void load(Example<CHUNKS> &example, const Step &step, const Node &node, int b)
{
    example.b = b;
    example.place = b * step.depth + node.level;
    example.entry = node.entries[b];
    const float *h = step.hidden + (int64)b * step.D;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
        const int d = 32 * c + lane();
        example.h[c] = d < step.D ? h[d] : 0;
    }
}

// The score of an example at the row w, over the lanes.
template <int CHUNKS> __device__ __forceinline__ float score(const float *w, const Example<CHUNKS> &example)
{
    float product = w[0] * example.h[0];
#pragma unroll
    for (int c = 1; c < CHUNKS; ++c) product = fmaf(w[c], example.h[c], product);
    return sum(product);
}

// A row that moves by plain SGD.
template <int CHUNKS> struct Plain {
    float w[CHUNKS];

    __device__ __forceinline__ void take(const Step &step, const Node &node)
    {
#pragma unroll
        for (int c = 0; c < CHUNKS; ++c) w[c] = 32 * c + lane() < step.D ? node.row[32 * c + lane()] : 0;
    }

    __device__ __forceinline__ void visit(const Step &step, const Node &node, const Example<CHUNKS> &example)
    {
        step_of_chain();
        const float found = score<CHUNKS>(w, example), toward = example.turn() ? found : -found;
        step.towards[example.place] = toward;  // all lanes the same: no branch
        const float miss = miss_of(toward, example.turn());
        float *term = step.terms + (int64)example.place * step.pitch + lane();
#pragma unroll
        for (int c = 0; c < CHUNKS; ++c) {
            term[32 * c] = miss * w[c];
            w[c] = fmaf(step.rate * miss, example.h[c], w[c]);
        }
    }

    __device__ __forceinline__ void put(const Step &step, const Node &node)
    {
#pragma unroll
        for (int c = 0; c < CHUNKS; ++c)
            if (32 * c + lane() < step.D) node.row[32 * c + lane()] = w[c];
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
#pragma unroll
            for (int k = 0; k < IN_FLIGHT; ++k)
                if (i + k < count) row.visit(step, node, now[k]);
#pragma unroll
            for (int k = 0; k < IN_FLIGHT; ++k) now[k] = later[k];
        }
        __syncwarp();  // before the list is written again
    }
    row.put(step, node);
}

// A row of any width, which stays in memory.
struct PlainWide {
    __device__ __forceinline__ void take(const Step &, const Node &) {}

    __device__ __forceinline__ float weigh(const Step &, float score, bool turn, float *toward, int)
    {
        *toward = turn ? score : -score;
        return miss_of(*toward, turn);
    }

    __device__ __forceinline__ void move(const Step &step, const Node &node, int b, float miss)
    {
        for (int d = lane(); d < step.D; d += 32)
            node.row[d] = fmaf(step.rate * miss, step.hidden[(int64)b * step.D + d], node.row[d]);
    }
};

template <class Row, class Known>
__device__ __forceinline__ void wide(const Known &step, const Node &node, int b, int B, unsigned short *places)
{
    Row row;
    row.take(step, node);
    for (int first = b; first < B; first += SPAN) {
        const int count = collect(places, node.entries, 1, node.id, first, min(first + SPAN, B));
        for (int i = 0; i < count; ++i) {
            const int at = first + places[i];
            step_of_chain();
            float product = 0, toward;
#pragma unroll 8
            for (int d = lane(); d < step.D; d += 32) product = fmaf(node.row[d], step.hidden[(int64)at * step.D + d], product);
            const float miss = row.weigh(step, sum(product), node.entries[at] & 1, &toward, at);
            const int place = at * step.depth + node.level;
            step.towards[place] = toward;
#pragma unroll 8
            for (int d = lane(); d < step.D; d += 32) step.terms[(int64)place * step.pitch + d] = miss * node.row[d];
            row.move(step, node, at, miss);
        }
        __syncwarp();
    }
}

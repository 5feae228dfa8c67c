// A crowded node of a tree meets its examples: what a block does in gpu/tree_softmax.cu, mode "ordered".
//
// The score of example i of a CHUNK at the row that it finds is
//
//     w . h[i] + sum over j < i of rate miss[j] h[j] . h[i],  w the row before the first example of the chunk
//
// The products of hidden vectors do not wait for the row. So one warp walks through the chunk, a lane an example: what an
// example waits for is a logistic, a shuffle and a multiply-add, and no sum over columns. The other warps prepare the next chunk
// meanwhile. Then the row moves for the whole chunk at once, each thread in columns of its own.
#pragma once

#include "tree_node.cuh"
#include "vector.cuh"

constexpr int CROWD = 64;  // a node with so many examples among the first SPAN from its first on is taken by a block
constexpr int CHUNK = 32;  // examples at a time: the lanes of a warp
constexpr int EARLY = 8;   // of them met while the next chunk is brought
constexpr int HELPERS = WARPS - 1;  // warps that prepare the next chunk

static_assert(HELPERS == 3, "each multiplies a quarter of the pairs; the last quarter mirrors one");

// Where an example's hidden vector begins, and its term of this node.
struct alignas(16) Offset {
    int64 hidden, term;
};

// What the block shares; D <= 32 CHUNKS, and what lies beyond is 0.
template <int CHUNKS> struct Shared {
    static constexpr int PITCH = 32 * CHUNKS + 4;  // rows of `hidden` begin 4 banks apart
    alignas(16) float hidden[CHUNK][PITCH];        // of the next chunk
    float products[CHUNK][CHUNK];                  // rate h[j] . h[i] of the next chunk at [j][i], where j < i
    float row[32 * CHUNKS];
    alignas(16) float scores[CHUNK];  // of the next chunk at `row`
    alignas(16) float misses[CHUNK];  // of the current chunk, 0 past its end
    Offset offsets[2][CHUNK];         // of the current chunk and of the next, by turns
};

// A chunk of a node's examples, of the `count` in `places` of the window that begins at `first`; past the end the last one
// stands again.
struct Chunk {
    const unsigned short *places;
    int first, at, count;

    __device__ __forceinline__ int many() const { return min(CHUNK, count - at); }
    __device__ __forceinline__ int operator[](int i) const { return first + places[min(at + i, count - 1)]; }
};

// The helpers load the hidden vectors of the next chunk: all loads of a thread are under way at once.
template <int CHUNKS>
__device__ __forceinline__ void bring(Shared<CHUNKS> &shared, Offset *offsets, const Step &step, const Node &node,
                                      const Chunk &chunk)
{
    constexpr int MOST = (CHUNK + HELPERS - 1) / HELPERS;
    float h[MOST][CHUNKS];
#pragma unroll
    for (int k = 0; k < MOST; ++k) {
        const float *from = step.hidden + (int64)chunk[warp() - 1 + HELPERS * k] * step.D;
#pragma unroll
        for (int c = 0; c < CHUNKS; ++c) h[k][c] = 32 * c + lane() < step.D ? from[32 * c + lane()] : 0;
    }
    if (warp() == 1) {
        const int b = chunk[lane()];
        offsets[lane()] = {(int64)b * step.D, (int64)(b * step.depth + node.level) * step.pitch};
    }
#pragma unroll
    for (int k = 0; k < MOST; ++k) {
        const int i = warp() - 1 + HELPERS * k;
#pragma unroll
        for (int c = 0; c < CHUNKS; ++c)
            if (i < CHUNK) shared.hidden[i][32 * c + lane()] = h[k][c];
    }
}

// The helpers multiply the hidden vectors with each other: 16 by 16 products a warp, 4 by 4 a lane, where the lower lanes take
// every second four columns and the upper ones the others.
template <int CHUNKS> __device__ __forceinline__ void multiply(Shared<CHUNKS> &shared, float rate)
{
    const int top = warp() == 3 ? 16 : 0, left = warp() == 1 ? 0 : 16;
    const int j = top + lane() / 4 % 4, i = left + lane() % 4;
    const bool upper = lane() & 16;
    float product[4][4] = {};
#pragma unroll 2
    for (int d = upper ? 4 : 0; d < 32 * CHUNKS; d += 8) {
        float one[4][4], other[4][4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            load<4>(one[k], &shared.hidden[j + 4 * k][d]);
            load<4>(other[k], &shared.hidden[i + 4 * k][d]);
        }
#pragma unroll
        for (int a = 0; a < 4; ++a)
#pragma unroll
            for (int b = 0; b < 4; ++b)
#pragma unroll
                for (int k = 0; k < 4; ++k) product[a][b] = fmaf(one[a][k], other[b][k], product[a][b]);
    }
#pragma unroll
    for (int a = 0; a < 2; ++a)  // each half of the lanes keeps half of the products, and hands over the other
#pragma unroll
        for (int b = 0; b < 4; ++b) {
            const float mine = upper ? product[a + 2][b] : product[a][b], its = upper ? product[a][b] : product[a + 2][b];
            shared.products[j + 4 * (upper ? a + 2 : a)][i + 4 * b] = rate * (mine + __shfl_xor_sync(FULL, its, 16));
        }
}

// The scores of the next chunk at the row, a quarter of its examples a warp.
template <int CHUNKS> __device__ __forceinline__ void score(Shared<CHUNKS> &shared)
{
    constexpr int EACH = CHUNK / WARPS;
    float product[EACH] = {};
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
        const float w = shared.row[32 * c + lane()];
#pragma unroll
        for (int e = 0; e < EACH; ++e) product[e] = fmaf(w, shared.hidden[EACH * warp() + e][32 * c + lane()], product[e]);
    }
    const float mine = sums<EACH>(product);  // lane l has that of example l / WARPS
    if (lane() % WARPS == 0) shared.scores[EACH * warp() + lane() / WARPS] = mine;
}

// The first warp's walk through a chunk: lane i has example i, the log-odds of its turn as far as the examples before it are
// known, and what they move those by where their own turn was unlikely.
struct Walk {
    float toward, moves[CHUNK];
    bool turn;

    template <int CHUNKS>
    __device__ __forceinline__ Walk(const Shared<CHUNKS> &shared, const Node &node, const Chunk &chunk)
        : turn(node.entries[chunk[lane()]] & 1)
    {
        const unsigned turns = __ballot_sync(FULL, turn), unlike = turn ? ~turns : turns;
        toward = turn ? shared.scores[lane()] : -shared.scores[lane()];
#pragma unroll
        for (int j = 0; j < CHUNK; ++j) moves[j] = unlike >> j & 1 ? -shared.products[j][lane()] : shared.products[j][lane()];
    }

    // Past examples first to last - 1. Those beyond the end of the chunk move none that is within.
    template <int FIRST, int LAST> __device__ __forceinline__ void go()
    {
#pragma unroll
        for (int j = FIRST; j < LAST; ++j) {
            const float moved = fmaf(__shfl_sync(FULL, miss_of(toward, true), j), moves[j], toward);
            toward = lane() > j ? moved : toward;
        }
    }

    template <int CHUNKS>
    __device__ __forceinline__ void put(Shared<CHUNKS> &shared, const Step &step, const Node &node, const Chunk &chunk) const
    {
        const bool inside = lane() < chunk.many();
        shared.misses[lane()] = inside ? miss_of(toward, turn) : 0;
        if (inside) step.towards[chunk[lane()] * step.depth + node.level] = toward;
    }
};

// The columns of a thread: what a chunk's hidden vectors have there, and how the row moves. Beyond D the last one stands again,
// which the row forgets. In narrow rows some warps have none.
template <int CHUNKS> struct Columns {
    static constexpr int COUNT = (CHUNKS + WARPS - 1) / WARPS;
    float h[COUNT][CHUNK];

    __device__ __forceinline__ static int column(int k) { return threadIdx.x + 32 * WARPS * k; }
    __device__ __forceinline__ static bool none() { return CHUNKS < WARPS && warp() >= CHUNKS; }

    __device__ __forceinline__ void take(const Step &step, const Offset *offsets)
    {
        if (none()) return;
#pragma unroll
        for (int k = 0; k < COUNT; ++k) {
            const float *from = step.hidden + min(column(k), step.D - 1);
#pragma unroll
            for (int i = 0; i < CHUNK; ++i) h[k][i] = from[offsets[i].hidden];
        }
    }

    // Past the end of the chunk the misses are 0, and the last example's term is written again: no branch.
    __device__ __forceinline__ void move(Shared<CHUNKS> &shared, const Step &step, const Offset *offsets, int many) const
    {
        if (none()) return;
        float *terms = step.terms + column(0), w[COUNT], term[COUNT] = {};
#pragma unroll
        for (int k = 0; k < COUNT; ++k) w[k] = shared.row[column(k)];
#pragma unroll
        for (int i = 0; i < CHUNK; ++i) {
            const float miss = shared.misses[i];
#pragma unroll
            for (int k = 0; k < COUNT; ++k) {
                term[k] = i < many ? miss * w[k] : term[k];
                terms[offsets[i].term + 32 * WARPS * k] = term[k];
                w[k] = fmaf(step.rate * miss, h[k][i], w[k]);
            }
        }
#pragma unroll
        for (int k = 0; k < COUNT; ++k) shared.row[column(k)] = column(k) < step.D ? w[k] : 0;
    }
};

// All examples of a node from `b` on, which is its first. `places` is the warp's own, so that no warp waits for another's.
template <int CHUNKS>
__device__ __forceinline__ void crowd(const Step &step, const Node &node, int b, int B, unsigned short *places,
                                      Shared<CHUNKS> &shared)
{
    for (int d = threadIdx.x; d < 32 * CHUNKS; d += blockDim.x) shared.row[d] = d < step.D ? node.row[d] : 0;
    for (int first = b; first < B; first += SPAN) {
        const int count = collect(places, node.entries, 1, node.id, first, min(first + SPAN, B));
        if (!count) continue;
        if (warp() > 0) bring(shared, shared.offsets[0], step, node, {places, first, 0, count});
        __syncthreads();
        if (warp() > 0) multiply(shared, step.rate);
        score(shared);
        __syncthreads();
        for (int i = 0; i < count; i += CHUNK) {
            const Chunk now = {places, first, i, count}, next = {places, first, i + CHUNK, count};
            const Offset *offsets = shared.offsets[i / CHUNK & 1];
            Walk walk(shared, node, now);
            if (warp() == 0)
                walk.go<0, EARLY>();
            else  // where there is no next one, no matter what is brought
                bring(shared, shared.offsets[i / CHUNK + 1 & 1], step, node, next);
            __syncthreads();
            Columns<CHUNKS> columns;
            columns.take(step, offsets);  // asked for before it is needed
            if (warp() == 0) {
                walk.go<EARLY, CHUNK>();
                walk.put(shared, step, node, now);
            } else {
                multiply(shared, step.rate);
            }
            __syncthreads();
            columns.move(shared, step, offsets, now.many());
            __syncthreads();
            score(shared);
            __syncthreads();
        }
    }
    for (int d = threadIdx.x; d < step.D; d += blockDim.x) node.row[d] = shared.row[d];
}

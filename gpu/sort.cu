// Keys of a list in rising order, and beside each the place that it had: a stable sort, so equal keys keep their order.
//
// A short list by comparisons, in one launch; a long one by radix, from the lowest digit up, in two launches a digit, for as
// many digits as the keys have. CUB's sort would need a launch less a digit, since its blocks wait for each other's counts;
// but it is chosen and launched by host code, and ours has no blocks that wait.
//
// Keys are at least 0. All that is written is the same in every run: atomics, of integers in shared memory, only count.
#include "include/warp.cuh"

constexpr int THREADS = 256, WARPS = THREADS / 32;
constexpr int EACH = 4;                      // keys that a warp of `rank` ranks
constexpr int BITS = 8, DIGITS = 1 << BITS;  // of a digit, and its values
constexpr int ITEMS = 8;                     // keys of a thread in a pass
constexpr int TILE = THREADS * ITEMS;        // of a block

static_assert(DIGITS == THREADS, "a thread a value of a digit");

// sorted[r] = keys[n] and places[r] = n, where r keys come before key n
//   work    a warp EACH keys: it compares them with all others, a lane every 32nd
//   launch  grid: keys / (8 EACH), block: 256
//   bound   N^2 comparisons; the list is read N / EACH times, from the L1 cache
extern "C" __global__ void __launch_bounds__(THREADS) rank(int *sorted, int *places, const int *keys, int N)
{
    const int first = (blockIdx.x * WARPS + warp()) * EACH;
    if (first >= N) return;
    int mine[EACH], before[EACH];
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        mine[k] = keys[min(first + k, N - 1)];
        before[k] = 0;
    }
#pragma unroll 4
    for (int m = lane(); m < N; m += 32) {
        const int key = keys[m];
#pragma unroll
        for (int k = 0; k < EACH; ++k) before[k] += key < mine[k] + (m < first + k);  // of equal keys those of lower places
    }
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        for (int step = 16; step; step >>= 1) before[k] += __shfl_xor_sync(FULL, before[k], step);
        if (lane() || first + k >= N) continue;
        sorted[before[k]] = mine[k];
        places[before[k]] = first + k;
    }
}

__device__ __forceinline__ int digit(int key, int shift) { return key >> shift & (DIGITS - 1); }

// counts[block][v] = how many keys of the block's tile have the digit v
//   work    a block a tile
//   launch  grid: keys / TILE, block: 256
//   bound   memory: 4 bytes a key
extern "C" __global__ void __launch_bounds__(THREADS) count(int *counts, const int *keys, int shift, int N)
{
    __shared__ int found[DIGITS];
    found[threadIdx.x] = 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        const int n = blockIdx.x * TILE + i * THREADS + threadIdx.x;
        if (n < N) atomicAdd(&found[digit(keys[n], shift)], 1);
    }
    __syncthreads();
    counts[blockIdx.x * DIGITS + threadIdx.x] = found[threadIdx.x];
}

// Thread t's sum of `value` over all threads before it.
__device__ __forceinline__ int sum_before(int value, int *parts)
{
    int sum = value;
    for (int step = 1; step < 32; step *= 2) {
        const int other = __shfl_up_sync(FULL, sum, step);
        if (lane() >= step) sum += other;
    }
    if (lane() == 31) parts[warp()] = sum;
    __syncthreads();
    for (int w = 0; w < warp(); ++w) sum += parts[w];
    return sum - value;
}

// Where the keys of this block's tile with the digit threadIdx.x begin in the list sorted by that digit.
__device__ __forceinline__ int begin(const int *counts, int *parts)
{
    int all = 0, before = 0;
#pragma unroll 8
    for (int block = 0; block < gridDim.x; ++block) {
        const int some = counts[block * DIGITS + threadIdx.x];
        all += some;
        before += block < blockIdx.x ? some : 0;
    }
    return before + sum_before(all, parts);
}

// One pass: the keys and their places, sorted by a digit; places null: key n has the place n
//   work    a block a tile, of which each warp has a stretch, and in it each item 32 keys in a row. Lanes with one digit
//           know each other by a vote, and their warp counts the digit; counts of the warps, then of the blocks, come before
//   launch  grid: keys / TILE, block: 256
//   bound   memory: 16 bytes a key, written where they belong; each block reads the counts of all, 1 KB a block
extern "C" __global__ void __launch_bounds__(THREADS)
    pass(int *sorted, int *sorted_places, const int *keys, const int *places, const int *counts, int shift, int N)
{
    __shared__ int found[WARPS][DIGITS];  // how many keys with a digit a warp has met; then where its first one goes
    __shared__ int parts[WARPS];
    const int from = begin(counts, parts), first = blockIdx.x * TILE + warp() * 32 * ITEMS + lane();
    for (int w = 0; w < WARPS; ++w) found[w][threadIdx.x] = 0;
    __syncthreads();
    int key[ITEMS], rank[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        const int n = first + 32 * i;
        key[i] = n < N ? keys[n] : 0;
    }
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        const bool there = first + 32 * i < N;
        const int value = digit(key[i], shift);
        const unsigned same = __match_any_sync(FULL, there ? value : DIGITS);
        const int met = found[warp()][value];
        rank[i] = met + __popc(same & ((1u << lane()) - 1));
        __syncwarp();  // all have read it
        if (there && rank[i] == met) found[warp()][value] = met + __popc(same);
        __syncwarp();
    }
    __syncthreads();
    int place = from;
    for (int w = 0; w < WARPS; ++w) {
        const int many = found[w][threadIdx.x];
        found[w][threadIdx.x] = place;
        place += many;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        const int n = first + 32 * i;
        if (n >= N) continue;
        const int to = found[warp()][digit(key[i], shift)] + rank[i];
        sorted[to] = key[i];
        sorted_places[to] = places ? places[n] : n;
    }
}

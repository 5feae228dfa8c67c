// Equal keys of a batch: who takes them, and in what order. No sorting, no atomics, no memory of its own.
//
// At every place n of a list of keys stands somebody who could do the work of its key. The first place of a key finds no
// equal key before it, so it leads: it collects the places of its key, in rising order, and does the work of all of them;
// the others find one and leave. Frequent keys stand early in a list, so the longest work begins first.
//   bound   n^2 comparisons: each place reads the list at most once, coalesced, from the L1 cache; 16 KB a place for a list
//           of WINDOW keys, instead of a hash table and the launches that fill and clear it
#pragma once

#include "warp.cuh"

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

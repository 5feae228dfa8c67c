// A kernel that reverses and doubles 128 numbers by bulk copies, and what may be wrong with it.
#include <cudasim_bulk.h>

enum Fault {
    NONE, NO_BARRIER, NO_WAIT, MISCOUNTED, MISALIGNED, ODD_SIZE, ARRIVES_TWICE, FEW_MEET, NO_FENCE, OVERWRITTEN, NO_WAIT_READ, PART_WANTED
};

extern "C" __global__ void reverse(float* y, const float* x, int fault) {
    __shared__ __align__(16) float s[128];
    __shared__ Barrier full;
    if (threadIdx.x == 0 && fault != NO_BARRIER) begin_barrier(&full, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        expect(&full, fault == MISCOUNTED ? 528 : 512);
        if (fault == PART_WANTED)
            load_bulk(s, x, 512, &full, 2, 125);
        else
            load_bulk(s, x + (fault == MISALIGNED), fault == ODD_SIZE ? 508 : 512, &full);
        if (fault == ARRIVES_TWICE) arrive(&full);
    }
    if (fault != NO_WAIT) wait(&full, 0);
    const float mine = s[127 - threadIdx.x];
    meet(1, fault == FEW_MEET ? 160 : 128);
    s[threadIdx.x] = 2 * mine;
    if (fault != NO_FENCE) fence_bulk();
    __syncthreads();
    if (threadIdx.x) return;
    store_bulk(y, s, 512);
    if (fault == OVERWRITTEN) s[0] = -1;
    if (fault != NO_WAIT_READ) wait_stores_read();
}

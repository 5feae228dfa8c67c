// Rows that a whole batch moves at once, as those of a full softmax: what lies around the products of gpu/batch_rows.py.
#include "include/half.cuh"
#include "include/row_visit.cuh"

#define THREADS 256

// out[c] = kept out[c] + factor times the sum over b of misses[b][c]; kept 0 does not read out
//   work    a block 32 columns: a lane a column, each warp from every eighth row
//   launch  grid: columns / 32, block: 256
//   bound   memory: 4 bytes a number of misses (half: 2), in lines of 128
//   order   each warp's rows in turn, then the warps in turn
template <class T>
__device__ __forceinline__ void sum_of_columns(float (*parts)[32], float *__restrict__ out, const T *__restrict__ misses, float kept,
                                               float factor, int B, int C, int pitch)
{
    const int c = blockIdx.x * 32 + lane();
    float total = 0;
    if (c < C) {
#pragma unroll 8
        for (int b = warp(); b < B; b += THREADS / 32) total += number(misses[(int64)b * pitch + c]);
    }
    parts[warp()][lane()] = total;
    __syncthreads();
    if (warp() || c >= C) return;
    for (int w = 1; w < THREADS / 32; ++w) total += parts[w][lane()];
    out[c] = fmaf(factor, total, kept ? kept * out[c] : 0);
}

#define SUM_COLUMNS(NAME, T)                                                                                             \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                                \
    NAME(float *__restrict__ out, const T *__restrict__ misses, float kept, float factor, int B, int C, int pitch)       \
    {                                                                                                                    \
        __shared__ float parts[THREADS / 32][32];                                                                        \
        sum_of_columns(parts, out, misses, kept, factor, B, C, pitch);                                                   \
    }
SUM_COLUMNS(sum_columns, float)
SUM_COLUMNS(sum_columns_half, Half)

// Each of R rows, and its bias where there are biases, moves once against its gradient: grad (R, D), bias_grad (R,); visit.cuh.
//   squares  (R,): one a row; (R, D) where `each`, with bias_squares (R,) for the biases; null: none
//   work    a warp a row: it sums the gradient up where the row has one square, then reads it again
//   launch  grid: rows / 8, block: 256
//   bound   memory: 12 D bytes a row, 20 D where each number has a square
//   order   of a norm: lanes stride over the columns, then a butterfly
extern "C" __global__ void __launch_bounds__(THREADS)
    move(float *__restrict__ rows, float *__restrict__ biases, float *__restrict__ squares, float *__restrict__ bias_squares,
         const float *__restrict__ grad, const float *__restrict__ bias_grad, float rate, int each, int R, int D)
{
    const int r = blockIdx.x * warps() + warp();
    if (r >= R) return;
    const Row row = row_of(rows, biases, squares, bias_squares, each, r, D);
    visit_row(row, grad + (int64)r * D, biases ? bias_grad[r] : 0, rate, D);
}

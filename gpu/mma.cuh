// Products of small matrices by the tensor cores, of sm_80 and later: a warp makes C (16, 8) += A (16, 8) B (8, 8), with
// factors in TF32, which has 10 bits of mantissa, and sums in fp32.
//
// Lane 4 g + t holds, as the instruction has it,
//   of A  (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4)
//   of B  (t, g), (t + 4, g)
//   of C  (g, 2 t), (g, 2 t + 1), (g + 8, 2 t), (g + 8, 2 t + 1)
//
// THRICE: 3xTF32. A factor is the sum of two in TF32, high and low, and of the four products all but low low are added. That is
// nearly fp32 for finite factors; an infinite one makes NaN, since the rest of it is infinity - infinity.
#pragma once

#include "warp.cuh"

__device__ __forceinline__ unsigned to_tf32(float x)
{
#if defined(__CUDASIM__)
    return cudasim_to_tf32(x);
#elif __CUDA_ARCH__ >= 800
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return bits;
#else
    return __float_as_uint(x);
#endif
}

__device__ __forceinline__ void mma(float *c, const unsigned *a, const unsigned *b)
{
#if defined(__CUDASIM__)
    cudasim_mma(c, a, b);
#elif __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    __trap();  // launchers do not come here
#endif
}

// N numbers of A or B.
template <bool THRICE, int N> struct Factor {
    unsigned high[N], low[N];

    __device__ __forceinline__ void set(int i, float x)
    {
        high[i] = to_tf32(x);
        low[i] = THRICE ? to_tf32(x - __uint_as_float(high[i])) : 0;
    }
};

// Four numbers of C. Sums within the tensor cores are cut, not rounded: so the small products have a sum of their own, and who
// has many products to add makes several such sums, and adds these.
template <bool THRICE> struct Products {
    float large[4] = {}, small[4] = {};

    __device__ __forceinline__ void add(const Factor<THRICE, 4> &a, const Factor<THRICE, 2> &b)
    {
        if (THRICE) {
            mma(small, a.low, b.high);
            mma(small, a.high, b.low);
        }
        mma(large, a.high, b.high);
    }

    __device__ __forceinline__ float sum(int i) const { return THRICE ? large[i] + small[i] : large[i]; }
};

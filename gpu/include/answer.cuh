// The middle of a step: from hidden signals to outputs, errors and what they say of the hidden signals, in shared memory.
#pragma once
#include "units.cuh"

// s.inner holds hidden signals, s.wanted targets. s.out and s.inner_delta become the gradients before the activation.
template <bool WHOLE, bool MANY>
__device__ __forceinline__ void answer(const Written &to, const Signals &s, const Unit &unit, const Weights<WHOLE> &w, int code,
                                       int B)
{
    const int h = unit.h, o = unit.o;
    affine<WHOLE, MANY>(s.out, w, unit.second(), s.inner, h, o, B, code);
    __syncthreads();
    scatter(to.hidden, unit.hidden, to.H, s.inner, h, B);

    float squared = 0;
    for (int b = 0; b < B; ++b)
        for (int i = threadIdx.x; i < o; i += blockDim.x) {
            const float a = s.out[b * o + i], wrong = a - s.wanted[b * o + i], delta = wrong * slope(a, code);
            to.y[b * to.Y + unit.y + i] = a;
            to.y_grad[b * to.Y + unit.y + i] = s.out[b * o + i] = delta;
            squared = fmaf(wrong, wrong, squared);
        }
    squared = block_sum(squared, s.parts);
    if (threadIdx.x == 0) to.loss[unit.number] = squared / 2;
    __syncthreads();

    pull_back<WHOLE, MANY>(s.inner_delta, s.parts, w, unit.second(), s.out, o, h, B);
    for (int i = threadIdx.x; i < B * h; i += blockDim.x) s.inner_delta[i] *= slope(s.inner[i], code);
    __syncthreads();
    scatter(to.hidden_grad, unit.hidden, to.H, s.inner_delta, h, B);
}

// Activations and their slopes, twins of cpu/activation.py. A NaN stays a NaN.
#pragma once

enum Activation { LOGISTIC, RATIONAL, TANH, RELU };  // the codes that launchers pass

__device__ __forceinline__ float activate(float s, int code)
{
    if (code == LOGISTIC) {
        const float e = expf(-fabsf(s));  // never overflows
        return (s < 0 ? e : 1) / (1 + e);
    }
    if (code == RATIONAL) {
        const float rest = 0.5f / (fabsf(s) + 1);  // s / (2 (|s| + 1)) + 1/2, without a difference of near equals
        return s < 0 ? rest : 1 - rest;
    }
    if (code == TANH) return tanhf(s);
    return s < 0 ? 0 : s;
}

// d activation / d s, from the activation a itself.
__device__ __forceinline__ float slope(float a, int code)
{
    if (code == LOGISTIC) return a * (1 - a);
    if (code == RATIONAL) {
        const float w = 1 - fabsf(2 * a - 1);
        return 0.5f * w * w;
    }
    if (code == TANH) return 1 - a * a;
    return a > 0 ? 1 : 0;
}

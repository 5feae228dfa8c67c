// Activations and their slopes, twins of cpu/vectors/activation.py. A NaN stays a NaN.
#pragma once

enum Activation { LOGISTIC, RATIONAL, TANH, RELU, RATIONAL_2023 };  // the codes that launchers pass

__device__ __forceinline__ float activate(float s, int code)
{
    if (code == LOGISTIC) {
        const float e = expf(-fabsf(s));  // never overflows
        return (s < 0 ? e : 1) / (1 + e);
    }
    if (code == RATIONAL || code == RATIONAL_2023) {
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
    if (code == RATIONAL_2023) {  // what PVM_cuda of 2023 takes for it: a slip of a sign
        const float w = fabsf(2 * a - 1), root = 1 + w / (1 + w);
        return 0.5f / (root * root);
    }
    return a > 0 ? 1 : 0;
}

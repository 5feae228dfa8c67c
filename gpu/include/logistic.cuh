// What a logistic regression says of a turn. `toward` is the log-odds of the turn taken.
#pragma once

// -log p; no overflow, and a NaN stays one
__device__ __forceinline__ float cost(float toward)
{
    return log1pf(expf(-fabsf(toward))) - (toward < 0 ? toward : 0);
}

// turn - logistic(score); relatively accurate at both ends
__device__ __forceinline__ float miss_of(float toward, bool turn)
{
    const float small = expf(-fabsf(toward));
    const float wrong = __fdividef(toward > 0 ? small : 1, 1 + small);  // the divisor is in [1, 2]
    return turn ? wrong : -wrong;
}

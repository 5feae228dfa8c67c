// The sum of exp(logit) over some logits, as sum exp(logit - most): NaN stays visible, a maximum passes it by but the sum does not.
#pragma once

#include <cfloat>

struct Sum {
    float most, sum;  // most is finite in an empty sum, since infinity - infinity is NaN
};

__device__ __forceinline__ Sum both(Sum a, Sum b)
{
    const float most = fmaxf(a.most, b.most);
    return {most, a.sum * expf(a.most - most) + b.sum * expf(b.most - most)};
}

// What the tensor cores do with TF32: a warp puts its factors together, then each lane makes its four sums.
#pragma once

// Rounded to 10 bits of mantissa, halves away from zero (cvt.rna.tf32.f32).
inline unsigned cudasim_to_tf32(float x) {
    unsigned bits;
    memcpy(&bits, &x, sizeof bits);
    if (x != x) return 0x7fffffffu;
    return (bits & 0x7f800000u) == 0x7f800000u ? bits : (bits + 0x1000u) & ~0x1fffu;
}

// c += a b of mma.m16n8k8, TF32. Of the factors it sees 10 bits of mantissa, rounded or not. Lanes wait for each other in a
// vote, since a product orders no memory of theirs.
inline void cudasim_mma(float* c, const unsigned* a, const unsigned* b, CUDASIM_SITE) {
    struct Factors {
        float a[16][8], b[8][8];
    };
    static Factors warps[32];
    const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    Factors& all = warps[thread / 32];
    const auto seen = [](unsigned bits) {
        float x;
        bits &= ~0x1fffu;
        memcpy(&x, &bits, sizeof x);
        return x;
    };
    const unsigned g = cudasim_state.lane / 4, t = cudasim_state.lane % 4;
    __any_sync(0xffffffffu, 0, file, line);
    for (unsigned i = 0; i < 4; ++i) all.a[g + 8 * (i % 2)][t + 4 * (i / 2)] = seen(a[i]);
    for (unsigned i = 0; i < 2; ++i) all.b[t + 4 * i][g] = seen(b[i]);
    __any_sync(0xffffffffu, 0, file, line);
    for (unsigned i = 0; i < 4; ++i)
        for (unsigned k = 0; k < 8; ++k) c[i] = fmaf(all.a[g + 8 * (i / 2)][k], all.b[k][2 * t + i % 2], c[i]);
}

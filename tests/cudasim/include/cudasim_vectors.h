// float2 .. int4, with the alignment that a device demands, and dim3.
#pragma once

#define CUDASIM_VECTORS(type, name, align2, align4)                                                                 \
    struct name##1 { type x; };                                                                                     \
    struct __align__(align2) name##2 { type x, y; };                                                                \
    struct name##3 { type x, y, z; };                                                                               \
    struct __align__(align4) name##4 { type x, y, z, w; };                                                          \
    inline name##1 make_##name##1(type x) { return {x}; }                                                           \
    inline name##2 make_##name##2(type x, type y) { return {x, y}; }                                                \
    inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; }                                     \
    inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }

CUDASIM_VECTORS(int, int, 8, 16)
CUDASIM_VECTORS(float, float, 8, 16)
#undef CUDASIM_VECTORS

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
    constexpr dim3(CudasimTriple t) : x(t.x), y(t.y), z(t.z) {}
};

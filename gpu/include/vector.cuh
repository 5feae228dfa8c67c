// V numbers side by side, V 1 or 4: four are read and written at once, from 16 bytes on.
#pragma once

template <int V> __device__ __forceinline__ void load(float *to, const float *from)
{
    static_assert(V == 1 || V == 4, "a number or a float4");
    if (V == 1) {
        to[0] = from[0];
    } else {
        const float4 v = *reinterpret_cast<const float4 *>(from);
        to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
    }
}

template <int V> __device__ __forceinline__ void store(float *to, const float *from)
{
    if (V == 1)
        to[0] = from[0];
    else
        *reinterpret_cast<float4 *>(to) = make_float4(from[0], from[1], from[2], from[3]);
}

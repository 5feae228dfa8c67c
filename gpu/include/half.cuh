// Numbers of bfloat16 beside float32: the upper 16 bits of a float, rounded to the nearest, of ties to the even one.
#pragma once

struct Half {
    unsigned short bits;
};

__device__ __forceinline__ float number(float x) { return x; }
__device__ __forceinline__ float number(Half x) { return __uint_as_float(unsigned(x.bits) << 16); }

__device__ __forceinline__ void set(float &out, float x) { out = x; }
__device__ __forceinline__ void set(Half &out, float x)
{
    const unsigned bits = __float_as_uint(x);
    out.bits = isnan(x) ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

// Numbers 4 q to 4 q + 3 of a row whose start is aligned to as many bytes as they have.
__device__ __forceinline__ float4 four(const float *row, long long q) { return reinterpret_cast<const float4 *>(row)[q]; }
__device__ __forceinline__ float4 four(const Half *row, long long q)
{
    const int2 v = reinterpret_cast<const int2 *>(row)[q];
    return make_float4(__uint_as_float(unsigned(v.x) << 16), __uint_as_float(v.x & 0xffff0000u),
                       __uint_as_float(unsigned(v.y) << 16), __uint_as_float(v.y & 0xffff0000u));
}

__device__ __forceinline__ void put_four(float *row, long long q, float4 v) { reinterpret_cast<float4 *>(row)[q] = v; }
__device__ __forceinline__ void put_four(Half *row, long long q, float4 v)
{
    Half x, y, z, w;
    set(x, v.x);
    set(y, v.y);
    set(z, v.z);
    set(w, v.w);
    reinterpret_cast<int2 *>(row)[q] = make_int2(x.bits | unsigned(y.bits) << 16, z.bits | unsigned(w.bits) << 16);
}

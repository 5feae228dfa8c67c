// Rows of a dense layer of one stream: multiplied with the new input, and moved along the old one. See pvm.cu.
#pragma once
#include "pvm.cuh"

// What a weight becomes; its velocity moves too.
template <bool MOMENTUM> __device__ __forceinline__ float moved(float weight, float &speed, float change, float momentum)
{
    if (!MOMENTUM) return weight + change;
    speed = fmaf(momentum, speed, change);
    return weight + speed;
}

// How a unit learns.
struct Moving {
    float rate, momentum;
    bool learns;
};

// Rows [r, r + count) of a layer, at most R: out = activation(matrix x + bias), matrix += rate delta old^T, bias += rate delta. A
// lane takes K columns at a time, all of which are asked for before the first is used.
template <int R, int K, bool MOMENTUM>
__device__ __forceinline__ void visit_rows(const Tick &t, const Layer &layer, float *matrix, float *speeds, int r,
                                           int count, const Moving &m)
{
    const int n = layer.columns, in = layer.in, out = layer.out, mine = lane() / (32 / R);
    const bool learns = m.learns;
    const bool after = learns && !t.predict_first;  // does what is computed now take the weights that have moved
    const auto bias = [&] { return layer.rows * n + r + min(mine, count - 1); };
    float start = MOMENTUM ? 0 : matrix[bias()];  // asked for before the weights, where registers go round
    float total[R] = {};
#pragma unroll 1
    for (int i = lane(); i < n; i += 32 * K) {
        float now[K], then[K], w[R][K], v[R][K];
#pragma unroll
        for (int c = 0; c < K; ++c) {
            now[c] = i + 32 * c < n ? t.tape[in + i + 32 * c] : 0;
            then[c] = i + 32 * c < n ? t.record[in + i + 32 * c] : 0;
        }
#pragma unroll
        for (int k = 0; k < R; ++k)
#pragma unroll
            for (int c = 0; c < K; ++c) {
                const bool here = k < count && i + 32 * c < n;
                w[k][c] = here ? __ldcs(matrix + (r + k) * n + i + 32 * c) : 0;
                if (MOMENTUM) v[k][c] = here && learns ? __ldcs(speeds + (r + k) * n + i + 32 * c) : 0;
            }
        float change[R];  // asked for behind the weights, which do not wait for it; unused where the unit does not learn
#pragma unroll
        for (int k = 0; k < R; ++k) change[k] = k < count ? m.rate * t.delta[out + r + k] : 0;
#pragma unroll
        for (int c = 0; c < K; ++c) {
#pragma unroll
            for (int k = 0; k < R; ++k) {
                const float next = moved<MOMENTUM>(w[k][c], v[k][c], change[k] * then[c], m.momentum);
                total[k] = fmaf(after ? next : w[k][c], now[c], total[k]);
                if (learns && k < count && i + 32 * c < n) {
                    if (MOMENTUM) __stcs(speeds + (r + k) * n + i + 32 * c, v[k][c]);
                    __stcs(matrix + (r + k) * n + i + 32 * c, next);
                }
            }
        }
    }
    float speed = MOMENTUM && learns ? speeds[bias()] : 0;
    if (MOMENTUM) start = matrix[bias()];  // asked for before the sums, which take as long
    __syncwarp();  // all have asked for the bias
    const float sum = sums<R>(total);
    if (lane() % (32 / R) != 0 || mine >= count) return;
    const float next = learns ? moved<MOMENTUM>(start, speed, m.rate * t.delta[out + r + mine], m.momentum) : start;
    t.tape[out + r + mine] = activate(sum + (after ? next : start), t.code);
    if (learns && MOMENTUM) speeds[bias()] = speed;
    if (learns) matrix[bias()] = next;
}

// A unit's phases before errors are pulled back.
template <bool SEVERAL, class Crew> __device__ __forceinline__ Moving begin(const Tick &t, const Unit &unit)
{
    const Moving moving = {t.rate[unit.number], t.momentum[unit.number], t.learns[unit.number] != 0};
    if (moving.learns) announce<Crew>(t, unit);
    gather<SEVERAL, Crew>(t, unit);
    errors<SEVERAL, Crew>(t, unit, moving.learns);
    return moving;
}

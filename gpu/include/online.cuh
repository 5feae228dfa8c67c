// The online step of a unit whose weights are all in shared memory: forward, error, backward and update of one example.
//
// A warp takes a row of a matrix, a lane every 32nd column. So a lane keeps its columns of the other factor in registers for
// all rows, a row's own factor is one broadcast, and what is left is a load, a product and a store for each weight. The second
// matrix is pulled back and learns in the same pass. Sums have a fixed order.
#pragma once
#include "units.cuh"

constexpr int CHUNKS = 6;  // of 32 columns, that a lane keeps in registers
constexpr int NARROW = 64; // columns below which a thread takes a row

// write(r, sum over i of matrix[r][i] x[i]) of all rows, by one thread each.
template <int ROWS, class Write>
__device__ __forceinline__ void products_of_rows(const float *matrix, const float *x, int n, int rows, Write write)
{
    for (int first = ROWS * warp(); first < rows; first += ROWS * warps()) {
        const float *row[ROWS], *v = x + lane();  // past the last is the last again, and not written
        float total[ROWS] = {};
#pragma unroll
        for (int k = 0; k < ROWS; ++k) row[k] = matrix + min(first + k, rows - 1) * n + lane();
        int left = n - lane();
#pragma unroll 1
        for (; left > 32; left -= 64, v += 64) {
            const float now = v[0], then = v[32];
#pragma unroll
            for (int k = 0; k < ROWS; ++k, row[k - 1] += 64) total[k] = fmaf(row[k][32], then, fmaf(row[k][0], now, total[k]));
        }
        if (left > 0) {
            const float now = v[0];
#pragma unroll
            for (int k = 0; k < ROWS; ++k) total[k] = fmaf(row[k][0], now, total[k]);
        }
        const float sum = sums<ROWS>(total);
        const int r = first + lane() / (32 / ROWS);
        if (lane() % (32 / ROWS) == 0 && r < rows) write(r, sum);
    }
}

template <class Write>
__device__ __forceinline__ void products(const float *matrix, const float *x, int n, int rows, Write write)
{
    if (n < NARROW && n % 2) {  // rows of an odd length begin in different banks
        for (int r = threadIdx.x; r < rows; r += blockDim.x) {
            const float *row = matrix + r * n;
            float even = row[0] * x[0], odd = 0;
#pragma unroll 4
            for (int i = 1; i < n; i += 2) {
                odd = fmaf(row[i], x[i], odd);
                even = fmaf(row[i + 1], x[i + 1], even);
            }
            write(r, even + odd);
        }
    } else if (rows > 4 * warps()) {
        products_of_rows<8>(matrix, x, n, rows, write);
    } else {
        products_of_rows<4>(matrix, x, n, rows, write);
    }
}

// How far weights move.
struct Pace {
    float rate, momentum;
};

// Of up to 32 C columns of a matrix with `pitch` of them: matrix[r][i] -= rate delta[r] x[i], all rows.
//   PULL   pulled[i] = sum over the rows of this warp of delta[r] matrix[r][i], of the matrix before
//   MOVE   else all stays as it is
template <int C, bool PULL, bool MOVE>
__device__ __forceinline__ void visit_columns(float *matrix, const float *delta, const float *x, float *pulled, int columns,
                                              int pitch, int rows, float rate)
{
    constexpr int FIT = 10 / C, ROWS = FIT > 4 ? 4 : FIT > 1 ? FIT : 1;  // at a time: all are read before one is written
    const bool tail = lane() + 32 * (C - 1) < columns;
    const int bits = 31 - __clz(warps());  // a block has 4 warps or 8
    const int own = rows * warp() >> bits, last = rows * (warp() + 1) >> bits;
    float mine[C], total[C] = {};
#pragma unroll
    for (int c = 0; c < C; ++c) mine[c] = c < C - 1 || tail ? x[lane() + 32 * c] : 0;

    float *at = matrix + own * pitch + lane();
    const float *pushes = delta + own;
    const auto visit = [&](auto count) {
        constexpr int MANY = decltype(count)::value;
        float push[MANY], w[MANY][C];
#pragma unroll
        for (int k = 0; k < MANY; ++k) {
            push[k] = pushes[k];
#pragma unroll
            for (int c = 0; c < C; ++c)
                if (c < C - 1 || tail) w[k][c] = at[k * pitch + 32 * c];
        }
#pragma unroll
        for (int k = 0; k < MANY; ++k) {
            const float change = -rate * push[k];
#pragma unroll
            for (int c = 0; c < C; ++c)
                if (c < C - 1 || tail) {
                    if (PULL) total[c] = fmaf(push[k], w[k][c], total[c]);
                    if (MOVE) at[k * pitch + 32 * c] = fmaf(change, mine[c], w[k][c]);
                }
        }
        at += MANY * pitch, pushes += MANY;
    };
    int left = last - own;
#pragma unroll 1
    for (; left >= ROWS; left -= ROWS) visit(Count<ROWS>());
#pragma unroll 1
    for (; left > 0; --left) visit(Count<1>());
#pragma unroll
    for (int c = 0; c < C; ++c)
        if (PULL && (c < C - 1 || tail)) pulled[lane() + 32 * c] = total[c];
}

// The whole matrix (rows, columns) moves; pulled (warps, columns).
template <bool PULL, bool MOVE>
__device__ __forceinline__ void visit(float *matrix, const float *delta, const float *x, float *pulled, int columns, int rows,
                                      float rate)
{
    pulled += warp() * columns;
#pragma unroll 1
    for (int first = 0; first < columns; first += 32 * CHUNKS) {
        const int here = min(columns - first, 32 * CHUNKS);
#define VISIT(C)                                                                                                               \
    case C:                                                                                                                    \
        visit_columns<C, PULL, MOVE>(matrix + first, delta, x + first, pulled + first, here, columns, rows, rate);       \
        break;
        switch ((here + 31) / 32) {
            VISIT(1)
            VISIT(2)
            VISIT(3)
            VISIT(4)
            VISIT(5)
            VISIT(6)
        }
#undef VISIT
    }
}

__device__ __forceinline__ void learn_bias(float *bias, const float *delta, int rows, float rate)
{
    for (int r = threadIdx.x; r < rows; r += blockDim.x) bias[r] = fmaf(-rate, delta[r], bias[r]);
}

// One weight and its velocity.
__device__ __forceinline__ void move_both(float &w, float &v, float push, float x, float momentum)
{
    v = fmaf(momentum, v, push * x);
    w += v;
}

constexpr int BEHIND = 3;  // inputs of a layer that lie behind its last as they lie at its begin: four in a row may go round

// A matrix in shared memory moves with its velocities in memory: as they lie there, 16 bytes a thread at a time, and each number
// before and behind them alone. x has BEHIND more numbers.
__device__ __forceinline__ void learn_with_speeds(float *matrix, float *speed, const float *delta, const float *x, int n,
                                                  int rows, Pace pace)
{
    constexpr int TOGETHER = 3;  // are asked for before the first is used
    const int size = rows * n;
    const int begin = n > BEHIND && skew(matrix) == skew(speed) ? min(-skew(speed) & 3, size) : size;
    const int end = size - (size - begin) % 4, stride = 4 * blockDim.x, rows_on = stride / n, columns_on = stride % n;
    for (int k = threadIdx.x; k < begin + size - end; k += blockDim.x) {
        const int at = k < begin ? k : end + k - begin;
        move_both(matrix[at], speed[at], -pace.rate * delta[at / n], x[at % n], pace.momentum);
    }
    int k = begin + 4 * threadIdx.x, r = k / n, i = k % n;
    for (; k < end; k += TOGETHER * stride) {
        float4 v[TOGETHER];
#pragma unroll
        for (int j = 0; j < TOGETHER; ++j)
            if (k + j * stride < end) v[j] = __ldcs(reinterpret_cast<const float4 *>(speed + k + j * stride));
#pragma unroll
        for (int j = 0; j < TOGETHER; ++j) {
            if (k + j * stride < end) {
                float4 *at = reinterpret_cast<float4 *>(matrix + k + j * stride), w = *at;
                const float push = -pace.rate * delta[r], next = -pace.rate * delta[min(r + 1, rows - 1)], *in = x + i;
                const int left = n - i;  // of the row
                move_both(w.x, v[j].x, push, in[0], pace.momentum);
                move_both(w.y, v[j].y, left > 1 ? push : next, in[1], pace.momentum);
                move_both(w.z, v[j].z, left > 2 ? push : next, in[2], pace.momentum);
                move_both(w.w, v[j].w, left > 3 ? push : next, in[3], pace.momentum);
                *at = w;
                __stcs(reinterpret_cast<float4 *>(speed + k + j * stride), v[j]);
            }
            r += rows_on, i += columns_on;
            if (i >= n) ++r, i -= n;
        }
    }
}

__device__ __forceinline__ void learn_bias_with_speeds(float *bias, float *speed, const float *delta, int rows, Pace pace)
{
    for (int r = threadIdx.x; r < rows; r += blockDim.x) move_both(bias[r], speed[r], -pace.rate * delta[r], 1, pace.momentum);
}

// Where copies part the unit: the first whole sector behind its first layer, or its end. What is before comes first, and goes last.
__device__ __forceinline__ int parted(const Unit &unit, const float *memory)
{
    return min(unit.second() + to_sector(memory + unit.second()), unit.size());
}

// The step. s.in and s.inner have room for BEHIND more. s.parts: (warps) for losses, then (warps, h) for sums over rows. held: the
// unit's weights, which move, and go back to memory; inputs, targets and the first layer are there, and all threads know it. The
// others come by what the threads have begun to copy.
//   SPEEDS  the velocities in memory move, and the weights by them
template <bool SPEEDS>
__device__ __forceinline__ void learn_online(const Written &to, const Signals &s, const Unit &unit, float *held, float *memory,
                                             float *speed, Pace pace, int code)
{
    const int n = unit.n, h = unit.h, o = unit.o, first_bias = h * n, second = unit.second(), second_bias = second + o * h;
    const int sector = parted(unit, memory);
    products(held, s.in, n, h, [&](int r, float sum) {
        to.hidden[unit.hidden + r] = s.inner[r] = activate(sum + held[first_bias + r], code);
    });
    __pipeline_wait_prior(0);
    __syncthreads();

    float squared = 0;
    products(held + second, s.inner, h, o, [&](int r, float sum) {
        const float a = activate(sum + held[second_bias + r], code), wrong = a - s.wanted[r];
        to.y[unit.y + r] = a;
        to.y_grad[unit.y + r] = s.out[r] = wrong * slope(a, code);
        squared = fmaf(wrong, wrong, squared);
    });
    for (int half = 16; half; half >>= 1) squared += __shfl_xor_sync(FULL, squared, half);
    if (lane() == 0) s.parts[warp()] = squared;
    if (SPEEDS && threadIdx.x < BEHIND) {
        s.in[n + threadIdx.x] = s.in[threadIdx.x % n];
        s.inner[h + threadIdx.x] = s.inner[threadIdx.x % h];
    }
    __syncthreads();

    float *pulled = s.parts + warps();
    if (threadIdx.x == 0) {
        float total = 0;
        for (int k = 0; k < warps(); ++k) total += s.parts[k];
        to.loss[unit.number] = total / 2;
    }
    visit<true, !SPEEDS>(held + second, s.out, s.inner, pulled, h, o, pace.rate);
    if (!SPEEDS) learn_bias(held + second_bias, s.out, o, pace.rate);
    __syncthreads();

    for (int j = threadIdx.x; j < h; j += blockDim.x) {
        float total = 0;
        for (int k = 0; k < warps(); ++k) total += pulled[k * h + j];
        to.hidden_grad[unit.hidden + j] = s.inner_delta[j] = total * slope(s.inner[j], code);
    }
    if (SPEEDS) {
        learn_with_speeds(held + second, speed + second, s.out, s.inner, h, o, pace);
        learn_bias_with_speeds(held + second_bias, speed + second_bias, s.out, o, pace);
    } else {
        put_back<true>(memory, held, sector, unit.size());
    }
    __syncthreads();
    if (SPEEDS) {
        put_back<true>(memory, held, sector, unit.size());
        learn_with_speeds(held, speed, s.inner_delta, s.in, n, h, pace);
        learn_bias_with_speeds(held + first_bias, speed + first_bias, s.inner_delta, h, pace);
    } else {
        visit<false, true>(held, s.inner_delta, s.in, pulled, n, h, pace.rate);
        learn_bias(held + first_bias, s.inner_delta, h, pace.rate);
    }
    __syncthreads();
    put_back<false>(memory, held, 0, sector);
}

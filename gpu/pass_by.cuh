// Rows that stay with a block, and rows that pass by it: scores = staying passing^T, and sums += visited scores times passing.
//
// PASSING rows pass by at a time, the next ones copied meanwhile. A warp has 16 of the rows that stay and COLUMNS of their
// columns, from the first to the last that passes: its scores (16, PASSING) and its sums (16, COLUMNS) stay in its registers.
// Where rows are wider, BESIDE warps have the same 16 rows, and tell each other their parts of scores through shared memory.
//
// Lane 4 g + t has the rows g and g + 8, and of scores and sums the columns 8 n + 2 t and 8 n + 2 t + 1: element [n][2 r + j]
// is row g + 8 r, column 8 n + 2 t + j, as the tensor cores write it. The second product takes the scores from there: the order
// of its k is free, so what the instruction calls t and t + 4 are the rows 2 t and 2 t + 1 that pass: 8 banks apart.
//
// All rows have D numbers, a multiple of 4, at most WIDTH, and begin at 16 bytes.
#pragma once

#include <cuda_pipeline.h>

#include "mma.cuh"

constexpr int THREADS = 256, WARPS = THREADS / 32;
constexpr int COLUMNS = 128, PASSING = 32;

typedef float Scores[PASSING / 8][4];
typedef float Sums[COLUMNS / 8][4];

__device__ __forceinline__ int group() { return lane() / 4; }
__device__ __forceinline__ int turn() { return lane() % 4; }

// What a block has in shared memory; behind it, where BESIDE > 1, the parts of scores.
template <int WIDTH> struct Tile {
    static constexpr int BESIDE = WIDTH / COLUMNS, ROWS = 16 * WARPS / BESIDE;
    static constexpr int PITCH = WIDTH + 4;  // 8 rows begin at different banks
    float staying[ROWS][PITCH], passing[2][PASSING][PITCH];

    // Where the rows and columns of this warp begin.
    static __device__ __forceinline__ int row() { return 16 * (warp() / BESIDE); }
    static __device__ __forceinline__ int column() { return COLUMNS * (warp() % BESIDE); }

    typedef float Part[16][PASSING + 4];
    __device__ __forceinline__ Part *parts() { return reinterpret_cast<Part *>(this + 1); }
};

// Rows from `begin` to `end` of a matrix.
struct Rows {
    const float *numbers;
    int begin, end;
};

// Begin to copy `count` rows from `first` on, zeros beyond their end and their width.
template <int PITCH> __device__ __forceinline__ void ask(float (*to)[PITCH], int count, const Rows &rows, int first, int D)
{
    constexpr int QUADS = PITCH / 4 - 1;
    for (int i = threadIdx.x; i < count * QUADS; i += THREADS) {
        const int r = i / QUADS, d = i % QUADS * 4;
        const bool there = first + r < rows.end && d < D;
        const float *from = there ? rows.numbers + (int64)(first + r) * D + d : rows.numbers;
        __pipeline_memcpy_async(&to[r][d], from, 16, there ? 0 : 16);
    }
}

// This warp's part of the scores, from its own columns; `staying` is its first row.
template <bool THRICE, int PITCH>
__device__ __forceinline__ void score(Scores &scores, const float (*staying)[PITCH], const float (*passing)[PITCH], int column,
                                      int columns)
{
    const int g = group(), t = turn();
    Products<THRICE> products[PASSING / 8];
#pragma unroll 2
    for (int k = column; k < column + columns; k += 8) {
        Factor<THRICE, 4> left;
#pragma unroll
        for (int i = 0; i < 4; ++i) left.set(i, staying[g + 8 * (i % 2)][k + t + 4 * (i / 2)]);
#pragma unroll
        for (int n = 0; n < PASSING / 8; ++n) {
            Factor<THRICE, 2> right;
            right.set(0, passing[8 * n + g][k + t]);
            right.set(1, passing[8 * n + g][k + t + 4]);
            products[n].add(left, right);
        }
    }
#pragma unroll
    for (int i = 0; i < PASSING / 2; ++i) scores[i / 4][i % 4] = products[i / 4].sum(i % 4);
}

// The same, where 3xTF32 made NaN as TF32 has it: infinity for an infinite factor, NaN where it is one.
template <bool THRICE, int PITCH>
__device__ __forceinline__ void sound_score(Scores &scores, const float (*staying)[PITCH], const float (*passing)[PITCH],
                                            int column, int columns)
{
    score<THRICE>(scores, staying, passing, column, columns);
    if (!THRICE) return;
    bool odd = false;
#pragma unroll
    for (int i = 0; i < PASSING / 2; ++i) odd |= isnan(scores[i / 4][i % 4]);
    if (!__any_sync(FULL, odd)) return;
    Scores once;
    score<false>(once, staying, passing, column, columns);
#pragma unroll
    for (int i = 0; i < PASSING / 2; ++i)
        if (isnan(scores[i / 4][i % 4])) scores[i / 4][i % 4] = once[i / 4][i % 4];
}

// Each warp's parts become whole scores, added up in the order of columns.
template <int WIDTH> __device__ __forceinline__ void add_up(Scores &scores, Tile<WIDTH> &tile)
{
    const int first = warp() - warp() % Tile<WIDTH>::BESIDE;
#pragma unroll
    for (int i = 0; i < PASSING / 2; ++i)
        tile.parts()[warp()][group() + i / 2 % 2 * 8][i / 4 * 8 + 2 * turn() + i % 2] = scores[i / 4][i % 4];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < PASSING / 2; ++i) {
        float total = 0;
        for (int w = first; w < first + Tile<WIDTH>::BESIDE; ++w)
            total += tile.parts()[w][group() + i / 2 % 2 * 8][i / 4 * 8 + 2 * turn() + i % 2];
        scores[i / 4][i % 4] = total;
    }
}

// sums <- kept sums + scores times the columns of those that pass.
template <bool THRICE, int PITCH>
__device__ __forceinline__ void add(Sums &sums, const float (&kept)[2], const Scores &scores, const float (*passing)[PITCH],
                                    int column)
{
    const int g = group(), t = turn();
    Factor<THRICE, 4> left[PASSING / 8];
#pragma unroll
    for (int i = 0; i < PASSING / 2; ++i) left[i / 4].set(i % 4, scores[i / 4][2 * (i % 2) + i / 2 % 2]);
#pragma unroll
    for (int n = 0; n < COLUMNS / 8; ++n) {
        Products<THRICE> products;
#pragma unroll
        for (int k = 0; k < PASSING / 8; ++k) {
            Factor<THRICE, 2> right;
            right.set(0, passing[8 * k + 2 * t][column + 8 * n + g]);
            right.set(1, passing[8 * k + 2 * t + 1][column + 8 * n + g]);
            products.add(left[k], right);
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) sums[n][i] = fmaf(kept[i / 2], sums[n][i], products.sum(i));
    }
}

// The ROWS rows from staying.begin on stay, those of `passing` pass by: visit(first, scores, kept) changes the scores of
// PASSING of them, from `first` on, and may set what the sums of this lane's two rows are multiplied with before. A warp that has
// no rows or no columns visits none. Afterwards the rows are still in tile.staying.
template <bool THRICE, int WIDTH, class Visit>
__device__ __forceinline__ void pass_by(Sums &sums, Tile<WIDTH> &tile, const Rows &staying, const Rows &passing, int D,
                                        Visit visit)
{
    typedef Tile<WIDTH> T;
    const int row = T::row(), column = T::column(), columns = min(D - column, COLUMNS);
    const bool works = staying.begin + row < staying.end && columns > 0;
    ask(tile.staying, T::ROWS, staying, staying.begin, D);
    ask(tile.passing[0], PASSING, passing, passing.begin, D);
    for (int first = passing.begin, way = 0; first < passing.end; first += PASSING, way ^= 1) {
        __pipeline_commit();
        __pipeline_wait_prior(0);
        __syncthreads();  // the rows are there for all, and all are done with those before
        if (first + PASSING < passing.end) ask(tile.passing[way ^ 1], PASSING, passing, first + PASSING, D);
        Scores scores = {};
        float(*passes)[T::PITCH] = tile.passing[way];
        if (works) sound_score<THRICE>(scores, tile.staying + row, passes, column, columns);
        if (T::BESIDE > 1) add_up(scores, tile);
        if (!works) continue;
        float kept[2] = {1, 1};
        visit(first, scores, kept);
        add<THRICE>(sums, kept, scores, passes, column);
    }
}

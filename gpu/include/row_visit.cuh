// A warp moves one row against its gradient, as visit.cuh says.
#pragma once

#include "visit.cuh"
#include "warp.cuh"

// A row and what is kept for it; null: there is none.
struct Row {
    float *numbers;  // D of them
    float *bias;
    float *square;       // one for the row
    float *squares;      // or one for each number
    float *bias_square;  // and for the bias
};

// Row r of D numbers of a table, and what the table keeps for it: each array may be null but the first.
//   squares  one a row; one a number where `each`
__device__ __forceinline__ Row row_of(float *rows, float *biases, float *squares, float *bias_squares, int each, int r, int D)
{
    const int64 at = (int64)r * D;
    return {rows + at, biases ? biases + r : nullptr, squares && !each ? squares + r : nullptr, each ? squares + at : nullptr,
            bias_squares ? bias_squares + r : nullptr};
}

// The row moves against g (D), its bias against g_bias.
//   order   of the norm, which is summed up where the row has one square: lanes stride over the columns, then a butterfly
__device__ __forceinline__ void visit_row(const Row &row, const float *g, float g_bias, float rate, int D)
{
    float step = rate;
    if (row.square) {
        float total[1] = {row.bias && !lane() ? g_bias * g_bias : 0};
#pragma unroll 4
        for (int d = lane(); d < D; d += 32) total[0] = fmaf(g[d], g[d], total[0]);
        float square = *row.square;
        step = step_of_row(square, sums<1>(total) / (D + (row.bias != nullptr)), rate);
        __syncwarp();  // all have read it
        if (!lane()) *row.square = square;
    }
    float *__restrict__ w = row.numbers, *__restrict__ squares = row.squares;  // so many are asked for before one is written
    const float *__restrict__ down = g;
    if (squares) {
#pragma unroll 4
        for (int d = lane(); d < D; d += 32) w[d] = moved(w[d], squares[d], down[d], rate);
    } else {
#pragma unroll 4
        for (int d = lane(); d < D; d += 32) w[d] = fmaf(-step, down[d], w[d]);
    }
    if (!row.bias || lane()) return;
    const float bias = *row.bias;
    *row.bias = row.bias_square ? moved(bias, *row.bias_square, g_bias, rate) : fmaf(-step, g_bias, bias);
}

// Rows of a matrix in the registers of the warps that multiply them: where shared memory is full, they need not be read again.
//
// A tile is as many rows as all warps keep at once, each warp every warps()-th. Of a row a lane has every 32nd number, from the
// sector on in which the row begins, so that whole sectors are read and written. Rows beyond a tile are read twice.
#pragma once
#include "units.cuh"

template <int KEPT> struct KeptRows {
    const float *memory;  // of the matrix
    int n, rows;          // columns; how many of its rows are kept, or read twice
    float kept[KEPT];     // of the tile that was read last

    __device__ int tile_rows() const { return warps() * (KEPT / ((n + 38) / 32)); }  // up to 7 numbers before a row, 31 behind
    __device__ int tiles() const { return n > 32 * KEPT - 7 ? 0 : (rows + tile_rows() - 1) / tile_rows(); }

    // visit(j, r, i, ends) for every number j that the lane keeps: column i of row r, and whether no other of the row follows.
    // i is outside the row where others share its first or last sectors.
    template <class Visit> __device__ __forceinline__ void each(int tile, Visit visit) const
    {
        const auto begin = [&](int r) { return lane() - (-to_sector(memory + r * n) & 7); };
        const int last = min((tile + 1) * tile_rows(), rows);
        int r = tile * tile_rows() + warp(), i = begin(r);
#pragma unroll
        for (int j = 0; j < KEPT; ++j) {
            if (r >= last) continue;
            const bool ends = i - lane() + 32 >= n;
            visit(j, r, i, ends);
            if (ends) r += warps();
            i = ends ? begin(r) : i + 32;
        }
    }

    __device__ __forceinline__ void read(int tile)
    {
        each(tile, [&](int j, int r, int i, bool) { kept[j] = i >= 0 && i < n ? memory[r * n + i] : 0; });
    }

    // out[b][r] = activation(w[r] . x[b] + bias[r]) of the tile; h: columns of out
    __device__ __forceinline__ void affine(int tile, float *out, const float *bias, const float *x, int h, int B,
                                           int code) const
    {
        for (int b = 0; b < B; ++b) {
            float total = 0;
            each(tile, [&](int j, int r, int i, bool ends) {
                if (i >= 0 && i < n) total = fmaf(kept[j], x[b * n + i], total);
                if (!ends) return;
                for (int half = 16; half; half >>= 1) total += __shfl_xor_sync(FULL, total, half);
                if (lane() == 0) out[b * h + r] = total;
                total = 0;
            });
        }
        __syncwarp();
        const int first = tile * tile_rows(), last = min(first + tile_rows(), rows);
        for (int r = first + warp() + warps() * lane(); r < last; r += 32 * warps())
            for (int b = 0; b < B; ++b) out[b * h + r] = activate(out[b * h + r] + bias[r], code);
    }

    // As `learn` of units.cuh, of the tile.
    template <int SINK>
    __device__ __forceinline__ void learn(int tile, float *weights, float *speed, const float *delta, const float *x, int h,
                                          int B, float rate, float momentum) const
    {
        each(tile, [&](int j, int r, int i, bool) {
            if (i < 0 || i >= n) return;
            float g = 0;
            for (int b = 0; b < B; ++b) g = fmaf(delta[b * h + r], x[b * n + i], g);
            move<SINK>(weights, speed, r * n + i, kept[j], SINK == MOMENTUM ? speed[r * n + i] : 0, g, rate, momentum);
        });
    }
};

// The full softmax over V classes without logits in global memory: the products and all between them in two kernels.
//
//   measure  the largest logit and the sum of exp(logit - most) of each row, by tiles of classes
//   learn    each tile's logits again; exp; their products with the rows, which move at once, and with the hidden vectors
//
// A block takes tiles of CLASSES classes in turn, with their rows in shared memory, and all hidden vectors pass by it, ROWS at a
// time, the next ones copied meanwhile. What it knows of each row of the batch, its part of the sum and of the gradient, is its own
// part of an array, to which it alone adds, tile after tile; parts are summed in the order of blocks at the end. So results are the
// same bytes in every run on a device. Products by the tensor cores: gpu/mma.cuh.
//
// weights (V, D), hidden (B, D); D <= WIDTH, a multiple of 4; all rows begin at 16 bytes
#include <cuda_pipeline.h>

#include "log_sum.cuh"
#include "mma.cuh"

constexpr int THREADS = 256, WARPS = THREADS / 32;
constexpr int WIDTH = 128;    // of a row, at most
constexpr int PITCH = 132;    // of a row in shared memory: 8 rows begin at different banks
constexpr int CLASSES = 128;  // of a tile
constexpr int ROWS = 32;      // of the batch at a time
constexpr int AHEAD = 8;      // parts of the gradient asked for at once

static_assert(CLASSES == WIDTH && CLASSES == 16 * WARPS, "tiles of the products fit the warps");

// What a block has in shared memory.
struct Tile {
    float weights[CLASSES][PITCH], hidden[2][ROWS][PITCH];
    float misses[ROWS][PITCH];  // of `learn`
};

extern __shared__ __align__(16) unsigned char memory[];

struct Problem {
    const float *weights, *hidden;
    int B, V, D;
};

// Begin to copy the rows from `first` on, `count` of them, zeros beyond their end and their width.
__device__ __forceinline__ void ask(float (*to)[PITCH], int count, const float *rows, int first, int last, int D)
{
    for (int i = threadIdx.x; i < count * (WIDTH / 4); i += THREADS) {
        const int r = i / (WIDTH / 4), d = i % (WIDTH / 4) * 4;
        const bool there = first + r < last && d < D;
        __pipeline_memcpy_async(&to[r][d], there ? rows + (int64)(first + r) * D + d : rows, 16, there ? 0 : 16);
    }
}

// Call visit(first, hidden) for ROWS rows of the batch after another, once the tile of classes from `begin` on is there too.
template <class Visit> __device__ __forceinline__ void stream(Tile &tile, const Problem &p, int begin, Visit visit)
{
    __syncthreads();  // all are done with the last tile
    ask(tile.weights, CLASSES, p.weights, begin, p.V, p.D);
    ask(tile.hidden[0], ROWS, p.hidden, 0, p.B, p.D);
    for (int first = 0, way = 0; first < p.B; first += ROWS, way ^= 1) {
        __pipeline_commit();
        __pipeline_wait_prior(0);
        __syncthreads();  // the rows are there for all, and all are done with those before
        if (first + ROWS < p.B) ask(tile.hidden[way ^ 1], ROWS, p.hidden, first + ROWS, p.B, p.D);
        visit(first, tile.hidden[way]);
    }
}

// The logits of ROWS rows and this warp's 16 classes.
template <bool THRICE>
__device__ __forceinline__ void score(float (&logits)[2][2][4], const Tile &tile, const float (*hidden)[PITCH], int D)
{
    const float(*weights)[PITCH] = tile.weights + 16 * warp();
    product<THRICE>(
        logits, (D + 7) / 8, [&](int row, int k) { return hidden[row][k]; }, [&](int k, int column) { return weights[column][k]; });
}

// parts[block][b] = the sum over this block's classes; score[b] = the logit of target[b]
//   work    a warp ROWS rows by 16 classes of a tile
//   launch  grid: blocks, block: 256; shared memory: a Tile without misses
//   bound   2 B V D operations of the tensor cores, THRICE three times as many; the hidden vectors are read V / CLASSES times
//   order   of a row: 4 logits of a lane, a butterfly over 4 lanes, the warps in turn, the block's tiles in turn
template <bool THRICE>
__device__ __forceinline__ void measure_tiles(Sum *parts, float *score_of, const Problem &p, const int *target)
{
    __shared__ Sum sums[WARPS][ROWS];
    Tile &tile = *reinterpret_cast<Tile *>(memory);
    const int g = lane() / 4, t = lane() % 4;
    for (int begin = blockIdx.x * CLASSES; begin < p.V; begin += gridDim.x * CLASSES) {
        stream(tile, p, begin, [&](int first, const float(*hidden)[PITCH]) {
            float logits[2][2][4] = {};
            score<THRICE>(logits, tile, hidden, p.D);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int row = 16 * (i / 2) + g + 8 * (i % 2), b = first + row;
                const int hit = b < p.B ? target[b] : -1;
                Sum sum = {-FLT_MAX, 0};
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const int c = begin + 16 * warp() + 8 * (j / 2) + 2 * t + j % 2;
                    float &logit = logits[i / 2][j / 2][2 * (i % 2) + j % 2];
                    if (c == hit) score_of[b] = logit;
                    if (c >= p.V) logit = -INFINITY;
                    sum.most = fmaxf(sum.most, logit);
                }
#pragma unroll
                for (int j = 0; j < 4; ++j) sum.sum += expf(logits[i / 2][j / 2][2 * (i % 2) + j % 2] - sum.most);
                for (int step = 1; step < 4; step *= 2)
                    sum = both(sum, {__shfl_xor_sync(FULL, sum.most, step), __shfl_xor_sync(FULL, sum.sum, step)});
                if (!t) sums[warp()][row] = sum;
            }
            __syncthreads();
            const int row = threadIdx.x;
            if (row < ROWS && first + row < p.B) {
                Sum &part = parts[(int64)blockIdx.x * p.B + first + row];
                Sum sum = begin == blockIdx.x * CLASSES ? Sum{-FLT_MAX, 0} : part;
                for (int w = 0; w < WARPS; ++w) sum = both(sum, sums[w][row]);
                part = sum;
            }
        });
    }
}

// most[b], sums[b] of all parts; loss[b] = -log p(target[b]), times weight[b] where there are weights
//   work    a warp a row
//   launch  grid: rows / 8, block: 256
//   bound   memory: 8 bytes a row and part
//   order   lanes stride over the parts, then a butterfly
extern "C" __global__ void __launch_bounds__(THREADS)
    combine(float *loss, float *most, float *sums, const float *score, const Sum *parts, const float *weight, int blocks, int B)
{
    const int b = blockIdx.x * WARPS + warp();
    if (b >= B) return;
    Sum sum = {-FLT_MAX, 0};
    for (int part = lane(); part < blocks; part += 32) sum = both(sum, parts[(int64)part * B + b]);
    for (int step = 16; step; step >>= 1)
        sum = both(sum, {__shfl_xor_sync(FULL, sum.most, step), __shfl_xor_sync(FULL, sum.sum, step)});
    if (lane()) return;
    most[b] = sum.most;
    sums[b] = sum.sum;
    loss[b] = (weight ? -weight[b] : -1) * ((score[b] - sum.most) - logf(sum.sum));
}

// What is known of the batch when its classes learn.
struct Known {
    const float *most, *sums, *weight;
    const int *target;
};

// misses[row][class] = d loss / d logit of ROWS rows and this warp's classes, 0 beyond the batch and the classes
__device__ __forceinline__ void miss(Tile &tile, const float (&logits)[2][2][4], const Problem &p, const Known &known, int first,
                                     int begin)
{
    const int g = lane() / 4, t = lane() % 4;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int row = 16 * (i / 2) + g + 8 * (i % 2), b = first + row;
        const bool there = b < p.B;
        const float base = there ? known.most[b] : 0, times = there && known.weight ? known.weight[b] : 1;
        const float scale = there ? times / known.sums[b] : 0;
        const int hit = there ? known.target[b] - begin : -1;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int c = 16 * warp() + 8 * (j / 2) + 2 * t + j % 2;
            const float chance = expf(logits[i / 2][j / 2][2 * (i % 2) + j % 2] - base) * scale;
            tile.misses[row][c] = !there || begin + c >= p.V ? 0 : chance - (c == hit ? times : 0);
        }
    }
}

// weights <- keep weights - rate misses^T hidden; parts[block] (B, D) = misses weights of this block's classes
//   work    a warp ROWS rows by 16 classes of the logits, 64 classes by 32 columns of the rows' gradient, which stays in its
//           registers, ROWS rows by 16 columns of the hidden vectors'
//   launch  grid: blocks, block: 256; shared memory: a Tile
//   bound   6 B V D operations of the tensor cores, THRICE three times as many; 8 B D bytes of parts a tile of classes
//   order   of a row's gradient over the batch, of a hidden vector's over the classes of a tile, then the block's tiles
template <bool THRICE>
__device__ __forceinline__ void learn_tiles(float *weights, float *parts, const Problem &p, const Known &known, float rate,
                                            float keep)
{
    Tile &tile = *reinterpret_cast<Tile *>(memory);
    const int g = lane() / 4, t = lane() % 4;
    const int own_class = warp() / 4 * 64, own_column = warp() % 4 * 32;
    float *part = parts + (int64)blockIdx.x * p.B * p.D;
    for (int begin = blockIdx.x * CLASSES; begin < p.V; begin += gridDim.x * CLASSES) {
        float moves[4][4][4] = {};
        stream(tile, p, begin, [&](int first, const float(*hidden)[PITCH]) {
            float logits[2][2][4] = {}, grad[2][2][4] = {};
            score<THRICE>(logits, tile, hidden, p.D);
            miss(tile, logits, p, known, first, begin);
            __syncthreads();
            product<THRICE>(
                moves, ROWS / 8, [&](int c, int k) { return tile.misses[k][own_class + c]; },
                [&](int k, int d) { return hidden[k][own_column + d]; });
            product<THRICE>(
                grad, CLASSES / 8, [&](int row, int k) { return tile.misses[row][k]; },
                [&](int k, int d) { return tile.weights[k][16 * warp() + d]; });
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                const int b = first + 16 * (i / 4) + g + 8 * (i % 2), d = 16 * warp() + 8 * (i / 2 % 2) + 2 * t;
                if (b >= p.B || d >= p.D) continue;
                const float *some = &grad[i / 4][i / 2 % 2][2 * (i % 2)];
                float2 *at = reinterpret_cast<float2 *>(part + (int64)b * p.D + d);
                float2 sum = begin == blockIdx.x * CLASSES ? make_float2(0, 0) : *at;
                sum.x += some[0], sum.y += some[1];
                *at = sum;
            }
        });
#pragma unroll
        for (int i = 0; i < 32; ++i) {
            const int c = own_class + 16 * (i / 8) + g + 8 * (i % 2), d = own_column + 8 * (i / 2 % 4) + 2 * t;
            if (begin + c >= p.V || d >= p.D) continue;
            const float *move = &moves[i / 8][i / 2 % 4][2 * (i % 2)], *old = &tile.weights[c][d];
            *reinterpret_cast<float2 *>(weights + (int64)(begin + c) * p.D + d) =
                make_float2(fmaf(-rate, move[0], keep * old[0]), fmaf(-rate, move[1], keep * old[1]));
        }
    }
}

// grad[i] = the sum of parts[block][i] in the order of blocks
//   work    a thread a number
//   launch  grid: numbers / 256, block: 256
//   bound   memory: 4 bytes a number and block
extern "C" __global__ void __launch_bounds__(THREADS) sum_parts(float *grad, const float *parts, int blocks, int count)
{
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    float total = 0;
#pragma unroll AHEAD
    for (int block = 0; block < blocks; ++block) total += parts[(int64)block * count + i];
    grad[i] = total;
}

// _tf32: factors of 10 bits; _3xtf32: nearly fp32
#define KERNELS(KIND, THRICE)                                                                                                  \
    extern "C" __global__ void __launch_bounds__(THREADS, 1)                                                                   \
        measure_##KIND(Sum *parts, float *score, const float *weights, const float *hidden, const int *target, int B, int V,   \
                       int D)                                                                                                  \
    {                                                                                                                          \
        measure_tiles<THRICE>(parts, score, {weights, hidden, B, V, D}, target);                                               \
    }                                                                                                                          \
    extern "C" __global__ void __launch_bounds__(THREADS, 1)                                                                   \
        learn_##KIND(float *weights, float *parts, const float *most, const float *sums, const float *hidden,                  \
                     const int *target, const float *weight, float rate, float keep, int B, int V, int D)                      \
    {                                                                                                                          \
        learn_tiles<THRICE>(weights, parts, {weights, hidden, B, V, D}, {most, sums, weight, target}, rate, keep);             \
    }
KERNELS(tf32, false)
KERNELS(3xtf32, true)

// The full softmax over V classes without logits in global memory: the products and all between them in two kernels.
//
//   measure  examples stay, classes pass by: of each example the largest logit, the sum of exp(logit - most), and the sum of
//            that times the classes' rows, which is its gradient but for a factor and its target
//   combine  parts of these sums become the losses, the gradients and what `learn` needs to know
//   learn    classes stay, examples pass by: the logits again; exp; the gradient of each row, which moves at once
//
// Each number is summed by one warp in a fixed order, parts are added up in the order of classes: so results are the same bytes
// in every run on a device. Products by the tensor cores: gpu/mma.cuh. How rows pass by: gpu/pass_by.cuh.
//
// weights (V, D), biases (V,) or null, hidden (B, D)
#include "log_sum.cuh"
#include "pass_by.cuh"
#include "visit.cuh"

constexpr int COMBINERS = 128;  // threads of a block of `combine`
constexpr int AHEAD = 8;        // parts of a gradient asked for at once

extern __shared__ __align__(16) unsigned char memory[];

struct Problem {
    const float *weights, *biases, *hidden;
    int B, V, D;
};

// parts[share][b] (D) = the sum of exp(logit - most) times the rows of a share of the classes, but the target's
// sums[share][b] = most and the sum of exp(logit - most), with the target's; score[b] = the logit of target[b]
//   work    a warp 16 examples and COLUMNS columns
//   launch  grid: (examples / Tile::ROWS, shares of `classes` classes), block: 256; shared memory: a Tile
//   bound   4 B V D operations of the tensor cores, THRICE three times as many; all rows are read B / Tile::ROWS times
//   order   a lane 8 logits of each 32 classes in turn, a butterfly over 4 lanes at the end
template <bool THRICE, int WIDTH>
__device__ __forceinline__ void measure_share(float *parts, Sum *sums_of, float *score_of, const Problem &p, const int *target,
                                              int classes)
{
    typedef Tile<WIDTH> T;
    const Rows staying = {p.hidden, int(blockIdx.x) * T::ROWS, p.B};
    const Rows passing = {p.weights, int(blockIdx.y) * classes, min((int(blockIdx.y) + 1) * classes, p.V)};
    const int own = staying.begin + T::row() + group(), t = turn();
    const int hits[2] = {own < p.B ? target[own] : -1, own + 8 < p.B ? target[own + 8] : -1};
    Sum totals[2] = {{-FLT_MAX, 0}, {-FLT_MAX, 0}};
    Sums sums = {};
    T &tile = *reinterpret_cast<T *>(memory);
    pass_by<THRICE>(sums, tile, staying, passing, p.D, [&](int first, Scores &scores, float(&kept)[2]) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            float most = totals[r].most;
#pragma unroll
            for (int i = 0; i < PASSING / 4; ++i) {
                const int c = first + i / 2 * 8 + 2 * t + i % 2;
                float &logit = scores[i / 2][2 * r + i % 2];
                if (c >= passing.end)
                    logit = -INFINITY;
                else if (p.biases)
                    logit += p.biases[c];
                if (c == hits[r] && !T::column()) score_of[own + 8 * r] = logit;
                most = fmaxf(most, logit);
            }
            for (int step = 1; step < 4; step *= 2) most = fmaxf(most, __shfl_xor_sync(FULL, most, step));
            kept[r] = expf(totals[r].most - most);
            totals[r] = {most, kept[r] * totals[r].sum};
#pragma unroll
            for (int i = 0; i < PASSING / 4; ++i) {
                float &logit = scores[i / 2][2 * r + i % 2];
                const float chance = expf(logit - most);
                totals[r].sum += chance;
                logit = first + i / 2 * 8 + 2 * t + i % 2 == hits[r] ? 0 : chance;
            }
        }
    });
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        for (int step = 1; step < 4; step *= 2) totals[r].sum += __shfl_xor_sync(FULL, totals[r].sum, step);
        if (own + 8 * r >= p.B) continue;
        const int64 at = (int64)blockIdx.y * p.B + own + 8 * r;
        if (!t && !T::column()) sums_of[at] = totals[r];
#pragma unroll
        for (int n = 0; n < COLUMNS / 8; ++n) {
            const int d = T::column() + 8 * n + 2 * t;
            if (d < p.D) *reinterpret_cast<float2 *>(parts + at * p.D + d) = make_float2(sums[n][2 * r], sums[n][2 * r + 1]);
        }
    }
}

// What `learn` knows of an example: p(class) = exp(logit - most) scale, both times its weight; its target.
struct __align__(16) Example {
    float most, scale, weight;
    int target;
};

// grad[b] (D) = d loss / d hidden; loss[b] = -log p(target[b]), both times weight[b] where there are weights; examples[b]
//   work    a block an example; each warp adds up all sums
//   launch  grid: examples, block: 128
//   bound   memory: 4 D bytes an example and share
//   order   of the sum: lanes stride over the shares, then a butterfly; of the gradient: shares in turn, then the target's row
extern "C" __global__ void __launch_bounds__(COMBINERS)
    combine(float *grad, float *loss, Example *examples, const float *score, const Sum *sums, const float *parts,
            const float *weights, const int *target, const float *weight, int shares, int B, int D)
{
    const int b = blockIdx.x;
    Sum sum = {-FLT_MAX, 0};
    for (int share = lane(); share < shares; share += 32) sum = both(sum, sums[(int64)share * B + b]);
    for (int step = 16; step; step >>= 1)
        sum = both(sum, {__shfl_xor_sync(FULL, sum.most, step), __shfl_xor_sync(FULL, sum.sum, step)});
    const float times = weight ? weight[b] : 1, scale = times / sum.sum, above = score[b] - sum.most;
    const float miss = expf(above) * scale - times;
    for (int d = threadIdx.x; d < D; d += COMBINERS) {
        float total = 0;
#pragma unroll AHEAD
        for (int share = 0; share < shares; ++share) {
            const int64 at = (int64)share * B + b;
            total = fmaf(expf(sums[at].most - sum.most), parts[at * D + d], total);
        }
        grad[(int64)b * D + d] = fmaf(miss, weights[(int64)target[b] * D + d], scale * total);
    }
    if (threadIdx.x) return;
    loss[b] = -times * (above - logf(sum.sum));
    examples[b] = {sum.most, scale, times, target[b]};
}

// The classes that learn: gpu/batch_rows.cu.
struct Learned {
    float *biases, *squares, *bias_squares;
    int each;  // every number has a square
};

// The square of the norm of this lane's two rows of the gradient, and of their biases'.
//   order  a lane's columns in turn, a butterfly over 4 lanes, the warps beside each other in turn, the bias
template <int WIDTH>
__device__ __forceinline__ void norms(float (&norm2)[2], Tile<WIDTH> &tile, const Sums &sums, const float (&push)[2])
{
    if (Tile<WIDTH>::BESIDE > 1) __syncthreads();  // all are done with the scores
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        norm2[r] = 0;
#pragma unroll
        for (int i = 0; i < COLUMNS / 4; ++i) {
            const float g = sums[i / 2][2 * r + i % 2];
            norm2[r] = fmaf(g, g, norm2[r]);
        }
        for (int step = 1; step < 4; step *= 2) norm2[r] += __shfl_xor_sync(FULL, norm2[r], step);
        if (Tile<WIDTH>::BESIDE > 1 && !turn()) tile.parts()[warp()][group() + 8 * r][0] = norm2[r];
    }
    if (Tile<WIDTH>::BESIDE > 1) {
        __syncthreads();
        const int first = warp() - warp() % Tile<WIDTH>::BESIDE;
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            norm2[r] = 0;
            for (int w = first; w < first + Tile<WIDTH>::BESIDE; ++w) norm2[r] += tile.parts()[w][group() + 8 * r][0];
        }
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) norm2[r] = fmaf(push[r], push[r], norm2[r]);
}

// What all lanes of a row know of its class: the square of its gradient's norm, its own square, its bias's gradient.
struct Moved {
    int c;
    float norm2, square, push;
};

// This lane's numbers of a class move, whose old ones are in `old`; the first lane of a row moves what there is one of, too.
template <int WIDTH>
__device__ __forceinline__ void move(float *weights, const Learned &learned, const Rule &rule, const Moved &my,
                                     const float *old, const Sums &sums, int r, int D)
{
    const int column = Tile<WIDTH>::column() + 2 * turn();
    const float part = cut(my.norm2, rule.clip);
    float step = rule.rate, square = my.square;
    if (learned.squares && !learned.each)
        step = step_of_row(square, part * part * my.norm2 / (D + (learned.biases != nullptr)), rule.rate);
#pragma unroll
    for (int n = 0; n < COLUMNS / 8; ++n) {
        const int d = column + 8 * n;
        if (d >= D) continue;
        const int64 at = (int64)my.c * D + d;
        const float g[2] = {part * sums[n][2 * r], part * sums[n][2 * r + 1]};
        float2 row;
        if (learned.each) {
            float2 squares = *reinterpret_cast<float2 *>(learned.squares + at);
            row.x = moved(old[d], squares.x, g[0], rule.rate, rule.keep);
            row.y = moved(old[d + 1], squares.y, g[1], rule.rate, rule.keep);
            *reinterpret_cast<float2 *>(learned.squares + at) = squares;
        } else {
            row = make_float2(fmaf(-step, g[0], rule.keep * old[d]), fmaf(-step, g[1], rule.keep * old[d + 1]));
        }
        *reinterpret_cast<float2 *>(weights + at) = row;
    }
    if (column) return;
    if (learned.squares && !learned.each) learned.squares[my.c] = square;
    if (!learned.biases) return;
    const float bias = learned.biases[my.c], push = part * my.push;
    learned.biases[my.c] =
        learned.each ? moved(bias, learned.bias_squares[my.c], push, rule.rate, 1) : fmaf(-step, push, bias);
}

// Every class moves once against its gradient, the sum over the batch, by the rule: visit.cuh
//   work    a warp 16 classes and COLUMNS columns
//   launch  grid: classes / Tile::ROWS, block: 256; shared memory: a Tile
//   bound   4 B V D operations of the tensor cores, THRICE three times as many; hidden vectors are read V / Tile::ROWS times
//   order   of a number: 32 examples in turn; of a bias: a lane 8 of each 32 examples in turn, a butterfly over 4 lanes
template <bool THRICE, int WIDTH>
__device__ __forceinline__ void learn_tile(float *weights, const Learned &learned, const Example *examples, const Rule &rule,
                                           const Problem &p)
{
    typedef Tile<WIDTH> T;
    T &tile = *reinterpret_cast<T *>(memory);
    const Rows staying = {p.weights, int(blockIdx.x) * T::ROWS, p.V};
    const int row = T::row() + group(), own = staying.begin + row, t = turn();
    float bias[2] = {0, 0}, push[2] = {0, 0}, norm2[2] = {0, 0}, square[2] = {0, 0};
    Sums sums = {};
#pragma unroll
    for (int r = 0; r < 2; ++r)
        if (p.biases && own + 8 * r < p.V) bias[r] = p.biases[own + 8 * r];
    pass_by<THRICE>(sums, tile, staying, {p.hidden, 0, p.B}, p.D, [&](int first, Scores &scores, float(&)[2]) {
#pragma unroll
        for (int i = 0; i < PASSING / 4; ++i) {
            const int b = first + i / 2 * 8 + 2 * t + i % 2;
            const Example example = b < p.B ? examples[b] : Example{0, 0, 0, -1};
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                float &score = scores[i / 2][2 * r + i % 2];
                const float chance = expf(score + bias[r] - example.most) * example.scale;
                score = b < p.B ? chance - (own + 8 * r == example.target ? example.weight : 0) : 0;
                push[r] += score;
            }
        }
    });
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        for (int step = 1; step < 4; step *= 2) push[r] += __shfl_xor_sync(FULL, push[r], step);
        if (!p.biases) push[r] = 0;
        if (learned.squares && !learned.each && own + 8 * r < p.V) square[r] = learned.squares[own + 8 * r];
    }
    if ((learned.squares && !learned.each) || rule.clip < INFINITY) norms(norm2, tile, sums, push);
    __syncwarp();  // all have read the squares
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        const Moved my = {own + 8 * r, norm2[r], square[r], push[r]};
        if (my.c < p.V) move<WIDTH>(weights, learned, rule, my, tile.staying[row + 8 * r], sums, r, p.D);
    }
}

// _tf32: factors of 10 bits; _3xtf32: nearly fp32
#define KERNELS(KIND, THRICE, WIDTH)                                                                                           \
    extern "C" __global__ void __launch_bounds__(THREADS, 1)                                                                   \
        measure_##KIND##_##WIDTH(float *parts, Sum *sums, float *score, const float *weights, const float *biases,             \
                                 const float *hidden, const int *target, int classes, int B, int V, int D)                     \
    {                                                                                                                          \
        measure_share<THRICE, WIDTH>(parts, sums, score, {weights, biases, hidden, B, V, D}, target, classes);                 \
    }                                                                                                                          \
    extern "C" __global__ void __launch_bounds__(THREADS, 1)                                                                   \
        learn_##KIND##_##WIDTH(float *weights, float *biases, float *squares, float *bias_squares, const Example *examples,    \
                               const float *hidden, float rate, float keep, float clip, int each, int B, int V, int D)         \
    {                                                                                                                          \
        learn_tile<THRICE, WIDTH>(weights, {biases, squares, bias_squares, each}, examples, {rate, keep, clip},                \
                                  {weights, biases, hidden, B, V, D});                                                         \
    }
KERNELS(tf32, false, 128)
KERNELS(tf32, false, 256)
KERNELS(tf32, false, 512)
KERNELS(3xtf32, true, 128)
KERNELS(3xtf32, true, 256)
KERNELS(3xtf32, true, 512)

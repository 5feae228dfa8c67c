// The tables of a layout, what is given to a tick, and the phases of a unit before its dense layers: gather, errors, pull back.
// See pvm.cu.
#pragma once
#include "activation.cuh"
#include "warp.cuh"

constexpr int ONE = 448;   // threads of a block with one stream, at most: 14 warps, so that 49 rows are 4 at most for each
constexpr int MANY = 256;  // threads of a block with more
constexpr int MOST = 16;   // streams
constexpr int GROUP = 4;   // streams that share a read when errors are pulled back

enum Feature { SIGNAL = 1, DERIVATIVE = 2, INTEGRAL = 4, ERROR = 8, PAST = 16 };
enum Kind { LATERAL, FEEDBACK, RAW, SEEN };

constexpr int MOST_LAYERS = 6;  // of a unit

// Rows of the tables, twins of LAYER, UNIT and RUN in pvm.py. Places are in the tape unless said otherwise; that of a stream,
// its world and its signals are shorter than 2^31.
struct __align__(16) Layer {
    int64 w;  // in the weights
    int rows, columns, pulled, in, out;
    int held;  // where the matrix lies in shared memory, in floats; -1: in memory alone
};
struct __align__(16) Unit {  // 64 bytes, then its layers: a block begins with one read
    int number, depth, first_run, last_run;
    int signals, count;  // where in the signals they begin, and how many there are
    int block, features, hidden, size, published, predicted, residual, sign;
    Layer layers[MOST_LAYERS];
};
static_assert(sizeof(Unit) == 64 + 32 * MOST_LAYERS);
struct __align__(16) Run {
    int from, to, size, kind;  // from: in the world; to: of SEEN, in the unit's signals
};

// All that is given to a launch, in the order of the contract's State, Past, Learning and Gathering (hybrid/contract.py).
struct Tick {
    float *world_next, *tape, *signals, *integral, *delta, *low, *high, *miss, *weights, *velocity;
    const Unit *units;
    const Run *runs;
    int given, steps, newest_first;  // given: bits of Feature
    const float *world, *last, *record, *before, *rate, *momentum;
    const unsigned char *learns, *adapts;
    int predict_first;
    float scale, offset, tau, lateral, feedback;
    int code, B;
    int64 W, T, S;
};

#define ARGUMENTS                                                                                                              \
    float *world_next, float *tape, float *signals, float *integral, float *delta, float *low, float *high, float *miss,       \
        float *weights, float *velocity, const Unit *units, const Run *runs, int given, int steps, int newest_first,           \
        const float *world, const float *last, const float *record, const float *before, const float *rate,                    \
        const float *momentum, const unsigned char *learns, const unsigned char *adapts, int predict_first, float scale,       \
        float offset, float tau, float lateral, float feedback, int code, int B, int64 W, int64 T, int64 S
#define GIVEN                                                                                                                  \
    {                                                                                                                          \
        world_next, tape, signals, integral, delta, low, high, miss, weights, velocity, units, runs, given, steps,             \
            newest_first, world, last, record, before, rate, momentum, learns, adapts, predict_first, scale, offset, tau,      \
            lateral, feedback, code, B, W, T, S                                                                                \
    }

extern __shared__ __align__(16) float space[];  // what is held

// Who computes a unit: the threads of a block. Those of one stream keep matrices, see Keeping in pvm_columns.cuh.
struct Block {
    static __device__ int threads() { return blockDim.x; }
    static __device__ int warps() { return threads() / 32; }
    static __device__ bool holds(const Layer &) { return false; }  // does the matrix stay in shared memory
    static __device__ void settle() {}                             // what the thread has asked for there is there
};

// What a launch says of the block's unit, in shared memory, 16 bytes a thread.
__device__ __forceinline__ const Unit &own_unit(const Tick &t)
{
    __shared__ Unit unit;
    const int4 *from = reinterpret_cast<const int4 *>(t.units + blockIdx.x);
    if (threadIdx.x < sizeof(Unit) / 16) reinterpret_cast<int4 *>(&unit)[threadIdx.x] = from[threadIdx.x];
    __syncthreads();
    return unit;
}

constexpr int AHEAD = 1 << 14;  // floats of a matrix that is brought into the L2 cache as a whole, at most

// What errors will be pulled back through, small matrices, and the biases are brought into the L2 cache while the unit gathers.
template <class Crew> __device__ __forceinline__ void announce(const Tick &t, const Unit &unit)
{
    const int first = threadIdx.x, step = Crew::threads();
    for (int k = 0; k < unit.depth; ++k) {
        const Layer &layer = unit.layers[k];
        const float *matrix = t.weights + layer.w;
        const int rows = layer.rows, n = layer.columns, pulled = layer.pulled, lines = (pulled + 31) / 32;
        if (rows * n <= AHEAD && !Crew::holds(layer)) {
            for (int at = 32 * first; at < rows * n; at += 32 * step) bring(matrix + at);
        } else if (!Crew::holds(layer)) {
            for (int task = first; task < rows * lines; task += step)
                bring(matrix + task / lines * n + min(task % lines * 32, pulled - 1));
        }
        for (int r = 32 * first; r < rows; r += 32 * step) bring(matrix + rows * n + r);
    }
}

// Signal i of the unit is s: kept, and its features written to the tape.
__device__ __forceinline__ void see(const Tick &t, const Unit &unit, int b, int i, float s)
{
    const int64 at = b * t.S + unit.signals + i;
    const int block = unit.block;
    float *out = t.tape + b * t.T + unit.features + i / block * block * __popc(t.given) + i % block;
    t.signals[at] = s;
    if (t.given & SIGNAL) {
        *out = s;
        out += block;
    }
    if (t.given & DERIVATIVE) {
        *out = fmaf(s - t.before[at], 0.5f, 0.5f);
        out += block;
    }
    if (t.given & INTEGRAL) {
        *out = t.integral[at] = fmaf(t.tau, t.integral[at], (1 - t.tau) * s);
        out += block;
    }
    if (t.given & ERROR) {
        const float *last = t.last + b * t.T + (t.newest_first ? unit.count * (t.steps - 1) : 0) + i;
        float guess = last[unit.predicted];
        if (unit.residual >= 0) guess += 2 * last[unit.residual] - 1;
        guess = guess < 0 ? 0 : guess > 1 ? 1 : guess;
        *out = fmaf(s - guess, 0.5f, 0.5f);
        out += block;
    }
    if (t.given & PAST) *out = t.before[at];
}

// The unit's signals, features and context, a warp a run of the world.
template <bool SEVERAL, class Crew> __device__ __forceinline__ void gather(const Tick &t, const Unit &unit)
{
    const int B = SEVERAL ? t.B : 1, runs = unit.last_run - unit.first_run, step = Crew::warps();
    for (int task = warp(); task < runs * B; task += step) {
        const int b = task % B;
        const Run run = t.runs[unit.first_run + task / B];
        const float *world = t.world + b * t.W + run.from;
        const float factor = run.kind == LATERAL ? t.lateral : t.feedback;
        for (int i = lane(); i < run.size; i += 32) {
            const float value = world[i], squeezed = fmaf(t.scale, value, t.offset);
            if (run.kind == SEEN)
                see(t, unit, b, run.to + i, squeezed);
            else
                t.tape[b * t.T + run.to + i] = run.kind == RAW ? value : factor * squeezed;
        }
    }
    __syncthreads();
}

// miss, and where the unit learns the gradient before the activation of the predictions in `record`.
template <bool SEVERAL, class Crew> __device__ __forceinline__ void errors(const Tick &t, const Unit &unit, bool learns)
{
    __shared__ float parts[(SEVERAL ? MANY : ONE) / 32];
    const int B = SEVERAL ? t.B : 1, count = unit.count, outputs = t.steps * count;
    const bool residual = unit.residual >= 0;
    float total = 0;
#pragma unroll 1
    for (int k = threadIdx.x; k < B * outputs; k += Crew::threads()) {
        const int b = SEVERAL ? k / outputs : 0, place = k - b * outputs, step = place / count;
        const bool newest = step == (t.newest_first ? 0 : t.steps - 1);
        const int64 seen = b * t.S + unit.signals + place - step * count, at = b * t.T + unit.predicted + place;
        const float guess = t.record[at], wrong = (newest ? t.signals : t.before)[seen] - guess;
        if (residual) {  // of what is wrong, moved into 0..1, the second net learns
            const int64 second = b * t.T + unit.residual + place;
            const float rest = t.record[second];
            total += fabsf(wrong - 2 * rest + 1);
            if (learns) t.delta[second] = (0.5f * (wrong + 1) - rest) * slope(rest, t.code);
        } else {
            total += fabsf(wrong);
        }
        const float sign = wrong > 0 ? 1 : wrong < 0 ? -1 : wrong;  // a NaN stays a NaN
        if (learns) t.delta[at] = (place < unit.sign ? sign : wrong) * slope(guess, t.code);
    }
    total = sums<1>(&total);
    if (lane() == 0) parts[warp()] = total;
    Crew::settle();
    __syncthreads();
    if (threadIdx.x) return;
    for (int k = 1; k < Crew::warps(); ++k) total += parts[k];
    t.miss[unit.number] = total;
}

constexpr int PANEL = 2;  // chunks of 32 columns that errors of one stream are pulled back to at a time

// sums[i] = sum over the warp's rows of delta[r] matrix[r][i], of up to 32 C columns. The warp has every Crew::warps()-th row.
// MEMORY: the matrix is known to be there, not in shared memory.
template <int C, bool MEMORY, class Crew>
__device__ __forceinline__ void pull_rows(float *sums, const float *matrix, const float *delta, int columns, int pitch, int rows)
{
    constexpr int READ = 8;  // rows at a time: all of them are asked for before the first is used
    const int step = Crew::warps();
    const bool tail = lane() + 32 * (C - 1) < columns;
    float total[C] = {};
    const float *error = as_it_is(delta + warp()), *at = matrix + warp() * pitch + lane();
#pragma unroll 1
    for (int left = (rows - warp() + step - 1) / step; left > 0; left -= READ) {
        float value[READ][C], errors[READ];
#pragma unroll
        for (int k = 0; k < READ; ++k) {
            const bool here = k < left;
            errors[k] = here ? __ldca(error) : 0;
#pragma unroll
            for (int c = 0; c < C; ++c)
                value[k][c] = here && (c < C - 1 || tail) ? (MEMORY ? __ldcg(at + 32 * c) : at[32 * c]) : 0;
            at = MEMORY ? as_it_is(at + step * pitch) : at + step * pitch;
            error = as_it_is(error + step);
        }
#pragma unroll
        for (int k = 0; k < READ; ++k)
#pragma unroll
            for (int c = 0; c < C; ++c) total[c] = fmaf(value[k][c], errors[k], total[c]);
    }
#pragma unroll
    for (int c = 0; c < C; ++c) sums[lane() + 32 * c] = total[c];
}

// Sums of all warps: the same place, however many kinds of pull_back a kernel has.
typedef float Panel[32 * PANEL];
__device__ __forceinline__ Panel *panels()
{
    __shared__ Panel parts[ONE / 32];
    return parts;
}

// The gradient before the activation of what the layer read, where that was computed too. Each warp sums over rows of its own,
// and the sums are added in turn.
template <bool MEMORY, class Crew>
__device__ __forceinline__ void pull_back(const Tick &t, const Layer &layer, const float *matrix)
{
    Panel *parts = panels();
    const int pulled = layer.pulled;
    for (int first = 0; first < pulled; first += 32 * PANEL) {
        const int here = min(32 * PANEL, pulled - first);
        if (first) __syncthreads();  // the parts before have been summed
        const float *delta = t.delta + layer.out;
        if (here > 32)
            pull_rows<2, MEMORY, Crew>(parts[warp()], matrix + first, delta, here, layer.columns, layer.rows);
        else
            pull_rows<1, MEMORY, Crew>(parts[warp()], matrix + first, delta, here, layer.columns, layer.rows);
        __syncthreads();
        if (threadIdx.x >= here) continue;  // a block has as many threads
        const int at = layer.in + first + threadIdx.x;
        const float slopes = slope(t.record[at], t.code);
        float sum = 0;
        for (int part = 0; part < Crew::warps(); ++part) sum += parts[part][threadIdx.x];
        t.delta[at] = sum * slopes;
    }
    __syncthreads();
}

// The same of several streams. A warp takes 32 columns, a part of the rows and GROUP streams; the parts are summed in turn.
__device__ __forceinline__ void pull_back_many(const Tick &t, const Layer &layer, const float *matrix)
{
    constexpr int G = GROUP, READ = 8 / G;  // rows at a time
    __shared__ float parts[G * MANY / 32][32];
    const int B = t.B, rows = layer.rows, n = layer.columns, pulled = layer.pulled;
    const int chunks = (pulled + 31) / 32, jobs = chunks * ((B + G - 1) / G), together = min(jobs, warps());
    const int P = warps() / together, p = warp() / together;
    const float *delta = t.delta + layer.out;
    for (int start = 0; start < jobs; start += together) {
        if (start) __syncthreads();  // the parts before have been summed
        const int job = start + warp() % together, j = job % chunks * 32 + lane(), b = job / chunks * G;
        float total[G] = {};
        if (p < P && job < jobs && j < pulled) {
            const float *from[G];
            for (int g = 0; g < G; ++g) from[g] = delta + min(b + g, B - 1) * t.T;
#pragma unroll 1
            for (int r = p; r < rows; r += READ * P) {  // all of them are asked for before the first is used
                float value[READ], errors[G][READ];
#pragma unroll
                for (int k = 0; k < READ; ++k) {
                    const int row = min(r + k * P, rows - 1);  // past the last is the last again, and not used
                    value[k] = matrix[row * n + j];
                    for (int g = 0; g < G; ++g) errors[g][k] = from[g][row];
                }
#pragma unroll
                for (int k = 0; k < READ; ++k)
                    for (int g = 0; g < G; ++g)
                        if (r + k * P < rows) total[g] = fmaf(value[k], errors[g][k], total[g]);
            }
        }
        for (int g = 0; g < G; ++g) parts[warp() * G + g][lane()] = total[g];
        __syncthreads();
        for (int k = warp(); k < together * G; k += warps()) {
            const int job = start + k / G, j = job % chunks * 32 + lane(), b = job / chunks * G + k % G;
            if (job >= jobs || j >= pulled || b >= B) continue;
            float sum = 0;
            for (int part = 0; part < P; ++part) sum += parts[part * together * G + k][lane()];
            const int64 at = b * t.T + layer.in + j;
            t.delta[at] = sum * slope(t.record[at], t.code);
        }
    }
    __syncthreads();
}

// The hidden vector goes to the next world, as it is or, where low is not null, by its range so far.
template <bool SEVERAL, class Crew> __device__ __forceinline__ void publish(const Tick &t, const Unit &unit)
{
    const int B = SEVERAL ? t.B : 1, size = unit.size;
    for (int k = threadIdx.x; k < B * size; k += Crew::threads()) {
        const int b = SEVERAL ? k / size : 0, i = k - b * size;
        const int64 to = b * t.W + unit.published + i;
        float value = t.tape[b * t.T + unit.hidden + i];
        if (t.low != nullptr) {
            float low = t.low[to], high = t.high[to];
            if (t.adapts[unit.number]) {
                t.low[to] = low = (low < value ? low : value) + 1e-6f;
                t.high[to] = high = (high > value ? high : value) - 1e-6f;
            }
            value = (value - low) / (high - low);
        }
        t.world_next[to] = value;
    }
}

// One tick of a Predictive Vision Model: a block a unit, each weight read once from memory and written once. Twin of
// cpu/pvm.py.
//
// world (B, W), tape (B, T), signals (B, S)   see hybrid/pvm/layout.py; a stream a row, B at most MOST
// units, layers, parts, copies                that layout as tables, made by gpu/pvm.py
//
// A unit's phases are divided by barriers: gather what it sees, find its errors, pull them back to its inner layers, visit
// its dense layers in order, publish. Each dense layer is one pass over its matrix: a row is multiplied with the new input
// and moved along the old one. Only matrices behind the first are read before, in part, to pull errors back; they come
// from the L2 cache when they are visited. Sums have a fixed order: lanes, a butterfly, then parts in turn. No atomics.
#include "activation.cuh"
#include "warp.cuh"

constexpr int ONE = 448;   // threads of a block with one stream, at most: 14 warps, so that 49 rows are 4 at most for each
constexpr int MANY = 256;  // threads of a block with more
constexpr int MOST = 16;   // streams
constexpr int GROUP = 4;   // streams that share a read when errors are pulled back

enum Feature { SIGNAL = 1, DERIVATIVE = 2, INTEGRAL = 4, ERROR = 8, PAST = 16 };
enum Kind { LATERAL, FEEDBACK, RAW };

// Rows of the tables; `first` to `last` count in the table of that name, places are in the tape unless said otherwise.
struct Unit {
    int64 number, first_layer, last_layer, first_part, last_part, first_copy, last_copy;
    int64 signals, count;  // where in the signals they begin, and how many there are
    int64 block, features, hidden, size, published, predicted, residual, sign;
};
struct Layer {
    int64 rows, columns, pulled, w, in, out;
};
struct Part {
    int64 from, size, to;  // of the world, of the unit's signals
};
struct Copy {
    int64 from, to, size, kind;
};

// All that is given to a launch, in the order of the contract's State, Past, Learning and Gathering (hybrid/contract.py).
struct Tick {
    float *world_next, *tape, *signals, *integral, *delta, *low, *high, *miss, *weights, *velocity;
    const Unit *units;
    const Layer *layers;
    const Part *parts;
    const Copy *copies;
    int given, steps, newest_first;  // given: bits of Feature
    const float *world, *last, *record, *before, *rate, *momentum;
    const unsigned char *learns, *adapts;
    int predict_first;
    float scale, offset, tau, lateral, feedback;
    int code, B;
    int64 W, T, S;
};

#define ARGUMENTS                                                                                                               \
    float *world_next, float *tape, float *signals, float *integral, float *delta, float *low, float *high, float *miss,        \
        float *weights, float *velocity, const Unit *units, const Layer *layers, const Part *parts, const Copy *copies,         \
        int given, int steps, int newest_first, const float *world, const float *last, const float *record,                     \
        const float *before, const float *rate, const float *momentum, const unsigned char *learns,                             \
        const unsigned char *adapts, int predict_first, float scale, float offset, float tau, float lateral, float feedback,    \
        int code, int B, int64 W, int64 T, int64 S
#define GIVEN                                                                                                                   \
    {                                                                                                                           \
        world_next, tape, signals, integral, delta, low, high, miss, weights, velocity, units, layers, parts, copies, given,    \
            steps, newest_first, world, last, record, before, rate, momentum, learns, adapts, predict_first, scale, offset,     \
            tau, lateral, feedback, code, B, W, T, S                                                                            \
    }

// What errors will be pulled back through, and the biases, are brought into the L2 cache while the unit gathers.
__device__ __forceinline__ void announce(const Tick &t, const Unit &unit)
{
    for (int64 k = unit.first_layer; k < unit.last_layer; ++k) {
        const Layer &layer = t.layers[k];
        const float *matrix = t.weights + layer.w;
        const int rows = layer.rows, n = layer.columns, pulled = layer.pulled, lines = (pulled + 31) / 32;
        for (int task = threadIdx.x; task < rows * lines; task += blockDim.x)
            bring(matrix + task / lines * n + min(task % lines * 32, pulled - 1));
        for (int r = 32 * threadIdx.x; r < rows; r += 32 * blockDim.x) bring(matrix + rows * n + r);
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
template <bool SEVERAL> __device__ __forceinline__ void gather(const Tick &t, const Unit &unit)
{
    const int B = SEVERAL ? t.B : 1, parts = unit.last_part - unit.first_part, copies = unit.last_copy - unit.first_copy;
    for (int task = warp(); task < (parts + copies) * B; task += warps()) {
        const int run = task / B, b = task % B;
        const float *world = t.world + b * t.W;
        if (run < parts) {
            const Part &part = t.parts[unit.first_part + run];
            for (int i = lane(); i < part.size; i += 32)
                see(t, unit, b, part.to + i, fmaf(t.scale, world[part.from + i], t.offset));
        } else {
            const Copy &copy = t.copies[unit.first_copy + run - parts];
            const float factor = copy.kind == LATERAL ? t.lateral : t.feedback;
            for (int i = lane(); i < copy.size; i += 32) {
                const float value = world[copy.from + i];
                t.tape[b * t.T + copy.to + i] = copy.kind == RAW ? value : factor * fmaf(t.scale, value, t.offset);
            }
        }
    }
    __syncthreads();
}

// miss, and where the unit learns the gradient before the activation of the predictions in `record`.
template <bool SEVERAL> __device__ __forceinline__ void errors(const Tick &t, const Unit &unit, bool learns)
{
    __shared__ float parts[(SEVERAL ? MANY : ONE) / 32];
    const int B = SEVERAL ? t.B : 1, count = unit.count, outputs = t.steps * count;
    const bool residual = unit.residual >= 0;
    float total = 0;
    for (int k = threadIdx.x; k < B * outputs; k += blockDim.x) {
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
    __syncthreads();
    if (threadIdx.x) return;
    for (int k = 1; k < warps(); ++k) total += parts[k];
    t.miss[unit.number] = total;
}

// The gradient before the activation of what the layer read, where that was computed too. A warp takes 32 columns, a part
// of the rows and GROUP streams; the parts are summed in turn.
template <bool SEVERAL> __device__ __forceinline__ void pull_back(const Tick &t, const Layer &layer)
{
    constexpr int G = SEVERAL ? GROUP : 1;
    __shared__ float parts[G * (SEVERAL ? MANY : ONE) / 32][32];
    const int B = SEVERAL ? t.B : 1, rows = layer.rows, n = layer.columns, pulled = layer.pulled;
    const int chunks = (pulled + 31) / 32, jobs = chunks * ((B + G - 1) / G), together = min(jobs, warps());
    const int P = warps() / together, p = warp() / together;
    const float *matrix = t.weights + layer.w, *delta = t.delta + layer.out;
    for (int start = 0; start < jobs; start += together) {
        const int job = start + warp() % together, j = job % chunks * 32 + lane(), b = job / chunks * G;
        float total[G] = {};
        if (p < P && job < jobs && j < pulled) {
            const float *from[G];
            for (int g = 0; g < G; ++g) from[g] = delta + min(b + g, B - 1) * t.T;
#pragma unroll 8
            for (int r = p; r < rows; r += P) {
                const float value = matrix[r * n + j];
                for (int g = 0; g < G; ++g) total[g] = fmaf(value, from[g][r], total[g]);
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
        __syncthreads();
    }
}

// What a weight becomes; its velocity moves too.
template <bool MOMENTUM> __device__ __forceinline__ float moved(float weight, float &speed, float change, float momentum)
{
    if (!MOMENTUM) return weight + change;
    speed = fmaf(momentum, speed, change);
    return weight + speed;
}

// A dense layer of one stream: out = activation(matrix x + bias), matrix += rate delta old^T, bias += rate delta. A warp
// takes R rows at a time, a lane K columns, all of which are asked for before the first is used.
template <int R, int K, bool MOMENTUM>
__device__ __forceinline__ void visit(const Tick &t, const Layer &layer, float rate, float momentum, bool learns)
{
    const int rows = layer.rows, n = layer.columns, last = rows * (warp() + 1) / warps();
    const bool after = learns && !t.predict_first;  // does what is computed now take the weights that have moved
    float *matrix = t.weights + layer.w, *speeds = MOMENTUM ? t.velocity + layer.w : nullptr;
    const int in = layer.in, out = layer.out;  // one stream's tape is shorter than 2^31
#pragma unroll 1
    for (int r = rows * warp() / warps(); r < last; r += R) {
        const int count = min(R, last - r), mine = lane() / (32 / R);
        const bool writes = lane() % (32 / R) == 0 && mine < count;
        float change[R], total[R] = {};
#pragma unroll
        for (int k = 0; k < R; ++k) change[k] = learns && k < count ? rate * t.delta[out + r + k] : 0;
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
#pragma unroll
            for (int c = 0; c < K; ++c) {
#pragma unroll
                for (int k = 0; k < R; ++k) {
                    const float next = moved<MOMENTUM>(w[k][c], v[k][c], change[k] * then[c], momentum);
                    total[k] = fmaf(after ? next : w[k][c], now[c], total[k]);
                    if (learns && k < count && i + 32 * c < n) {
                        if (MOMENTUM) __stcs(speeds + (r + k) * n + i + 32 * c, v[k][c]);
                        __stcs(matrix + (r + k) * n + i + 32 * c, next);
                    }
                }
            }
        }
        const float sum = sums<R>(total);
        if (!writes) continue;
        const int bias = rows * n + r + mine;
        const float start = matrix[bias];
        float speed = MOMENTUM && learns ? speeds[bias] : 0;
        const float next = learns ? moved<MOMENTUM>(start, speed, rate * t.delta[out + r + mine], momentum) : start;
        t.tape[out + r + mine] = activate(sum + (after ? next : start), t.code);
        if (learns && MOMENTUM) speeds[bias] = speed;
        if (learns) matrix[bias] = next;
    }
}

// A dense layer of up to MOST streams: the same, with the change of a weight summed over the streams in order.
template <bool MOMENTUM>
__device__ __forceinline__ void visit_many(const Tick &t, const Layer &layer, float rate, float momentum, bool learns)
{
    constexpr int R = 2, K = 4;
    const int rows = layer.rows, n = layer.columns, last = rows * (warp() + 1) / warps(), B = t.B;
    const bool after = learns && !t.predict_first;
    float *matrix = t.weights + layer.w, *speeds = MOMENTUM ? t.velocity + layer.w : nullptr;
    const float *x = t.tape + layer.in, *old = t.record + layer.in, *delta = t.delta + layer.out;
    for (int r = rows * warp() / warps(); r < last; r += R) {
        const int count = min(R, last - r), mine = lane() % R, stream = lane() / R, bias = rows * n + r + mine;
        const float start = mine < count ? matrix[bias] : 0;  // by all streams, before the first of them writes it
        float speed = MOMENTUM && mine < count ? speeds[bias] : 0;
        float total[MOST * R] = {};  // of a stream all rows
        for (int i = lane(); i < n; i += 32 * K) {
            float w[R][K], v[R][K], change[R][K] = {};
#pragma unroll
            for (int k = 0; k < R; ++k)
#pragma unroll
                for (int c = 0; c < K; ++c) {
                    const bool here = k < count && i + 32 * c < n;
                    w[k][c] = here ? __ldcs(matrix + (r + k) * n + i + 32 * c) : 0;
                    if (MOMENTUM) v[k][c] = here && learns ? __ldcs(speeds + (r + k) * n + i + 32 * c) : 0;
                }
            for (int b = 0; learns && b < B; ++b) {
                const float *d = delta + b * t.T + r;
#pragma unroll
                for (int c = 0; c < K; ++c) {
                    const float then = i + 32 * c < n ? old[b * t.T + i + 32 * c] : 0;
#pragma unroll
                    for (int k = 0; k < R; ++k) change[k][c] = fmaf(d[min(k, count - 1)], then, change[k][c]);
                }
            }
#pragma unroll
            for (int k = 0; k < R; ++k)
#pragma unroll
                for (int c = 0; c < K; ++c) {
                    if (!learns || k >= count || i + 32 * c >= n) continue;
                    const int at = (r + k) * n + i + 32 * c;
                    const float next = moved<MOMENTUM>(w[k][c], v[k][c], rate * change[k][c], momentum);
                    if (MOMENTUM) __stcs(speeds + at, v[k][c]);
                    __stcs(matrix + at, next);
                    if (after) w[k][c] = next;
                }
#pragma unroll
            for (int b = 0; b < MOST; ++b) {
                if (b >= B) continue;
#pragma unroll
                for (int c = 0; c < K; ++c) {
                    const float now = i + 32 * c < n ? x[b * t.T + i + 32 * c] : 0;
#pragma unroll
                    for (int k = 0; k < R; ++k) total[b * R + k] = fmaf(w[k][c], now, total[b * R + k]);
                }
            }
        }
        const float sum = sums<MOST * R>(total);
        if (mine >= count || stream >= B) continue;
        float next = start;
        if (learns) {
            float change = 0;
            for (int b = 0; b < B; ++b) change += delta[b * t.T + r + mine];
            next = moved<MOMENTUM>(start, speed, rate * change, momentum);
            if (MOMENTUM && stream == 0) speeds[bias] = speed;
            if (stream == 0) matrix[bias] = next;
        }
        t.tape[stream * t.T + layer.out + r + mine] = activate(sum + (after ? next : start), t.code);
    }
}

// The hidden vector goes to the next world, as it is or, where low is not null, by its range so far.
template <bool SEVERAL> __device__ __forceinline__ void publish(const Tick &t, const Unit &unit)
{
    const int B = SEVERAL ? t.B : 1, size = unit.size;
    for (int k = threadIdx.x; k < B * size; k += blockDim.x) {
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

// One tick.
//   work    a block a unit, the largest first
//   launch  grid: units, block: ONE threads, or half of them where units are many; MANY for more than one stream
//   bound   memory: 8 bytes a parameter, 16 with momentum; 4 where the unit does not learn
//   order   dot products: lanes stride over columns, then a butterfly; gradients: over the streams in order;
//           errors pulled back: rows in parts, the parts in turn
template <bool SEVERAL, bool MOMENTUM> __device__ __forceinline__ void tick(const Tick &t)
{
    const Unit &unit = t.units[blockIdx.x];
    const bool learns = t.learns[unit.number];
    const float rate = t.rate[unit.number], momentum = t.momentum[unit.number];
    if (learns) announce(t, unit);
    gather<SEVERAL>(t, unit);
    errors<SEVERAL>(t, unit, learns);
    for (int k = unit.last_layer - 1; learns && k >= unit.first_layer; --k)
        if (t.layers[k].pulled) pull_back<SEVERAL>(t, t.layers[k]);
#pragma unroll 1
    for (int k = unit.first_layer; k < unit.last_layer; ++k) {
        const Layer &layer = t.layers[k];
        if (SEVERAL)
            visit_many<MOMENTUM>(t, layer, rate, momentum, learns);
        else
            visit<4, MOMENTUM ? 2 : 3, MOMENTUM>(t, layer, rate, momentum, learns);
        __syncthreads();
    }
    publish<SEVERAL>(t, unit);
}

// Registers are bounded so that a multiprocessor has room for two blocks.
#define TICK(NAME, BOUNDS, SEVERAL, MOMENTUM)                                                                                      \
    extern "C" __global__ void __launch_bounds__ BOUNDS NAME(ARGUMENTS)                                                         \
    {                                                                                                                           \
        const Tick t = GIVEN;                                                                                                   \
        tick<SEVERAL, MOMENTUM>(t);                                                                                                \
    }
TICK(tick_one, (ONE, 2), false, false)
TICK(tick_one_momentum, (ONE, 2), false, true)
TICK(tick_many, (MANY, 2), true, false)
TICK(tick_many_momentum, (MANY, 2), true, true)

// world[b, n] = scale frame[b, n], of the first `size` of the W numbers of a stream
//   work    a thread a number
//   launch  grid: (size / 256, B), block: 256
//   bound   memory: 5 or 8 bytes a number
template <typename Number>
__device__ void show(float *world, const Number *frame, float scale, int64 size, int64 W)
{
    const int64 n = blockIdx.x * (int64)blockDim.x + threadIdx.x;
    if (n < size) world[blockIdx.y * W + n] = scale * frame[blockIdx.y * size + n];
}
extern "C" __global__ void show_bytes(float *world, const unsigned char *frame, float scale, int64 size, int64 W)
{
    show(world, frame, scale, size, W);
}
extern "C" __global__ void show_numbers(float *world, const float *frame, float scale, int64 size, int64 W)
{
    show(world, frame, scale, size, W);
}

// out[b, n] = source[b, index[n]]
//   work    a thread a number
//   launch  grid: (N / 256, B), block: 256
//   bound   memory: 8 bytes a number, 4 of its index
extern "C" __global__ void collect(float *out, const float *source, const int *index, int64 N, int64 M)
{
    const int64 n = blockIdx.x * (int64)blockDim.x + threadIdx.x;
    if (n < N) out[blockIdx.y * N + n] = source[blockIdx.y * M + index[n]];
}

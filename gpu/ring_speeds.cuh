// Velocities of the units that go round in a ring: they come and go by parts, for each group of warps in slots of its own.
//
// A unit's velocities are needed once, when it learns, so they need not be held as its weights are. One thread a group, the mover,
// brings parts in order, as many ahead as there are slots, and stores those that have moved. A slot goes round as those of
// weights do; each warp arrives at `done`, after a fence of its threads.
#pragma once
#include "online.cuh"

constexpr int GROUPS = 2;
constexpr int PARTS = 4;  // slots of a group
constexpr int RING_WARPS = 8 * GROUPS + 1 + GROUPS;  // of groups, of who moves weights, of who move velocities

// The threads that compute a unit: eight warps of a block (32, RING_WARPS).
struct Group {
    __device__ static int number() { return threadIdx.y / 8; }
    __device__ static int warp() { return threadIdx.y % 8; }
    __device__ static int thread() { return 32 * warp() + threadIdx.x; }
    __device__ static int threads() { return 256; }
    __device__ static int warps() { return 8; }
    __device__ static void meet() { ::meet(1 + number(), threads()); }
};

// The number-th part that a group has: of its unit k of a block, the velocities that lie in sectors [at, at + 1) * pitch / 8,
// counted from the one in which the unit's begin.
struct Part {
    float *speeds;  // of the unit
    int size, pitch, at, number;

    __device__ int begin() const { return at * pitch - (-to_sector(speeds) & 7); }
    __device__ int first() const { return max(begin(), 0); }
    __device__ int last() const { return min(begin() + pitch, size); }
    __device__ bool there() const { return begin() < size; }
    __device__ void next() { ++at, ++number; }
};

struct Speeds {
    float *slots;  // PARTS, each of `pitch` floats
    int pitch;
    Barrier *full, *done;  // one of each slot

    // Where index 0 of the unit would be.
    __device__ float *place(const Part &part) const { return slots + part.number % PARTS * pitch - part.begin(); }
    __device__ void wait_filled(const Part &part) const { wait(full + part.number % PARTS, part.number / PARTS & 1); }
    __device__ Barrier *moved(const Part &part) const { return done + part.number % PARTS; }

    __device__ void load(const Part &part) const
    {
        const float *memory = part.speeds + part.first();
        const int count = part.last() - part.first();
        Barrier *at = full + part.number % PARTS;
        expect(at, run_bytes(memory, count));
        load_run(place(part) + part.first() - beyond(memory), memory, count, at);
    }
    __device__ void store(const Part &part) const
    {
        wait(moved(part), part.number / PARTS & 1);
        store_run(part.speeds + part.first(), place(part) + part.first(), part.last() - part.first());
        wait_stores_read();
    }
};

// The parts of all units of a group.
template <class Units> struct AllParts {
    Units unit;
    float *velocity;
    int mine, k;
    Part part;

    __device__ AllParts(Units unit, float *velocity, int mine, int group, int pitch)
        : unit(unit), velocity(velocity), mine(mine), k(group), part{nullptr, 0, pitch, 0, 0}
    {
        begin();
    }
    __device__ bool there() const { return k < mine; }
    __device__ void begin()
    {
        if (!there()) return;
        const Unit now = unit(k);
        part = {velocity + now.w, now.size(), part.pitch, 0, part.number};
    }
    __device__ void next()
    {
        part.next();
        if (part.there()) return;
        k += GROUPS;
        begin();
    }
};

// What one thread does for a group.
template <class Units>
__device__ __forceinline__ void move_speeds(const Speeds &ring, float *velocity, int mine, int group, Units unit)
{
    AllParts<Units> gone(unit, velocity, mine, group, ring.pitch), coming = gone;
    while (gone.there()) {
        if (!coming.there() || coming.part.number == gone.part.number + PARTS) {
            ring.store(gone.part);
            gone.next();
        } else {
            ring.load(coming.part);
            coming.next();
        }
    }
}

// Weights [first, last) of a layer, whose matrix begins at 0 and has its biases behind it, move with their velocities, in place.
__device__ __forceinline__ void learn_run(float *weights, float *speeds, int first, int last, const float *delta,
                                          const float *x, int n, int rows, float rate, float momentum)
{
    const int threads = Group::threads(), rows_on = threads / n, columns_on = threads % n, bias = rows * n;
    int r = (first + Group::thread()) / n, i = (first + Group::thread()) % n;
    for (int k = first + Group::thread(); k < last; k += threads) {
        const float change = -rate * delta[k < bias ? r : k - bias];  // as in online.cuh, to the bit
        const float v = fmaf(momentum, speeds[k], change * (k < bias ? x[i] : 1));
        weights[k] += speeds[k] = v;
        r += rows_on, i += columns_on;
        if (i >= n) ++r, i -= n;
    }
}

// What a group of warps does for its unit: all of its weights move, in place. number: of its parts so far.
__device__ __forceinline__ void learn_parts(const Speeds &ring, float *velocity, const Unit &unit, float *weights,
                                            const Signals &s, float rate, float momentum, int &number)
{
    const int n = unit.n, h = unit.h, o = unit.o, second = unit.second();
    Part part = {velocity + unit.w, unit.size(), ring.pitch, 0, number};
    for (; part.there(); part.next()) {
        const int first = part.first(), last = part.last();
        float *speeds = ring.place(part);
        ring.wait_filled(part);
        learn_run(weights, speeds, first, min(last, second), s.inner_delta, s.in, n, h, rate, momentum);
        learn_run(weights + second, speeds + second, max(first - second, 0), last - second, s.out, s.inner, h, o, rate, momentum);
        fence_bulk();
        __syncwarp();
        if (lane() == 0) arrive(ring.moved(part));
    }
    number = part.number;
}

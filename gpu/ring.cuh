// A step of one unit after another by each multiprocessor, whose weights come and go by bulk copies: for sm_90 and later.
//
// Shared memory has slots for the weights of some units. One thread, the mover, brings weights into slots and stores them when
// they have learnt; two groups of warps take turns at units, so that one computes while the other waits at its barriers, and
// memory is busy meanwhile. Signals, a fiftieth of the bytes, are asked for by the group, one of its units ahead. Velocities come
// by parts, see ring_speeds.cuh.
//
// Unit k of a block is in slot k % slots, for the group k % GROUPS. A slot goes round:
//
//     loading    the mover expects its bytes at `full`
//     learning   in place; each thread fences what it has written, the group arrives at `done`
//     storing    the mover waits until the store has read the slot
//
// Whoever waits knows a phase by its parity alone, so he must have seen the one before. Groups share slots, so each slot has a
// `full` for each group: unit k is the full barrier k % (GROUPS * slots), whose units are all of one group.
//
// Bulk copies move multiples of 16 bytes. The numbers before and behind them, at most three, are read and written by the group.
#pragma once
#include "online.cuh"
#include "ring_speeds.cuh"

constexpr int MOST_SLOTS = 4;

// How far units move: each at a rate of its own; rates null: all at `rate`.
struct Moving {
    const float *__restrict__ rates;
    float rate, momentum;
    __device__ float of(const Unit &unit) const { return rates ? rates[unit.number] : rate; }
};

// Floats [first, last) of a unit go by bulk copies.
struct Whole {
    int first, last;
    __device__ Whole(const float *memory, int size) : first(to_sector(memory) & 3), last(size - (size - first) % 4) {}
    __device__ unsigned bytes() const { return 4 * (last - first); }
    __device__ int edges(int size) const { return first + size - last; }
    __device__ int edge(int k) const { return k < first ? k : last + k - first; }  // the k-th number that does not
};

// Where index 0 of a unit lies in its slot: as far from an aligned place as in memory.
__device__ __forceinline__ float *place(float *slot, const float *memory) { return slot + (-to_sector(memory) & 3); }

struct Ring {
    float *slots;    // `many`, each of `pitch` floats
    int many, pitch;
    Barrier *full, *done;  // GROUPS of each slot; one of each slot

    __device__ float *slot(int k) const { return slots + k % many * pitch; }
    __device__ Barrier *filled(int k) const { return full + k % (GROUPS * many); }
    __device__ void wait_filled(int k) const { wait(filled(k), k / (GROUPS * many) & 1); }
    __device__ void wait_done(int k) const { wait(done + k % many, k / many & 1); }
};

// What one thread does for the `mine` units of its block; unit(k) is the k-th.
template <class Units> __device__ __forceinline__ void move_weights(const Ring &ring, float *weights, int mine, Units unit)
{
    for (int k = 0; k < mine + ring.many; ++k) {
        const int before = k - ring.many;  // was in this slot
        const Unit gone = unit(max(min(before, mine - 1), 0)), coming = unit(min(k, mine - 1));
        if (before >= 0 && before < mine) {
            float *memory = weights + gone.w, *held = place(ring.slot(before), memory);
            const Whole whole(memory, gone.size());
            ring.wait_done(before);
            store_bulk(memory + whole.first, held + whole.first, whole.bytes());
            wait_stores_read();
        }
        if (k < mine) {
            const float *memory = weights + coming.w;
            const Whole whole(memory, coming.size());
            expect(ring.filled(k), whole.bytes());
            load_bulk(place(ring.slot(k), memory) + whole.first, memory + whole.first, whole.bytes(), ring.filled(k));
        }
    }
}

// What a group of warps does for its units. signals: (2, ahead), for inputs and targets of this unit and of the next; then the
// signals that a unit computes.
template <bool SPEEDS, class Units>
__device__ __forceinline__ void learn_units(const Ring &ring, const Speeds &speeds, float *signals, int ahead,
                                            const Written &to, float *weights, float *velocity, const float *x,
                                            const float *target, int mine, Units unit, const Moving &moving, int code)
{
    const int thread = Group::thread();
    int parts = 0;  // of velocities so far
    float edge = 0;
    const auto ask = [&](int k) {
        if (k < mine) {
            const Unit next = unit(k);
            float *in = signals + (k / GROUPS & 1) * ahead;
            fetch_columns<Group>(in, x, next.x, 0, next.n, 1);
            fetch_columns<Group>(in + next.n, target, next.y, 0, next.o, 1);
            const Whole whole(weights + next.w, next.size());
            if (thread < whole.edges(next.size())) edge = weights[next.w + whole.edge(thread)];
        }
        __pipeline_commit();
    };
    ask(Group::number());
    for (int k = Group::number(); k < mine; k += GROUPS) {
        const Unit now = unit(k);
        const float first_or_last = edge, rate = moving.of(now);
        ask(k + GROUPS);
        const int n = now.n, h = now.h, o = now.o;
        float *memory = weights + now.w, *held = place(ring.slot(k), memory), *in = signals + (k / GROUPS & 1) * ahead;
        float *inner = signals + 2 * ahead, *out = inner + h, *inner_delta = out + o;
        const Signals s = {in, inner, out, inner_delta, in + n, inner_delta + h};
        const Whole whole(memory, now.size());
        const bool at_edge = thread < whole.edges(now.size());

        __pipeline_wait_prior(1);
        ring.wait_filled(k);
        if (at_edge) held[whole.edge(thread)] = first_or_last;
        Group::meet();
        const auto nothing = [] {};
        const Pace pace = {rate, moving.momentum};
        learn_online<Group, SPEEDS ? NOTHING : WEIGHTS>(to, s, now, held, nullptr, pace, code, nothing, nothing);
        if (SPEEDS)
            learn_parts(speeds, velocity, now, held, s, rate, moving.momentum, parts);
        else
            fence_bulk();
        Group::meet();
        if (at_edge) memory[whole.edge(thread)] = held[whole.edge(thread)];
        if (Group::warp()) continue;
        __syncwarp();
        if (thread == 0) arrive(ring.done + k % ring.many);
    }
}

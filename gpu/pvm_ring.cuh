// A tick of one stream whose matrices come and go by bulk copies: for sm_90 and later.
//
// Shared memory has slots for tiles: as many rows of a matrix as fit, with momentum beside their velocities. One thread of the
// last warp, the mover, brings tiles in the order of their visits and stores those that have learnt; the other warps compute.
// Tile k is in slot k % slots, which goes round:
//
//     loading    the mover expects its bytes at `full`
//     learning   in place; each thread fences what it has written, each warp arrives at `done`
//     storing    the mover waits until the store has read the slot
//
// Whoever waits knows a phase by its parity alone, so all warps see all tiles, also those of whose rows they have none.
//
// A matrix that errors are pulled back through is needed twice. Where there is room it comes as a whole, first, to a place of its
// own, `held`, and stays there until it has learnt. Of its tiles the slots have the velocities alone.
#pragma once
#include "bulk.cuh"
#include "pvm_rows.cuh"

constexpr int MOST_SLOTS = 4;
constexpr int SPARE = 8;  // more floats that a run takes in shared memory, at most

// All warps but the last.
struct Computing {
    static constexpr bool READS = false;
    static __device__ void settle() {}
    static __device__ int threads() { return blockDim.x - 32; }
    static __device__ int warps() { return threads() / 32; }
    static __device__ void meet() { ::meet(1, threads()); }
    static __device__ bool holds(const Layer &layer) { return layer.held >= 0; }
    static __device__ int rank(const Unit &) { return 0; }
    static __device__ int blocks(const Unit &) { return 1; }
    static __device__ void meet(const Unit &) { meet(); }
    static __device__ void attend(const Unit &) {}  // what the mover does when the others meet(unit)
};

// Rows [first, first + count) of a layer of the unit, the number-th tile that goes round.
template <class Crew> struct Tile {
    const Unit &unit;
    int slot;  // floats of a slot
    int layer = 0, first = own(0).first, number = 0;

    __device__ Share own(int k) const { return share<Crew>(unit, unit.layers[k].rows); }  // rows of a layer that the block takes
    __device__ const Layer &of() const { return unit.layers[layer]; }
    __device__ bool there() const { return layer < unit.depth; }
    __device__ int rows() const
    {
        const int fit = (slot - SPARE) / of().columns;
        return fit > 1 ? fit / 2 * 2 : 1;  // a warp takes two
    }
    __device__ int count() const { return min(rows(), own(layer).last - first); }
    __device__ int64 at() const { return of().w + (int64)first * of().columns; }  // in the weights
    __device__ int size() const { return count() * of().columns; }
    __device__ void next()
    {
        ++number;
        first += rows();
        if (first >= own(layer).last) ++layer, first = own(min(layer, MOST_LAYERS - 1)).first;
    }
};

template <class Crew, bool MOMENTUM> struct Ring {
    int slots, slot;
    Barrier *full, *done, *kept;  // one of each slot; kept: of each layer

    __device__ float *slot_of(const Tile<Crew> &tile) const { return space + tile.number % slots * slot * (MOMENTUM ? 2 : 1); }
    __device__ float *speeds_of(const Tile<Crew> &tile) const { return slot_of(tile) + slot; }
    __device__ float *held(const Layer &layer) const { return space + slots * slot * (MOMENTUM ? 2 : 1) + layer.held; }
    // Where the first number of a tile, and of its velocities, lies.
    __device__ float *weights(const Tick &t, const Tile<Crew> &tile) const
    {
        const Layer &layer = tile.of();
        if (layer.held >= 0) return held(layer) + beyond(t.weights + layer.w) + tile.first * layer.columns;
        return slot_of(tile) + beyond(t.weights + tile.at());
    }
    __device__ float *speeds(const Tick &t, const Tile<Crew> &tile) const
    {
        return speeds_of(tile) + beyond(t.velocity + tile.at());
    }

    __device__ Barrier *filled(const Tile<Crew> &tile) const { return full + tile.number % slots; }
    __device__ Barrier *learnt(const Tile<Crew> &tile) const { return done + tile.number % slots; }
    __device__ unsigned parity(const Tile<Crew> &tile) const { return tile.number / slots & 1; }

    __device__ void load(const Tick &t, const Tile<Crew> &tile, bool learns) const
    {
        const float *weights = t.weights + tile.at(), *speeds = t.velocity + tile.at();
        const bool moves = MOMENTUM && learns, comes = tile.of().held < 0;
        const int size = tile.size();
        expect(filled(tile), (comes ? run_bytes(weights, size) : 0) + (moves ? run_bytes(speeds, size) : 0));
        if (comes) load_run(slot_of(tile), weights, size, filled(tile));
        if (moves) load_run(speeds_of(tile), speeds, size, filled(tile));
    }
    __device__ void store(const Tick &t, const Tile<Crew> &tile, bool learns) const
    {
        wait(learnt(tile), parity(tile));
        if (!learns) return;
        store_run(t.weights + tile.at(), weights(t, tile), tile.size());
        if (MOMENTUM) store_run(t.velocity + tile.at(), speeds(t, tile), tile.size());
        wait_stores_read();
    }
};

// What the last warp does: its first lane moves weights, all attend the meetings.
template <class Crew, bool MOMENTUM>
__device__ __forceinline__ void move_weights(const Tick &t, const Unit &unit, const Ring<Crew, MOMENTUM> &ring, bool learns)
{
    const bool mover = lane() == 0;
    int meetings = 2;  // before the first visit: when all is gathered, when errors are known, when they are pulled back
    for (int k = unit.depth - 1; k >= 0; --k) {
        const Layer &layer = unit.layers[k];
        if (learns && layer.pulled) ++meetings;
        if (layer.held < 0 || !mover) continue;
        const float *matrix = t.weights + layer.w;
        expect(ring.kept + k, run_bytes(matrix, layer.rows * layer.columns));
        load_run(ring.held(layer), matrix, layer.rows * layer.columns, ring.kept + k);
    }
    Tile<Crew> gone{unit, ring.slot};
    for (Tile<Crew> coming{unit, ring.slot}; gone.there();) {
        if (coming.number == gone.number + ring.slots || !coming.there()) {
            for (; meetings; --meetings) Crew::attend(unit);
            const int layer = gone.layer;
            if (mover) ring.store(t, gone, learns);
            gone.next();
            meetings = gone.layer - layer;
        } else {
            if (mover) ring.load(t, coming, learns);
            coming.next();
        }
    }
    Crew::attend(unit);  // behind the last layer
}

// The tiles of a layer. A warp takes two rows at a time, the first warps' turn goes on from tile to tile.
template <class Crew, bool MOMENTUM>
__device__ __forceinline__ void visit_tiles(const Tick &t, const Ring<Crew, MOMENTUM> &ring, Tile<Crew> &tile,
                                            const Moving &moving)
{
    const int warps = Crew::warps();
#pragma unroll 1
    for (const int k = tile.layer; tile.layer == k; tile.next()) {
        const Layer &layer = tile.of();
        const int last = tile.first + tile.count(), down = tile.first * layer.columns;
        const int turn = tile.number * ((tile.rows() + 1) / 2) % warps;
        wait(ring.filled(tile), ring.parity(tile));
        const Rows rows = {ring.weights(t, tile) - down, MOMENTUM ? ring.speeds(t, tile) - down : nullptr,
                           t.weights + layer.w, MOMENTUM ? t.velocity + layer.w : nullptr};
#pragma unroll 1
        for (int r = tile.first + 2 * ((warp() + warps - turn) % warps); r < last; r += 2 * warps)
            visit_rows<2, MOMENTUM ? 2 : 3, MOMENTUM, InShared>(t, layer, rows, r, min(2, last - r), moving);
        if (moving.learns) fence_bulk();
        __syncwarp();
        if (lane() == 0) arrive(ring.learnt(tile));
    }
}

// What all other warps do.
template <class Crew, bool MOMENTUM>
__device__ __forceinline__ void compute(const Tick &t, const Unit &unit, const Ring<Crew, MOMENTUM> &ring)
{
    const Moving moving = begin<false, Crew>(t, unit);
    for (int k = unit.depth - 1; k >= 0; --k) {
        const Layer &layer = unit.layers[k];
        const float *matrix = t.weights + layer.w;
        if (layer.held >= 0) wait(ring.kept + k, 0);
        if (moving.learns && layer.pulled)
            pull_back<false, Crew>(t, unit, layer, layer.held < 0 ? matrix : ring.held(layer) + beyond(matrix));
    }
    Tile<Crew> tile{unit, ring.slot};
#pragma unroll 1
    while (tile.there()) {
        visit_tiles(t, ring, tile, moving);
        Crew::meet(unit);
    }
    publish<false, Crew>(t, unit);
}

template <class Crew, bool MOMENTUM> __device__ __forceinline__ void tick_in_ring(const Tick &t, int slots, int slot)
{
    __shared__ Barrier full[MOST_SLOTS], done[MOST_SLOTS], kept[MOST_LAYERS];
    if (threadIdx.x == 0) {
        for (int k = 0; k < slots; ++k) {
            begin_barrier(full + k, 1);
            begin_barrier(done + k, Crew::warps());
        }
        for (int k = 0; k < MOST_LAYERS; ++k) begin_barrier(kept + k, 1);
        fence_bulk();
    }
    const Unit &unit = own_unit(t);
    if (Crew::blocks(unit) == 0) return;
    const Ring<Crew, MOMENTUM> ring = {slots, slot, full, done, kept};
    if (warp() < Crew::warps())
        compute(t, unit, ring);
    else
        move_weights(t, unit, ring, t.learns[unit.number] != 0);
}

// Stand-ins for the functions of gpu/bulk.cuh, which are PTX on a device.
#pragma once

typedef unsigned long long Barrier;

inline void begin_barrier(Barrier* at, unsigned count, CUDASIM_SITE) { cudasim_calls->bulk->init(at, count, file, line); }
inline void show_barriers() {}
inline void arrive(Barrier* at, CUDASIM_SITE) { cudasim_calls->bulk->arrive(at, 0, file, line); }
inline void expect(Barrier* at, unsigned bytes, CUDASIM_SITE) { cudasim_calls->bulk->arrive(at, bytes, file, line); }
inline void wait(Barrier* at, unsigned parity, CUDASIM_SITE) { cudasim_calls->bulk->wait(at, parity, file, line); }
inline void load_bulk(float* to, const float* from, unsigned bytes, Barrier* at, CUDASIM_SITE) {
    cudasim_calls->bulk->load(to, from, bytes, at, 0, bytes, file, line);
}
inline void load_bulk(float* to, const float* from, unsigned bytes, Barrier* at, int first, int wanted, CUDASIM_SITE) {
    cudasim_calls->bulk->load(to, from, bytes, at, 4 * first, 4 * wanted, file, line);
}
inline void store_bulk(float* to, const float* from, unsigned bytes, CUDASIM_SITE) {
    cudasim_calls->bulk->store(to, from, bytes, file, line);
    cudasim_calls->bulk->commit();
}
inline void wait_stores_read() { cudasim_calls->bulk->wait_read(0); }
inline void fence_bulk() { cudasim_calls->bulk->fence(); }
inline void meet(unsigned id, unsigned threads, CUDASIM_SITE) { cudasim_calls->bulk->meet(id, threads, file, line); }

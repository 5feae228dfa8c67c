// Where threads of a block or a warp meet.
#pragma once

inline void __syncthreads(CUDASIM_SITE) { cudasim_calls->barrier(0, file, line); }
inline int __syncthreads_count(int predicate, CUDASIM_SITE) {
    return cudasim_calls->barrier(predicate != 0, file, line);
}
inline int __syncthreads_or(int predicate, CUDASIM_SITE) { return __syncthreads_count(predicate, file, line) != 0; }

inline void __syncwarp(unsigned mask = 0xffffffffu, CUDASIM_SITE) {
    cudasim_calls->collective(CUDASIM_SYNCWARP, mask, 0, 0, file, line);
}

inline unsigned __ballot_sync(unsigned mask, int predicate, CUDASIM_SITE) {
    return static_cast<unsigned>(cudasim_calls->collective(CUDASIM_BALLOT, mask, predicate != 0, 0, file, line));
}
inline int __any_sync(unsigned mask, int predicate, CUDASIM_SITE) {
    return __ballot_sync(mask, predicate, file, line) != 0;
}

namespace cudasim {

template <class T> uint64_t to_bits(T value) {
    static_assert(sizeof(T) <= 8);
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    return bits;
}

template <class T> T from_bits(uint64_t bits) {
    T value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

template <class T> T shuffle(unsigned mask, T value, unsigned source, const char* file, int line) {
    return from_bits<T>(cudasim_calls->collective(CUDASIM_SHUFFLE, mask, to_bits(value), source, file, line));
}

inline unsigned segment(int width) { return cudasim_state.lane & ~(static_cast<unsigned>(width) - 1); }

}  // namespace cudasim

template <class T> unsigned __match_any_sync(unsigned mask, T value, CUDASIM_SITE) {
    return static_cast<unsigned>(
        cudasim_calls->collective(CUDASIM_MATCH, mask, cudasim::to_bits(value), 0, file, line));
}

template <class T> T __shfl_sync(unsigned mask, T value, int source, int width = 32, CUDASIM_SITE) {
    unsigned lane = cudasim::segment(width) | (static_cast<unsigned>(source) & (static_cast<unsigned>(width) - 1));
    return cudasim::shuffle(mask, value, lane, file, line);
}
template <class T> T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, CUDASIM_SITE) {
    unsigned lane = cudasim_state.lane, first = cudasim::segment(width);
    return cudasim::shuffle(mask, value, lane < first + delta ? lane : lane - delta, file, line);
}
template <class T> T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, CUDASIM_SITE) {
    unsigned lane = cudasim_state.lane, end = cudasim::segment(width) + static_cast<unsigned>(width);
    unsigned other = lane ^ static_cast<unsigned>(bits);
    return cudasim::shuffle(mask, value, other >= end ? lane : other, file, line);
}

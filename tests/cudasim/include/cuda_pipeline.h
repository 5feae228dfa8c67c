// Asynchronous copies into shared memory: they happen at the wait and not before, so a missing wait shows.
#pragma once

inline void __pipeline_memcpy_async(void* to, const void* from, size_t bytes, size_t zeros = 0) {
    cudasim_calls->pipeline_copy(to, from, bytes, zeros);
}
inline void __pipeline_commit() { cudasim_calls->pipeline_commit(); }
inline void __pipeline_wait_prior(size_t groups_left) { cudasim_calls->pipeline_wait(groups_left); }

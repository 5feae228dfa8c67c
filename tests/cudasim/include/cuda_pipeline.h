// Asynchronous copies into shared memory: they happen at the wait and not before, so a missing wait shows.
#pragma once

inline void __pipeline_memcpy_async(void* to, const void* from, size_t bytes, CUDASIM_SITE) {
    if (bytes != 4 && bytes != 8 && bytes != 16)
        cudasim_calls->abort("arguments", file, line, "an asynchronous copy of other than 4, 8 or 16 bytes");
    if (reinterpret_cast<uintptr_t>(to) % bytes || reinterpret_cast<uintptr_t>(from) % bytes)
        cudasim_calls->abort("misaligned", file, line, "an asynchronous copy not aligned to its size");
    cudasim_calls->pipeline_copy(to, from, bytes);
}
inline void __pipeline_commit() { cudasim_calls->pipeline_commit(); }
inline void __pipeline_wait_prior(size_t groups_left) { cudasim_calls->pipeline_wait(groups_left); }

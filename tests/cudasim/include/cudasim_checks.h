// What g++'s checks call: an address that is not aligned for its type, an index outside an array of known size.
// These names are the compiler's; defining them here makes its run-time library superfluous.
#pragma once

struct CudasimPlace {
    const char* file;
    unsigned line, column;
};

namespace cudasim {
inline void refuse(const char* kind, const void* at, const char* what) {
    const auto* place = static_cast<const CudasimPlace*>(at);
    cudasim_calls->abort(kind, place->file, static_cast<int>(place->line), what);
}
}  // namespace cudasim

extern "C" __attribute__((noreturn)) void __ubsan_handle_type_mismatch_v1_abort(void* at, void*) {
    cudasim::refuse("misaligned", at, "an address not aligned for its type");
    __builtin_unreachable();
}

extern "C" __attribute__((noreturn)) void __ubsan_handle_out_of_bounds_abort(void* at, void*) {
    cudasim::refuse("out_of_bounds", at, "an index outside its array");
    __builtin_unreachable();
}

// A failed assertion ends the kernel, not the process. No include guard: <cassert> may be read under either NDEBUG.
#undef assert
#ifdef NDEBUG
#define assert(condition) (static_cast<void>(0))
#else
#define assert(condition)                                                                                           \
    ((condition) ? static_cast<void>(0) : cudasim_calls->abort("assert", __FILE__, __LINE__, #condition))
#endif

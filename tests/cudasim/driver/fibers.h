// A fiber: a stack of its own and a switch that costs a few nanoseconds.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <new>

#ifndef __x86_64__
#error "the simulated driver needs x86_64: fibers.cpp has its switch"
#endif

namespace cudasim {

constexpr size_t STACK_BYTES = 128 * 1024;

// The top of a new stack. Tops are staggered: at equal places within a page they would share few lines of the cache.
inline void* new_stack() {
    static size_t count = 0;
    static const size_t guard = static_cast<size_t>(sysconf(_SC_PAGESIZE)), bytes = guard + STACK_BYTES + 4096;
    constexpr int kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void* map = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kind, -1, 0);
    if (map == MAP_FAILED) throw std::bad_alloc();
    mprotect(map, guard, PROT_NONE);
    return static_cast<char*>(map) + guard + STACK_BYTES + count++ * 320 % 4096;
}

// Saves the registers that a call must keep on the stack, leaves its address in *from, and goes on where `to` was left.
extern "C" void cudasim_switch(void** from, void* to);

struct Fiber {
    void* at = nullptr;

    void start(void* stack_top, void (*entry)()) {
        constexpr size_t words = 8, return_address = 6;
        auto* top = static_cast<uint64_t*>(stack_top);
        for (size_t i = 1; i <= words; ++i) top[-static_cast<long>(i)] = 0;
        top[-static_cast<long>(words) + static_cast<long>(return_address)] = reinterpret_cast<uint64_t>(entry);
        at = top - words;
    }
};

inline void switch_fiber(Fiber& from, Fiber& to) { cudasim_switch(&from.at, to.at); }

}  // namespace cudasim

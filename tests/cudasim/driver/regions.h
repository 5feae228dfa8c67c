// What a launch that is counted may touch: shared memory of the block that runs, allocations of devices. Found by address.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>

#include "sim.h"

namespace cudasim {

// An array of zeros; only the pages that are touched take memory.
template <class T> class Zeros {
public:
    Zeros() = default;
    Zeros(const Zeros&) = delete;
    ~Zeros() {
        if (at) munmap(at, bytes);
    }
    T* of(size_t count) {  // the same count each time
        if (at) return at;
        bytes = count * sizeof(T);
        void* map = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (map == MAP_FAILED) throw std::bad_alloc();
        return at = static_cast<T*>(map);
    }

private:
    T* at = nullptr;
    size_t bytes = 0;
};

// One access to a byte by a thread; see races.cpp.
struct Visit {
    uint32_t time;
    uint16_t thread;  // its number in the block and one; 0: nobody
    bool strong;      // atomic or volatile
};

struct Visits {
    Visit writer, reader, other;  // the last writer, and two readers of different threads
};

struct Region {
    uintptr_t begin = 0, end = 0;
    bool shared = false;
    Zeros<unsigned char> touched = {};  // a byte each, see traffic.cpp
    Zeros<Visits> visits = {};          // a byte each

    size_t bytes() const { return end - begin; }
};

void begin_regions(const Launch& launch);
void end_regions();
Region* find_region(uintptr_t address);  // null: a stack, constants, or nobody's

}  // namespace cudasim

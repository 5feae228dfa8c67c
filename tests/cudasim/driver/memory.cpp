// Memory of devices and page-locked memory: guard zones, poison, quarantine, protection from the host.
//
// Pages of an allocation, from map_begin on: GAP | guard zone | numbers | guard zone | GAP. Guard zones are checked for
// writes, a gap faults. The numbers of a device have one guard zone, so that reads are seen on the other side: under an even
// seed they end where the gap begins (but for boundary() - 1 bytes at most), under an odd one they begin where it ends.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "sim.h"
#include "block.h"

namespace cudasim {
namespace {

const size_t PAGE = static_cast<size_t>(sysconf(_SC_PAGESIZE));
const size_t GAP = 16 * PAGE;  // never accessible, on both sides: a stray address faults and hits no neighbour
constexpr uint32_t GUARD = 0xFFC3A55A;  // a NaN too, but not the poison: a write of NaN beyond the end is seen

size_t numbers[2];
std::vector<Allocation*> opened;
Context* serving = nullptr;  // whose memory may be opened when it is touched

unsigned char guard_byte(uintptr_t address) { return static_cast<unsigned char>(GUARD >> 8 * (address % 4)); }

void fill_guard(uintptr_t from, uintptr_t to) {
    for (; from < to; ++from) *reinterpret_cast<unsigned char*>(from) = guard_byte(from);
}

// The first byte of a guard zone that has been written, or 0.
uintptr_t touched_guard(uintptr_t from, uintptr_t to) {
    static const std::vector<unsigned char> intact = [] {
        std::vector<unsigned char> bytes(3 * PAGE);
        for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = guard_byte(i);
        return bytes;
    }();
    if (!memcmp(reinterpret_cast<void*>(from), &intact[from % 4], to - from)) return 0;
    while (*reinterpret_cast<unsigned char*>(from) == guard_byte(from)) ++from;
    return from;
}

uintptr_t touched_guard(const Allocation& a) {
    uintptr_t before = touched_guard(a.map_begin + GAP, a.begin);
    return before ? before : touched_guard(a.end(), a.map_begin + a.map_bytes - GAP);
}

void fill_guards(const Allocation& a) {
    fill_guard(a.map_begin + GAP, a.begin);
    fill_guard(a.end(), a.map_begin + a.map_bytes - GAP);
}

void protect(const Allocation& a, int how) {
    mprotect(reinterpret_cast<void*>(a.map_begin + GAP), a.map_bytes - 2 * GAP, how);
}

Allocation* add(Place place, Context* context, uintptr_t begin, size_t bytes) {
    size_t number = ++numbers[static_cast<int>(place)];
    auto* a = new Allocation{place, context, begin, bytes, number};
    sim().allocations[begin] = a;
    return a;
}

// Where device memory may begin, in bytes: as a kernel's widest load needs it, or as on a device where sectors are counted.
size_t boundary() {
    static const size_t bytes = counts_traffic() ? 256 : 16;
    return bytes;
}

Allocation* allocate(Place place, Context& context, size_t bytes) {
    if (bytes == 0) fail(CUDA_ERROR_INVALID_VALUE);
    const bool device = place == Place::device;
    const size_t inner = PAGE + pages(bytes) + (device ? 0 : PAGE);
    void* map = mmap(nullptr, inner + 2 * GAP, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) fail(CUDA_ERROR_OUT_OF_MEMORY);
    uintptr_t first = reinterpret_cast<uintptr_t>(map) + GAP;
    const uintptr_t at_end = (first + inner - bytes) / boundary() * boundary();
    const uintptr_t begin = !device ? first + PAGE : odd_seed() ? first : at_end;
    Allocation* a = add(place, &context, begin, bytes);
    a->map_begin = reinterpret_cast<uintptr_t>(map);
    a->map_bytes = inner + 2 * GAP;
    protect(*a, PROT_READ | PROT_WRITE);
    memset(reinterpret_cast<void*>(begin), POISON, bytes);
    fill_guards(*a);
    if (device) protect(*a, PROT_NONE);
    return a;
}

// The pages go back, the addresses do not: whoever uses them later is recognised.
void retire(Allocation* a) {
    a->live = a->open = false;
    if (!a->guarded()) return;
    mmap(reinterpret_cast<void*>(a->map_begin), a->map_bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    if (a->pool) give_back(*a->pool, pages(a->bytes));
    else if (a->place == Place::device) a->context->device->used -= pages(a->bytes);
}

void refuse_pending_copies(Allocation* a) {
    for (const WorkPtr& work : sim().pending) {
        if (!work->host || work->host->allocation != a) continue;
        problem("use_after_free", describe(a->begin) + " is freed while a " + work->name + " has not run");
        poison(*work->stream->context, {"", "", CUDA_ERROR_ILLEGAL_ADDRESS});
        return;
    }
}

Allocation* exact(uintptr_t begin, Place place) {
    auto found = sim().allocations.find(begin);
    if (found == sim().allocations.end() || found->second->place != place) {
        problem("bad_free", text("%#lx is no allocation: %s", begin, describe(begin).c_str()));
        fail(CUDA_ERROR_INVALID_VALUE);
    }
    if (!found->second->live || found->second->leaving) {
        problem("double_free", describe(begin));
        fail(CUDA_ERROR_INVALID_VALUE);
    }
    return found->second;
}

const char* name(Place place) {
    static const char* const names[] = {"device", "page-locked"};
    return names[static_cast<int>(place)];
}

void free_host(void* pointer) {
    Allocation* a = exact(reinterpret_cast<uintptr_t>(pointer), Place::host);
    if (uintptr_t at = touched_guard(*a)) problem("out_of_bounds", describe(at));
    refuse_pending_copies(a);
    retire(a);
}

}  // namespace

size_t pages(size_t bytes) { return (bytes + PAGE - 1) / PAGE * PAGE; }

Allocation* find_allocation(uintptr_t address) {
    auto after = sim().allocations.upper_bound(address);
    if (after == sim().allocations.begin()) return nullptr;
    Allocation* a = std::prev(after)->second;
    return address < a->end() ? a : nullptr;
}

Allocation* host_range(const void* address) {
    Allocation* a = find_allocation(reinterpret_cast<uintptr_t>(address));
    return a && a->live && a->place == Place::host ? a : nullptr;
}

void device_wrote(uintptr_t begin, uintptr_t end) {
    for (const WorkPtr& work : sim().pending)
        if (work->host && begin < work->host->end && work->host->begin < end) work->host->device_wrote = true;
}

std::string describe(uintptr_t address) {
    constexpr uintptr_t near = 1 << 20;
    auto after = sim().allocations.upper_bound(address);
    Allocation *below = after == sim().allocations.begin() ? nullptr : std::prev(after)->second,
               *above = after == sim().allocations.end() ? nullptr : after->second;
    Allocation* a = below && address < below->end() + near ? below : nullptr;
    if ((!a || address >= a->end()) && above && above->begin - address < near)
        if (!a || above->begin - address <= PAGE || above->begin - address < address - a->end()) a = above;
    if (!a) return text("address %#lx, near no allocation", address);
    std::string what = text("offset %ld in %s%s allocation #%zu of %zu bytes on device %d",
                            static_cast<long>(address - a->begin), a->live ? "" : "freed ", name(a->place), a->number,
                            a->bytes, a->context->device->ordinal);
    return a->begin <= address && address < a->end() ? what : what + " (outside it)";
}

Allocation* device_range(uintptr_t address, size_t bytes, const char* what) {
    Allocation* a = find_allocation(address);
    std::string where = text("%s, %zu bytes at ", what, bytes) + describe(address);
    if (!a) throw Problem{"out_of_bounds", where, CUDA_ERROR_ILLEGAL_ADDRESS};
    if (!a->live) throw Problem{"use_after_free", where, CUDA_ERROR_ILLEGAL_ADDRESS};
    if (address + bytes > a->end()) throw Problem{"out_of_bounds", where, CUDA_ERROR_ILLEGAL_ADDRESS};
    return a;
}

void open_memory(Allocation* a) {
    if (a->place != Place::device || a->open) return;
    if (!a->there)
        throw Problem{"use_before_allocation", describe(a->begin) + " is allocated on a stream that has not come there",
                      CUDA_ERROR_ILLEGAL_ADDRESS};
    protect(*a, PROT_READ | PROT_WRITE);
    a->open = true;
    opened.push_back(a);
}

void open_memory(Context* context) { serving = context; }

bool open_on_fault(uintptr_t address) {
    std::lock_guard<std::mutex> lock(sim().mutex);
    auto after = sim().allocations.upper_bound(address + 2 * PAGE);  // the zone before belongs to it
    if (!serving || after == sim().allocations.begin()) return false;
    Allocation* a = std::prev(after)->second;
    bool inside = address >= a->map_begin + GAP && address < a->map_begin + a->map_bytes - GAP;
    if (!inside || a->context != serving || !a->live || !a->there || a->open || a->place != Place::device) return false;
    open_memory(a);
    return true;
}

void close_memory() {
    serving = nullptr;
    for (Allocation* a : opened) {
        if (a->open && a->live) protect(*a, PROT_NONE);
        a->open = false;
    }
    opened.clear();
}

void check_guards(const std::string& culprit) {
    for (auto& [begin, a] : sim().allocations) {
        if (!a->live || !a->guarded() || (a->place == Place::device && !a->open)) continue;
        uintptr_t at = touched_guard(*a);
        if (!at) continue;
        fill_guards(*a);
        throw Problem{"out_of_bounds", culprit + " wrote at " + describe(at), CUDA_ERROR_ILLEGAL_ADDRESS};
    }
}

bool fits(const Device& device, size_t bytes) { return bytes <= total_memory() && device.used + bytes <= total_memory(); }

Allocation* allocate_in(Pool& pool, Context& context, size_t bytes) {
    install_handlers();
    Allocation* a = allocate(Place::device, context, bytes);
    a->pool = &pool;
    return a;
}

Allocation* device_allocation(uintptr_t begin) { return exact(begin, Place::device); }

void free_on_device(Allocation* a) { retire(a); }

void free_all(Context* context) {
    for (auto& [begin, a] : sim().allocations) {
        if (a->context != context || !a->live) continue;
        problem("leak", describe(begin));
        retire(a);
    }
}

}  // namespace cudasim

using namespace cudasim;

CUresult cuMemAlloc(CUdeviceptr* out, size_t bytes) {
    return call(ALLOC, [&](Context& context) {
        if (!fits(*context.device, pages(bytes))) fail(CUDA_ERROR_OUT_OF_MEMORY);
        install_handlers();
        *out = allocate(Place::device, context, bytes)->begin;
        context.device->used += pages(bytes);
    }, bytes);
}

CUresult cuMemFree(CUdeviceptr pointer) {
    if (!pointer) return CUDA_SUCCESS;
    return call(FREE, [&](Context&) { retire(device_allocation(pointer)); });
}

CUresult cuMemHostAlloc(void** out, size_t bytes, unsigned) {
    return call(HOST_ALLOC, [&](Context& context) {
        *out = reinterpret_cast<void*>(allocate(Place::host, context, bytes)->begin);
    });
}

CUresult cuMemFreeHost(void* pointer) {
    return call(FREE, [&](Context&) { free_host(pointer); });
}

CUresult cuMemGetInfo(size_t* free, size_t* total) {
    return call(OTHER, [&](Context& context) {
        *total = total_memory();
        *free = total_memory() - context.device->used;
    });
}

// Number and bytes of the allocations on devices, number and bytes of those of page-locked memory.
extern "C" void cudasim_live(size_t* out) {
    std::lock_guard<std::mutex> lock(sim().mutex);
    std::fill(out, out + 4, 0);
    for (auto& [begin, a] : sim().allocations) {
        if (!a->live) continue;
        size_t* counted = a->place == Place::device ? out : out + 2;
        counted[0] += 1;
        counted[1] += a->bytes;
    }
}

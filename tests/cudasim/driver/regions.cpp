#include "regions.h"

#include <iterator>

namespace cudasim {
namespace {

std::map<uintptr_t, Region> regions;  // by first byte
Region* latest = nullptr;

void add(uintptr_t begin, size_t bytes, bool shared) {
    if (!bytes) return;
    Region& region = regions[begin];
    region.begin = begin;
    region.end = begin + bytes;
    region.shared = shared;
}

}  // namespace

void begin_regions(const Launch& launch) {
    end_regions();
    const Function& function = *launch.function;
    for (auto& [begin, bytes] : function.shared) add(reinterpret_cast<uintptr_t>(begin), bytes, true);
    add(reinterpret_cast<uintptr_t>(function.module->image->dynamic_shared), launch.dynamic_bytes, true);
    std::lock_guard<std::mutex> lock(sim().mutex);
    for (auto& [begin, a] : sim().allocations)
        if (a->live && a->place == Place::device) add(begin, a->bytes, false);
}

void end_regions() {
    latest = nullptr;
    regions.clear();
}

Region* find_region(uintptr_t address) {
    if (latest && latest->begin <= address && address < latest->end) return latest;
    auto after = regions.upper_bound(address);
    if (after == regions.begin()) return nullptr;
    Region& region = std::prev(after)->second;
    return address < region.end ? latest = &region : nullptr;
}

}  // namespace cudasim

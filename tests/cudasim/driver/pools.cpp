// Memory that comes and goes in the order of a stream, from pools.
//
// The address is known at once. The memory is there for work that follows the allocation, and gone for all that need not come
// before the free: other streams are ordered with neither, unless an event or the legacy default stream says so.
//
// A pool keeps what is freed, as pieces that are cut and never joined again, until somebody waits while it keeps more than its
// threshold, or trims it. What it keeps nobody else can have, nor can it serve for more than the largest piece.
#include <algorithm>

#include "sim.h"

using namespace cudasim;

namespace cudasim {

struct Pool {
    Device* device;
    uint64_t threshold = 0;
    size_t reserved = 0, used = 0;
    std::vector<size_t> pieces = {};
    bool live = true;
};

namespace {

std::vector<std::unique_ptr<Pool>> pools;

Pool& pool_of(CUmemoryPool handle) {
    for (auto& pool : pools)
        if (pool.get() == reinterpret_cast<Pool*>(handle) && pool->live) return *pool;
    fail(CUDA_ERROR_INVALID_VALUE);
}

void release(Pool& pool, uint64_t keep) {
    while (pool.reserved > keep && !pool.pieces.empty()) {
        pool.reserved -= pool.pieces.back();
        pool.device->used -= pool.pieces.back();
        pool.pieces.pop_back();
    }
}

bool take(Pool& pool, size_t bytes) {
    auto best = pool.pieces.end();
    for (auto piece = pool.pieces.begin(); piece != pool.pieces.end(); ++piece)
        if (*piece >= bytes && (best == pool.pieces.end() || *piece < *best)) best = piece;
    if (best != pool.pieces.end()) {
        *best -= bytes;
        if (!*best) pool.pieces.erase(best);
    } else if (fits(*pool.device, bytes)) {
        pool.reserved += bytes;
        pool.device->used += bytes;
    } else {
        return false;
    }
    pool.used += bytes;
    return true;
}

bool as_one_of_ours(const CUmemPoolProps& wanted, int devices) {
    const auto* reserved = wanted.reserved;
    return wanted.allocType == CU_MEM_ALLOCATION_TYPE_PINNED && wanted.handleTypes == CU_MEM_HANDLE_TYPE_NONE &&
           wanted.location.type == CU_MEM_LOCATION_TYPE_DEVICE && wanted.location.id >= 0 && wanted.location.id < devices &&
           !wanted.win32SecurityAttributes && !wanted.maxSize && !wanted.usage &&
           std::all_of(reserved, reserved + sizeof wanted.reserved, [](unsigned char byte) { return !byte; });
}

}  // namespace

void give_back(Pool& pool, size_t bytes) {
    pool.used -= bytes;
    pool.pieces.push_back(bytes);
    if (!pool.live) release(pool, 0);
}

void waited() {
    for (auto& pool : pools) release(*pool, pool->threshold);
}

}  // namespace cudasim

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* out, size_t bytes, CUmemoryPool from, CUstream on) {
    return call(ALLOC, [&](Context& context) {
        Stream& stream = stream_of(on, context);
        Pool& pool = pool_of(from);
        if (!take(pool, pages(bytes))) {
            wait_for({stream.tail});  // what the stream has freed is used again
            if (!take(pool, pages(bytes))) fail(CUDA_ERROR_OUT_OF_MEMORY);
        }
        Allocation* a = allocate_in(pool, context, bytes);
        a->there = false;
        enqueue(stream, text("allocation of %zu bytes", bytes), [a] { a->there = true; });
        *out = a->begin;
    }, bytes);
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream on) {
    if (!pointer) return CUDA_SUCCESS;
    return call(FREE, [&](Context& context) {
        Allocation* a = device_allocation(pointer);
        a->leaving = true;
        enqueue(stream_of(on, context), "a free of device memory", [a] {
            if (!a->there)
                throw Problem{"use_before_allocation", describe(a->begin) + " is freed before its stream has come there",
                              CUDA_ERROR_ILLEGAL_ADDRESS};
            free_on_device(a);
        });
    });
}

CUresult cuMemPoolCreate(CUmemoryPool* out, const CUmemPoolProps* wanted) {
    return any_call(OTHER, [&] {
        if (!attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)) fail(CUDA_ERROR_NOT_SUPPORTED);
        if (!as_one_of_ours(*wanted, static_cast<int>(sim().devices.size()))) fail(CUDA_ERROR_INVALID_VALUE);
        auto& device = *sim().devices[static_cast<size_t>(wanted->location.id)];
        *out = reinterpret_cast<CUmemoryPool>(pools.emplace_back(new Pool{&device}).get());
    });
}

CUresult cuMemPoolDestroy(CUmemoryPool handle) {
    return any_call(OTHER, [&] {
        Pool& pool = pool_of(handle);
        pool.live = false;
        release(pool, 0);
    });
}

CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t keep) {
    return any_call(OTHER, [&] { release(pool_of(handle), keep); });
}

CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute which, void* value) {
    return any_call(OTHER, [&] {
        if (which != CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) fail(CUDA_ERROR_NOT_SUPPORTED);
        pool_of(handle).threshold = *static_cast<cuuint64_t*>(value);
    });
}

CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute which, void* value) {
    return any_call(OTHER, [&] {
        Pool& pool = pool_of(handle);
        auto* out = static_cast<cuuint64_t*>(value);
        switch (which) {
            case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: *out = pool.threshold; break;
            case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: *out = pool.reserved; break;
            case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: *out = pool.used; break;
            default: fail(CUDA_ERROR_NOT_SUPPORTED);
        }
    });
}

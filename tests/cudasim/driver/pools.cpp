// Memory that comes and goes in the order of a stream.
//
// The address is known at once. The memory is there for work that follows the allocation, and gone for all that need not come
// before the free: other streams are ordered with neither, unless an event or the legacy default stream says so.
#include "sim.h"

using namespace cudasim;

CUresult cuMemAllocAsync(CUdeviceptr* out, size_t bytes, CUstream on) {
    return call(ALLOC, [&](Context& context) {
        if (!attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)) fail(CUDA_ERROR_NOT_SUPPORTED);
        Stream& stream = stream_of(on, context);
        if (!has_room(context, bytes)) wait_for({stream.tail});  // what the stream has freed is used again
        Allocation* a = allocate_on_device(context, bytes);
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
        enqueue(stream_of(on, context), "a free of device memory", [a] { free_on_device(a); });
    });
}

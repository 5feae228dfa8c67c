// What the driver says of an address.
#include "sim.h"

using namespace cudasim;

CUresult cuMemGetAddressRange(CUdeviceptr* base, size_t* bytes, CUdeviceptr pointer) {
    return call(OTHER, [&](Context&) {
        Allocation* a = find_allocation(pointer);
        if (!a || !a->live) fail(CUDA_ERROR_NOT_FOUND);
        if (base) *base = a->begin;
        if (bytes) *bytes = a->bytes;
    });
}

CUresult cuPointerGetAttribute(void* out, CUpointer_attribute which, CUdeviceptr pointer) {
    return call(OTHER, [&](Context&) {
        Allocation* a = find_allocation(pointer);
        if (!a || !a->live) fail(CUDA_ERROR_INVALID_VALUE);
        bool device = a->place == Place::device || a->place == Place::global;
        switch (which) {
            case CU_POINTER_ATTRIBUTE_CONTEXT: *static_cast<void**>(out) = a->context; break;
            case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
                *static_cast<unsigned*>(out) = device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
                break;
            case CU_POINTER_ATTRIBUTE_HOST_POINTER:
                if (device) fail(CUDA_ERROR_INVALID_VALUE);
                [[fallthrough]];
            case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *static_cast<CUdeviceptr*>(out) = pointer; break;
            case CU_POINTER_ATTRIBUTE_IS_MANAGED: *static_cast<unsigned*>(out) = 0; break;
            case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *static_cast<int*>(out) = a->context->device->ordinal; break;
            default: fail(CUDA_ERROR_INVALID_VALUE);
        }
    });
}

// Devices and contexts.
#include <cstdlib>

#include "sim.h"

namespace cudasim {
namespace {

std::set<Context*> contexts;
thread_local std::vector<Context*> stack;

Device& device_of(CUdevice ordinal) {
    if (!sim().initialised) fail(CUDA_ERROR_NOT_INITIALIZED);
    if (ordinal < 0 || ordinal >= static_cast<int>(sim().devices.size())) fail(CUDA_ERROR_INVALID_DEVICE);
    return *sim().devices[static_cast<size_t>(ordinal)];
}

void make_devices() {
    if (!sim().devices.empty()) return;
    const char* count = getenv("CUDASIM_DEVICES");
    for (int i = 0; i < (count ? atoi(count) : 1); ++i) {
        sim().devices.push_back(std::make_unique<Device>());
        sim().devices.back()->ordinal = i;
    }
}

Context* make_context(Device& device) {
    auto* context = new Context(&device);
    contexts.insert(context);
    return context;
}

Context& context_of(CUcontext handle) {
    auto* context = reinterpret_cast<Context*>(handle);
    if (!contexts.count(context)) fail(CUDA_ERROR_INVALID_CONTEXT);
    return *context;
}

}  // namespace

Context& current() {
    if (!sim().initialised) fail(CUDA_ERROR_NOT_INITIALIZED);
    if (stack.empty() || !stack.back()) fail(CUDA_ERROR_INVALID_CONTEXT);
    if (!stack.back()->live) fail(CUDA_ERROR_CONTEXT_IS_DESTROYED);
    return *stack.back();
}

Context& healthy_current() {
    Context& context = current();
    if (context.error) fail(context.error);
    return context;
}

size_t total_memory() {
    static const size_t limit = [] {
        const char* bytes = getenv("CUDASIM_MEMORY");
        return bytes ? strtoull(bytes, nullptr, 10) : profile().memory_mb << 20;
    }();
    return limit;
}

void destroy_context(Context* context) {
    if (!context->error && !sim().executing) wait_for(*context);
    end_graphs(context);
    free_all(context);
    context->live = false;
}

}  // namespace cudasim

using namespace cudasim;

CUresult cuDriverGetVersion(int* version) {
    const char* release = getenv("CUDASIM_DRIVER");
    double number = release ? strtod(release, nullptr) : 13.0;
    *version = static_cast<int>(number * 10 + 0.5) * 100;
    *version = *version / 1000 * 1000 + *version % 1000 / 100 * 10;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
    return any_call(OTHER, [&] {
        if (!sim().initialised) fail(CUDA_ERROR_NOT_INITIALIZED);
        make_devices();
        *count = static_cast<int>(sim().devices.size());
    });
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
    return any_call(OTHER, [&] {
        make_devices();
        *device = device_of(ordinal).ordinal;
    });
}

CUresult cuDeviceGetName(char* name, int room, CUdevice device) {
    return any_call(OTHER, [&] {
        device_of(device);
        snprintf(name, static_cast<size_t>(room), "%s (cudasim)", profile().name);
    });
}

CUresult cuDeviceTotalMem(size_t* bytes, CUdevice device) {
    return any_call(OTHER, [&] {
        device_of(device);
        *bytes = total_memory();
    });
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice device) {
    return any_call(OTHER, [&] {
        device_of(device);
        *value = attribute(which);
    });
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
    return any_call(OTHER, [&] {
        device_of(device);
        *major = profile().major, *minor = profile().minor;
    });
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice ordinal) {
    return any_call(OTHER, [&] {
        Device& device = device_of(ordinal);
        if (!device.primary) device.primary = make_context(device);
        ++device.retained;
        *out = reinterpret_cast<CUcontext>(device.primary);
    });
}

CUresult cuDevicePrimaryCtxRelease(CUdevice ordinal) {
    return any_call(OTHER, [&] {
        Device& device = device_of(ordinal);
        if (device.retained == 0) fail(CUDA_ERROR_INVALID_CONTEXT);
        if (--device.retained || !device.primary) return;
        destroy_context(device.primary);
        device.primary = nullptr;
    });
}

// A device that failed works again, as after a reset that no real one survives without losing its memory.
extern "C" void cudasim_heal() {
    std::lock_guard<std::mutex> lock(sim().mutex);
    sim().lost = CUDA_SUCCESS;
    for (Context* context : contexts) context->error = CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext handle) {
    return any_call(OTHER, [&] { stack.push_back(&context_of(handle)); });
}

CUresult cuCtxPopCurrent(CUcontext* out) {
    return any_call(OTHER, [&] {
        if (stack.empty()) fail(CUDA_ERROR_INVALID_CONTEXT);
        if (out) *out = reinterpret_cast<CUcontext>(stack.back());
        stack.pop_back();
    });
}

CUresult cuCtxSetCurrent(CUcontext handle) {
    return any_call(OTHER, [&] {
        Context* context = handle ? &context_of(handle) : nullptr;
        if (!stack.empty()) stack.pop_back();
        if (context) stack.push_back(context);
    });
}

CUresult cuCtxGetCurrent(CUcontext* out) {
    return any_call(OTHER, [&] { *out = stack.empty() ? nullptr : reinterpret_cast<CUcontext>(stack.back()); });
}

CUresult cuCtxGetDevice(CUdevice* device) {
    return any_call(OTHER, [&] { *device = current().device->ordinal; });
}

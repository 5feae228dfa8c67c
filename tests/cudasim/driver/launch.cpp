// Functions and their launches.
#include <algorithm>
#include <cstring>

#include "sim.h"

namespace cudasim {
namespace {

Function& function_of(CUfunction handle) {
    auto* function = reinterpret_cast<Function*>(handle);
    if (!function || !function->module->live) fail(CUDA_ERROR_INVALID_HANDLE);
    return *function;
}

bool within(const CudasimTriple& size, CUdevice_attribute x, CUdevice_attribute y, CUdevice_attribute z) {
    auto fits = [](unsigned n, CUdevice_attribute limit) {
        return n > 0 && n <= static_cast<unsigned>(attribute(limit));
    };
    return fits(size.x, x) && fits(size.y, y) && fits(size.z, z);
}

size_t dynamic_limit(const Function& function) {
    constexpr size_t without_opt_in = 48 * 1024;
    size_t left = without_opt_in - std::min(function.static_shared, without_opt_in);
    return std::max(left, static_cast<size_t>(function.opted_in));
}

void check_limits(const Launch& launch) {
    const CudasimTriple &block = launch.block, &grid = launch.grid;
    bool block_fits = within(block, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
                             CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
    bool grid_fits = within(grid, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
                            CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
    size_t threads = size_t{block.x} * block.y * block.z;
    if (!block_fits || !grid_fits || threads > 1024) fail(CUDA_ERROR_INVALID_VALUE);
    unsigned bound = launch.function->kernel->threads_bound;
    if (bound && threads > bound) fail(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    if (launch.dynamic_bytes > dynamic_limit(*launch.function)) fail(CUDA_ERROR_INVALID_VALUE);
}

std::vector<unsigned char> from_buffer(const CudasimKernel& kernel, void** extra) {
    const unsigned char* begin = nullptr;
    size_t bytes = 0;
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) begin = static_cast<const unsigned char*>(extra[1]);
        else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) bytes = *static_cast<size_t*>(extra[1]);
        else fail(CUDA_ERROR_INVALID_VALUE);
    }
    size_t padded = (kernel.parameter_bytes + 7) / 8 * 8;
    if (bytes != kernel.parameter_bytes && bytes != padded) {
        problem("arguments", text("%s takes %zu bytes of arguments and was given %zu", kernel.name,
                                  kernel.parameter_bytes, bytes));
        fail(CUDA_ERROR_INVALID_VALUE);
    }
    return {begin, begin + bytes};
}

const char* pointer_fault(const Allocation* a, const Context& context) {
    if (!a) return "illegal_address";
    if (!a->live) return "use_after_free";
    return a->place == Place::device && a->context != &context ? "context" : nullptr;
}

// A pointer that a kernel is given must lead to memory that it may touch, whether it does so or not.
void open_arguments(const Launch& launch, Context& context) {
    const CudasimKernel& kernel = *launch.function->kernel;
    for (size_t i = 0; i < kernel.parameter_count; ++i) {
        if (!kernel.parameters[i].pointer) continue;
        uintptr_t address = 0;
        memcpy(&address, &launch.arguments[kernel.parameters[i].offset], sizeof address);
        if (!address) continue;
        Allocation* a = find_allocation(address);
        if (!a) a = find_allocation(address - 1);  // one past the end is fine for a loop's limit
        const char* kind = pointer_fault(a, context);
        std::string which = kind ? text("argument %zu of %s: ", i, kernel.name) : "";
        if (kind) throw Problem{kind, which + describe(address), CUDA_ERROR_ILLEGAL_ADDRESS};
        if (a->place == Place::host) device_wrote(a->begin, a->end());
        open_memory(a);
    }
}

void run_kernel(const Launch& launch, Context& context) {
    const std::string name = std::string("kernel ") + launch.function->kernel->name;
    open_memory(&context);
    open_arguments(launch, context);
    try {
        without_lock([&] { run_grid(launch); });
    } catch (const Problem& what) {
        throw Problem{what.kind, name + ": " + what.text, what.code};
    }
    check_guards(name);
}

}  // namespace
}  // namespace cudasim

using namespace cudasim;

CUresult cuLaunchKernel(CUfunction handle, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, CUstream on, void** pointers, void** extra) {
    return call(LAUNCH, [&](Context& context) {
        Function& function = function_of(handle);
        Stream& stream = stream_of(on, context);
        if (stream.context != &context || function.module->context != &context) {
            problem("context", text("kernel %s, its stream and the current context are not of one device",
                                    function.kernel->name));
            fail(CUDA_ERROR_INVALID_HANDLE);
        }
        if (pointers || !extra) fail(CUDA_ERROR_NOT_SUPPORTED);
        Launch what{&function, {gx, gy, gz}, {bx, by, bz}, shared, from_buffer(*function.kernel, extra)};
        check_limits(what);
        submit(stream, [what, &context](Stream& on) {
            enqueue(on, text("kernel %s", what.function->kernel->name), [what, &context] { run_kernel(what, context); });
        });
    });
}

CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute which, int value) {
    return call(OTHER, [&](Context&) {
        Function& function = function_of(handle);
        if (which == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) {
            if (value < -1 || value > 100) fail(CUDA_ERROR_INVALID_VALUE);
            function.carveout = value;
        }
        if (which != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return;
        int limit = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
        if (value < 0 || value + static_cast<int>(function.static_shared) > limit) fail(CUDA_ERROR_INVALID_VALUE);
        function.opted_in = value;
    });
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute which, CUfunction handle) {
    return call(OTHER, [&](Context&) {
        Function& function = function_of(handle);
        unsigned bound = function.kernel->threads_bound;
        switch (which) {
            case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = bound ? static_cast<int>(bound) : 1024; break;
            case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = static_cast<int>(function.static_shared); break;
            case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
                *value = static_cast<int>(dynamic_limit(function));
                break;
            case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *value = function.carveout; break;
            default: *value = 0;
        }
    });
}

// PyCUDA calls it before a launch, which is given the shape too.
CUresult cuFuncSetBlockShape(CUfunction, int, int, int) { return CUDA_SUCCESS; }

// Copies and fills, synchronous and asynchronous.
#include <cstring>

#include "sim.h"

namespace cudasim {
namespace {

struct Copy {
    const char* name;
    uintptr_t to, from;
    size_t bytes;
    bool to_device, from_device;

    std::string title() const { return text("%s of %zu bytes", name, bytes); }
};

// A hash of memory as the host left it.
uint64_t fingerprint(uintptr_t from, size_t bytes) {
    uint64_t hash = bytes, word = 0;
    for (size_t at = 0; at < bytes; at += 8) {
        memcpy(&word, reinterpret_cast<void*>(from + at), bytes - at < 8 ? bytes - at : 8);
        hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 29;
    }
    return hash;
}

void check_device_sides(const Copy& copy) {
    if (copy.to_device) open_memory(device_range(copy.to, copy.bytes, copy.title().c_str()));
    if (copy.from_device) open_memory(device_range(copy.from, copy.bytes, copy.title().c_str()));
}

void run(const Copy& copy) {
    check_device_sides(copy);
    memmove(reinterpret_cast<void*>(copy.to), reinterpret_cast<void*>(copy.from), copy.bytes);
    if (!copy.to_device) device_wrote(copy.to, copy.to + copy.bytes);
    check_guards(copy.title());
}

// A device refuses addresses that it does not know when the copy is asked for.
void refuse_bad_ranges(const Copy& copy) {
    try {
        if (copy.to_device) device_range(copy.to, copy.bytes, copy.title().c_str());
        if (copy.from_device) device_range(copy.from, copy.bytes, copy.title().c_str());
    } catch (const Problem& what) {
        problem(what.kind, what.text);
        fail(CUDA_ERROR_INVALID_VALUE);
    }
    for (auto [device, at] : {std::pair{copy.to_device, copy.to}, std::pair{copy.from_device, copy.from}}) {
        Allocation* a = device ? nullptr : find_allocation(at);
        if (!a || (a->live && at + copy.bytes <= a->end())) continue;
        problem(a->live ? "out_of_bounds" : "use_after_free", copy.title() + " at " + describe(at));
        fail(CUDA_ERROR_INVALID_VALUE);
    }
}

void enqueue_copy(Stream& stream, const Copy& copy) {
    enqueue(stream, copy.title(), [copy] { run(copy); });
}

// Each time that a copy is put on a stream, its addresses are looked at.
void submit_copy(Stream& stream, const Copy& copy, void (*put)(Stream&, const Copy&)) {
    refuse_bad_ranges(copy);
    submit(stream, [copy, put](Stream& on) {
        refuse_bad_ranges(copy);
        put(on, copy);
    });
}

void copy_now(Context& context, const Copy& copy) {
    if (!copy.bytes) return;
    refuse_bad_ranges(copy);
    enqueue_copy(context.legacy, copy);
    // Between two places of a device, even the synchronous copy returns at once.
    if (copy.to_device && copy.from_device) return;
    wait_for({context.legacy.tail});
    if (context.error) fail(context.error);
}

// The source is pageable: the driver takes a copy of it before the call returns.
void enqueue_staged(Stream& stream, Copy copy) {
    const auto* source = reinterpret_cast<const unsigned char*>(copy.from);
    auto staged = std::make_shared<std::vector<unsigned char>>(source, source + copy.bytes);
    copy.from = reinterpret_cast<uintptr_t>(staged->data());
    enqueue(stream, copy.title(), [copy, staged] { run(copy); });
}

// Until its copy has run the target holds NaN, unless that would spoil the source of a copy that is still to run.
void spoil_target(const Copy& copy) {
    for (const WorkPtr& work : sim().pending)
        if (work->host && copy.to < work->host->end && work->host->begin < copy.to + copy.bytes) return;
    memset(reinterpret_cast<void*>(copy.to), POISON, copy.bytes);
}

// A copy with page-locked memory, which the host must leave alone until it has run. Whether it did shows in the bytes.
void enqueue_watched(Stream& stream, const Copy& copy) {
    uintptr_t begin = copy.to_device ? copy.from : copy.to;
    size_t span = copy.bytes;
    const char* side = copy.to_device ? "source" : "target";
    Allocation* memory = host_range(reinterpret_cast<void*>(begin));
    if (!copy.to_device) spoil_target(copy);
    auto use = std::make_shared<HostUse>(HostUse{memory, begin, begin + span});
    uint64_t before = fingerprint(begin, span);
    WorkPtr work = enqueue(stream, copy.title(), [=] {
        if (memory->live && !use->device_wrote && fingerprint(begin, span) != before)
            problem("race", text("the host wrote to the page-locked %s of a pending ", side) + copy.title() + ": " +
                                describe(begin));
        run(copy);
    });
    if (!work->done) work->host = use;
}

void copy_later(Context& context, CUstream handle, const Copy& copy) {
    Stream& stream = stream_of(handle, context);
    if (!copy.bytes) return;
    if (copy.to_device && copy.from_device) return submit_copy(stream, copy, enqueue_copy);
    if (host_range(reinterpret_cast<void*>(copy.to_device ? copy.from : copy.to)))
        return submit_copy(stream, copy, enqueue_watched);
    refuse_bad_ranges(copy);
    problem("pageable", "an asynchronous " + copy.title() + " with pageable memory");
    if (copy.to_device) return enqueue_staged(stream, copy);
    enqueue_copy(stream, copy);
    wait_for({stream.tail});
    if (stream.context->error) fail(stream.context->error);
}

Copy to_device(CUdeviceptr to, const void* from, size_t n) {
    return {"copy to the device", to, reinterpret_cast<uintptr_t>(from), n, true, false};
}

Copy to_host(void* to, CUdeviceptr from, size_t n) {
    return {"copy to the host", reinterpret_cast<uintptr_t>(to), from, n, false, true};
}

Copy in_device(CUdeviceptr to, CUdeviceptr from, size_t n) {
    return {"copy between device addresses", to, from, n, true, true};
}

template <class Value> void fill(Context& context, CUstream handle, CUdeviceptr to, Value value, size_t count) {
    Stream& stream = stream_of(handle, context);
    Copy target{"fill", to, 0, count * sizeof(Value), true, false};
    if (count == 0) return;
    if (to % sizeof(Value)) fail(CUDA_ERROR_INVALID_VALUE);
    try {
        device_range(to, target.bytes, "fill");
    } catch (const Problem& what) {
        problem(what.kind, what.text);
        fail(CUDA_ERROR_INVALID_VALUE);
    }
    submit(stream, [=](Stream& on) {
        enqueue(on, target.title(), [=] {
            check_device_sides(target);
            for (size_t i = 0; i < count; ++i) reinterpret_cast<Value*>(to)[i] = value;
        });
    });
}

}  // namespace
}  // namespace cudasim

using namespace cudasim;

CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, size_t n) {
    return call(COPY, [&](Context& context) { copy_now(context, to_device(to, from, n)); });
}
CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, size_t n) {
    return call(COPY, [&](Context& context) { copy_now(context, to_host(to, from, n)); });
}
CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t n) {
    return call(COPY, [&](Context& context) { copy_now(context, in_device(to, from, n)); });
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t n, CUstream stream) {
    return call(COPY, [&](Context& context) { copy_later(context, stream, to_device(to, from, n)); });
}
CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t n, CUstream stream) {
    return call(COPY, [&](Context& context) { copy_later(context, stream, to_host(to, from, n)); });
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream stream) {
    return call(COPY, [&](Context& context) { copy_later(context, stream, in_device(to, from, n)); });
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
    return call(COPY, [&](Context& context) { fill(context, stream, to, value, count); });
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
    return call(COPY, [&](Context& context) { fill(context, stream, to, value, count); });
}
// On device memory these return at once as well, as the driver's documentation says.
CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, size_t n) { return cuMemsetD8Async(to, value, n, nullptr); }
CUresult cuMemsetD32(CUdeviceptr to, unsigned value, size_t n) { return cuMemsetD32Async(to, value, n, nullptr); }

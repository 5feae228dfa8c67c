// Names and descriptions of error codes, in the driver's words.
#include <cuda.h>

namespace {

struct Entry {
    CUresult code;
    const char *name, *text;
};

#define ENTRY(code, text) {code, #code, text}
const Entry ENTRIES[] = {
    ENTRY(CUDA_SUCCESS, "no error"),
    ENTRY(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    ENTRY(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    ENTRY(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    ENTRY(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
    ENTRY(CUDA_ERROR_STUB_LIBRARY, "CUDA driver is a stub library"),
    ENTRY(CUDA_ERROR_DEVICE_UNAVAILABLE, "CUDA-capable device(s) is/are busy or unavailable"),
    ENTRY(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    ENTRY(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    ENTRY(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    ENTRY(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    ENTRY(CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device"),
    ENTRY(CUDA_ERROR_ECC_UNCORRECTABLE, "uncorrectable ECC error encountered"),
    ENTRY(CUDA_ERROR_UNSUPPORTED_LIMIT, "limit is not supported on this architecture"),
    ENTRY(CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed"),
    ENTRY(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "the provided PTX was compiled with an unsupported toolchain."),
    ENTRY(CUDA_ERROR_INVALID_SOURCE, "device kernel image is invalid"),
    ENTRY(CUDA_ERROR_FILE_NOT_FOUND, "file not found"),
    ENTRY(CUDA_ERROR_OPERATING_SYSTEM, "OS call failed or operation not supported on this OS"),
    ENTRY(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    ENTRY(CUDA_ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state"),
    ENTRY(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    ENTRY(CUDA_ERROR_NOT_READY, "device not ready"),
    ENTRY(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    ENTRY(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
    ENTRY(CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"),
    ENTRY(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled"),
    ENTRY(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "peer access has not been enabled"),
    ENTRY(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
    ENTRY(CUDA_ERROR_ASSERT, "device-side assert triggered"),
    ENTRY(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "part or all of the requested memory range is already mapped"),
    ENTRY(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "pointer does not correspond to a registered memory region"),
    ENTRY(CUDA_ERROR_ILLEGAL_INSTRUCTION, "an illegal instruction was encountered"),
    ENTRY(CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address"),
    ENTRY(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    ENTRY(CUDA_ERROR_NOT_PERMITTED, "operation not permitted"),
    ENTRY(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    ENTRY(CUDA_ERROR_SYSTEM_NOT_READY, "system not yet initialized"),
    ENTRY(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "system has unsupported display driver / cuda driver combination"),
    ENTRY(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing"),
    ENTRY(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "operation failed due to a previous error during capture"),
    ENTRY(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "operation would make the legacy stream depend on a capturing blocking stream"),
    ENTRY(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
          "attempt to terminate a thread-local capture sequence from another thread"),
    ENTRY(CUDA_ERROR_UNKNOWN, "unknown error"),
    // The runtime's name for it; drivers of old kernels return it from cuInit as well.
    {static_cast<CUresult>(35), "CUDA_ERROR_INSUFFICIENT_DRIVER", "CUDA driver version is insufficient"},
};

const Entry* find(CUresult code) {
    for (const Entry& entry : ENTRIES)
        if (entry.code == code) return &entry;
    return nullptr;
}

}  // namespace

CUresult cuGetErrorString(CUresult code, const char** out) {
    const Entry* entry = find(code);
    *out = entry ? entry->text : "unrecognized error code";
    return entry ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorName(CUresult code, const char** out) {
    const Entry* entry = find(code);
    *out = entry ? entry->name : "CUDA_ERROR_UNRECOGNIZED";
    return entry ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

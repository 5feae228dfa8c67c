// The part of cuBLAS that gpu/runtime/blas.py calls, on the simulated driver: plain loops that take their turn in the stream.
//
// Where cuBLAS leaves something open, this is the unkind choice: a product spoils its workspace, so that one which is
// freed, too small or the caller's own data shows; TF32 cuts off the 13 bits that tensor cores do not see.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <set>

typedef struct CUstream_st* CUstream;
typedef struct CUctx_st* CUcontext;
extern "C" int cudasim_enqueue(CUstream, void (*work)(void*), void* data, void (*drop)(void*), const char* name);
extern "C" int cuCtxGetCurrent(CUcontext*);

namespace {

enum Status { SUCCESS = 0, NOT_INITIALIZED = 1, ALLOC_FAILED = 3, INVALID_VALUE = 7, EXECUTION_FAILED = 13, NOT_SUPPORTED = 15 };
enum Operation { PLAIN = 0, TRANSPOSED = 1, ADJOINT = 2 };
enum Mode { DEFAULT = 0, PEDANTIC = 2, TF32 = 3 };

struct Handle {
    CUcontext context;
    CUstream stream = nullptr;
    int mode = DEFAULT;
    unsigned char* workspace = nullptr;  // null: the library's own
    size_t bytes = 0;
};

std::mutex mutex;
std::set<Handle*> handles;
int careless = 0;

struct Factor {
    const void* data;
    int64_t pitch, step;
    bool transposed;
    bool half = false;  // bfloat16, else float32
};

// A product in cuBLAS's words: column-major, C (m, n) = alpha op(A) (m, k) op(B) (k, n) + beta C.
struct Product {
    int m, n, k, count;
    float alpha, beta;
    Factor a, b;
    void* c;
    int64_t pitch, step;
    bool tf32;
    unsigned char* workspace;
    size_t bytes;
    bool half = false;  // C is bfloat16
};

float rounded(float x, bool tf32) {
    if (!tf32 || !std::isfinite(x)) return x;
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    bits &= ~0x1fffu;
    std::memcpy(&x, &bits, 4);
    return x;
}

float number(const void* data, int64_t index, bool half) {
    if (!half) return static_cast<const float*>(data)[index];
    const uint32_t bits = uint32_t(static_cast<const uint16_t*>(data)[index]) << 16;
    float x;
    std::memcpy(&x, &bits, 4);
    return x;
}

void put(void* data, int64_t index, bool half, float x) {
    if (!half) {
        static_cast<float*>(data)[index] = x;
        return;
    }
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    static_cast<uint16_t*>(data)[index] = std::isnan(x) ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

float at(const Factor& f, int which, int64_t row, int64_t column, bool tf32) {
    const int64_t index = which * f.step + (f.transposed ? column + row * f.pitch : row + column * f.pitch);
    return rounded(number(f.data, index, f.half), tf32);
}

void multiply(const Product& p, int which) {
    for (int64_t j = 0; j < p.n; ++j) {
        for (int64_t i = 0; i < p.m; ++i) {
            double sum = 0;
            if (p.alpha != 0)
                for (int64_t l = 0; l < p.k; ++l) sum += double(at(p.a, which, i, l, p.tf32)) * at(p.b, which, l, j, p.tf32);
            const int64_t index = which * p.step + i + j * p.pitch;
            const double kept = p.beta == 0 ? 0 : double(p.beta) * number(p.c, index, p.half);  // beta 0 does not read C
            put(p.c, index, p.half, float((p.alpha == 0 ? 0 : p.alpha * sum) + kept));
        }
    }
}

void work(void* data) {
    const Product& p = *static_cast<Product*>(data);
    if (p.bytes) {
        std::memset(p.workspace, 0xFF, p.bytes < 256 ? p.bytes : 256);
        p.workspace[p.bytes - 1] = 0xFF;
    }
    for (int which = 0; which < p.count; ++which) multiply(p, which);
}

void drop(void* data) { delete static_cast<Product*>(data); }

bool known(Handle* handle) {
    std::lock_guard<std::mutex> lock(mutex);
    return handles.count(handle);
}

bool operation(int code) { return code == PLAIN || code == TRANSPOSED || code == ADJOINT; }

int enqueue(Handle* handle, int a_operation, int b_operation, Product p, const float* alpha, const float* beta,
            const char* name) {
    if (!known(handle)) return NOT_INITIALIZED;
    if (!operation(a_operation) || !operation(b_operation)) return INVALID_VALUE;
    p.a.transposed = a_operation != PLAIN;
    p.b.transposed = b_operation != PLAIN;
    const int a_rows = p.a.transposed ? p.k : p.m, b_rows = p.b.transposed ? p.n : p.k;
    if (p.m < 0 || p.n < 0 || p.k < 0 || p.count < 0 || p.a.pitch < (a_rows > 1 ? a_rows : 1)) return INVALID_VALUE;
    if (p.b.pitch < (b_rows > 1 ? b_rows : 1) || p.pitch < (p.m > 1 ? p.m : 1)) return INVALID_VALUE;
    if (!p.m || !p.n || !p.count) return SUCCESS;
    if (!alpha || !beta || !p.c || (p.k && *alpha != 0 && (!p.a.data || !p.b.data))) return INVALID_VALUE;
    CUcontext current = nullptr;
    if (cuCtxGetCurrent(&current) || current != handle->context) return EXECUTION_FAILED;
    p.alpha = *alpha;
    p.beta = *beta;
    p.tf32 = handle->mode == TF32;
    p.workspace = handle->workspace;
    p.bytes = handle->bytes;
    {
        std::lock_guard<std::mutex> lock(mutex);
        careless += !p.workspace;
    }
    return cudasim_enqueue(handle->stream, work, new Product(p), drop, name) ? EXECUTION_FAILED : SUCCESS;
}

}  // namespace

extern "C" {

int cublasCreate_v2(Handle** made) {
    if (!made) return INVALID_VALUE;
    CUcontext current = nullptr;
    if (cuCtxGetCurrent(&current) || !current) return NOT_INITIALIZED;
    std::lock_guard<std::mutex> lock(mutex);
    *made = new Handle{current};
    handles.insert(*made);
    return SUCCESS;
}

int cublasDestroy_v2(Handle* handle) {
    std::lock_guard<std::mutex> lock(mutex);
    if (!handles.erase(handle)) return NOT_INITIALIZED;
    delete handle;
    return SUCCESS;
}

// A new stream puts the library's own workspace back.
int cublasSetStream_v2(Handle* handle, CUstream stream) {
    if (!known(handle)) return NOT_INITIALIZED;
    handle->stream = stream;
    handle->workspace = nullptr;
    handle->bytes = 0;
    return SUCCESS;
}

int cublasSetWorkspace_v2(Handle* handle, void* workspace, size_t bytes) {
    if (!known(handle)) return NOT_INITIALIZED;
    if (reinterpret_cast<uintptr_t>(workspace) % 256 || (!workspace && bytes)) return INVALID_VALUE;
    handle->workspace = static_cast<unsigned char*>(workspace);
    handle->bytes = bytes;
    return SUCCESS;
}

int cublasSetMathMode(Handle* handle, int mode) {
    if (!known(handle)) return NOT_INITIALIZED;
    if (mode != DEFAULT && mode != PEDANTIC && mode != TF32) return INVALID_VALUE;
    handle->mode = mode;
    return SUCCESS;
}

// Allowed, atomics make a sum depend on chance: refused, so that nobody asks for them.
int cublasSetAtomicsMode(Handle* handle, int allowed) {
    if (!known(handle)) return NOT_INITIALIZED;
    return allowed ? NOT_SUPPORTED : SUCCESS;
}

int cublasGetProperty(int which, int* value) {  // major, minor, patch
    if (!value) return INVALID_VALUE;
    *value = which == 0 ? 13 : 0;
    return SUCCESS;
}

const char* cublasGetStatusName(int status) {
    switch (status) {
    case SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
    case INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    }
    return "unknown";
}

int cublasSgemm_v2(Handle* handle, int a_operation, int b_operation, int m, int n, int k, const float* alpha, const float* a,
                   int lda, const float* b, int ldb, const float* beta, float* c, int ldc) {
    Product p{m, n, k, 1, 0, 0, {a, lda, 0, false}, {b, ldb, 0, false}, c, ldc, 0, false, nullptr, 0};
    return enqueue(handle, a_operation, b_operation, p, alpha, beta, "cublasSgemm");
}

int cublasSgemmStridedBatched(Handle* handle, int a_operation, int b_operation, int m, int n, int k, const float* alpha,
                              const float* a, int lda, long long a_step, const float* b, int ldb, long long b_step,
                              const float* beta, float* c, int ldc, long long c_step, int count) {
    Product p{m, n, k, count, 0, 0, {a, lda, a_step, false}, {b, ldb, b_step, false}, c, ldc, c_step, false, nullptr, 0};
    return enqueue(handle, a_operation, b_operation, p, alpha, beta, "cublasSgemmStridedBatched");
}

// Of its types: two factors of bfloat16, and C of bfloat16 or float32; sums in float32.
int cublasGemmEx(Handle* handle, int a_operation, int b_operation, int m, int n, int k, const void* alpha, const void* a,
                 int a_type, int lda, const void* b, int b_type, int ldb, const void* beta, void* c, int c_type, int ldc,
                 int compute, int algorithm) {
    const int FLOAT = 0, HALF = 14;
    if (a_type != HALF || b_type != HALF || (c_type != FLOAT && c_type != HALF)) return NOT_SUPPORTED;
    if (compute != 68 || algorithm != -1) return NOT_SUPPORTED;
    Product p{m, n, k, 1, 0, 0, {a, lda, 0, false, true}, {b, ldb, 0, false, true}, c, ldc, 0, false, nullptr, 0, c_type == HALF};
    return enqueue(handle, a_operation, b_operation, p, static_cast<const float*>(alpha), static_cast<const float*>(beta),
                   "cublasGemmEx");
}

int cublassim_handles() {
    std::lock_guard<std::mutex> lock(mutex);
    return static_cast<int>(handles.size());
}

int cublassim_careless() {
    std::lock_guard<std::mutex> lock(mutex);
    return careless;
}
}

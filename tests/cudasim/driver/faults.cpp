// The list of problems, failures on demand, counts of calls, the seed.
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <utility>

#include "sim.h"

namespace cudasim {
namespace {

const char* const NAMES[KINDS] = {"alloc", "host_alloc", "free", "copy", "launch", "module", "sync", "other"};
// What a failure on demand returns, unless its third field says otherwise.
const CUresult CODES[KINDS] = {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_VALUE,
                               CUDA_ERROR_UNKNOWN, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, CUDA_ERROR_INVALID_IMAGE,
                               CUDA_ERROR_LAUNCH_FAILED, CUDA_ERROR_UNKNOWN};

struct Fault {
    uint64_t at;
    CUresult code;
};

std::map<std::string, std::vector<Fault>> faults;
uint64_t counts[KINDS], all_calls;
size_t refused_bytes[KINDS];
// Every choice comes from one seed: a counter, scrambled by SplitMix64, so that threads may draw without a lock.
std::atomic<uint64_t> counter{0};
std::atomic<bool> odd{false};

CUresult planned(const std::string& name, uint64_t number) {
    for (const Fault& fault : faults[name])
        if (fault.at == number) return fault.code;
    return CUDA_SUCCESS;
}

CUresult code_of(const std::string& name) {
    for (int kind = 0; kind < KINDS; ++kind)
        if (name == NAMES[kind]) return CODES[kind];
    return CUDA_ERROR_UNKNOWN;  // "lost": what a device gives that has fallen off the bus
}

void plan(const std::string& item) {
    std::istringstream fields(item);
    std::string name, number, code;
    std::getline(fields, name, ':');
    std::getline(fields, number, ':');
    std::getline(fields, code, ':');
    uint64_t n = strtoull(number.c_str(), nullptr, 10);
    if (name == "init") faults[name].push_back({0, static_cast<CUresult>(n)});
    else faults[name].push_back({n, code.empty() ? code_of(name) : static_cast<CUresult>(atoi(code.c_str()))});
}

void plan_all(const char* list) {
    std::istringstream items(list ? list : "");
    for (std::string item; std::getline(items, item, ',');) plan(item);
}

}  // namespace

uint64_t draw(uint64_t below) {
    uint64_t z = counter.fetch_add(0x9E3779B97F4A7C15u, std::memory_order_relaxed);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return below ? (z ^ (z >> 31)) % below : 0;
}

void reseed(uint64_t seed) {
    counter = seed * 0xD1342543DE82EF95u + 0x632BE59BD9B4E019u;
    odd = seed % 2;
}

bool odd_seed() { return odd; }

Sim& sim() {
    static Sim* it = [] {
        auto* made = new Sim;  // never destroyed: Python's exit calls us late
        const char* seed = getenv("CUDASIM_SEED");
        reseed(seed ? strtoull(seed, nullptr, 10) : 0);
        plan_all(getenv("CUDASIM_FAIL"));
        return made;
    }();
    return *it;
}

std::string text(const char* format, ...) {
    char buffer[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(buffer, sizeof buffer, format, arguments);
    va_end(arguments);
    return buffer;
}

void fail(CUresult code) { throw Failure{code}; }

void problem(const std::string& kind, const std::string& what) {
    sim().problems.push_back(kind + ": " + what);
    fprintf(stderr, "cudasim: %s: %s\n", kind.c_str(), what.c_str());
}

void count_call(Kind kind, size_t bytes) {
    ++all_calls;
    if (CUresult code = planned("lost", all_calls)) sim().lost = code;
    if (sim().lost) fail(sim().lost);
    // After a failed allocation PyCUDA collects garbage and asks again for the same; that must not hide the failure.
    size_t refused = std::exchange(refused_bytes[kind], 0);
    if (refused && refused == bytes) fail(CUDA_ERROR_OUT_OF_MEMORY);
    ++counts[kind];
    CUresult code = planned(NAMES[kind], counts[kind]);
    if (code == CUDA_ERROR_LAUNCH_FAILED || code == CUDA_ERROR_ILLEGAL_ADDRESS) poison(current(), {"", "", code});
    if (code == CUDA_ERROR_OUT_OF_MEMORY) refused_bytes[kind] = bytes;
    if (code) fail(code);
}

}  // namespace cudasim

using namespace cudasim;

CUresult cuInit(unsigned) {
    std::lock_guard<std::mutex> lock(sim().mutex);
    if (CUresult code = planned("init", 0)) return code;
    sim().initialised = true;
    return CUDA_SUCCESS;
}

extern "C" {

// Counts start anew: the n of a failure is counted from here. "" takes all failures back.
void cudasim_fail(const char* list) {
    std::lock_guard<std::mutex> lock(sim().mutex);
    faults.clear();
    memset(counts, 0, sizeof counts);
    memset(refused_bytes, 0, sizeof refused_bytes);
    all_calls = 0;
    sim().lost = CUDA_SUCCESS;
    plan_all(list);
}

void cudasim_seed(uint64_t seed) { reseed(seed); }

void cudasim_counts(uint64_t* out) {
    std::lock_guard<std::mutex> lock(sim().mutex);
    memcpy(out, counts, sizeof counts);
}

// Returns the bytes needed; writes as many as there is room for.
size_t cudasim_problems(char* out, size_t room) {
    std::lock_guard<std::mutex> lock(sim().mutex);
    std::string all;
    for (const std::string& line : sim().problems) all += line + "\n";
    if (room) snprintf(out, room, "%s", all.c_str());
    return all.size() + 1;
}

void cudasim_clear() {
    std::lock_guard<std::mutex> lock(sim().mutex);
    sim().problems.clear();
}

}

// The state of the simulated driver. One lock guards it; the work of a device runs one piece at a time.
#pragma once
#include <cuda.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "../include/cudasim_abi.h"

namespace cudasim {

struct Context;
struct Module;
struct Pool;
struct Stream;

// A driver call that fails throws the code that it returns.
struct Failure {
    CUresult code;
};

enum class Place { device, host };

struct Allocation {
    Place place;
    Context* context;
    uintptr_t begin;
    size_t bytes;
    size_t number;
    bool live = true;
    bool there = true;       // false until an allocation on a stream has run
    bool leaving = false;    // a free on a stream has been asked for
    bool open = false;       // device memory that may be touched now
    Pool* pool = nullptr;    // that the memory goes back to
    uintptr_t map_begin = 0; // the pages, guard zones included
    size_t map_bytes = 0;

    uintptr_t end() const { return begin + bytes; }
    bool guarded() const { return map_bytes != 0; }
};

// The page-locked memory that a pending copy reads or writes.
struct HostUse {
    Allocation* allocation;
    uintptr_t begin, end;
    bool device_wrote = false;  // so a change since the call is not the host's doing
};

// A piece of asynchronous work. It may run once everything in `after` is done.
struct Work {
    uint64_t number;
    std::string name;
    Stream* stream;
    std::vector<std::shared_ptr<Work>> after;
    std::function<void()> run;  // throws Problem
    std::shared_ptr<HostUse> host = {};
    bool done = false;
    double finished_ms = 0;
};
using WorkPtr = std::shared_ptr<Work>;

// Asynchronous work that puts itself on a stream: at once, or whenever a graph is launched that has captured it.
using Node = std::function<void(Stream&)>;

// What a stream collects from cuStreamBeginCapture to cuStreamEndCapture.
struct Capture {
    std::thread::id thread;
    std::vector<Node> nodes = {};
    bool broken = false;  // by a call that a capture forbids
};

struct Stream {
    Context* context;
    bool legacy, blocking;
    bool live = true;
    WorkPtr tail = {};
    std::unique_ptr<Capture> capture = {};
};

struct Event {
    Context* context;
    unsigned flags;
    bool live = true;
    WorkPtr record = {};
};

struct Device {
    int ordinal;
    Context* primary = nullptr;
    int retained = 0;
    size_t used = 0;  // what pools keep included
};

struct Context {
    Device* device;
    bool live = true;
    CUresult error = CUDA_SUCCESS;  // of asynchronous work; it stays
    Stream legacy;
    explicit Context(Device* device) : device(device), legacy{this, true, true} {}
};

// Asynchronous work that goes wrong throws this; the context keeps the code.
struct Problem {
    std::string kind, text;
    CUresult code;
};

enum Kind { ALLOC, HOST_ALLOC, FREE, COPY, LAUNCH, MODULE, SYNC, OTHER, KINDS };

struct Sim {
    std::mutex mutex;
    std::condition_variable idle;
    bool executing = false;
    bool initialised = false;
    CUresult lost = CUDA_SUCCESS;
    std::vector<std::unique_ptr<Device>> devices;
    std::map<uintptr_t, Allocation*> allocations;  // by first byte; freed ones stay, so that their use is recognised
    std::vector<WorkPtr> pending;
    std::set<Stream*> capturing;
    uint64_t next_work = 1;
    double clock_ms = 0;
    std::vector<std::string> problems;
};
Sim& sim();

// faults.cpp: problems, injected failures, and the frame of every driver call
[[noreturn]] void fail(CUresult code);
void problem(const std::string& kind, const std::string& text);
void count_call(Kind kind, size_t bytes);  // throws the failure that was asked for
std::string text(const char* format, ...) __attribute__((format(printf, 1, 2)));
bool inside_work();  // is this thread running a host function or a kernel?
void refuse_while_capturing(Kind kind);  // graphs.cpp: throws for calls that break a capture of this thread

template <class Body> CUresult any_call(Kind kind, Body body, size_t bytes = 0) {
    if (inside_work()) return CUDA_ERROR_NOT_PERMITTED;
    std::lock_guard<std::mutex> lock(sim().mutex);
    try {
        count_call(kind, bytes);
        refuse_while_capturing(kind);
        body();
        return CUDA_SUCCESS;
    } catch (const Failure& failure) {
        return failure.code;
    }
}

Context& current();           // throws without one, or when it is lost
Context& healthy_current();   // and when its asynchronous work has failed
template <class Body> CUresult call(Kind kind, Body body, size_t bytes = 0) {
    return any_call(kind, [&] { body(healthy_current()); }, bytes);
}

uint64_t draw(uint64_t below);
void reseed(uint64_t seed);
bool odd_seed();

// profile.cpp: the figures of the device that CUDASIM_DEVICE names
struct Profile {
    const char *key, *name;
    int major, minor, processors, opt_in_kb, per_processor_kb;
    size_t memory_mb;
    int l2_kb;
};
const Profile& profile();
int attribute(CUdevice_attribute which);

// devices.cpp
size_t total_memory();
void destroy_context(Context* context);

// memory.cpp
constexpr unsigned char POISON = 0xFF;  // fills fresh memory: NaN as float and double, -1 as int
Allocation* find_allocation(uintptr_t address);
Allocation* device_range(uintptr_t address, size_t bytes, const char* what);  // throws Problem: not whole, not live
Allocation* host_range(const void* address);                                  // page-locked memory, or null
std::string describe(uintptr_t address);
void device_wrote(uintptr_t begin, uintptr_t end);  // tells pending copies of this memory
// Lets what runs next touch memory of this context; it is opened at the first touch.
void open_memory(Context* context);
bool open_on_fault(uintptr_t address);
void open_memory(Allocation* allocation);
void close_memory();
void check_guards(const std::string& culprit);  // throws Problem
size_t pages(size_t bytes);  // bytes of the whole pages
bool fits(const Device& device, size_t bytes);
Allocation* allocate_in(Pool& pool, Context& context, size_t bytes);  // the pool has given the bytes away
Allocation* device_allocation(uintptr_t begin);  // one that can be freed; notes a problem and throws
void free_on_device(Allocation* allocation);
void free_all(Context* context);

// pools.cpp
void give_back(Pool& pool, size_t bytes);
void waited();  // somebody has: pools give up what is beyond their thresholds

// streams.cpp
Stream& stream_of(CUstream handle, Context& context);
WorkPtr enqueue(Stream& stream, std::string name, std::function<void()> run);
void wait_for(const std::vector<WorkPtr>& targets);
void wait_for(Context& context);
void without_lock(const std::function<void()>& body);  // runs body while other threads may enqueue
void poison(Context& context, const Problem& what);

// graphs.cpp
void submit(Stream& stream, Node node);              // does the node now, or captures it
void refuse_capturing(Stream& stream);               // throws for what no graph can hold: waits, queries, events
void refuse_capturing_in(Context& context);          // for a wait for all of its streams
void end_graphs(Context* context);                   // says which were not destroyed

// modules.cpp
struct Function {
    Module* module;
    const CudasimKernel* kernel;
    int opted_in = 0;   // bytes of dynamic shared memory
    int carveout = -1;  // percent of the memory that the L1 cache shares; -1: the driver's choice
    size_t static_shared = 0;
    std::vector<std::pair<unsigned char*, size_t>> shared = {};
    std::map<std::string, size_t> largest = {};  // bytes of each __shared__ variable
};
struct Module {
    Context* context;
    void* library;
    const CudasimImage* image;
    std::map<std::string, std::unique_ptr<Function>> functions;
    bool live = true;
};

// block.cpp
struct Launch {
    Function* function;
    CudasimTriple grid, block;
    size_t dynamic_bytes;
    std::vector<unsigned char> arguments;
};
inline std::string coordinates(const CudasimTriple& t) { return text("(%u, %u, %u)", t.x, t.y, t.z); }
void run_grid(const Launch& launch);  // throws Problem

// signals.cpp
void install_handlers();
void run_guarded(const std::function<void()>& body);  // a fault in body throws Problem

}  // namespace cudasim

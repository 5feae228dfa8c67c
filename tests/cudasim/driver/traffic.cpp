// Counts what each kernel does: bytes and sectors of the memory of devices, passes over the banks of shared memory, atomics,
// meetings, steps of chains that are marked.
//
// The counting build of a kernel calls __tsan_read4 and the like before every access: these names are the compiler's, what
// they do is ours. What the 32 lanes of a warp touch at one instruction is put together: the n-th access of every lane at
// one return address. Lanes that leave a loop early fall out of their group; those that skip some of its rounds join too soon.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <unordered_map>

#include "block.h"
#include "regions.h"

namespace cudasim {
namespace {

constexpr uintptr_t SECTOR = 32;  // bytes that memory moves at least
enum Way { READ, WRITE, SHARED_READ, SHARED_WRITE, ATOMIC };
// What a lane touches.
struct Span {
    uintptr_t begin, end;
    unsigned lane;
};

struct Passes {
    uint64_t least, taken;
};

// Each of 32 banks of 4 bytes gives one of its words in a pass, to all lanes that ask for it. Accesses of 8 bytes are served
// for 16 lanes after the other, those of 16 bytes for 8 lanes.
Passes passes(const std::vector<Span>& spans) {
    constexpr uintptr_t WORD = 4, BANKS = 32;
    uintptr_t widest = 0;
    for (const Span& span : spans) widest = std::max(widest, span.end - span.begin);
    const unsigned together = widest > 8 ? 8 : widest > 4 ? 16 : 32;
    Passes all{0, 0};
    static std::array<std::vector<uintptr_t>, BANKS> asked;  // words of each bank; kept, as most of the time goes into this
    for (unsigned first = 0; first < 32; first += together) {
        for (auto& words : asked) words.clear();
        size_t most = 0;
        for (const Span& span : spans) {
            if (span.lane / together != first / together) continue;
            for (uintptr_t word = span.begin / WORD; word <= (span.end - 1) / WORD; ++word) {
                auto& words = asked[word % BANKS];
                if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
                most = std::max(most, words.size());
            }
        }
        all.least += most > 0;
        all.taken += most;
    }
    return all;
}

using Request = std::vector<Span>;  // of the lanes of a warp

struct Moved {
    uint64_t requests;  // instructions of warps
    uint64_t bytes;     // of each request, those that several lanes touch once
    uint64_t sectors;   // of each request
    uint64_t first;     // bytes that the launch had not touched before; of writes: not written before
};

struct Shared {
    uint64_t requests;
    uint64_t least;   // passes over the banks, were there no conflicts
    uint64_t passes;
};

struct Atomics {
    uint64_t requests;
    uint64_t lanes;  // of each request, those that take part
    uint64_t turns;  // of each request, the most lanes that meet on one address
};

struct Traffic {
    std::string kernel;
    Moved moved[2];
    Shared shared[2];
    Atomics atomics;
    uint64_t meetings[2];  // of blocks; of warps
    uint64_t chain;        // the most marked steps of one thread
};

// How often each lane of a warp has come to an instruction, and what all lanes touched when they came for the n-th time.
struct Instruction {
    std::array<uint32_t, 32> came{};
    std::vector<Request> times;
};

struct Counting {
    const CudasimState* state = nullptr;  // of the thread that runs; null between launches
    Traffic now;
    std::unordered_map<uint64_t, Instruction> instructions;  // of the warps of a block
    std::vector<uint64_t> steps;                             // of the threads of a block
};

Counting counting;
std::vector<Traffic> finished;

uint64_t touch(Region& memory, const Span& span, Way way) {
    unsigned char* bytes = memory.touched.of(memory.bytes());
    const int known = way == READ ? 1 << READ | 1 << WRITE : 1 << WRITE;
    uint64_t first = 0;
    for (uintptr_t at = span.begin; at < span.end; ++at) {
        unsigned char& byte = bytes[at - memory.begin];
        first += !(byte & known);
        byte = static_cast<unsigned char>(byte | 1 << way);
    }
    return first;
}

void add(Moved& moved, Request& request) {
    std::sort(request.begin(), request.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
    uintptr_t counted = 0, next_sector = 0;  // all bytes and sectors before these are counted
    for (const Span& span : request) {
        const uintptr_t begin = std::max(span.begin, counted);
        if (begin >= span.end) continue;
        moved.bytes += span.end - begin;
        const uintptr_t sector = std::max(begin / SECTOR, next_sector), behind = (span.end + SECTOR - 1) / SECTOR;
        moved.sectors += behind > sector ? behind - sector : 0;
        counted = span.end;
        next_sector = behind;
    }
    ++moved.requests;
}

void add(Shared& shared, const Request& request) {
    const Passes passed = passes(request);
    shared.least += passed.least;
    shared.passes += passed.taken;
    ++shared.requests;
}

void add(Atomics& atomics, const Request& request) {
    std::map<uintptr_t, uint64_t> meet;
    for (const Span& span : request) ++meet[span.begin];
    atomics.lanes += request.size();
    atomics.turns += std::max_element(meet.begin(), meet.end(), [](auto& a, auto& b) { return a.second < b.second; })->second;
    ++atomics.requests;
}

void close(Way way, Request& request) {
    if (request.empty()) return;
    Traffic& now = counting.now;
    if (way == ATOMIC) add(now.atomics, request);
    else if (way == SHARED_READ || way == SHARED_WRITE) add(now.shared[way - SHARED_READ], request);
    else add(now.moved[way], request);
    request = {};
}

uint64_t key(const void* place, unsigned warp, Way way) { return reinterpret_cast<uintptr_t>(place) << 12 | warp << 3 | way; }

void close_block() {
    for (auto& [key, instruction] : counting.instructions)
        for (Request& request : instruction.times) close(static_cast<Way>(key & 7), request);
    counting.instructions.clear();
    for (uint64_t steps : counting.steps) counting.now.chain = std::max(counting.now.chain, steps);
    counting.steps.clear();
}

// Puts the access of a lane to those of the others. A request that all lanes of a whole warp have come to is over.
void join(Way way, const Span& span, const void* caller) {
    Instruction& instruction = counting.instructions[key(caller, running_thread() / 32, way)];
    const uint32_t time = instruction.came[span.lane]++;
    if (time >= instruction.times.size()) instruction.times.resize(time + 1);
    Request& request = instruction.times[time];
    request.push_back(span);
    if (request.size() == instruction.came.size()) close(way, request);
}

void move(const void* at, size_t bytes, Way way, const void* caller, bool strong) {
    const auto address = reinterpret_cast<uintptr_t>(at);
    Region* region = find_region(address);
    if (!region) return;
    const Span span{address, std::min(address + bytes, region->end), counting.state->lane};
    if (!region->shared) {
        counting.now.moved[way].first += touch(*region, span, way);
        join(way, span, caller);
    } else if (!strong) {
        join(way == READ ? SHARED_READ : SHARED_WRITE, span, caller);
    }
}

void count(const void* at, size_t bytes, Way way, const void* caller, bool strong = false) {
    if (!counting.state || !bytes) return;
    watch(reinterpret_cast<uintptr_t>(at), bytes, way == WRITE, strong);
    move(at, bytes, way, caller, strong);
}

}  // namespace

bool counts_traffic() {
    static const bool asked = getenv("CUDASIM_COUNT") && *getenv("CUDASIM_COUNT");
    return asked;
}

void begin_traffic(const Launch& launch) {
    if (!counts_traffic()) return;
    counting = {};
    counting.now.kernel = launch.function->kernel->name;
    counting.state = launch.function->module->image->state;
    begin_regions(launch);
    begin_watch(launch);
}

void begin_block_traffic() {
    if (!counting.state) return;
    close_block();
    watch_block();
}

void end_traffic() {
    if (!counting.state) return;
    close_block();
    std::lock_guard<std::mutex> lock(sim().mutex);
    finished.push_back(counting.now);
    counting = {};
    end_watch();
    end_regions();
}

void count_copy(const void* from, size_t bytes, const void* caller) { count(from, bytes, READ, caller); }

void count_atomic(const void* at, size_t bytes, const void* caller) {
    if (!counting.state) return;
    const auto address = reinterpret_cast<uintptr_t>(at);
    join(ATOMIC, {address, address + bytes, counting.state->lane}, caller);
}

void count_meeting(Meeting who) { ++counting.now.meetings[static_cast<int>(who)]; }

void count_step() {
    if (!counting.state) return;
    const unsigned number = running_thread();
    if (number >= counting.steps.size()) counting.steps.resize(number + 1);
    ++counting.steps[number];
}

}  // namespace cudasim

using namespace cudasim;

#define CALLER __builtin_return_address(0)
// Volatile: what the simulator's atomics are made of, and words that threads poll.
#define VOLATILE(BYTES)                                                                                       \
    extern "C" void __tsan_volatile_read##BYTES(void* at) { count(at, BYTES, READ, CALLER, true); }   \
    extern "C" void __tsan_volatile_write##BYTES(void* at) { count(at, BYTES, WRITE, CALLER, true); }
VOLATILE(1)
VOLATILE(2)
VOLATILE(4)
VOLATILE(8)
#define ACCESS(NAME, BYTES)                                                                         \
    extern "C" void __tsan_##NAME##read##BYTES(void* at) { count(at, BYTES, READ, CALLER); }        \
    extern "C" void __tsan_##NAME##write##BYTES(void* at) { count(at, BYTES, WRITE, CALLER); }
ACCESS(, 1)
ACCESS(, 2)
ACCESS(, 4)
ACCESS(, 8)
ACCESS(, 16)
ACCESS(unaligned_, 2)
ACCESS(unaligned_, 4)
ACCESS(unaligned_, 8)
ACCESS(unaligned_, 16)
extern "C" void __tsan_read_range(void* at, size_t bytes) { count(at, bytes, READ, CALLER); }
extern "C" void __tsan_write_range(void* at, size_t bytes) { count(at, bytes, WRITE, CALLER); }
extern "C" void __tsan_init() {}

// A line a finished launch: its kernel, then the numbers of Traffic in their order.
extern "C" size_t cudasim_traffic(char* out, size_t room) {
    std::lock_guard<std::mutex> lock(sim().mutex);
    std::ostringstream all;
    for (const Traffic& one : finished) {
        all << one.kernel;
        for (const Moved& m : one.moved) all << ' ' << m.requests << ' ' << m.bytes << ' ' << m.sectors << ' ' << m.first;
        for (const Shared& s : one.shared) all << ' ' << s.requests << ' ' << s.least << ' ' << s.passes;
        all << ' ' << one.atomics.requests << ' ' << one.atomics.lanes << ' ' << one.atomics.turns;
        all << ' ' << one.meetings[0] << ' ' << one.meetings[1] << ' ' << one.chain << '\n';
    }
    const std::string said = all.str();
    if (out && room > said.size()) memcpy(out, said.c_str(), said.size() + 1);
    return said.size() + 1;
}

extern "C" void cudasim_forget_traffic() {
    std::lock_guard<std::mutex> lock(sim().mutex);
    finished.clear();
}

// Counts the bytes and the sectors that each kernel moves, of the memory of a device only.
//
// The counting build of a kernel calls __tsan_read4 and the like before every access: these names are the compiler's, what
// they do is ours. What the 32 lanes of a warp touch at one instruction is put together: the n-th access of every lane at
// one return address. Lanes that leave a loop early fall out of their group; those that skip some of its rounds join too soon.
#include "traffic.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <unordered_map>

#include "races.h"

namespace cudasim {
namespace {

constexpr uintptr_t SECTOR = 32;  // bytes that memory moves at least
enum Way { READ, WRITE };

struct Span {
    uintptr_t begin, end;
};

struct Moved {
    uint64_t requests;  // instructions of warps
    uint64_t bytes;     // of each request, those that several lanes touch once
    uint64_t sectors;   // of each request
    uint64_t first;     // bytes that the launch had not touched before; of writes: not written before
};

struct Traffic {
    std::string kernel;
    Moved moved[2];
};

// How often each lane of a warp has come to an instruction, and what all lanes touched when they came for the n-th time.
struct Instruction {
    std::array<uint32_t, 32> came{};
    std::vector<std::vector<Span>> times;
};

// An allocation as the launch found it, and what has been done to its bytes: bit READ, bit WRITE.
struct Touched {
    uintptr_t begin, end;
    std::vector<unsigned char> bytes;
};

struct Counting {
    const CudasimState* state = nullptr;  // of the thread that runs; null between launches
    CudasimTriple block;
    Traffic now;
    std::vector<Touched> memory;  // by address
    Touched* latest = nullptr;
    std::unordered_map<uint64_t, Instruction> instructions;  // of the warps of a block
};

Counting counting;
std::vector<Traffic> finished;

Touched* find(uintptr_t address) {
    Touched* latest = counting.latest;
    if (latest && latest->begin <= address && address < latest->end) return latest;
    auto after = std::upper_bound(counting.memory.begin(), counting.memory.end(), address,
                                  [](uintptr_t at, const Touched& one) { return at < one.begin; });
    if (after == counting.memory.begin() || address >= std::prev(after)->end) return nullptr;
    return counting.latest = &*std::prev(after);
}

uint64_t touch(Touched& memory, const Span& span, Way way) {
    if (memory.bytes.empty()) memory.bytes.resize(memory.end - memory.begin);
    const int known = way == READ ? 1 << READ | 1 << WRITE : 1 << WRITE;
    uint64_t first = 0;
    for (uintptr_t at = span.begin; at < span.end; ++at) {
        unsigned char& byte = memory.bytes[at - memory.begin];
        first += !(byte & known);
        byte = static_cast<unsigned char>(byte | 1 << way);
    }
    return first;
}

void add_request(std::vector<Span>& spans, Moved& moved) {
    if (spans.empty()) return;
    std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
    uintptr_t counted = 0, next_sector = 0;  // all bytes and sectors before these are counted
    for (const Span& span : spans) {
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

uint64_t key(uintptr_t place, unsigned warp, Way way) { return uint64_t{place} << 6 | warp << 1 | way; }

void close_block() {
    for (auto& [key, instruction] : counting.instructions)
        for (std::vector<Span>& spans : instruction.times) add_request(spans, counting.now.moved[key & 1]);
    counting.instructions.clear();
}

bool same(const CudasimTriple& a, const CudasimTriple& b) { return a.x == b.x && a.y == b.y && a.z == b.z; }

void count(const void* at, size_t bytes, Way way, const void* caller, bool atomic = false) {
    if (!counting.state || !bytes) return;
    const auto address = reinterpret_cast<uintptr_t>(at);
    if (!atomic) watch(address, bytes, way == WRITE);
    Touched* memory = find(address);
    if (!memory) return;  // a stack, shared memory, or nobody's
    const CudasimState& state = *counting.state;
    if (!same(state.block, counting.block)) close_block();
    counting.block = state.block;
    const Span span{address, std::min(address + bytes, memory->end)};
    counting.now.moved[way].first += touch(*memory, span, way);
    const CudasimTriple &thread = state.thread, &size = state.block_size;
    const unsigned warp = ((thread.z * size.y + thread.y) * size.x + thread.x) / 32;
    Instruction& instruction = counting.instructions[key(reinterpret_cast<uintptr_t>(caller), warp, way)];
    const uint32_t time = instruction.came[state.lane]++;
    if (time >= instruction.times.size()) instruction.times.resize(time + 1);
    instruction.times[time].push_back(span);
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
    std::lock_guard<std::mutex> lock(sim().mutex);
    for (auto& [begin, a] : sim().allocations) {
        if (a->live && a->place == Place::device) counting.memory.push_back({begin, a->end(), {}});
    }
    counting.state = launch.function->module->image->state;
    begin_watch(launch);
}

void end_traffic() {
    if (!counting.state) return;
    close_block();
    std::lock_guard<std::mutex> lock(sim().mutex);
    finished.push_back(counting.now);
    counting = {};
    end_watch();
}

void count_copy(const void* from, size_t bytes, const void* caller) { count(from, bytes, READ, caller); }
void count_store(const void* to, size_t bytes, const void* caller) { count(to, bytes, WRITE, caller); }

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

// A line a finished launch: its kernel, then requests, bytes, sectors and first bytes, of reads and of writes.
extern "C" size_t cudasim_traffic(char* out, size_t room) {
    std::lock_guard<std::mutex> lock(sim().mutex);
    std::string all;
    for (const Traffic& one : finished) {
        all += one.kernel;
        for (const Moved& m : one.moved)
            all += text(" %llu %llu %llu %llu", static_cast<unsigned long long>(m.requests),
                        static_cast<unsigned long long>(m.bytes), static_cast<unsigned long long>(m.sectors),
                        static_cast<unsigned long long>(m.first));
        all += '\n';
    }
    if (out && room > all.size()) memcpy(out, all.c_str(), all.size() + 1);
    return all.size() + 1;
}

extern "C" void cudasim_forget_traffic() {
    std::lock_guard<std::mutex> lock(sim().mutex);
    finished.clear();
}

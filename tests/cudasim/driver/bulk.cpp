// Barriers in shared memory, barriers of some warps, and bulk copies: what sm_90 brought. Who waits gives his turn away.
//
// A load lands when nothing else can go on, or earlier by chance; its bytes count at its mbarrier then. A store reads shared
// memory when it is waited for, or when the block ends, as late as a device may. Both move in the order that the seed says.
#include "bulk.h"

#include <cstring>
#include <map>

#include "races.h"
#include "traffic.h"

namespace cudasim {
namespace {

constexpr size_t ALIGNED = 16;  // bytes, of addresses and sizes of bulk copies

struct MemoryBarrier {
    unsigned count, missing;  // arrivals of a phase; those that have not come
    int64_t bytes = 0;        // announced and not landed
    unsigned phase = 0;
};

struct NamedBarrier {
    unsigned arrived = 0, round = 0;
};

struct Copy {
    void* to;
    const void* from;
    size_t bytes;
    void* barrier;         // of a load
    size_t first, wanted;  // bytes of it; others may be anything
};

struct Stores {
    std::vector<Copy> open;
    std::vector<std::vector<Copy>> groups;
};

struct OfBlock {
    std::map<void*, MemoryBarrier> barriers = {};
    std::map<unsigned, NamedBarrier> named = {};
    std::vector<Copy> loads = {};
    std::map<unsigned, Stores> stores = {};  // by thread
    bool early = false;                      // in one block of four loads may land before they are waited for
};

std::map<unsigned, OfBlock> blocks;  // by rank in the cluster

OfBlock& here() { return blocks[running_rank()]; }

[[noreturn]] void refuse(const char* kind, const char* file, int line, const char* what) {
    block_aborts(kind, file, line, what);
    __builtin_unreachable();
}

MemoryBarrier& barrier_at(void* at, const char* file, int line) {
    auto found = here().barriers.find(at);
    if (found == here().barriers.end()) refuse("mbarrier", file, line, "a barrier that has not been initialised");
    return found->second;
}

void check(const void* shared, const void* memory, size_t bytes, const char* file, int line) {
    const bool odd = (reinterpret_cast<uintptr_t>(shared) | reinterpret_cast<uintptr_t>(memory) | bytes) % ALIGNED;
    if (odd) refuse("misaligned", file, line, "a bulk copy whose addresses and size are not multiples of 16 bytes");
}

void end_phase_if_complete(MemoryBarrier& one) {
    if (one.missing || one.bytes) return;
    ++one.phase;
    one.missing = one.count;
    block_met();
}

void init(void* at, unsigned count, const char*, int) { here().barriers[at] = {count, count}; }

void arrive(void* at, size_t bytes, const char* file, int line) {
    MemoryBarrier& one = barrier_at(at, file, line);
    if (!one.missing) refuse("mbarrier", file, line, "more threads arrive than the barrier was initialised for");
    one.bytes += static_cast<int64_t>(bytes);
    --one.missing;
    end_phase_if_complete(one);
}

void wait(void* at, unsigned parity, const char* file, int line) {
    const MemoryBarrier& one = barrier_at(at, file, line);
    wait_until([&one, parity] { return one.phase % 2 != parity; }, file, line);
}

void meet(unsigned id, unsigned threads, const char* file, int line) {
    NamedBarrier& one = here().named[id];
    const unsigned round = one.round;
    if (++one.arrived == threads) {
        one.arrived = 0;
        ++one.round;
        block_met();
        count_meeting(Meeting::block);
    }
    wait_until([&one, round] { return one.round != round; }, file, line);
}

void load(void* to, const void* from, size_t bytes, void* at, size_t first, size_t wanted, const char* file, int line) {
    barrier_at(at, file, line);
    check(to, from, bytes, file, line);
    count_copy(from, bytes, __builtin_return_address(0), first, wanted);
    memset(to, POISON, bytes);
    here().loads.push_back({to, from, bytes, at, first, wanted});
}

void store(void* to, const void* from, size_t bytes, const char* file, int line) {
    check(from, to, bytes, file, line);
    count_store(to, bytes, __builtin_return_address(0));
    if (!fenced(reinterpret_cast<uintptr_t>(from), bytes))
        refuse("proxy", file, line, "a bulk store of what a thread wrote without a fence.proxy.async behind it");
    here().stores[running_thread()].open.push_back({to, from, bytes, nullptr, 0, bytes});
}

void commit() {
    Stores& mine = here().stores[running_thread()];
    mine.groups.push_back(std::move(mine.open));
    mine.open.clear();
}

void wait_read(size_t left) {
    auto& groups = here().stores[running_thread()].groups;
    for (; groups.size() > left; groups.erase(groups.begin()))
        for (const Copy& copy : groups.front()) memcpy(copy.to, copy.from, copy.bytes);
}

}  // namespace

const CudasimBulk bulk_calls{init, arrive, wait, meet, load, store, commit, wait_read, fence_async};

bool lands_early() { return here().early && !draw(8); }

bool land_a_load() {
    std::vector<Copy>& loads = here().loads;
    if (loads.empty()) return false;
    const auto one = loads.begin() + static_cast<long>(draw(loads.size()));
    memcpy(static_cast<char*>(one->to) + one->first, static_cast<const char*>(one->from) + one->first, one->wanted);
    MemoryBarrier& barrier = here().barriers.at(one->barrier);
    barrier.bytes -= static_cast<int64_t>(one->bytes);
    loads.erase(one);
    end_phase_if_complete(barrier);
    return true;
}

std::string what_barriers_lack() {
    std::string all;
    for (auto& [at, one] : here().barriers)
        all += text("; a barrier in phase %u lacks %u of %u arrivals and %lld bytes", one.phase, one.missing, one.count,
                    static_cast<long long>(one.bytes));
    for (auto& [id, one] : here().named)
        if (one.arrived) all += text("; at barrier %u are %u threads", id, one.arrived);
    return all;
}

void begin_bulk() {
    here() = {};
    here().early = !draw(4);
}

void end_bulk() {
    const char* left = here().loads.empty() ? nullptr : "a bulk load that nobody has waited for";
    for (auto& [thread, mine] : here().stores)
        if (!mine.open.empty() || !mine.groups.empty()) left = "a bulk store that its thread has not committed and waited for";
    if (left) throw Problem{"bulk", std::string("the block ends with ") + left, CUDA_ERROR_LAUNCH_FAILED};
}

}  // namespace cudasim

// A turn of a block: its threads are fibers, which go on until they meet.
#include <algorithm>
#include <cstring>

#include "block.h"

namespace cudasim {

Block block;

namespace {

const Launch* launched;
CudasimState* state;
Fiber scheduler;
std::vector<void*> free_stacks;
bool failed;
Problem failure;

void yield() { switch_fiber(block.running->fiber, scheduler); }

[[noreturn]] void give_up(const char* kind, std::string what, CUresult code) {
    failure = {kind, std::move(what), code};
    failed = true;
    yield();
    __builtin_unreachable();
}

std::string where(const Thread& thread) {
    return "thread " + coordinates(thread.index) + " of block " + coordinates(block.index);
}

// What kernels call; each runs on the fiber of the thread that calls it.

int barrier(int predicate, const char* file, int line) {
    Thread& me = *block.running;
    me.site = {file, line};
    me.what = predicate;
    me.state = State::barrier;
    yield();
    return static_cast<int>(me.result);
}

uint64_t collective(int what, unsigned mask, uint64_t value, unsigned source, const char* file, int line) {
    Thread& me = *block.running;
    me.site = {file, line};
    if (!(mask >> me.lane & 1))
        give_up("warp", where(me) + " is not in its own mask at " + me.site.name(), CUDA_ERROR_LAUNCH_FAILED);
    me.what = what;
    me.mask = mask;
    me.value = value;
    me.source = source;
    me.state = State::collective;
    yield();
    return me.result;
}

void atomic(const void* at, size_t bytes) { count_atomic(at, bytes, __builtin_return_address(0)); }

void abort(const char* kind, const char* file, int line, const char* what) {
    CUresult code = !strcmp(kind, "misaligned")      ? CUDA_ERROR_MISALIGNED_ADDRESS
                    : !strcmp(kind, "out_of_bounds") ? CUDA_ERROR_ILLEGAL_ADDRESS
                                                     : CUDA_ERROR_LAUNCH_FAILED;
    give_up(kind, text("%s:%d: %s, by ", file, line, what) + where(*block.running), code);
}

void thread_main() {
    Thread& me = *block.running;
    launched->function->kernel->run(launched->arguments.data());
    me.state = State::finished;
    yield();
}

void start(Thread& thread) {
    if (free_stacks.empty()) free_stacks.push_back(new_stack());
    thread.stack = free_stacks.back();
    free_stacks.pop_back();
    thread.fiber.start(thread.stack, thread_main);
    thread.state = State::ready;
}

void resume(Thread& thread) {
    if (thread.state == State::fresh) start(thread);
    block.running = &thread;
    state->thread = thread.index;
    state->lane = thread.lane;
    switch_fiber(scheduler, thread.fiber);
    if (failed) throw failure;
    if (thread.state != State::finished) return;
    free_stacks.push_back(thread.stack);
    thread.stack = nullptr;
    --block.live;
}

bool can_run(const Thread& thread) { return thread.state == State::fresh || thread.state == State::ready; }

// The lanes that this thread waits for, when all of them have come, or 0; exited threads are not waited for.
unsigned gather(const Warp& warp, const Thread& one) {
    unsigned group = 0;
    for (unsigned rest = one.mask; rest; rest &= rest - 1) {
        unsigned lane = static_cast<unsigned>(__builtin_ctz(rest));
        Thread* other = warp.lane(lane);
        if (!other || other->state == State::finished) continue;
        if (other->state != State::collective || other->mask != one.mask || other->what != one.what) return 0;
        group |= 1u << lane;
    }
    return group;
}

template <class Body> void each_lane(const Warp& warp, unsigned group, Body body) {
    for (; group; group &= group - 1) body(*warp.lane(static_cast<unsigned>(__builtin_ctz(group))));
}

uint64_t outcome(const Thread& one, unsigned group, const Warp& warp) {
    if (one.what == CUDASIM_SHUFFLE) {
        bool there = one.source < 32 && group >> one.source & 1;
        return there ? warp.lane(one.source)->value : ~uint64_t{0};  // undefined on a device: NaN here
    }
    uint64_t bits = 0;
    each_lane(warp, group, [&](const Thread& other) {
        bool set = one.what == CUDASIM_MATCH ? other.value == one.value : other.value != 0;
        bits |= uint64_t{set} << other.lane;
    });
    return bits;
}

bool run_collectives(const Warp& warp) {
    bool any = false;
    for (Thread* one = warp.first; one != warp.last; ++one) {
        unsigned group = one->state == State::collective ? gather(warp, *one) : 0;
        if (!group) continue;
        each_lane(warp, group, [&](Thread& member) { member.result = outcome(member, group, warp); });
        each_lane(warp, group, [&](Thread& member) { member.state = State::ready; });
        if (one->what == CUDASIM_SYNCWARP) {
            warp_met(static_cast<unsigned>(warp.first - block.threads.data()) / 32);
            count_meeting(Meeting::warp);
        }
        any = true;
    }
    return any;
}

bool run_threads(const Warp& warp) {
    bool any = false;
    for (Thread* thread : warp.order) {
        if (!can_run(*thread)) continue;
        resume(*thread);
        any = true;
    }
    return any;
}

// Nothing can go on: either all are at one barrier, or the kernel is wrong.
void release_barrier() {
    size_t waiting = 0, predicates = 0;
    const Thread *first = nullptr, *odd = nullptr;
    for (const Thread& thread : block.threads) {
        if (thread.state == State::collective) odd = &thread;
        if (thread.state != State::barrier) continue;
        if (!first) first = &thread;
        if (!(thread.site == first->site)) odd = &thread;
        ++waiting;
        predicates += thread.what != 0;
    }
    if (odd && odd->state == State::collective)
        throw Problem{"warp",
                      text("mask %#x at ", odd->mask) + odd->site.name() + ": not all of its threads arrive; " +
                          where(*odd) + text(" waits, as do %zu others", block.live - 1),
                      CUDA_ERROR_LAUNCH_FAILED};
    if (odd)
        throw Problem{"barrier",
                      "divergent: " + where(*first) + " waits at " + first->site.name() + ", " + where(*odd) + " at " +
                          odd->site.name(),
                      CUDA_ERROR_LAUNCH_FAILED};
    block_met();
    count_meeting(Meeting::block);
    for (Thread& thread : block.threads) {
        if (thread.state != State::barrier) continue;
        thread.state = State::ready;
        thread.result = predicates;
    }
}

}  // namespace

const CudasimCalls calls{barrier, collective, pipeline_copy, pipeline_commit, pipeline_wait, atomic, count_step, abort};

void begin_threads(const Launch& launch, CudasimState* its) {
    launched = &launch;
    state = its;
    failed = false;
}

void prepare_threads(const CudasimTriple& size) {
    size_t count = size_t{size.x} * size.y * size.z;
    for (Thread& thread : block.threads) {  // those that a failed kernel left behind
        if (thread.stack) free_stacks.push_back(thread.stack);
        thread.stack = nullptr;
    }
    block.threads.resize(count);
    block.live = count;
    for (size_t i = 0; i < count; ++i) {
        Thread& thread = block.threads[i];
        auto index = static_cast<unsigned>(i);
        thread.index = {index % size.x, index / size.x % size.y, index / size.x / size.y};
        thread.lane = index % 32;
        thread.state = State::fresh;
    }
    block.warps.clear();
    for (size_t first = 0; first < count; first += 32) {
        Thread* begin = &block.threads[first];
        Warp warp{begin, begin + std::min<size_t>(32, count - first), {}};
        for (Thread* thread = warp.first; thread != warp.last; ++thread) warp.order.push_back(thread);
        for (size_t i = warp.order.size(); i > 1; --i) std::swap(warp.order[i - 1], warp.order[draw(i)]);
        block.warps.push_back(std::move(warp));
    }
}

void run_turn() {
    std::vector<Warp>& warps = block.warps;
    bool any = false;
    for (size_t i = warps.size(); i > 1; --i) std::swap(warps[i - 1], warps[draw(i)]);
    for (Warp& warp : warps) {
        uint64_t turns = 1 + draw(4);  // some warps run far ahead of the others
        for (bool more = true; more && turns; --turns) {
            more = run_threads(warp);
            more |= run_collectives(warp);
            any |= more;
        }
    }
    if (!any && block.live) release_barrier();
}

unsigned running_thread() { return static_cast<unsigned>(block.running - block.threads.data()); }

}  // namespace cudasim

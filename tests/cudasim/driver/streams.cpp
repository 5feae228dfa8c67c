// Asynchronous work: a graph of pieces, run only when something waits for them, in a legal order drawn from the seed.
#include <algorithm>
#include <chrono>

#include "sim.h"

namespace cudasim {
namespace {

std::set<Stream*> streams;
std::set<Event*> events;
thread_local int depth = 0;

bool ready(const Work& work) {
    return std::all_of(work.after.begin(), work.after.end(), [](const WorkPtr& other) { return other->done; });
}

// Which of the ready pieces runs next. The latest first is the hardest on a program: every order that it forgot to ask
// for is broken. The other ways find what that one happens to keep.
struct Chooser {
    enum { LATEST, BY_STREAM, ANY } way;
    bool only_needed;
    std::map<Stream*, uint64_t> priorities;

    Chooser() {
        uint64_t drawn = draw(16);
        way = drawn < 12 ? LATEST : drawn < 14 ? BY_STREAM : ANY;
        only_needed = draw(2);
    }

    uint64_t priority(const Work& work) {
        if (way == LATEST) return work.number;
        if (way == ANY) return draw(1u << 30);
        return priorities.try_emplace(work.stream, draw(1u << 30)).first->second;
    }

    WorkPtr operator()(const std::set<Work*>& needed) {
        WorkPtr best;
        uint64_t highest = 0;
        for (const WorkPtr& work : sim().pending) {
            if ((only_needed && !needed.count(work.get())) || !ready(*work)) continue;
            uint64_t mine = priority(*work);
            if (!best || mine > highest) best = work, highest = mine;
        }
        return best;
    }
};

void depend(Work& work, const WorkPtr& on) {
    if (on && !on->done) work.after.push_back(on);
}

void finish(const WorkPtr& work) {
    work->done = true;
    work->finished_ms = sim().clock_ms;
    work->after.clear();
    work->run = nullptr;
    auto& pending = sim().pending;
    pending.erase(std::find(pending.begin(), pending.end(), work));
}

void execute(const WorkPtr& work) {
    Context& context = *work->stream->context;
    auto start = std::chrono::steady_clock::now();
    sim().executing = true;
    try {
        auto run = std::move(work->run);  // a failure elsewhere may drop this work while it runs
        work->run = nullptr;
        if (run) run();
    } catch (const Problem& what) {
        problem(what.kind, what.text);
        poison(context, what);
    }
    sim().executing = false;
    sim().idle.notify_all();
    std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    sim().clock_ms += std::max(took.count(), 0.001);
    if (!work->done) finish(work);
}

std::set<Work*> needed_by(const std::vector<WorkPtr>& targets) {
    std::set<Work*> needed;
    std::vector<WorkPtr> todo = targets;
    while (!todo.empty()) {
        WorkPtr work = todo.back();
        todo.pop_back();
        if (!work || work->done || !needed.insert(work.get()).second) continue;
        todo.insert(todo.end(), work->after.begin(), work->after.end());
    }
    return needed;
}

bool all_done(const std::vector<WorkPtr>& targets) {
    return std::all_of(targets.begin(), targets.end(), [](const WorkPtr& work) { return !work || work->done; });
}

// Asking whether something is done may find that time has passed meanwhile.
void let_time_pass() {
    if (sim().executing || sim().pending.empty()) return;
    Chooser choose;
    choose.only_needed = false;
    for (uint64_t steps = draw(4); steps > 0; --steps)
        if (WorkPtr work = choose({})) execute(work);
    close_memory();
}

Event& event_of(CUevent handle) {
    auto* event = reinterpret_cast<Event*>(handle);
    if (!events.count(event) || !event->live) fail(CUDA_ERROR_INVALID_HANDLE);
    return *event;
}

std::vector<WorkPtr> tails(Stream& stream) {
    std::vector<WorkPtr> found{stream.tail};
    if (stream.legacy)
        for (Stream* other : streams)
            if (other->blocking && other->context == stream.context) found.push_back(other->tail);
    return found;
}

void check(Context& context) {
    if (context.error) fail(context.error);
}

}  // namespace

Stream& stream_of(CUstream handle, Context& context) {
    if (!handle || handle == CU_STREAM_LEGACY) return context.legacy;
    auto* stream = reinterpret_cast<Stream*>(handle);
    if (!streams.count(stream) || !stream->live || !stream->context->live) fail(CUDA_ERROR_INVALID_HANDLE);
    return *stream;
}

WorkPtr enqueue(Stream& stream, std::string name, std::function<void()> run) {
    refuse_capturing(stream);
    auto work = std::make_shared<Work>();
    work->number = sim().next_work++;
    work->name = std::move(name);
    work->stream = &stream;
    work->run = std::move(run);
    for (const WorkPtr& tail : tails(stream)) depend(*work, tail);
    if (stream.blocking) depend(*work, stream.context->legacy.tail);
    stream.tail = work;
    sim().pending.push_back(work);
    return work;
}

void wait_for(const std::vector<WorkPtr>& targets) {
    Chooser choose;
    std::set<Work*> needed = needed_by(targets);
    while (!all_done(targets)) {
        if (sim().executing) {
            std::unique_lock<std::mutex> lock(sim().mutex, std::adopt_lock);
            sim().idle.wait(lock, [] { return !sim().executing; });
            lock.release();
            continue;
        }
        execute(choose(needed));
    }
    if (!sim().executing) close_memory();
}

void wait_for(Context& context) {
    std::vector<WorkPtr> all;
    for (const WorkPtr& work : sim().pending)
        if (work->stream->context == &context) all.push_back(work);
    wait_for(all);
}

void without_lock(const std::function<void()>& body) {
    sim().mutex.unlock();
    ++depth;
    try {
        body();
    } catch (...) {
        --depth;
        sim().mutex.lock();
        throw;
    }
    --depth;
    sim().mutex.lock();
}

bool inside_work() { return depth > 0; }

void poison(Context& context, const Problem& what) {
    if (!context.error) context.error = what.code;
    std::vector<WorkPtr> all = sim().pending;
    for (const WorkPtr& work : all) {
        if (work->stream->context != &context) continue;
        finish(work);
    }
}

}  // namespace cudasim

using namespace cudasim;

CUresult cuStreamCreate(CUstream* out, unsigned flags) {
    return call(OTHER, [&](Context& context) {
        if (flags & ~CU_STREAM_NON_BLOCKING) fail(CUDA_ERROR_INVALID_VALUE);
        auto* stream = new Stream{&context, false, !(flags & CU_STREAM_NON_BLOCKING)};
        streams.insert(stream);
        *out = reinterpret_cast<CUstream>(stream);
    });
}

CUresult cuStreamDestroy(CUstream handle) {
    return any_call(OTHER, [&] {
        Stream& stream = stream_of(handle, current());
        if (stream.legacy) fail(CUDA_ERROR_INVALID_HANDLE);
        stream.live = false;
    });
}

CUresult cuStreamSynchronize(CUstream handle) {
    return call(SYNC, [&](Context& context) {
        Stream& stream = stream_of(handle, context);
        refuse_capturing(stream);
        wait_for(tails(stream));
        waited();
        check(*stream.context);
    });
}

CUresult cuStreamQuery(CUstream handle) {
    return call(OTHER, [&](Context& context) {
        Stream& stream = stream_of(handle, context);
        refuse_capturing(stream);
        let_time_pass();
        check(*stream.context);
        if (!all_done(tails(stream))) fail(CUDA_ERROR_NOT_READY);
    });
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned) {
    return call(OTHER, [&](Context& context) {
        Stream& stream = stream_of(handle, context);
        refuse_capturing(stream);
        WorkPtr record = event_of(event).record;
        if (!record || record->done) return;
        WorkPtr wait = enqueue(stream, "a wait for an event", {});
        if (!wait->done) depend(*wait, record);
    });
}

CUresult cuEventCreate(CUevent* out, unsigned flags) {
    return call(OTHER, [&](Context& context) {
        auto* event = new Event{&context, flags};
        events.insert(event);
        *out = reinterpret_cast<CUevent>(event);
    });
}

CUresult cuEventDestroy(CUevent handle) {
    return any_call(OTHER, [&] { event_of(handle).live = false; });
}

CUresult cuEventRecord(CUevent handle, CUstream on) {
    return call(OTHER, [&](Context& context) {
        Event& event = event_of(handle);
        Stream& stream = stream_of(on, context);
        if (event.context != stream.context) {
            problem("context", "an event is recorded on a stream of another context");
            fail(CUDA_ERROR_INVALID_HANDLE);
        }
        event.record = enqueue(stream, "the record of an event", {});
    });
}

CUresult cuEventQuery(CUevent handle) {
    return call(OTHER, [&](Context&) {
        Event& event = event_of(handle);
        let_time_pass();
        check(*event.context);
        if (event.record && !event.record->done) fail(CUDA_ERROR_NOT_READY);
    });
}

CUresult cuEventSynchronize(CUevent handle) {
    return call(SYNC, [&](Context&) {
        Event& event = event_of(handle);
        wait_for({event.record});
        waited();
        check(*event.context);
    });
}

CUresult cuEventElapsedTime(float* ms, CUevent from, CUevent to) {
    return call(OTHER, [&](Context&) {
        Event &first = event_of(from), &last = event_of(to);
        if (!first.record || !last.record || ((first.flags | last.flags) & CU_EVENT_DISABLE_TIMING))
            fail(CUDA_ERROR_INVALID_HANDLE);
        if (!first.record->done || !last.record->done) fail(CUDA_ERROR_NOT_READY);
        *ms = static_cast<float>(last.record->finished_ms - first.record->finished_ms);
    });
}

CUresult cuCtxSynchronize() {
    return call(SYNC, [&](Context& context) {
        refuse_capturing_in(context);
        wait_for(context);
        waited();
        check(context);
    });
}

// For simulated libraries: work on the host that takes its turn in a stream, with the device's memory accessible. drop(data)
// is called once the work cannot come again, also where this call fails.
extern "C" int cudasim_enqueue(CUstream handle, void (*work)(void*), void* data, void (*drop)(void*),
                               const char* name) {
    std::shared_ptr<void> kept(data, drop);
    return call(LAUNCH, [&](Context& context) {
        submit(stream_of(handle, context), [=, title = std::string(name)](Stream& stream) {
            enqueue(stream, title, [=, owner = stream.context] {
                open_memory(owner);
                without_lock([=] { run_guarded([=] { work(kept.get()); }); });
                check_guards(title);
                device_wrote(0, UINTPTR_MAX);
            });
        });
    });
}

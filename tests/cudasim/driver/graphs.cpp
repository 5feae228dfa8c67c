// Graphs: what a stream captures, launched again and again. A launch puts the same pieces of work on a stream as the captured
// calls would have, so they wait for each other, are deferred and are watched as those are.
#include <utility>

#include "sim.h"

namespace cudasim {
namespace {

struct Graph {
    std::vector<Node> nodes;
};

// A graph that can be launched; it never overtakes itself.
struct Executable {
    Context* context;
    std::vector<Node> nodes;
    WorkPtr last = {};
};

std::set<Graph*> graphs;
std::set<Executable*> executables;

template <class Thing, class Handle> Thing& known(const std::set<Thing*>& things, Handle handle) {
    auto* thing = reinterpret_cast<Thing*>(handle);
    if (!things.count(thing)) fail(CUDA_ERROR_INVALID_VALUE);
    return *thing;
}

[[noreturn]] void spoil(Capture& capture, CUresult code) {
    bool before = std::exchange(capture.broken, true);
    fail(before ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : code);
}

bool unsafe(Kind kind) { return kind != COPY && kind != LAUNCH && kind != OTHER; }

}  // namespace

void refuse_while_capturing(Kind kind) {
    if (!unsafe(kind)) return;
    for (Stream* stream : sim().capturing) {
        if (stream->capture->thread == std::this_thread::get_id())
            spoil(*stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
}

void refuse_capturing(Stream& stream) {
    if (stream.capture) spoil(*stream.capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    for (Stream* other : sim().capturing)
        if (stream.legacy && other->blocking && other->context == stream.context)
            spoil(*other->capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
}

void refuse_capturing_in(Context& context) {
    for (Stream* stream : sim().capturing)
        if (stream->context == &context) spoil(*stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

void submit(Stream& stream, Node node) {
    if (!stream.capture) return node(stream);
    if (stream.capture->broken) fail(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    stream.capture->nodes.push_back(std::move(node));
}

void end_graphs(Context* context) {
    for (auto at = executables.begin(); at != executables.end();) {
        Executable* executable = *at;
        if (executable->context != context) {
            ++at;
            continue;
        }
        problem("leak", text("a graph of %zu pieces of work that can be launched", executable->nodes.size()));
        at = executables.erase(at);
        delete executable;
    }
}

}  // namespace cudasim

using namespace cudasim;

CUresult cuStreamBeginCapture(CUstream handle, CUstreamCaptureMode mode) {
    return call(OTHER, [&](Context& context) {
        Stream& stream = stream_of(handle, context);
        if (mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) fail(CUDA_ERROR_NOT_SUPPORTED);
        if (stream.legacy) fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        if (stream.capture) fail(CUDA_ERROR_ILLEGAL_STATE);
        stream.capture.reset(new Capture{std::this_thread::get_id()});
        sim().capturing.insert(&stream);
    });
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph* out) {
    *out = nullptr;
    return call(OTHER, [&](Context& context) {
        Stream& stream = stream_of(handle, context);
        if (!stream.capture) fail(CUDA_ERROR_ILLEGAL_STATE);
        if (stream.capture->thread != std::this_thread::get_id())
            spoil(*stream.capture, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
        auto capture = std::move(stream.capture);
        sim().capturing.erase(&stream);
        if (capture->broken) fail(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        auto* graph = new Graph{std::move(capture->nodes)};
        graphs.insert(graph);
        *out = reinterpret_cast<CUgraph>(graph);
    });
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph handle, unsigned long long flags) {
    return call(OTHER, [&](Context& context) {
        if (flags) fail(CUDA_ERROR_NOT_SUPPORTED);
        auto* executable = new Executable{&context, known(graphs, handle).nodes};
        executables.insert(executable);
        *out = reinterpret_cast<CUgraphExec>(executable);
    });
}

CUresult cuGraphDestroy(CUgraph handle) {
    return any_call(OTHER, [&] {
        Graph* graph = &known(graphs, handle);
        graphs.erase(graph);
        delete graph;
    });
}

CUresult cuGraphLaunch(CUgraphExec handle, CUstream on) {
    return call(LAUNCH, [&](Context& context) {
        Executable& executable = known(executables, handle);
        Stream& stream = stream_of(on, context);
        if (stream.context != executable.context) fail(CUDA_ERROR_INVALID_VALUE);
        WorkPtr begun = enqueue(stream, "a launch of a graph", {});
        if (!begun->done && executable.last && !executable.last->done) begun->after.push_back(executable.last);
        for (const Node& node : executable.nodes) node(stream);
        executable.last = stream.tail;
    });
}

// What has been launched is done all the same.
CUresult cuGraphExecDestroy(CUgraphExec handle) {
    return any_call(OTHER, [&] {
        Executable* executable = &known(executables, handle);
        executables.erase(executable);
        delete executable;
    });
}

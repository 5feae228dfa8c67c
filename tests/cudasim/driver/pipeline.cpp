// They happen when their thread waits for them and not before, so a missing wait shows. What they read may be read at any time
// from the call to the wait: both are watched.

#include <cstring>

#include "block.h"

namespace cudasim {
namespace {

struct Copy {
    void* to;
    const void* from;
    size_t bytes;
};

struct Pipeline {
    std::vector<Copy> open;
    std::vector<std::vector<Copy>> groups;
};

std::map<unsigned, Pipeline> pipelines;  // by thread

Pipeline& mine() { return pipelines[running_thread()]; }

}  // namespace

void begin_pipelines() { pipelines.clear(); }

void pipeline_copy(void* to, const void* from, size_t bytes) {
    count_copy(from, bytes, __builtin_return_address(0));
    memset(to, POISON, bytes);
    mine().open.push_back({to, from, bytes});
}

void pipeline_commit() {
    Pipeline& pipeline = mine();
    pipeline.groups.push_back(std::move(pipeline.open));
    pipeline.open.clear();
}

void pipeline_wait(size_t left) {
    auto& groups = mine().groups;
    for (; groups.size() > left; groups.erase(groups.begin())) {
        for (const Copy& copy : groups.front()) {
            watch(reinterpret_cast<uintptr_t>(copy.from), copy.bytes, false);
            watch(reinterpret_cast<uintptr_t>(copy.to), copy.bytes, true);
            memcpy(copy.to, copy.from, copy.bytes);
        }
    }
}

}  // namespace cudasim

// They happen when their thread waits for them and not before, so a missing wait shows. What they read may be read at any time
// from the call to the wait: both are watched.
#include "pipeline.h"

#include <cstring>

#include "block.h"
#include "races.h"
#include "traffic.h"

namespace cudasim {
namespace {

struct Copy {
    void* to;
    const void* from;
    size_t bytes, zeros;  // of all bytes the last are zeros
};

struct Pipeline {
    std::vector<Copy> open;
    std::vector<std::vector<Copy>> groups;
};

std::map<unsigned, Pipeline> pipelines;  // by thread

Pipeline& mine() { return pipelines[running_thread()]; }

}  // namespace

void begin_pipelines() { pipelines.clear(); }

void pipeline_copy(void* to, const void* from, size_t bytes, size_t zeros) {
    count_copy(from, bytes - zeros, __builtin_return_address(0));
    memset(to, POISON, bytes);
    mine().open.push_back({to, from, bytes, zeros});
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
            watch(reinterpret_cast<uintptr_t>(copy.from), copy.bytes - copy.zeros, false);
            watch(reinterpret_cast<uintptr_t>(copy.to), copy.bytes, true);
            memcpy(copy.to, copy.from, copy.bytes - copy.zeros);
            memset(static_cast<char*>(copy.to) + copy.bytes - copy.zeros, 0, copy.zeros);
        }
    }
}

}  // namespace cudasim

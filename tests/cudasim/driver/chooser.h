// In which order work that could run does run.
#pragma once
#include <algorithm>

#include "sim.h"

namespace cudasim {

inline bool ready(const Work& work) {
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

}  // namespace cudasim

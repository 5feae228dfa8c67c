// How often shared memory has to be passed over for a request of a warp.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace cudasim {

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
inline Passes passes(const std::vector<Span>& spans) {
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

}  // namespace cudasim

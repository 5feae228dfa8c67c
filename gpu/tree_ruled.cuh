// A node of a tree that has a bias, or that moves by more than plain SGD (visit.cuh), or whose examples have weights.
//
// A visit of a node is a group of examples that learn together, one example where they do not: their gradients are summed,
// and the row moves by the sum when the next group begins. The gradient of one example is -miss h, so its norm is known from
// that of h, which the warp sums up beside the score.
#pragma once

#include "tree_node.cuh"

// What a warp needs to know beside.
struct RuledStep : Step {
    const float *weight;  // (B,) of the examples; null: all 1
    float *biases;        // (V - 1,); null: none
    float *squares;       // (V - 1,): one a row; (V - 1, D) where `each`; null: none
    float *bias_squares;  // (V - 1,) where `each` and there are biases
    bool each;
};

// A node's numbers beside its row, the same in every lane.
struct Beside {
    float bias, bias_square, square;

    __device__ __forceinline__ void take(const RuledStep &step, const Node &node)
    {
        bias = step.biases ? step.biases[node.id] : 0;
        bias_square = step.each && step.biases ? step.bias_squares[node.id] : 0;
        square = !step.each && step.squares ? step.squares[node.id] : 0;
    }

    __device__ __forceinline__ void put(const RuledStep &step, const Node &node)
    {
        if (lane()) return;
        if (step.biases) step.biases[node.id] = bias;
        if (step.each && step.biases) step.bias_squares[node.id] = bias_square;
        if (!step.each && step.squares) step.squares[node.id] = square;
    }

    // Does a visit need the norm of its gradient?
    __device__ __forceinline__ static bool measured(const RuledStep &step)
    {
        return step.squares && !step.each;
    }

    // The bias moves against its gradient g, by a visit whose gradient has the square norm2 of a norm, this g in it: the step
    // of a row without a square for each number.
    __device__ __forceinline__ float visit(const RuledStep &step, float norm2, float g)
    {
        if (step.each) {
            if (step.biases) bias = moved(bias, bias_square, g, step.rate);
            return step.rate;
        }
        const float now = step.squares ? step_of_row(square, norm2 / (step.D + (step.biases != nullptr)), step.rate) : step.rate;
        if (step.biases) bias = fmaf(-now, g, bias);
        return now;
    }
};

// The miss of an example with its weight, and the log-odds of its turn.
__device__ __forceinline__ float weighed(const RuledStep &step, float score, bool turn, float *toward, int b)
{
    *toward = turn ? score : -score;
    return (step.weight ? step.weight[b] : 1) * miss_of(*toward, turn);
}

// w is the row before a group, g the gradient of those met so far, of which there are `members`.
template <int CHUNKS> struct Ruled {
    float w[CHUNKS], g[CHUNKS], s[CHUNKS], g_bias, norm2;
    int members;
    Beside beside;

    __device__ __forceinline__ void take(const RuledStep &step, const Node &node)
    {
        beside.take(step, node);
        members = 0;
        g_bias = norm2 = 0;
#pragma unroll
        for (int c = 0; c < CHUNKS; ++c) {
            const int d = 32 * c + lane();
            w[c] = d < step.D ? node.row[d] : 0;
            s[c] = step.each && d < step.D ? step.squares[(int64)node.id * step.D + d] : 0;
            g[c] = 0;
        }
    }

    // The visit of the group that has ended.
    __device__ __forceinline__ void settle(const RuledStep &step)
    {
        if (!__any_sync(FULL, members)) return;
        step_of_chain();
        if (__any_sync(FULL, members > 1) && Beside::measured(step)) {
            float product = 0;
#pragma unroll
            for (int c = 0; c < CHUNKS; ++c) product = fmaf(g[c], g[c], product);
            norm2 = sum(product) + (step.biases ? g_bias * g_bias : 0);
        }
        const float now = beside.visit(step, norm2, g_bias);
#pragma unroll
        for (int c = 0; c < CHUNKS; ++c) {
            w[c] = step.each ? moved(w[c], s[c], g[c], step.rate) : fmaf(-now, g[c], w[c]);
            g[c] = 0;
        }
        g_bias = 0;
        members = 0;
    }

    // It meets COUNT examples, of which only the first may begin a group.
    template <int COUNT>
    __device__ __forceinline__ void visit(const RuledStep &step, const Node &node, const Example<CHUNKS> *examples)
    {
        if (__any_sync(FULL, examples[0].start())) settle(step);
        float miss[COUNT], size = 0;
        score<CHUNKS, COUNT>(miss, w, examples);
        if (COUNT == 1 && Beside::measured(step)) {
            float product = 0;
#pragma unroll
            for (int c = 0; c < CHUNKS; ++c) product = fmaf(examples[0].h[c], examples[0].h[c], product);
            size = sum(product);
        }
#pragma unroll
        for (int k = 0; k < COUNT; ++k) {
            float toward;
            miss[k] = weighed(step, miss[k] + beside.bias, examples[k].turn(), &toward, examples[k].b);
            step.towards[examples[k].place] = toward;
        }
        norm2 = miss[0] * miss[0] * (size + (step.biases != nullptr));  // where the group ends here
#pragma unroll
        for (int k = 0; k < COUNT; ++k) {
            float *term = step.terms + (int64)examples[k].place * step.pitch + lane();
#pragma unroll
            for (int c = 0; c < CHUNKS; ++c) {
                g[c] = fmaf(-miss[k], examples[k].h[c], g[c]);
                term[32 * c] = miss[k] * w[c];
            }
            g_bias -= miss[k];
        }
        members += COUNT;
    }

    __device__ __forceinline__ void put(const RuledStep &step, const Node &node)
    {
        settle(step);
        beside.put(step, node);
#pragma unroll
        for (int c = 0; c < CHUNKS; ++c) {
            const int d = 32 * c + lane();
            if (d >= step.D) continue;
            node.row[d] = w[c];
            if (step.each) step.squares[(int64)node.id * step.D + d] = s[c];
        }
    }
};

// The same for rows of any width.
struct RuledWide {
    Beside beside;

    __device__ __forceinline__ void take(const RuledStep &step, const Node &node) { beside.take(step, node); }

    __device__ __forceinline__ float weigh(const RuledStep &step, float score, bool turn, float *toward, int b)
    {
        return weighed(step, score + beside.bias, turn, toward, b);
    }

    // The gradient is summed twice: for its norm, and to move the row.
    __device__ __forceinline__ void move(const RuledStep &step, const Node &node, Group &group)
    {
        if (!__any_sync(FULL, group.members)) return;
        const float g_bias = sum(lane() < group.members ? -group.miss : 0);
        float total = 0;
        if (Beside::measured(step))
            for (int first = 0; first < step.D; first += 32) {
                const float g = group.along(step, -group.miss, first + lane(), 0);
                total = fmaf(g, g, total);
            }
        const float now = beside.visit(step, sum(total) + (step.biases ? g_bias * g_bias : 0), g_bias);
        for (int first = 0; first < step.D; first += 32) {
            const int d = first + lane();
            const float g = group.along(step, -group.miss, d, 0);
            if (d >= step.D) continue;
            const int64 at = (int64)node.id * step.D + d;
            node.row[d] = step.each ? moved(node.row[d], step.squares[at], g, step.rate) : fmaf(-now, g, node.row[d]);
        }
        beside.put(step, node);
    }
};

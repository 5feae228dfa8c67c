// A node of a tree that has a bias, or that moves by more than plain SGD (visit.cuh), or whose examples have weights.
//
// The gradient of an example is -miss h, so its norm is known from that of h, which the warp sums up beside the score.
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

template <int CHUNKS> struct Ruled {
    float w[CHUNKS], s[CHUNKS];
    Beside beside;

    __device__ __forceinline__ void take(const RuledStep &step, const Node &node)
    {
        beside.take(step, node);
#pragma unroll
        for (int c = 0; c < CHUNKS; ++c) {
            const int d = 32 * c + lane();
            w[c] = d < step.D ? node.row[d] : 0;
            s[c] = step.each && d < step.D ? step.squares[(int64)node.id * step.D + d] : 0;
        }
    }

    __device__ __forceinline__ void visit(const RuledStep &step, const Node &node, const Example<CHUNKS> &example)
    {
        step_of_chain();
        const float found = score<CHUNKS>(w, example);
        float size = 0, toward;
        if (Beside::measured(step)) {
            float product = 0;
#pragma unroll
            for (int c = 0; c < CHUNKS; ++c) product = fmaf(example.h[c], example.h[c], product);
            size = sum(product);
        }
        const float miss = weighed(step, found + beside.bias, example.turn(), &toward, example.b);
        step.towards[example.place] = toward;
        const float now = beside.visit(step, miss * miss * (size + (step.biases != nullptr)), -miss);
        float *term = step.terms + (int64)example.place * step.pitch + lane();
#pragma unroll
        for (int c = 0; c < CHUNKS; ++c) {
            const float g = -miss * example.h[c];
            term[32 * c] = miss * w[c];
            w[c] = step.each ? moved(w[c], s[c], g, step.rate) : fmaf(-now, g, w[c]);
        }
    }

    __device__ __forceinline__ void put(const RuledStep &step, const Node &node)
    {
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

    // The gradient is computed twice: for its norm, and to move the row.
    __device__ __forceinline__ void move(const RuledStep &step, const Node &node, int b, float miss)
    {
        const float *h = step.hidden + (int64)b * step.D;
        float norm2 = 0;
        if (Beside::measured(step)) {
            for (int d = lane(); d < step.D; d += 32) norm2 = fmaf(-miss * h[d], -miss * h[d], norm2);
            norm2 = sum(norm2) + (step.biases ? miss * miss : 0);
        }
        const float now = beside.visit(step, norm2, -miss);
        for (int d = lane(); d < step.D; d += 32) {
            const float g = -miss * h[d];
            const int64 at = (int64)node.id * step.D + d;
            node.row[d] = step.each ? moved(node.row[d], step.squares[at], g, step.rate) : fmaf(-now, g, node.row[d]);
        }
        beside.put(step, node);
    }
};

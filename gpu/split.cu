// The top of a tree, K nodes, as dense products: what lies between the products. Twin of cpu/split.py.
//
// leaf_up, node_up  2 * parent + turn of each class and of each node, -1 at the root: those of the top (cpu/tree/tree.py)
// scores, misses (B, K)
#include "include/logistic.cuh"
#include "include/warp.cuh"

// misses[b][n] = turn - logistic(scores[b][n] + biases[n]) and loss[b] = the sum of costs at the nodes n of b's path, both times
// weight[b]; the other misses are 0 already. biases and weight may be null
//   work    a thread an example, up from its lowest node
//   launch  grid: B / 64, block: 64
//   bound   latency: a pointer after another, as many as the path has nodes in the top
//   order   from the lowest node up
extern "C" __global__ void judge(float *misses, float *loss, const float *scores, const float *biases, const int *leaf_up,
                                 const int *node_up, const int *target, const float *weight, int B, int K)
{
    const int b = blockIdx.x * blockDim.x + threadIdx.x;
    if (b >= B) return;
    const float times = weight ? weight[b] : 1;
    float total = 0;
    for (int up = leaf_up[target[b]]; up >= 0; up = node_up[up >> 1]) {
        const int64 at = (int64)b * K + (up >> 1);
        const float score = scores[at] + (biases ? biases[up >> 1] : 0), toward = up & 1 ? score : -score;
        misses[at] = times * miss_of(toward, up & 1);
        total += cost(toward);
    }
    loss[b] = times * total;
}

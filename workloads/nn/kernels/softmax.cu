// Softmax over the edges into each target, head by head, and its gradient: the weights of graph attention.
#include "kernel.cuh"

// A row of threads takes a target and head; a target with `hub_edges` edges or more has a whole block of its own, in a
// second kernel over the list of such targets.
struct Targets {
    const u32* start;
    // The source of each edge.
    const u32* source;
    const u32* hub_node;
    u32 nodes;
    u32 hubs;
    u32 hub_edges;
    u32 heads;
};

// Logits, `[edges, heads]`; or, where there are none, scores at both ends, `[sources, heads]` and `[targets, heads]`, of
// whose sum what is negative is multiplied by `slope`.
struct Logits {
    const void* given;
    const void* source;
    const void* target;
    double slope;
};

struct Group {
    u64 node;
    u32 head;
    u32 begin;
    u32 end;
};

// The target and head of these threads; one without edges where there is none.
template <bool HUBS> __device__ inline Group group_of(const Targets& t) {
    u64 pair = HUBS ? blockIdx.x : u64(blockIdx.x) * blockDim.y + threadIdx.y;
    if (pair >= u64(HUBS ? t.hubs : t.nodes) * t.heads) return {0, 0, 0, 0};
    u64 node = pair / t.heads;
    if (HUBS) node = t.hub_node[node];
    u32 begin = t.start[node], end = t.start[node + 1];
    if (!HUBS && end - begin >= t.hub_edges) end = begin;
    return {node, u32(pair % t.heads), begin, end};
}

// The sum or maximum over all threads of the group, in all of them and always in the same order.
template <bool HUBS, bool LARGEST, class W> __device__ inline W reduce(W value) {
    u32 lanes = HUBS ? 32 : blockDim.x;
    value = LARGEST ? largest_of_lanes(value, lanes) : sum_of_lanes(value, lanes);
    if (!HUBS) return value;
    __shared__ W warps[8];
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
    __syncthreads();
    W all = warps[0];
    for (u32 warp = 1; warp < blockDim.x / 32; ++warp) {
        W other = warps[warp];
        all = LARGEST ? (other > all ? other : all) : all + other;
    }
    __syncthreads();
    return all;
}

template <class T> __device__ inline Wide<T> sum_of_scores(const Targets& t, const Logits& l, const Group& g, u64 edge) {
    return at<T>(l.source, u64(t.source[edge]) * t.heads + g.head) + at<T>(l.target, g.node * t.heads + g.head);
}

template <class T> __device__ inline Wide<T> logit(const Targets& t, const Logits& l, const Group& g, u64 edge) {
    if (l.given) return at<T>(l.given, edge * t.heads + g.head);
    Wide<T> sum = sum_of_scores<T>(t, l, g, edge);
    return sum > 0 ? sum : sum * Wide<T>(l.slope);
}

struct SoftmaxArguments {
    Targets targets;
    Logits logits;
    // `[edges, heads]`
    void* out;
};

template <class T, bool HUBS> __device__ inline void softmax(const SoftmaxArguments& a) {
    typedef Wide<T> W;
    Group g = group_of<HUBS>(a.targets);
    W highest = -INFINITY;
    for (u64 edge = g.begin + threadIdx.x; edge < g.end; edge += blockDim.x) {
        W value = logit<T>(a.targets, a.logits, g, edge);
        highest = value > highest ? value : highest;
    }
    highest = reduce<HUBS, true>(highest);
    W sum = 0;
    for (u64 edge = g.begin + threadIdx.x; edge < g.end; edge += blockDim.x)
        sum += exponential(logit<T>(a.targets, a.logits, g, edge) - highest);
    sum = reduce<HUBS, false>(sum);
    for (u64 edge = g.begin + threadIdx.x; edge < g.end; edge += blockDim.x) {
        W value = exponential(logit<T>(a.targets, a.logits, g, edge) - highest);
        put<T>(a.out, edge * a.targets.heads + g.head, value / sum);
    }
}

struct SoftmaxGradientArguments {
    Targets targets;
    Logits logits;
    // The softmax and what came back for it, `[edges, heads]`.
    const void* result;
    const void* gradient;
    // The gradient of the logits, or of the sums of scores, `[edges, heads]`.
    void* out;
    // Its sum over the edges of each target, `[targets, heads]`; not wanted where there is none.
    void* of_targets;
};

template <class T, bool HUBS> __device__ inline void softmax_gradient(const SoftmaxGradientArguments& a) {
    typedef Wide<T> W;
    Group g = group_of<HUBS>(a.targets);
    u32 heads = a.targets.heads;
    W product = 0;
    for (u64 edge = g.begin + threadIdx.x; edge < g.end; edge += blockDim.x)
        product += at<T>(a.result, edge * heads + g.head) * at<T>(a.gradient, edge * heads + g.head);
    product = reduce<HUBS, false>(product);
    W sum = 0;
    for (u64 edge = g.begin + threadIdx.x; edge < g.end; edge += blockDim.x) {
        u64 place = edge * heads + g.head;
        W value = at<T>(a.result, place) * (at<T>(a.gradient, place) - product);
        if (!a.logits.given && a.logits.source && !(sum_of_scores<T>(a.targets, a.logits, g, edge) > 0))
            value *= W(a.logits.slope);
        put<T>(a.out, place, value);
        sum += value;
    }
    if (!a.of_targets) return;
    sum = reduce<HUBS, false>(sum);
    u64 pair = HUBS ? blockIdx.x : u64(blockIdx.x) * blockDim.y + threadIdx.y;
    bool is_any = pair < u64(HUBS ? a.targets.hubs : a.targets.nodes) * heads;
    // A hub's place is written by the kernel over hubs alone.
    bool is_hub = is_any && a.targets.start[g.node + 1] - a.targets.start[g.node] >= a.targets.hub_edges;
    if (is_any && is_hub == HUBS && threadIdx.x == 0) put<T>(a.of_targets, g.node * heads + g.head, sum);
}

#define SOFTMAX_KERNELS(T, type)                                                                                       \
    KERNEL(softmax_##type, SoftmaxArguments, (softmax<T, false>(a)))                                                   \
    KERNEL(softmax_hubs_##type, SoftmaxArguments, (softmax<T, true>(a)))                                               \
    KERNEL(softmax_gradient_##type, SoftmaxGradientArguments, (softmax_gradient<T, false>(a)))                         \
    KERNEL(softmax_gradient_hubs_##type, SoftmaxGradientArguments, (softmax_gradient<T, true>(a)))
FOR_TYPES(SOFTMAX_KERNELS)

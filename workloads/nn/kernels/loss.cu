// Cross-entropy of chosen rows. Sums are in f64 throughout: there are few of them, and the loss is what is looked at.
#include "kernel.cuh"

struct LossArguments {
    // `[rows, classes]`
    const void* logits;
    // The row and label of each pair, in their order.
    const u32* row;
    const u32* label;
    // Pairs by row: row `group_row[g]` has the pairs whose labels are `group_label[group_start[g] .. group_start[g + 1]]`.
    const u32* group_row;
    const u32* group_start;
    const u32* group_label;
    // Loss of each pair.
    double* losses;
    // One number each.
    void* out;
    const void* upstream;
    // `[rows, classes]`, zeros on entry.
    void* gradient;
    u64 pairs;
    u64 groups;
    u64 classes;
};

template <class T> __device__ inline double log_sum_exp(const LossArguments& a, u64 row, u32 lanes) {
    double largest = -INFINITY, sum = 0;
    for (u64 i = threadIdx.x; i < a.classes; i += lanes) {
        double value = at<T>(a.logits, row * a.classes + i);
        largest = value > largest ? value : largest;
    }
    largest = largest_of_lanes(largest, lanes);
    for (u64 i = threadIdx.x; i < a.classes; i += lanes) sum += exp(double(at<T>(a.logits, row * a.classes + i)) - largest);
    return largest + log(sum_of_lanes(sum, lanes));
}

// A row of 32 threads takes a pair.
template <class T> __device__ inline void pair_losses(const LossArguments& a) {
    u64 pair = u64(blockIdx.x) * blockDim.y + threadIdx.y;
    bool is_any = pair < a.pairs;
    u64 row = a.row[is_any ? pair : 0];
    double log_sum = log_sum_exp<T>(a, row, blockDim.x);
    if (is_any && threadIdx.x == 0) a.losses[pair] = log_sum - double(at<T>(a.logits, row * a.classes + a.label[pair]));
}

// One warp.
template <class T> __device__ inline void mean_loss(const LossArguments& a) {
    double sum = 0;
    for (u64 pair = threadIdx.x; pair < a.pairs; pair += blockDim.x) sum += a.losses[pair];
    sum = sum_of_lanes(sum, blockDim.x);
    if (threadIdx.x == 0) put<T>(a.out, 0, Wide<T>(sum / double(a.pairs)));
}

// A row of 32 threads takes a row of the logits.
template <class T> __device__ inline void loss_gradient(const LossArguments& a) {
    u64 group = u64(blockIdx.x) * blockDim.y + threadIdx.y;
    bool is_any = group < a.groups;
    u64 row = a.group_row[is_any ? group : 0];
    double log_sum = log_sum_exp<T>(a, row, blockDim.x);
    if (!is_any) return;
    double share = double(at<T>(a.upstream, 0)) / double(a.pairs);
    u32 begin = a.group_start[group], end = a.group_start[group + 1];
    for (u64 i = threadIdx.x; i < a.classes; i += blockDim.x) {
        double value = share * double(end - begin) * exp(double(at<T>(a.logits, row * a.classes + i)) - log_sum);
        for (u32 pair = begin; pair < end; ++pair) value -= a.group_label[pair] == i ? share : 0.0;
        put<T>(a.gradient, row * a.classes + i, Wide<T>(value));
    }
}

#define LOSS_KERNELS(T, type)                                                                                          \
    KERNEL(pair_losses_##type, LossArguments, pair_losses<T>(a))                                                       \
    KERNEL(mean_loss_##type, LossArguments, mean_loss<T>(a))                                                           \
    KERNEL(loss_gradient_##type, LossArguments, loss_gradient<T>(a))
LOSS_KERNELS(float, f32)
LOSS_KERNELS(double, f64)

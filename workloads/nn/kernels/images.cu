// Graphs of images: sums over the neighbours on a grid of pixels, the nearest nodes of each by their features, and the
// largest difference to them.
#include "kernel.cuh"

struct GridArguments {
    // `[images * height * width, columns]`
    const void* x;
    void* out;
    u64 count;
    u64 columns;
    u32 height;
    u32 width;
};

// The sum of the up to eight pixels around each; its own transpose.
template <class T> __device__ inline void neighbour_sum(const GridArguments& a) {
    for (u64 i = first_element(); i < a.count; i += all_threads()) {
        u64 pixel = position_of(i, a.columns).row;
        Position place = position_of(pixel, a.width);
        long long row = position_of(place.row, a.height).column, column = place.column;
        Wide<T> sum = 0;
        for (long long y = row - 1; y <= row + 1; ++y) {
            for (long long x = column - 1; x <= column + 1; ++x) {
                bool is_other = y != row || x != column;
                if (is_other && y >= 0 && y < a.height && x >= 0 && x < a.width) {
                    long long there = (y - row) * (long long)a.width + (x - column);
                    sum += at<T>(a.x, u64((long long)i + there * (long long)a.columns));
                }
            }
        }
        put<T>(a.out, i, sum);
    }
}

struct NearestArguments {
    // How alike any two nodes of an image are, `[images, nodes, nodes]`.
    const void* likeness;
    // Every `dilation`-th of the nodes most like each, most like first, `[images * nodes, count]`, numbered in the image.
    u32* nearest;
    u64 rows;
    u32 nodes;
    u32 count;
    u32 dilation;
    u32 unused;
};

// A row of 32 threads takes a node: it finds the most alike of those that come after the last one found. Equal ones
// come in the order of their numbers; what is no number comes last.
template <class T> __device__ inline void nearest(const NearestArguments& a) {
    typedef Wide<T> W;
    u64 row = u64(blockIdx.x) * blockDim.y + threadIdx.y;
    bool is_any = row < a.rows;
    u64 start = (is_any ? row : 0) * a.nodes;
    W last = INFINITY;
    u32 last_node = 0;
    bool is_first = true;
    for (u32 rank = 0; rank < a.count * a.dilation; ++rank) {
        W best = -INFINITY;
        u32 best_node = 0xffffffffu;
        for (u32 node = threadIdx.x; node < a.nodes; node += blockDim.x) {
            W value = at<T>(a.likeness, start + node);
            value = value == value ? value : -INFINITY;
            bool is_left = is_first || value < last || (value == last && node > last_node);
            if (is_left && (best_node == 0xffffffffu || value > best)) {
                best = value;
                best_node = node;
            }
        }
        for (u32 distance = blockDim.x / 2; distance > 0; distance /= 2) {
            W other = __shfl_xor_sync(0xffffffffu, best, distance);
            u32 other_node = __shfl_xor_sync(0xffffffffu, best_node, distance);
            bool is_better = best_node == 0xffffffffu || other > best || (other == best && other_node < best_node);
            if (other_node != 0xffffffffu && is_better) {
                best = other;
                best_node = other_node;
            }
        }
        last = best;
        last_node = best_node;
        is_first = false;
        if (is_any && threadIdx.x == 0 && rank % a.dilation == 0) a.nearest[row * a.count + rank / a.dilation] = best_node;
    }
}

struct MaxRelativeArguments {
    // `[images * nodes, channels]`, or the gradient of the differences.
    const void* x;
    const u32* nearest;
    // The differences, or the gradient of x.
    void* out;
    // Which node of the image holds each maximum.
    u32* holder;
    u64 count;
    u64 channels;
    u32 nodes;
    u32 neighbours;
};

template <class T> __device__ inline void max_relative(const MaxRelativeArguments& a) {
    for (u64 i = first_element(); i < a.count; i += all_threads()) {
        Position place = position_of(i, a.channels);
        u64 row = place.row, channel = place.column, image = row - position_of(row, a.nodes).column;
        u32 holder = a.nearest[row * a.neighbours];
        Wide<T> best = at<T>(a.x, (image + holder) * a.channels + channel);
        for (u32 k = 1; k < a.neighbours; ++k) {
            u32 node = a.nearest[row * a.neighbours + k];
            Wide<T> value = at<T>(a.x, (image + node) * a.channels + channel);
            if (value > best) {
                best = value;
                holder = node;
            }
        }
        put<T>(a.out, i, best - at<T>(a.x, i));
        a.holder[i] = holder;
    }
}

// Each node looks at all of its image for maxima that it holds: images have few nodes, and the sum keeps its order.
template <class T> __device__ inline void max_relative_gradient(const MaxRelativeArguments& a) {
    for (u64 i = first_element(); i < a.count; i += all_threads()) {
        Position place = position_of(i, a.channels);
        u64 row = place.row, channel = place.column, image = row - position_of(row, a.nodes).column;
        Wide<T> sum = 0;
        for (u32 node = 0; node < a.nodes; ++node) {
            u64 other = (image + node) * a.channels + channel;
            if (a.holder[other] == u32(row - image)) sum += at<T>(a.x, other);
        }
        put<T>(a.out, i, sum - at<T>(a.x, i));
    }
}

#define IMAGE_KERNELS(T, type)                                                                                         \
    KERNEL(neighbour_sum_##type, GridArguments, neighbour_sum<T>(a))                                                   \
    KERNEL(nearest_##type, NearestArguments, nearest<T>(a))                                                            \
    KERNEL(max_relative_##type, MaxRelativeArguments, max_relative<T>(a))                                              \
    KERNEL(max_relative_gradient_##type, MaxRelativeArguments, max_relative_gradient<T>(a))
FOR_TYPES(IMAGE_KERNELS)

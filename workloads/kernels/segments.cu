// The maximum of each column over the nodes of each graph, and sums over the neighbours on a grid of pixels.
#include "kernel.cuh"

struct SegmentArguments {
    // Segment `g` is the rows `member[start[g] .. start[g + 1]]`.
    const u32* start;
    const u32* member;
    // `[rows, width]`, or the gradient of the maxima, `[segments, width]`.
    const void* x;
    // The maxima, or the gradient of the rows.
    void* out;
    // The row that holds each maximum, `[segments, width]`.
    u32* holder;
    u64 segments;
    u64 width;
};

template <class T> __device__ inline void segment_max(const SegmentArguments& a) {
    for (u64 i = first_element(); i < a.segments * a.width; i += all_threads()) {
        u64 segment = i / a.width, column = i % a.width;
        u32 holder = 0xffffffffu;
        Wide<T> best = 0;
        for (u64 place = a.start[segment]; place < a.start[segment + 1]; ++place) {
            u32 member = a.member[place];
            Wide<T> value = at<T>(a.x, u64(member) * a.width + column);
            if (holder == 0xffffffffu || value > best) {
                best = value;
                holder = member;
            }
        }
        put<T>(a.out, i, best);
        a.holder[i] = holder;
    }
}

// Every row is in one segment, so every element of the result is written once.
template <class T> __device__ inline void segment_max_gradient(const SegmentArguments& a) {
    for (u64 i = first_element(); i < a.segments * a.width; i += all_threads()) {
        u64 segment = i / a.width, column = i % a.width;
        u32 holder = a.holder[i];
        Wide<T> gradient = at<T>(a.x, i);
        for (u64 place = a.start[segment]; place < a.start[segment + 1]; ++place) {
            u32 member = a.member[place];
            put<T>(a.out, u64(member) * a.width + column, member == holder ? gradient : Wide<T>(0));
        }
    }
}

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
        u64 pixel = i / a.columns;
        long long row = pixel / a.width % a.height, column = pixel % a.width;
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

#define SEGMENT_KERNELS(T, type)                                                                                       \
    KERNEL(segment_max_##type, SegmentArguments, segment_max<T>(a))                                                    \
    KERNEL(segment_max_gradient_##type, SegmentArguments, segment_max_gradient<T>(a))                                  \
    KERNEL(neighbour_sum_##type, GridArguments, neighbour_sum<T>(a))
FOR_TYPES(SEGMENT_KERNELS)

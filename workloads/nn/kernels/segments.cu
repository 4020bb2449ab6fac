// The maximum of each column over the nodes of each graph.
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
        Position start = position_of(i, a.width);
        u64 segment = start.row, column = start.column;
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
        Position start = position_of(i, a.width);
        u64 segment = start.row, column = start.column;
        u32 holder = a.holder[i];
        Wide<T> gradient = at<T>(a.x, i);
        for (u64 place = a.start[segment]; place < a.start[segment + 1]; ++place) {
            u32 member = a.member[place];
            put<T>(a.out, u64(member) * a.width + column, member == holder ? gradient : Wide<T>(0));
        }
    }
}

#define SEGMENT_KERNELS(T, type)                                                                                       \
    KERNEL(segment_max_##type, SegmentArguments, segment_max<T>(a))                                                    \
    KERNEL(segment_max_gradient_##type, SegmentArguments, segment_max_gradient<T>(a))
FOR_TYPES(SEGMENT_KERNELS)

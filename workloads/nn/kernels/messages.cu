// Sums and extrema of messages over the edges of each node, and one row for each edge: g-SpMM and g-SDDMM.
#include "messages.cuh"
#include "work.cuh"

struct SumArguments {
    Messages messages;
    Work work;
    // `[nodes, columns]`
    void* out;
    // `[parts, columns]` in the wide type.
    void* partial;
    u32 mean;
    u32 unused;
};

// A row of threads takes a node, each thread some columns of it. Edges go by four at a time, so that as many rows are on
// their way from memory, and are added one after the other.
template <class T, Kind KIND, int N> __device__ inline void sum_rows(const SumArguments& a) {
    typedef Wide<T> W;
    u64 item = u64(blockIdx.x) * blockDim.y + threadIdx.y;
    Piece piece = piece_of(a.work, item);
    u64 total = u64(a.messages.heads) * a.messages.width;
    u64 column = (u64(blockIdx.y) * blockDim.x + threadIdx.x) * N;
    if (!piece.is_any) return;
    for (; column < total; column += u64(gridDim.y) * blockDim.x * N) {
        W sum[N] = {};
        u64 edge = piece.begin;
        for (; edge + 4 <= piece.end; edge += 4) {
            W value[4][N];
            for (int i = 0; i < 4; ++i) values<T, KIND, N>(a.messages, piece.node, edge + i, column, value[i]);
            for (int i = 0; i < 4; ++i)
                for (int lane = 0; lane < N; ++lane) sum[lane] += value[i][lane];
        }
        for (; edge < piece.end; ++edge) {
            W value[N];
            values<T, KIND, N>(a.messages, piece.node, edge, column, value);
            for (int lane = 0; lane < N; ++lane) sum[lane] += value[lane];
        }
        if (piece.is_part) {
            for (int lane = 0; lane < N; ++lane)
                static_cast<W*>(a.partial)[(item - a.work.nodes) * total + column + lane] = sum[lane];
            continue;
        }
        W divisor = a.mean && piece.end > piece.begin ? W(piece.end - piece.begin) : W(1);
        Pack<T, N> out;
        for (int lane = 0; lane < N; ++lane) out.v[lane] = narrow<T>(sum[lane] / divisor);
        store<N, T>(a.out, piece.node * total + column, out);
    }
}

struct JoinArguments {
    // The node of each hub, and where its parts start, `[hubs + 1]`.
    const u32* hub_node;
    const u32* hub_part;
    const u32* start;
    const void* partial;
    const u32* partial_holder;
    void* out;
    u32* holder;
    u64 columns;
    u32 hubs;
    u32 mean;
    u32 is_minimum;
    u32 unused;
};

template <class T> __device__ inline void join_sums(const JoinArguments& a) {
    typedef Wide<T> W;
    for (u64 i = first_element(); i < a.hubs * a.columns; i += all_threads()) {
        Position found = position_of(i, a.columns);
        u64 hub = found.row, column = found.column;
        W sum = 0;
        for (u64 part = a.hub_part[hub]; part < a.hub_part[hub + 1]; ++part)
            sum += static_cast<const W*>(a.partial)[part * a.columns + column];
        u64 node = a.hub_node[hub];
        W divisor = a.mean ? W(a.start[node + 1] - a.start[node]) : W(1);
        put<T>(a.out, node * a.columns + column, sum / divisor);
    }
}

struct ExtremeArguments {
    Messages messages;
    Work work;
    // `[nodes, columns]`, and the edge that holds each value.
    void* out;
    u32* holder;
    // `[parts, columns]` in the wide type, and the same of their edges.
    void* partial;
    u32* partial_holder;
    u32 is_minimum;
    u32 unused;
};

// Not a number takes the place of anything and stays; of equal values the first stays.
template <class W> __device__ inline bool replaces(bool is_minimum, W value, W best) {
    return value != value || (is_minimum ? value < best : value > best);
}

template <class T, Kind KIND, int N> __device__ inline void extreme_rows(const ExtremeArguments& a) {
    typedef Wide<T> W;
    u64 item = u64(blockIdx.x) * blockDim.y + threadIdx.y;
    Piece piece = piece_of(a.work, item);
    u64 total = u64(a.messages.heads) * a.messages.width;
    if (!piece.is_any) return;
    u64 column = (u64(blockIdx.y) * blockDim.x + threadIdx.x) * N;
    for (; column < total; column += u64(gridDim.y) * blockDim.x * N) {
        W best[N] = {};
        u32 holder[N];
        for (int lane = 0; lane < N; ++lane) holder[lane] = 0xffffffffu;
        for (u64 edge = piece.begin; edge < piece.end; ++edge) {
            W value[N];
            values<T, KIND, N>(a.messages, piece.node, edge, column, value);
            for (int lane = 0; lane < N; ++lane) {
                if (edge == piece.begin || replaces(a.is_minimum, value[lane], best[lane])) {
                    best[lane] = value[lane];
                    holder[lane] = u32(edge);
                }
            }
        }
        for (int lane = 0; lane < N; ++lane) {
            if (piece.is_part) {
                u64 place = (item - a.work.nodes) * total + column + lane;
                static_cast<W*>(a.partial)[place] = best[lane];
                a.partial_holder[place] = holder[lane];
            } else {
                put<T>(a.out, piece.node * total + column + lane, best[lane]);
                a.holder[piece.node * total + column + lane] = holder[lane];
            }
        }
    }
}

template <class T> __device__ inline void join_extremes(const JoinArguments& a) {
    typedef Wide<T> W;
    const W* partial = static_cast<const W*>(a.partial);
    for (u64 i = first_element(); i < a.hubs * a.columns; i += all_threads()) {
        Position found = position_of(i, a.columns);
        u64 hub = found.row, column = found.column;
        u64 best = a.hub_part[hub] * a.columns + column;
        for (u64 part = a.hub_part[hub] + 1; part < a.hub_part[hub + 1]; ++part) {
            u64 place = part * a.columns + column;
            if (replaces(a.is_minimum, partial[place], partial[best])) best = place;
        }
        u64 out = a.hub_node[hub] * a.columns + column;
        put<T>(a.out, out, partial[best]);
        a.holder[out] = a.partial_holder[best];
    }
}

struct EdgeArguments {
    Messages messages;
    // `[edges, columns]`, or `[edges, heads]` for dot products.
    void* out;
    u64 edges;
};

// One thread for some columns of an edge.
template <class T, Kind KIND, int N> __device__ inline void edge_rows(const EdgeArguments& a) {
    u64 packs = u64(a.messages.heads) * a.messages.width / N;
    for (u64 i = first_element(); i < a.edges * packs; i += all_threads()) {
        Position place = position_of(i, packs);
        u64 edge = place.row;
        u32 column = u32(place.column) * N;
        Wide<T> value[N];
        values<T, KIND, N>(a.messages, edge, edge, column, value);
        Pack<T, N> out;
        for (int lane = 0; lane < N; ++lane) out.v[lane] = narrow<T>(value[lane]);
        store<N, T>(a.out, i * N, out);
    }
}

// `blockDim.x` neighbouring threads, a power of two of at most 32, share the columns of a head of an edge.
template <class T> __device__ inline void dot_rows(const EdgeArguments& a) {
    u64 pair = u64(blockIdx.x) * blockDim.y + threadIdx.y;
    bool is_any = pair < a.edges * a.messages.heads;
    u64 edge = is_any ? pair / a.messages.heads : 0;
    u32 first = u32(is_any ? pair % a.messages.heads : 0) * a.messages.width;
    Wide<T> sum = 0;
    if (is_any) {
        for (u32 column = threadIdx.x; column < a.messages.width; column += blockDim.x)
            sum += value<T>(a.messages, edge, edge, first + column);
    }
    sum = sum_of_lanes(sum, blockDim.x);
    if (is_any && threadIdx.x == 0) put<T>(a.out, pair, sum * factor<T>(a.messages, edge, edge));
}

#define MESSAGE_KERNELS(T, type)                                                                                       \
    KERNEL(sum_rows_copy_1_##type, SumArguments, (sum_rows<T, COPY, 1>(a)))                                            \
    KERNEL(sum_rows_copy_2_##type, SumArguments, (sum_rows<T, COPY, 2>(a)))                                            \
    KERNEL(sum_rows_copy_4_##type, SumArguments, (sum_rows<T, COPY, 4>(a)))                                            \
    KERNEL(sum_rows_scaled_1_##type, SumArguments, (sum_rows<T, SCALED, 1>(a)))                                        \
    KERNEL(sum_rows_scaled_2_##type, SumArguments, (sum_rows<T, SCALED, 2>(a)))                                        \
    KERNEL(sum_rows_scaled_4_##type, SumArguments, (sum_rows<T, SCALED, 4>(a)))                                        \
    KERNEL(sum_rows_general_1_##type, SumArguments, (sum_rows<T, GENERAL, 1>(a)))                                      \
    KERNEL(join_sums_##type, JoinArguments, join_sums<T>(a))                                                           \
    KERNEL(extreme_rows_copy_1_##type, ExtremeArguments, (extreme_rows<T, COPY, 1>(a)))                                \
    KERNEL(extreme_rows_copy_4_##type, ExtremeArguments, (extreme_rows<T, COPY, 4>(a)))                                \
    KERNEL(extreme_rows_general_1_##type, ExtremeArguments, (extreme_rows<T, GENERAL, 1>(a)))                          \
    KERNEL(join_extremes_##type, JoinArguments, join_extremes<T>(a))                                                   \
    KERNEL(edge_rows_copy_1_##type, EdgeArguments, (edge_rows<T, COPY, 1>(a)))                                         \
    KERNEL(edge_rows_copy_4_##type, EdgeArguments, (edge_rows<T, COPY, 4>(a)))                                         \
    KERNEL(edge_rows_general_1_##type, EdgeArguments, (edge_rows<T, GENERAL, 1>(a)))                                   \
    KERNEL(dot_rows_##type, EdgeArguments, dot_rows<T>(a))
FOR_TYPES(MESSAGE_KERNELS)

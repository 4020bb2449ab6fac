// GraphSAGE's layer around its matrix products, as workloads/nn/src/sage has it: the mean over in-neighbours beside the
// node's own row, or after the product with all that follows it; and the ways back.
#include "dropout.cuh"
#include "work.cuh"

struct MeanArguments {
    Work work;
    HubList hubs;
    // The node at the other end of each edge.
    const u32* other;
    // Where the edges into each target start, for their number: the divisor of a mean on its way back.
    const u32* target_start;
    // Rows to add up, `stride` elements apart, and a target's own row, as far apart; none on a way back without it.
    const void* x;
    const void* own;
    // `[width]`
    const void* bias;
    void* out;
    // `[parts, width]` in the wide type.
    void* partial;
    u64 width;
    u64 stride;
    u64 targets;
    Mask mask;
    u32 relu;
    u32 unused;
};

// What the loop over the edges adds up and what becomes of it.
//
// BESIDE: rows of the sources, `[sources, width]`, to `mean | own`, `[targets, 2 width]`.
// FINISH: the same to `mean + own + bias` with ReLU and dropout, `[targets, width]`.
// RETURN: the gradient of the mean, and of a node's own row where there is one, to that of the sources, over the edges
// out of each.
enum Form { BESIDE, FINISH, RETURN };

template <class T, Form FORM> __device__ inline Wide<T> share(const MeanArguments& a, u32 other) {
    if (FORM != RETURN) return Wide<T>(1);
    return Wide<T>(1) / Wide<T>(a.target_start[other + 1] - a.target_start[other]);
}

// `N` columns added up along some edges; four rows at a time are on their way.
template <class T, Form FORM, int N>
__device__ inline void add_up(const MeanArguments& a, const Piece& piece, u64 column, Wide<T> (&sum)[N]) {
    u64 edge = piece.begin;
    for (; edge + 4 <= piece.end; edge += 4) {
        Pack<T, N> row[4];
        Wide<T> times[4];
        for (int i = 0; i < 4; ++i) {
            u32 other = a.other[edge + i];
            row[i] = load<N, T>(a.x, other * a.stride + column);
            times[i] = share<T, FORM>(a, other);
        }
        for (int i = 0; i < 4; ++i)
            for (int lane = 0; lane < N; ++lane) sum[lane] += widen(row[i].v[lane]) * times[i];
    }
    for (; edge < piece.end; ++edge) {
        u32 other = a.other[edge];
        Pack<T, N> row = load<N, T>(a.x, other * a.stride + column);
        Wide<T> times = share<T, FORM>(a, other);
        for (int lane = 0; lane < N; ++lane) sum[lane] += widen(row.v[lane]) * times;
    }
}

// Writes `N` columns of a node whose sum is known. All of the result is written, also where there are no edges.
template <class T, Form FORM, int N>
__device__ inline void write_row(const MeanArguments& a, u64 node, u64 column, const Wide<T> (&sum)[N]) {
    typedef Wide<T> W;
    u32 degree = a.work.start[node + 1] - a.work.start[node];
    W divisor = FORM != RETURN && degree > 0 ? W(degree) : W(1);
    Pack<T, N> out;
    if (FORM == BESIDE) {
        for (int lane = 0; lane < N; ++lane) out.v[lane] = narrow<T>(sum[lane] / divisor);
        store<N, T>(a.out, node * 2 * a.width + column, out);
        store<N, T>(a.out, node * 2 * a.width + a.width + column, load<N, T>(a.x, node * a.width + column));
        return;
    }
    if (FORM == RETURN) {
        Pack<T, N> own = {};
        if (a.own && node < a.targets) own = load<N, T>(a.own, node * a.stride + column);
        for (int lane = 0; lane < N; ++lane) out.v[lane] = narrow<T>(sum[lane] + widen(own.v[lane]));
        store<N, T>(a.out, node * a.width + column, out);
        return;
    }
    u64 place = node * a.width + column;
    Pack<T, N> own = load<N, T>(a.own, place), bias = load<N, T>(a.bias, column);
    Stream stream(a.mask, place);
    W factor = a.mask.is_any ? W(a.mask.factor) : W(1);
    for (int lane = 0; lane < N; ++lane) {
        W value = sum[lane] / divisor + widen(own.v[lane]) + widen(bias.v[lane]);
        bool kept = !(a.relu && value <= 0) && stays(a.mask, stream, place + lane);
        out.v[lane] = narrow<T>(kept ? value * factor : W(0));
    }
    store<N, T>(a.out, place, out);
}

// A row of threads takes a node or a part of a hub, each thread some columns.
template <class T, Form FORM, int N> __device__ inline void mean_rows(const MeanArguments& a) {
    typedef Wide<T> W;
    u64 item = u64(blockIdx.x) * blockDim.y + threadIdx.y;
    Piece piece = piece_of(a.work, item);
    if (!piece.is_any) return;
    u64 column = (u64(blockIdx.y) * blockDim.x + threadIdx.x) * N;
    for (; column < a.width; column += u64(gridDim.y) * blockDim.x * N) {
        W sum[N] = {};
        add_up<T, FORM, N>(a, piece, column, sum);
        if (!piece.is_part) {
            write_row<T, FORM, N>(a, piece.node, column, sum);
            continue;
        }
        for (int lane = 0; lane < N; ++lane)
            static_cast<W*>(a.partial)[(item - a.work.nodes) * a.width + column + lane] = sum[lane];
    }
}

// Joins the parts of each hub in their order.
template <class T, Form FORM> __device__ inline void join_mean_rows(const MeanArguments& a) {
    typedef Wide<T> W;
    for (u64 i = first_element(); i < a.hubs.count * a.width; i += all_threads()) {
        Position place = position_of(i, a.width);
        u64 hub = place.row, column = place.column;
        W sum[1] = {};
        for (u64 part = a.hubs.part[hub]; part < a.hubs.part[hub + 1]; ++part)
            sum[0] += static_cast<const W*>(a.partial)[part * a.width + column];
        write_row<T, FORM, 1>(a, a.hubs.node[hub], column, sum);
    }
}

struct BehindArguments {
    // What ReLU and dropout left, and what came back for it, `[rows, columns]`.
    const void* result;
    const void* gradient;
    // The gradient before both, or the result itself with what is to be added to it.
    void* out;
    // Sums of its columns over runs of `rows_of_part` rows, `[parts, columns]` in the wide type.
    void* partial;
    u64 rows;
    u64 columns;
    u64 rows_of_part;
    u64 parts;
    double factor;
};

// ReLU leaves no 0 but where it, or the dropout after it, has cut.
template <class T> __device__ inline void behind_relu(const BehindArguments& a) {
    typedef Wide<T> W;
    for (u64 i = first_element(); i < a.parts * a.columns; i += all_threads()) {
        Position start = position_of(i, a.columns);
        u64 part = start.row, column = start.column, first = part * a.rows_of_part;
        u64 last = first + a.rows_of_part < a.rows ? first + a.rows_of_part : a.rows;
        W sum = 0;
        for (u64 row = first; row < last; ++row) {
            u64 place = row * a.columns + column;
            W value = at<T>(a.result, place) == 0 ? W(0) : at<T>(a.gradient, place) * W(a.factor);
            put<T>(a.out, place, value);
            sum += value;
        }
        static_cast<W*>(a.partial)[i] = sum;
    }
}

// Adds `gradient` to the first rows of `out`.
template <class T> __device__ inline void add_first(const BehindArguments& a) {
    for (u64 i = first_element(); i < a.rows * a.columns; i += all_threads())
        put<T>(a.out, i, at<T>(a.out, i) + at<T>(a.gradient, i));
}

#define MEAN_KERNELS(T, type, name, FORM)                                                                              \
    KERNEL(name##_1_##type, MeanArguments, (mean_rows<T, FORM, 1>(a)))                                                 \
    KERNEL(name##_2_##type, MeanArguments, (mean_rows<T, FORM, 2>(a)))                                                 \
    KERNEL(name##_4_##type, MeanArguments, (mean_rows<T, FORM, 4>(a)))                                                 \
    KERNEL(join_##name##_##type, MeanArguments, (join_mean_rows<T, FORM>(a)))
#define SAGE_KERNELS(T, type)                                                                                          \
    MEAN_KERNELS(T, type, mean_beside, BESIDE)                                                                         \
    MEAN_KERNELS(T, type, mean_finish, FINISH)                                                                         \
    MEAN_KERNELS(T, type, mean_return, RETURN)                                                                         \
    KERNEL(behind_relu_##type, BehindArguments, behind_relu<T>(a))                                                     \
    KERNEL(add_first_##type, BehindArguments, add_first<T>(a))
FOR_TYPES(SAGE_KERNELS)

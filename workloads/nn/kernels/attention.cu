// A graph attention layer around its matrix products, as workloads/nn/src/gat has it: scores of nodes, then softmax over the
// edges into a target and the weighted sum of their sources in one pass. Nothing is stored for an edge: on the way back,
// attention_back.cu computes its weight again from the scores at its ends and what is known of its target.
#include "dropout.cuh"
#include "work.cuh"

struct ScoreArguments {
    // Projected rows, `[sources, heads width]`, and the vectors of both ends, `[heads width]`.
    const void* rows;
    const void* source_vector;
    const void* target_vector;
    // `[sources, heads]` and `[targets, heads]`.
    void* source_score;
    void* target_score;
    u64 sources;
    u64 targets;
    u32 heads;
    u32 width;
};

// `blockDim.x` neighbouring threads, a power of two of at most 32, share a head of a node.
template <class T> __device__ inline void scores(const ScoreArguments& a) {
    typedef Wide<T> W;
    u64 pair = u64(blockIdx.x) * blockDim.y + threadIdx.y;
    bool is_any = pair < a.sources * a.heads;
    bool is_target = is_any && pair < a.targets * a.heads;
    W source = 0, target = 0;
    if (is_any) {
        u64 first = pair % a.heads * a.width;
        for (u32 column = threadIdx.x; column < a.width; column += blockDim.x) {
            W value = at<T>(a.rows, pair * a.width + column);
            source += value * at<T>(a.source_vector, first + column);
            if (is_target) target += value * at<T>(a.target_vector, first + column);
        }
    }
    source = sum_of_lanes(source, blockDim.x);
    target = sum_of_lanes(target, blockDim.x);
    if (is_any && threadIdx.x == 0) put<T>(a.source_score, pair, source);
    if (is_target && threadIdx.x == 0) put<T>(a.target_score, pair, target);
}

struct AttendArguments {
    Work work;
    HubList hubs;
    // The source of each edge.
    const u32* other;
    // The projected rows of the sources, `[sources, heads width]`.
    const void* rows;
    const void* source_score;
    const void* target_score;
    const void* bias;
    void* out;
    // Of targets, in the wide type: the weighted sum, `[targets, heads width]`; the same with each edge's slope of the
    // leaky rectifier as a factor; and for each head the largest logit, one over the sum of the exponentials, and the
    // mean slope, `[targets, 3 heads]`.
    void* sums;
    void* sloped_sums;
    void* known;
    // Of parts, in the wide type: both sums, `[parts, 2 heads width]`, and three numbers a head, `[parts, 3 heads]`.
    void* partial;
    void* partial_known;
    u32 heads;
    u32 width;
    double slope;
    Mask attention;
    Mask output;
    u32 elu;
    u32 unused;
};

// What is known of some edges into a target, in one head and `N` columns of it, relative to the largest logit so far.
template <class W, int N> struct Attended {
    W highest;
    W sum;
    W slopes;
    W all[N];
    W sloped[N];

    __device__ inline void raise(W to) {
        if (!(to > highest)) return;
        W scale = exponential(highest - to);
        sum *= scale;
        slopes *= scale;
        for (int lane = 0; lane < N; ++lane) {
            all[lane] *= scale;
            sloped[lane] *= scale;
        }
        highest = to;
    }
};

// What an edge brings: its source's row, unless it is dropped, its logit and its slope.
template <class T, int N> struct Edge {
    Pack<T, N> row;
    Wide<T> logit;
    Wide<T> slope;
    bool stays;
};

template <class T, int N>
__device__ inline Edge<T, N> fetch(const AttendArguments& a, Stream& stream, u64 edge, u64 column, u32 head, Wide<T> own) {
    typedef Wide<T> W;
    u64 source = a.other[edge];
    Edge<T, N> found = {};
    found.stays = stays(a.attention, stream, edge * a.heads + head);
    if (found.stays) found.row = load<N, T>(a.rows, source * a.heads * a.width + column);
    W score = at<T>(a.source_score, source * a.heads + head) + own;
    found.slope = score > 0 ? W(1) : W(a.slope);
    found.logit = score * found.slope;
    return found;
}

template <class T, int N> __device__ inline void take(Attended<Wide<T>, N>& found, const Edge<T, N>& edge) {
    typedef Wide<T> W;
    found.raise(edge.logit);
    W weight = exponential(edge.logit - found.highest);
    found.sum += weight;
    found.slopes += weight * edge.slope;
    if (!edge.stays) return;
    for (int lane = 0; lane < N; ++lane) {
        W part = weight * widen(edge.row.v[lane]);
        found.all[lane] += part;
        found.sloped[lane] += part * edge.slope;
    }
}

// Two edges are on their way from memory at once; one in f64, which takes twice the registers.
template <class T, int N>
__device__ inline void attend_to(const AttendArguments& a, const Piece& piece, u64 column, Attended<Wide<T>, N>& found) {
    u32 head = u32(column / a.width);
    Wide<T> own = at<T>(a.target_score, piece.node * a.heads + head);
    Stream stream(a.attention, u64(piece.begin) * a.heads);
    u64 edge = piece.begin;
    for (; sizeof(Wide<T>) == 4 && edge + 2 <= piece.end; edge += 2) {
        Edge<T, N> first = fetch<T, N>(a, stream, edge, column, head, own);
        Edge<T, N> second = fetch<T, N>(a, stream, edge + 1, column, head, own);
        take<T, N>(found, first);
        take<T, N>(found, second);
    }
    ONE_AT_A_TIME
    for (; edge < piece.end; ++edge) take<T, N>(found, fetch<T, N>(a, stream, edge, column, head, own));
}

// Bias, ELU and dropout of what a target has gathered; keeps what the way back needs.
template <class T, int N>
__device__ inline void write_attended(const AttendArguments& a, u64 node, u64 column, const Attended<Wide<T>, N>& found) {
    typedef Wide<T> W;
    u64 total = u64(a.heads) * a.width, place = node * total + column;
    bool is_any = a.work.start[node + 1] > a.work.start[node];
    W inverse = is_any ? W(1) / found.sum : W(0);
    W kept = inverse * (a.attention.is_any ? W(a.attention.factor) : W(1));
    W factor = a.output.is_any ? W(a.output.factor) : W(1);
    Stream stream(a.output, place);
    Pack<T, N> out, bias = load<N, T>(a.bias, column);
    Pack<W, N> sums, sloped;
    for (int lane = 0; lane < N; ++lane) {
        sums.v[lane] = found.all[lane] * kept;
        sloped.v[lane] = found.sloped[lane] * kept;
        W value = sums.v[lane] + widen(bias.v[lane]);
        if (a.elu && !(value > 0)) value = exponential(value) - W(1);
        out.v[lane] = narrow<T>(stays(a.output, stream, place + lane) ? value * factor : W(0));
    }
    store<N, T>(a.out, place, out);
    store<N, W>(a.sums, place, sums);
    store<N, W>(a.sloped_sums, place, sloped);
    if (column % a.width != 0) return;
    W* known = static_cast<W*>(a.known) + (node * a.heads + column / a.width) * 3;
    known[0] = is_any ? found.highest : W(0);
    known[1] = inverse;
    known[2] = found.slopes * inverse;
}

// A row of threads takes a target or a part of a hub, each thread some columns of a head.
template <class T, int N> __device__ inline void attend(const AttendArguments& a) {
    typedef Wide<T> W;
    u64 item = u64(blockIdx.x) * blockDim.y + threadIdx.y;
    Piece piece = piece_of(a.work, item);
    if (!piece.is_any) return;
    u64 total = u64(a.heads) * a.width;
    u64 column = (u64(blockIdx.y) * blockDim.x + threadIdx.x) * N;
    for (; column < total; column += u64(gridDim.y) * blockDim.x * N) {
        Attended<W, N> found = {-INFINITY, 0, 0, {}, {}};
        attend_to<T, N>(a, piece, column, found);
        if (!piece.is_part) {
            write_attended<T, N>(a, piece.node, column, found);
            continue;
        }
        u64 part = item - a.work.nodes;
        W* partial = static_cast<W*>(a.partial) + part * 2 * total + column;
        for (int lane = 0; lane < N; ++lane) {
            partial[lane] = found.all[lane];
            partial[total + lane] = found.sloped[lane];
        }
        if (column % a.width != 0) continue;
        W* known = static_cast<W*>(a.partial_known) + (part * a.heads + column / a.width) * 3;
        known[0] = found.highest;
        known[1] = found.sum;
        known[2] = found.slopes;
    }
}

// Joins the parts of each hub in their order.
template <class T> __device__ inline void join_attended(const AttendArguments& a) {
    typedef Wide<T> W;
    u64 total = u64(a.heads) * a.width;
    for (u64 i = first_element(); i < a.hubs.count * total; i += all_threads()) {
        Position place = position_of(i, total);
        u64 hub = place.row, column = place.column;
        Attended<W, 1> found = {-INFINITY, 0, 0, {}, {}};
        for (u64 part = a.hubs.part[hub]; part < a.hubs.part[hub + 1]; ++part) {
            const W* partial = static_cast<const W*>(a.partial) + part * 2 * total + column;
            const W* known = static_cast<const W*>(a.partial_known) + (part * a.heads + column / a.width) * 3;
            found.raise(known[0]);
            W scale = exponential(known[0] - found.highest);
            found.sum += known[1] * scale;
            found.slopes += known[2] * scale;
            found.all[0] += partial[0] * scale;
            found.sloped[0] += partial[total] * scale;
        }
        write_attended<T, 1>(a, a.hubs.node[hub], column, found);
    }
}

#define ATTENTION_KERNELS(T, type)                                                                                     \
    KERNEL(scores_##type, ScoreArguments, scores<T>(a))                                                                \
    KERNEL(attend_1_##type, AttendArguments, (attend<T, 1>(a)))                                                        \
    KERNEL(attend_4_##type, AttendArguments, (attend<T, 4>(a)))                                                        \
    KERNEL(join_attended_##type, AttendArguments, join_attended<T>(a))
FOR_TYPES(ATTENTION_KERNELS)

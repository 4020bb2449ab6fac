// The way back through a graph attention layer: around its targets, along the edges out of its sources, and around those.
#include "dropout.cuh"
#include "work.cuh"

struct ActivatedArguments {
    // What came back for the result, `[targets, heads width]`, and what the forward pass kept.
    const void* gradient;
    const void* bias;
    const void* sums;
    const void* sloped_sums;
    const void* known;
    // Gradient before ELU and dropout, `[targets, heads width]`; times the sums, `[targets, heads]` in the wide type; and
    // of the targets' scores, `[targets, heads]` in the wide type.
    void* out;
    void* products;
    void* of_scores;
    u64 targets;
    u32 heads;
    u32 width;
    Mask output;
    u32 elu;
    u32 unused;
};

// Neighbouring threads share a head of a target. With D the product of gradient and sums, the score of a target gets
// the sum over its edges of slope * weight * (product with the edge's row - D): the product with the sloped sums, less
// D times the mean slope.
template <class T> __device__ inline void activated_gradient(const ActivatedArguments& a) {
    typedef Wide<T> W;
    u64 pair = u64(blockIdx.x) * blockDim.y + threadIdx.y;
    bool is_any = pair < a.targets * a.heads;
    W product = 0, sloped = 0;
    if (is_any) {
        u64 start = pair * a.width, first = pair % a.heads * a.width;
        W factor = a.output.is_any ? W(a.output.factor) : W(1);
        Stream stream(a.output, start);
        for (u32 column = threadIdx.x; column < a.width; column += blockDim.x) {
            u64 place = start + column;
            W sum = static_cast<const W*>(a.sums)[place];
            W before = sum + at<T>(a.bias, first + column);
            W value = stays(a.output, stream, place) ? at<T>(a.gradient, place) * factor : W(0);
            if (a.elu && !(before > 0)) value *= exponential(before);
            put<T>(a.out, place, value);
            product += value * sum;
            sloped += value * static_cast<const W*>(a.sloped_sums)[place];
        }
    }
    product = sum_of_lanes(product, blockDim.x);
    sloped = sum_of_lanes(sloped, blockDim.x);
    if (!is_any || threadIdx.x != 0) return;
    static_cast<W*>(a.products)[pair] = product;
    static_cast<W*>(a.of_scores)[pair] = sloped - product * static_cast<const W*>(a.known)[pair * 3 + 2];
}

struct AttendBackArguments {
    // Sources and the edges out of them.
    Work work;
    HubList hubs;
    // The target and the number of each edge.
    const u32* other;
    const u32* number;
    // Gradients of the targets' sums, `[targets, heads width]`.
    const void* rows;
    const void* source_score;
    const void* target_score;
    // Of the targets, in the wide type, as the kernels above left them.
    const void* known;
    const void* target_products;
    // Of sources and of parts, in the wide type: both sums of rows, `[sources, 2 heads width]`, and the sum of the
    // targets' products, `[sources, heads]`.
    void* sums;
    void* products;
    void* partial;
    void* partial_products;
    u32 heads;
    u32 width;
    double slope;
    Mask attention;
};

// What an edge brings back: the gradient at its target, unless it is dropped; its weight, its slope, and the product of
// its target.
template <class T, int N> struct Way {
    Pack<T, N> row;
    Wide<T> weight;
    Wide<T> slope;
    Wide<T> product;
    bool stays;
};

template <class W, int N> struct Returned {
    W all[N];
    W sloped[N];
    W products;
};

template <class T, int N>
__device__ inline Way<T, N> fetch_back(const AttendBackArguments& a, Stream& stream, u64 place, u64 column, u32 head,
                                       Wide<T> own) {
    typedef Wide<T> W;
    u64 target = a.other[place], pair = target * a.heads + head;
    Way<T, N> found = {};
    found.stays = stays(a.attention, stream, u64(a.number[place]) * a.heads + head);
    if (found.stays) found.row = load<N, T>(a.rows, target * a.heads * a.width + column);
    W score = own + at<T>(a.target_score, pair);
    found.slope = score > 0 ? W(1) : W(a.slope);
    const W* known = static_cast<const W*>(a.known) + pair * 3;
    found.weight = exponential(score * found.slope - known[0]) * known[1];
    found.product = static_cast<const W*>(a.target_products)[pair];
    return found;
}

template <class T, int N>
__device__ inline void take_back(Returned<Wide<T>, N>& found, const Way<T, N>& edge, Wide<T> factor) {
    typedef Wide<T> W;
    found.products += edge.slope * edge.weight * edge.product;
    if (!edge.stays) return;
    for (int lane = 0; lane < N; ++lane) {
        W part = edge.weight * factor * widen(edge.row.v[lane]);
        found.all[lane] += part;
        found.sloped[lane] += part * edge.slope;
    }
}

// What comes back to a source along its edges: the gradients of their targets, each times the weight of the edge, and
// once more times its slope; and the targets' products, times weight and slope.
template <class T, int N> __device__ inline void attend_back(const AttendBackArguments& a) {
    typedef Wide<T> W;
    u64 item = u64(blockIdx.x) * blockDim.y + threadIdx.y;
    Piece piece = piece_of(a.work, item);
    if (!piece.is_any) return;
    u64 total = u64(a.heads) * a.width;
    u64 column = (u64(blockIdx.y) * blockDim.x + threadIdx.x) * N;
    W factor = a.attention.is_any ? W(a.attention.factor) : W(1);
    for (; column < total; column += u64(gridDim.y) * blockDim.x * N) {
        u32 head = u32(column / a.width);
        W own = at<T>(a.source_score, piece.node * a.heads + head);
        Returned<W, N> found = {};
        Stream stream(a.attention, 0);
        u64 place = piece.begin;
        for (; sizeof(W) == 4 && place + 2 <= piece.end; place += 2) {
            Way<T, N> first = fetch_back<T, N>(a, stream, place, column, head, own);
            Way<T, N> second = fetch_back<T, N>(a, stream, place + 1, column, head, own);
            take_back<T, N>(found, first, factor);
            take_back<T, N>(found, second, factor);
        }
        ONE_AT_A_TIME
        for (; place < piece.end; ++place)
            take_back<T, N>(found, fetch_back<T, N>(a, stream, place, column, head, own), factor);
        u64 row = piece.is_part ? item - a.work.nodes : piece.node;
        W* sums = static_cast<W*>(piece.is_part ? a.partial : a.sums) + row * 2 * total + column;
        for (int lane = 0; lane < N; ++lane) {
            sums[lane] = found.all[lane];
            sums[total + lane] = found.sloped[lane];
        }
        if (column % a.width == 0)
            static_cast<W*>(piece.is_part ? a.partial_products : a.products)[row * a.heads + head] = found.products;
    }
}

// Joins the parts of each hub in their order.
template <class T> __device__ inline void join_attended_back(const AttendBackArguments& a) {
    typedef Wide<T> W;
    u64 total = 2 * u64(a.heads) * a.width, columns = total + a.heads;
    for (u64 i = first_element(); i < a.hubs.count * columns; i += all_threads()) {
        Position found = position_of(i, columns);
        u64 hub = found.row, column = found.column, node = a.hubs.node[hub];
        bool is_sum = column < total;
        u64 place = is_sum ? column : column - total, stride = is_sum ? total : a.heads;
        const W* partial = static_cast<const W*>(is_sum ? a.partial : a.partial_products);
        W sum = 0;
        for (u64 part = a.hubs.part[hub]; part < a.hubs.part[hub + 1]; ++part) sum += partial[part * stride + place];
        static_cast<W*>(is_sum ? a.sums : a.products)[node * stride + place] = sum;
    }
}

struct ProjectedArguments {
    // Projected rows, `[sources, heads width]`, and the vectors of both ends, `[heads width]`.
    const void* rows;
    const void* source_vector;
    const void* target_vector;
    // As `attend_back` left them.
    const void* sums;
    const void* products;
    // Gradient of the targets' scores, `[targets, heads]` in the wide type.
    const void* of_target_scores;
    // Gradients of the projected rows, `[sources, heads width]`, and of the sources' scores, `[sources, heads]` in the
    // wide type.
    void* out;
    void* of_source_scores;
    u64 sources;
    u64 targets;
    u32 heads;
    u32 width;
};

// Neighbouring threads share a head of a source: its score's gradient first, then that of its row.
template <class T> __device__ inline void projected_gradient(const ProjectedArguments& a) {
    typedef Wide<T> W;
    u64 pair = u64(blockIdx.x) * blockDim.y + threadIdx.y;
    bool is_any = pair < a.sources * a.heads;
    u64 total = u64(a.heads) * a.width, first = is_any ? pair % a.heads * a.width : 0;
    const W* sums = static_cast<const W*>(a.sums) + (is_any ? pair / a.heads * 2 * total + first : 0);
    W of_score = 0;
    if (is_any) {
        for (u32 column = threadIdx.x; column < a.width; column += blockDim.x)
            of_score += at<T>(a.rows, pair * a.width + column) * sums[total + column];
    }
    of_score = sum_of_lanes(of_score, blockDim.x);
    if (!is_any) return;
    of_score -= static_cast<const W*>(a.products)[pair];
    if (threadIdx.x == 0) static_cast<W*>(a.of_source_scores)[pair] = of_score;
    W of_target = pair < a.targets * a.heads ? static_cast<const W*>(a.of_target_scores)[pair] : W(0);
    for (u32 column = threadIdx.x; column < a.width; column += blockDim.x) {
        W value = sums[column] + of_score * at<T>(a.source_vector, first + column);
        put<T>(a.out, pair * a.width + column, value + of_target * at<T>(a.target_vector, first + column));
    }
}

// Sums of the columns of `[rows, heads width]`, each head times a number of the row, over runs of rows.
struct WeightedSumsArguments {
    const void* rows;
    // `[rows, heads]` in the wide type.
    const void* weights;
    // `[parts, heads width]` in the wide type.
    void* partial;
    u64 count;
    u64 rows_of_part;
    u64 parts;
    u32 heads;
    u32 width;
};

template <class T> __device__ inline void weighted_sums(const WeightedSumsArguments& a) {
    typedef Wide<T> W;
    u64 total = u64(a.heads) * a.width;
    for (u64 i = first_element(); i < a.parts * total; i += all_threads()) {
        Position place = position_of(i, total);
        u64 part = place.row, column = place.column, head = column / a.width, first = part * a.rows_of_part;
        u64 last = first + a.rows_of_part < a.count ? first + a.rows_of_part : a.count;
        W sum = 0;
        for (u64 row = first; row < last; ++row)
            sum += at<T>(a.rows, row * total + column) * static_cast<const W*>(a.weights)[row * a.heads + head];
        static_cast<W*>(a.partial)[i] = sum;
    }
}

#define ATTENTION_BACK_KERNELS(T, type)                                                                                \
    KERNEL(activated_gradient_##type, ActivatedArguments, activated_gradient<T>(a))                                    \
    KERNEL(attend_back_1_##type, AttendBackArguments, (attend_back<T, 1>(a)))                                          \
    KERNEL(attend_back_4_##type, AttendBackArguments, (attend_back<T, 4>(a)))                                          \
    KERNEL(join_attended_back_##type, AttendBackArguments, join_attended_back<T>(a))                                   \
    KERNEL(projected_gradient_##type, ProjectedArguments, projected_gradient<T>(a))                                    \
    KERNEL(weighted_sums_##type, WeightedSumsArguments, weighted_sums<T>(a))
FOR_TYPES(ATTENTION_BACK_KERNELS)

// Mean, minimum, maximum and standard deviation over in-neighbours, fused, as workloads/nn/src/kernels/aggregate has them:
// messages are `t_i + q_j`, so only node-wise rows are read.
#include "kernel.cuh"

struct AggregateArguments {
    const u32* start;
    const u32* source;
    // The node, first and last edge of each part of a hub.
    const u32* part_node;
    const u32* part_begin;
    const u32* part_end;
    const u32* hub_node;
    const u32* hub_part;
    // t and q, `[nodes, width]`.
    const void* own;
    const void* messages;
    // `mean | min | max | std`, `[nodes, 4 width]`.
    void* out;
    // Mean of q, `[nodes, width]` in the wide type, and the edges that hold minimum and maximum, `[nodes, 2 width]`.
    void* centre;
    u32* holder;
    // What is known of the parts: mean, squared distances, minimum, maximum, `[parts, 4 width]` in the wide type; and
    // holders, `[parts, 2 width]`.
    void* partial;
    u32* partial_holder;
    u64 width;
    u32 nodes;
    u32 parts;
    u32 hubs;
    u32 hub_edges;
};

template <class W> struct Summary {
    W mean;
    W squares;
    W smallest;
    W largest;
    u32 smallest_edge;
    u32 largest_edge;
};

__device__ inline float square_root(float x) { return sqrtf(x); }
__device__ inline double square_root(double x) { return sqrt(x); }

// One column of the messages along some edges, twice: the second time for the spread around the mean.
template <class T>
__device__ inline Summary<Wide<T>> summary_of(const AggregateArguments& a, u32 begin, u32 end, u64 column) {
    typedef Wide<T> W;
    W first = at<T>(a.messages, a.source[begin] * a.width + column);
    Summary<W> s = {first, 0, first, first, begin, begin};
    for (u64 edge = u64(begin) + 1; edge < end; ++edge) {
        W value = at<T>(a.messages, a.source[edge] * a.width + column);
        s.mean += value;
        if (value < s.smallest) { s.smallest = value; s.smallest_edge = u32(edge); }
        if (value > s.largest) { s.largest = value; s.largest_edge = u32(edge); }
    }
    s.mean /= W(end - begin);
    for (u64 edge = begin; edge < end; ++edge) {
        W distance = at<T>(a.messages, a.source[edge] * a.width + column) - s.mean;
        s.squares += distance * distance;
    }
    return s;
}

template <class T>
__device__ inline void write_aggregates(const AggregateArguments& a, u64 node, u64 column, const Summary<Wide<T>>& s,
                                        u32 degree) {
    typedef Wide<T> W;
    W own = at<T>(a.own, node * a.width + column);
    W deviation = square_root(s.squares / W(degree));
    u64 row = node * 4 * a.width + column;
    put<T>(a.out, row, own + s.mean);
    put<T>(a.out, row + a.width, own + s.smallest);
    put<T>(a.out, row + 2 * a.width, own + s.largest);
    // Where the variance is at most 1e-5 it counts as 0; what is no number stays none.
    put<T>(a.out, row + 3 * a.width, deviation <= W(0.0031622776601683794) ? W(0) : deviation);
    static_cast<W*>(a.centre)[node * a.width + column] = s.mean;
    a.holder[node * 2 * a.width + column] = s.smallest_edge;
    a.holder[node * 2 * a.width + a.width + column] = s.largest_edge;
}

template <class T> __device__ inline void aggregate(const AggregateArguments& a) {
    typedef Wide<T> W;
    for (u64 i = first_element(); i < (u64(a.nodes) + a.parts) * a.width; i += all_threads()) {
        Position place = position_of(i, a.width);
        u64 item = place.row, column = place.column;
        if (item >= a.nodes) {
            u64 part = item - a.nodes;
            Summary<W> s = summary_of<T>(a, a.part_begin[part], a.part_end[part], column);
            W* out = static_cast<W*>(a.partial) + part * 4 * a.width + column;
            out[0] = s.mean;
            out[a.width] = s.squares;
            out[2 * a.width] = s.smallest;
            out[3 * a.width] = s.largest;
            a.partial_holder[part * 2 * a.width + column] = s.smallest_edge;
            a.partial_holder[part * 2 * a.width + a.width + column] = s.largest_edge;
            continue;
        }
        u32 begin = a.start[item], end = a.start[item + 1];
        if (end - begin >= a.hub_edges) continue;
        if (begin < end) {
            write_aggregates<T>(a, item, column, summary_of<T>(a, begin, end, column), end - begin);
            continue;
        }
        for (u64 section = 0; section < 4; ++section) put<T>(a.out, (item * 4 + section) * a.width + column, 0);
        static_cast<W*>(a.centre)[item * a.width + column] = 0;
        a.holder[item * 2 * a.width + column] = 0;
        a.holder[item * 2 * a.width + a.width + column] = 0;
    }
}

// Joins the parts of each hub in their order. Mean and squares by the update of Chan, Golub and LeVeque.
template <class T> __device__ inline void join_aggregates(const AggregateArguments& a) {
    typedef Wide<T> W;
    for (u64 i = first_element(); i < a.hubs * a.width; i += all_threads()) {
        Position place = position_of(i, a.width);
        u64 hub = place.row, column = place.column;
        Summary<W> all = {};
        W count = 0;
        for (u64 part = a.hub_part[hub]; part < a.hub_part[hub + 1]; ++part) {
            const W* in = static_cast<const W*>(a.partial) + part * 4 * a.width + column;
            u32 smallest_edge = a.partial_holder[part * 2 * a.width + column];
            u32 largest_edge = a.partial_holder[part * 2 * a.width + a.width + column];
            W edges = W(a.part_end[part] - a.part_begin[part]);
            if (count == 0) {
                all = {in[0], in[a.width], in[2 * a.width], in[3 * a.width], smallest_edge, largest_edge};
            } else {
                W distance = in[0] - all.mean;
                all.mean += distance * edges / (count + edges);
                all.squares += in[a.width] + distance * distance * count * edges / (count + edges);
                if (in[2 * a.width] < all.smallest) { all.smallest = in[2 * a.width]; all.smallest_edge = smallest_edge; }
                if (in[3 * a.width] > all.largest) { all.largest = in[3 * a.width]; all.largest_edge = largest_edge; }
            }
            count += edges;
        }
        u64 node = a.hub_node[hub];
        write_aggregates<T>(a, node, column, all, a.start[node + 1] - a.start[node]);
    }
}

struct AggregateGradientArguments {
    // Where the edges into each node start.
    const u32* start;
    // Where the edges out of each node start, and their targets and numbers.
    const u32* source_start;
    const u32* target;
    const u32* edge;
    const u32* part_node;
    const u32* part_begin;
    const u32* part_end;
    const u32* hub_node;
    const u32* hub_part;
    const void* messages;
    const void* centre;
    const u32* holder;
    // The aggregates and what came back for them, `[nodes, 4 width]`.
    const void* aggregates;
    const void* gradient;
    // Gradients of t and of q, `[nodes, width]`.
    void* of_own;
    void* of_messages;
    // `[parts, width]` in the wide type.
    void* partial;
    u64 width;
    u32 nodes;
    u32 parts;
    u32 hubs;
    u32 hub_edges;
};

// The gradient of t: of everything that it is part of.
template <class T> __device__ inline void aggregate_own_gradient(const AggregateGradientArguments& a) {
    typedef Wide<T> W;
    for (u64 i = first_element(); i < a.nodes * a.width; i += all_threads()) {
        Position place = position_of(i, a.width);
        u64 node = place.row, row = node * 4 * a.width + place.column;
        W sum = at<T>(a.gradient, row) + at<T>(a.gradient, row + a.width) + at<T>(a.gradient, row + 2 * a.width);
        put<T>(a.of_own, i, a.start[node + 1] > a.start[node] ? sum : W(0));
    }
}

// What comes back to one column of a source along some of its edges.
template <class T>
__device__ inline Wide<T> returned(const AggregateGradientArguments& a, u64 node, u32 begin, u32 end, u64 column) {
    typedef Wide<T> W;
    W message = at<T>(a.messages, node * a.width + column), sum = 0;
    for (u64 place = begin; place < end; ++place) {
        u64 target = a.target[place], row = target * 4 * a.width + column, holder = target * 2 * a.width + column;
        u32 edge = a.edge[place];
        W degree = W(a.start[target + 1] - a.start[target]);
        W deviation = at<T>(a.aggregates, row + 3 * a.width);
        W value = at<T>(a.gradient, row) / degree;
        if (deviation > 0) {
            W centre = static_cast<const W*>(a.centre)[target * a.width + column];
            value += at<T>(a.gradient, row + 3 * a.width) / (degree * deviation) * (message - centre);
        }
        if (a.holder[holder] == edge) value += at<T>(a.gradient, row + a.width);
        if (a.holder[holder + a.width] == edge) value += at<T>(a.gradient, row + 2 * a.width);
        sum += value;
    }
    return sum;
}

template <class T> __device__ inline void aggregate_messages_gradient(const AggregateGradientArguments& a) {
    typedef Wide<T> W;
    for (u64 i = first_element(); i < (u64(a.nodes) + a.parts) * a.width; i += all_threads()) {
        Position place = position_of(i, a.width);
        u64 item = place.row, column = place.column;
        if (item >= a.nodes) {
            u64 part = item - a.nodes;
            static_cast<W*>(a.partial)[part * a.width + column] =
                returned<T>(a, a.part_node[part], a.part_begin[part], a.part_end[part], column);
            continue;
        }
        u32 begin = a.source_start[item], end = a.source_start[item + 1];
        if (end - begin < a.hub_edges) put<T>(a.of_messages, i, returned<T>(a, item, begin, end, column));
    }
}

template <class T> __device__ inline void join_messages_gradient(const AggregateGradientArguments& a) {
    typedef Wide<T> W;
    for (u64 i = first_element(); i < a.hubs * a.width; i += all_threads()) {
        Position place = position_of(i, a.width);
        u64 hub = place.row, column = place.column;
        W sum = 0;
        for (u64 part = a.hub_part[hub]; part < a.hub_part[hub + 1]; ++part)
            sum += static_cast<const W*>(a.partial)[part * a.width + column];
        put<T>(a.of_messages, a.hub_node[hub] * a.width + column, sum);
    }
}

// PNA's degree scalers: what was mapped from the aggregates as they are, amplified and attenuated.
struct DegreeArguments {
    // Where the edges into each node start.
    const u32* start;
    // The part without aggregates, `[nodes, width]`.
    const void* x;
    // The three parts of a node side by side, `[nodes, 3 width]`, or their gradient.
    void* parts;
    // `[width]`
    const void* bias;
    // `[nodes, width]`: the sum, or its gradient.
    void* sum;
    u64 count;
    u64 width;
    double average_log_degree;
};

__device__ inline float log_of_one_more(float x) { return log1pf(x); }
__device__ inline double log_of_one_more(double x) { return log1p(x); }

template <class W> struct Scalers {
    W amplification;
    W attenuation;
};

template <class W> __device__ inline Scalers<W> scalers_of(const DegreeArguments& a, u64 node) {
    u32 degree = a.start[node + 1] - a.start[node];
    W average = W(a.average_log_degree);
    return {log_of_one_more(W(degree)) / average, average / log_of_one_more(W(degree > 1 ? degree : 1))};
}

template <class T> __device__ inline void add_scaled(const DegreeArguments& a) {
    typedef Wide<T> W;
    for (u64 i = first_element(); i < a.count; i += all_threads()) {
        Position place = position_of(i, a.width);
        u64 node = place.row, column = place.column, part = node * 3 * a.width + column;
        Scalers<W> scalers = scalers_of<W>(a, node);
        W sum = at<T>(a.x, i) + at<T>(a.bias, column) + at<T>(a.parts, part);
        sum += scalers.amplification * at<T>(a.parts, part + a.width);
        put<T>(a.sum, i, sum + scalers.attenuation * at<T>(a.parts, part + 2 * a.width));
    }
}

template <class T> __device__ inline void scaled_gradient(const DegreeArguments& a) {
    typedef Wide<T> W;
    for (u64 i = first_element(); i < a.count; i += all_threads()) {
        Position place = position_of(i, a.width);
        u64 node = place.row, part = node * 3 * a.width + place.column;
        Scalers<W> scalers = scalers_of<W>(a, node);
        W gradient = at<T>(a.sum, i);
        put<T>(a.parts, part, gradient);
        put<T>(a.parts, part + a.width, gradient * scalers.amplification);
        put<T>(a.parts, part + 2 * a.width, gradient * scalers.attenuation);
    }
}

#define AGGREGATE_KERNELS(T, type)                                                                                     \
    KERNEL(aggregate_##type, AggregateArguments, aggregate<T>(a))                                                      \
    KERNEL(join_aggregates_##type, AggregateArguments, join_aggregates<T>(a))                                          \
    KERNEL(aggregate_own_gradient_##type, AggregateGradientArguments, aggregate_own_gradient<T>(a))                    \
    KERNEL(aggregate_messages_gradient_##type, AggregateGradientArguments, aggregate_messages_gradient<T>(a))          \
    KERNEL(join_messages_gradient_##type, AggregateGradientArguments, join_messages_gradient<T>(a))                    \
    KERNEL(add_scaled_##type, DegreeArguments, add_scaled<T>(a))                                                       \
    KERNEL(scaled_gradient_##type, DegreeArguments, scaled_gradient<T>(a))
FOR_TYPES(AGGREGATE_KERNELS)

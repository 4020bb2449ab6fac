// Batch normalisation, as workloads/nn/src/vig/normalise.rs has it, with GELU and a residual behind it, and the running
// statistics: nothing of it is read by the host. Moments and their sums are in f64.
#include "gelu.cuh"

struct NormArguments {
    // `[rows, features]`, and what came back for the result.
    const void* x;
    const void* gradient;
    // Weights, then biases, `[2, features]`.
    const void* affine;
    // To be added to the result, `[rows, features]`; none where there is none.
    const void* residual;
    // `[features]`: the part of x that was left out because the mean takes it away; it moves the running mean alone.
    const void* shift;
    // The result, or the gradient of x.
    void* out;
    void* of_affine;
    // Two numbers of each feature for runs of `rows_of_part` rows, `[parts, 2, features]`; of all rows, `[2, features]`:
    // mean and one over the deviation, and on the way back the sums of the gradient, plain and times x less the mean.
    double* partial;
    double* moments;
    double* sums;
    // Running mean and variance, `[2, features]`.
    double* running;
    u64 rows;
    u64 features;
    u64 rows_of_part;
    u64 parts;
    double epsilon;
    double momentum;
    u32 gelu;
    u32 unused;
};

struct Run {
    u64 part;
    u64 column;
    u64 first;
    u64 last;
};
__device__ inline Run run_of(const NormArguments& a, u64 i) {
    Position place = position_of(i, a.features);
    u64 first = place.row * a.rows_of_part;
    return {place.row, place.column, first, first + a.rows_of_part < a.rows ? first + a.rows_of_part : a.rows};
}

// Sums of distances from the first value, so that little cancels.
template <class T> __device__ inline void partial_moments(const NormArguments& a) {
    for (u64 i = first_element(); i < a.parts * a.features; i += all_threads()) {
        Run run = run_of(a, i);
        double origin = at<T>(a.x, run.first * a.features + run.column), sum = 0, squares = 0;
        for (u64 row = run.first; row < run.last; ++row) {
            double distance = at<T>(a.x, row * a.features + run.column) - origin;
            sum += distance;
            squares += distance * distance;
        }
        double count = double(run.last - run.first);
        a.partial[2 * run.part * a.features + run.column] = origin + sum / count;
        a.partial[(2 * run.part + 1) * a.features + run.column] = squares - sum * sum / count;
    }
}

// Joins the parts in their order, by the update of Chan, Golub and LeVeque, and moves the running statistics.
template <class T> __device__ inline void join_moments(const NormArguments& a) {
    for (u64 column = first_element(); column < a.features; column += all_threads()) {
        double mean = 0, squares = 0, count = 0;
        for (u64 part = 0; part < a.parts; ++part) {
            u64 first = part * a.rows_of_part;
            double rows = double(first + a.rows_of_part < a.rows ? a.rows_of_part : a.rows - first);
            double distance = a.partial[2 * part * a.features + column] - mean;
            mean += distance * rows / (count + rows);
            squares += a.partial[(2 * part + 1) * a.features + column] + distance * distance * count * rows / (count + rows);
            count += rows;
        }
        double variance = squares > 0 ? squares / count : squares != squares ? squares : 0;
        a.moments[column] = mean;
        a.moments[a.features + column] = 1 / sqrt(variance + a.epsilon);
        double moved = mean + (a.shift ? double(at<T>(a.shift, column)) : 0.0);
        a.running[column] += a.momentum * (moved - a.running[column]);
        double unbiased = variance * count / (count - 1);
        a.running[a.features + column] += a.momentum * (unbiased - a.running[a.features + column]);
    }
}

// A value normalised, before GELU.
template <class T> __device__ inline Wide<T> normalised_at(const NormArguments& a, u64 i, u64 column) {
    typedef Wide<T> W;
    W scale = at<T>(a.affine, column) * W(a.moments[a.features + column]);
    return (at<T>(a.x, i) - W(a.moments[column])) * scale + at<T>(a.affine, a.features + column);
}

template <class T> __device__ inline void normalised(const NormArguments& a) {
    typedef Wide<T> W;
    for (u64 i = first_element(); i < a.rows * a.features; i += all_threads()) {
        W value = normalised_at<T>(a, i, position_of(i, a.features).column);
        if (a.gelu) value = gelu_of(value);
        put<T>(a.out, i, a.residual ? value + at<T>(a.residual, i) : value);
    }
}

// What came back, before GELU.
template <class T> __device__ inline Wide<T> returned_at(const NormArguments& a, u64 i, u64 column) {
    Wide<T> gradient = at<T>(a.gradient, i);
    return a.gelu ? gradient * gelu_slope(normalised_at<T>(a, i, column)) : gradient;
}

template <class T> __device__ inline void partial_norm_sums(const NormArguments& a) {
    for (u64 i = first_element(); i < a.parts * a.features; i += all_threads()) {
        Run run = run_of(a, i);
        double sum = 0, product = 0;
        for (u64 row = run.first; row < run.last; ++row) {
            u64 place = row * a.features + run.column;
            double gradient = returned_at<T>(a, place, run.column);
            sum += gradient;
            product += gradient * (double(at<T>(a.x, place)) - a.moments[run.column]);
        }
        a.partial[2 * run.part * a.features + run.column] = sum;
        a.partial[(2 * run.part + 1) * a.features + run.column] = product;
    }
}

template <class T> __device__ inline void join_norm_sums(const NormArguments& a) {
    typedef Wide<T> W;
    for (u64 column = first_element(); column < a.features; column += all_threads()) {
        double sum = 0, product = 0;
        for (u64 part = 0; part < a.parts; ++part) {
            sum += a.partial[2 * part * a.features + column];
            product += a.partial[(2 * part + 1) * a.features + column];
        }
        a.sums[column] = sum;
        a.sums[a.features + column] = product;
        put<T>(a.of_affine, column, W(product * a.moments[a.features + column]));
        put<T>(a.of_affine, a.features + column, W(sum));
    }
}

// With n the normalised x: weight / deviation (g - mean(g) - n mean(g n)).
template <class T> __device__ inline void norm_gradient(const NormArguments& a) {
    typedef Wide<T> W;
    for (u64 i = first_element(); i < a.rows * a.features; i += all_threads()) {
        u64 column = position_of(i, a.features).column;
        double inverse = a.moments[a.features + column], rows = double(a.rows);
        W slope = W(a.sums[a.features + column] * inverse * inverse / rows), mean = W(a.sums[column] / rows);
        W distance = at<T>(a.x, i) - W(a.moments[column]);
        W value = returned_at<T>(a, i, column) - mean - distance * slope;
        put<T>(a.out, i, value * at<T>(a.affine, column) * W(inverse));
    }
}

#define NORM_KERNELS(T, type)                                                                                          \
    KERNEL(partial_moments_##type, NormArguments, partial_moments<T>(a))                                               \
    KERNEL(join_moments_##type, NormArguments, join_moments<T>(a))                                                     \
    KERNEL(normalised_##type, NormArguments, normalised<T>(a))                                                         \
    KERNEL(partial_norm_sums_##type, NormArguments, partial_norm_sums<T>(a))                                           \
    KERNEL(join_norm_sums_##type, NormArguments, join_norm_sums<T>(a))                                                 \
    KERNEL(norm_gradient_##type, NormArguments, norm_gradient<T>(a))
FOR_TYPES(NORM_KERNELS)

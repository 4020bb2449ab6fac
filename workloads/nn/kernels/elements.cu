// Operations on one element at a time: dropout, what finishes a GCN layer, GELU; and sums of columns.
#include "dropout.cuh"
#include "gelu.cuh"

struct DropoutArguments {
    const void* x;
    void* out;
    u64 count;
    ShiftedMask mask;
};

template <class T, int N> __device__ inline void dropout(const DropoutArguments& a) {
    Mask mask = shifted(a.mask);
    Wide<T> factor = Wide<T>(mask.factor);
    Stream stream(mask, first_element() * N);
    for (u64 i = first_element(); i < a.count / N; i += all_threads()) {
        Pack<T, N> pack = load<N, T>(a.x, i * N), out;
        for (int lane = 0; lane < N; ++lane) {
            bool kept = stays(mask, stream, i * N + lane);
            out.v[lane] = narrow<T>(kept ? widen(pack.v[lane]) * factor : Wide<T>(0));
        }
        store<N, T>(a.out, i * N, out);
    }
}

// Values of a sparse matrix, in f32, of which some are dropped by the number of each.
struct DroppedValuesArguments {
    const float* value;
    const u32* number;
    float* out;
    u64 count;
    ShiftedMask mask;
};

KERNEL(dropped_values, DroppedValuesArguments, {
    Mask mask = shifted(a.mask);
    Stream stream(mask, 0);
    for (u64 i = first_element(); i < a.count; i += all_threads())
        a.out[i] = stays(mask, stream, a.number[i]) ? a.value[i] * float(mask.factor) : 0.f;
})

// Bias, ReLU and dropout of `[rows, width]`; forward, or the gradient of `x` where there is one.
struct FinishArguments {
    const void* x;
    // `[width]`
    const void* bias;
    const void* gradient;
    void* out;
    u64 count;
    u32 width;
    u32 relu;
    ShiftedMask mask;
};

template <class T, int N> __device__ inline void finish(const FinishArguments& a) {
    typedef Wide<T> W;
    Mask mask = shifted(a.mask);
    W factor = mask.is_any ? W(mask.factor) : W(1);
    Stream stream(mask, first_element() * N);
    for (u64 i = first_element() * N; i < a.count; i += all_threads() * N) {
        Pack<T, N> x = load<N, T>(a.x, i), bias = load<N, T>(a.bias, position_of(i, a.width).column), passed = x, out;
        if (a.gradient) passed = load<N, T>(a.gradient, i);
        for (int lane = 0; lane < N; ++lane) {
            W value = widen(x.v[lane]) + widen(bias.v[lane]);
            bool kept = !(a.relu && value <= 0) && stays(mask, stream, i + lane);
            W given = a.gradient ? widen(passed.v[lane]) : value;
            out.v[lane] = narrow<T>(kept ? given * factor : W(0));
        }
        store<N, T>(a.out, i, out);
    }
}

struct ActivationArguments {
    const void* x;
    // Where there is none, the activation itself is wanted, else its gradient.
    const void* gradient;
    void* out;
    u64 count;
};

template <class T> __device__ inline void gelu(const ActivationArguments& a) {
    for (u64 i = first_element(); i < a.count; i += all_threads()) {
        Wide<T> x = at<T>(a.x, i);
        put<T>(a.out, i, a.gradient ? at<T>(a.gradient, i) * gelu_slope(x) : gelu_of(x));
    }
}

// Sums of the columns of `[rows, columns]`: of runs of `rows_of_part` rows first, `[parts, columns]` in the wide type,
// then of those.
struct ColumnSumsArguments {
    const void* x;
    void* partial;
    void* out;
    u64 rows;
    u64 columns;
    u64 rows_of_part;
    u64 parts;
};

template <class T> __device__ inline void partial_column_sums(const ColumnSumsArguments& a) {
    for (u64 i = first_element(); i < a.parts * a.columns; i += all_threads()) {
        Position place = position_of(i, a.columns);
        u64 part = place.row, column = place.column, first = part * a.rows_of_part;
        u64 last = first + a.rows_of_part < a.rows ? first + a.rows_of_part : a.rows;
        Wide<T> sum = 0;
        for (u64 row = first; row < last; ++row) sum += at<T>(a.x, row * a.columns + column);
        static_cast<Wide<T>*>(a.partial)[i] = sum;
    }
}

template <class T> __device__ inline void column_sums(const ColumnSumsArguments& a) {
    for (u64 column = first_element(); column < a.columns; column += all_threads()) {
        Wide<T> sum = 0;
        for (u64 part = 0; part < a.parts; ++part)
            sum += static_cast<const Wide<T>*>(a.partial)[part * a.columns + column];
        put<T>(a.out, column, sum);
    }
}

#define ELEMENT_KERNELS(T, type)                                                                                       \
    KERNEL(dropout_1_##type, DropoutArguments, (dropout<T, 1>(a)))                                                     \
    KERNEL(dropout_4_##type, DropoutArguments, (dropout<T, 4>(a)))                                                     \
    KERNEL(finish_1_##type, FinishArguments, (finish<T, 1>(a)))                                                        \
    KERNEL(finish_4_##type, FinishArguments, (finish<T, 4>(a)))                                                        \
    KERNEL(gelu_##type, ActivationArguments, gelu<T>(a))                                                               \
    KERNEL(partial_column_sums_##type, ColumnSumsArguments, partial_column_sums<T>(a))                                 \
    KERNEL(column_sums_##type, ColumnSumsArguments, column_sums<T>(a))
FOR_TYPES(ELEMENT_KERNELS)

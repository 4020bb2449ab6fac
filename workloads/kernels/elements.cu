// Operations on one element at a time: dropout, what finishes a GCN layer, GELU; and sums of columns.
#include "kernel.cuh"

// Which positions are dropped, as workloads/src/kernels/dropout.rs decides it.
struct Mask {
    u64 seed;
    double factor;
    // A position stays if its random number is at least this.
    u32 threshold;
    u32 is_any;
};

__device__ inline u64 mix64(u64 value) {
    value += 0x9e3779b97f4a7c15ull;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
    return value ^ (value >> 31);
}

// The random numbers of the 2^32 positions around one.
struct Stream {
    u64 high;
    u32 first;
    u32 second;

    __device__ inline Stream(const Mask& mask, u64 position) : high(position >> 32) {
        u64 key = mix64(mask.seed ^ mix64(high));
        first = u32(key);
        second = u32(mix64(key + 0x9e3779b97f4a7c15ull));
    }
};

__device__ inline bool stays(const Mask& mask, Stream& stream, u64 position) {
    if (!mask.is_any) return true;
    if (position >> 32 != stream.high) stream = Stream(mask, position);
    u32 hash = u32(position) + stream.first;
    hash = (hash ^ (hash >> 17)) * 0xed5ad4bbu;
    hash = ((hash ^ (hash >> 11)) ^ stream.second) * 0xac4c1b51u;
    hash = (hash ^ (hash >> 15)) * 0x31848babu;
    return (hash ^ (hash >> 14)) >= mask.threshold;
}

struct DropoutArguments {
    const void* x;
    void* out;
    u64 count;
    Mask mask;
};

template <class T, int N> __device__ inline void dropout(const DropoutArguments& a) {
    Wide<T> factor = Wide<T>(a.mask.factor);
    Stream stream(a.mask, first_element() * N);
    for (u64 i = first_element(); i < a.count / N; i += all_threads()) {
        Pack<T, N> pack = load<N, T>(a.x, i * N), out;
        for (int lane = 0; lane < N; ++lane) {
            bool kept = stays(a.mask, stream, i * N + lane);
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
    Mask mask;
};

KERNEL(dropped_values, DroppedValuesArguments, {
    Stream stream(a.mask, 0);
    for (u64 i = first_element(); i < a.count; i += all_threads())
        a.out[i] = stays(a.mask, stream, a.number[i]) ? a.value[i] * float(a.mask.factor) : 0.f;
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
    Mask mask;
};

template <class T> __device__ inline void finish(const FinishArguments& a) {
    typedef Wide<T> W;
    W factor = a.mask.is_any ? W(a.mask.factor) : W(1);
    Stream stream(a.mask, first_element());
    for (u64 i = first_element(); i < a.count; i += all_threads()) {
        W value = at<T>(a.x, i) + at<T>(a.bias, i % a.width);
        bool kept = !(a.relu && value <= 0) && stays(a.mask, stream, i);
        W passed = a.gradient ? at<T>(a.gradient, i) : value;
        put<T>(a.out, i, kept ? passed * factor : W(0));
    }
}

struct ActivationArguments {
    const void* x;
    // Where there is none, the activation itself is wanted, else its gradient.
    const void* gradient;
    void* out;
    u64 count;
};

__device__ inline float error_function(float x) { return erff(x); }
__device__ inline double error_function(double x) { return erf(x); }
__device__ inline float exponential(float x) { return expf(x); }
__device__ inline double exponential(double x) { return exp(x); }

// x Phi(x), whose derivative is Phi(x) + x phi(x).
template <class T> __device__ inline void gelu(const ActivationArguments& a) {
    typedef Wide<T> W;
    const W root_half = W(0.70710678118654752440), density = W(0.39894228040143267794);
    for (u64 i = first_element(); i < a.count; i += all_threads()) {
        W x = at<T>(a.x, i);
        W phi = W(0.5) * (W(1) + error_function(x * root_half));
        W slope = phi + x * density * exponential(W(-0.5) * x * x);
        put<T>(a.out, i, a.gradient ? at<T>(a.gradient, i) * slope : x * phi);
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
        u64 part = i / a.columns, column = i % a.columns, first = part * a.rows_of_part;
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
    KERNEL(finish_##type, FinishArguments, finish<T>(a))                                                               \
    KERNEL(gelu_##type, ActivationArguments, gelu<T>(a))                                                               \
    KERNEL(partial_column_sums_##type, ColumnSumsArguments, partial_column_sums<T>(a))                                 \
    KERNEL(column_sums_##type, ColumnSumsArguments, column_sums<T>(a))
FOR_TYPES(ELEMENT_KERNELS)

// What all kernels share: number types, vectors of them, and how a kernel is declared.
//
// A kernel takes one struct, by value, whose fields a Rust struct of the same name repeats in the same order
// (workloads/nn/src/cuda/). Sums are in f32, or f64 for f64, always in a fixed order and without atomics: the same input
// gives the same bits. Elements are counted in 64 bits, nodes and edges in 32.
//
// The same files are compiled as C++ for the host by the tests, see emulate.h.
#pragma once

#ifndef EMULATED
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define KERNEL(name, Arguments, ...)                                                                                   \
    extern "C" __global__ void __launch_bounds__(256, 3) name(const __grid_constant__ Arguments a) { __VA_ARGS__; }
// Before a loop whose body fills the registers already.
#define ONE_AT_A_TIME _Pragma("unroll 1")
#else
#define ONE_AT_A_TIME
#endif

typedef unsigned int u32;
typedef unsigned long long u64;
typedef __nv_bfloat16 bf16;
typedef __half f16;

// The type that sums of a type are in.
template <class T> struct WideOf { typedef float type; };
template <> struct WideOf<double> { typedef double type; };
template <class T> using Wide = typename WideOf<T>::type;

__device__ inline float widen(float x) { return x; }
__device__ inline double widen(double x) { return x; }
__device__ inline float widen(bf16 x) { return __bfloat162float(x); }
__device__ inline float widen(f16 x) { return __half2float(x); }

template <class T> __device__ inline T narrow(Wide<T> x);
template <> __device__ inline float narrow<float>(float x) { return x; }
template <> __device__ inline double narrow<double>(double x) { return x; }
template <> __device__ inline bf16 narrow<bf16>(float x) { return __float2bfloat16_rn(x); }
template <> __device__ inline f16 narrow<f16>(float x) { return __float2half_rn(x); }

__device__ inline float exponential(float x) { return expf(x); }
__device__ inline double exponential(double x) { return exp(x); }

// Neighbours in memory that are loaded and stored at once.
template <class T, int N> struct alignas(sizeof(T) * N) Pack { T v[N]; };

template <int N, class T> __device__ inline Pack<T, N> load(const void* from, u64 element) {
    return *reinterpret_cast<const Pack<T, N>*>(static_cast<const T*>(from) + element);
}
template <int N, class T> __device__ inline void store(void* to, u64 element, const Pack<T, N>& pack) {
    *reinterpret_cast<Pack<T, N>*>(static_cast<T*>(to) + element) = pack;
}
template <class T> __device__ inline Wide<T> at(const void* from, u64 element) {
    return widen(static_cast<const T*>(from)[element]);
}
template <class T> __device__ inline void put(void* to, u64 element, Wide<T> value) {
    static_cast<T*>(to)[element] = narrow<T>(value);
}

// The first of all threads of the grid, and their number, for loops over elements.
__device__ inline u64 first_element() { return u64(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ inline u64 all_threads() { return u64(gridDim.x) * blockDim.x; }

// The row and column of an element. A GPU has no 64-bit division, and the routine for one would take longer than the
// memory of an element; nearly all tensors are small enough for the other.
struct Position {
    u64 row;
    u64 column;
};
__device__ inline Position position_of(u64 element, u64 width) {
    if (((element | width) >> 32) == 0) {
        u32 row = u32(element) / u32(width);
        return {row, u32(element) - row * u32(width)};
    }
    return {element / width, element % width};
}

// The sum over the `lanes` neighbouring threads (a power of two, at most 32) of a warp, in all of them. All threads of
// the warp must take part.
template <class W> __device__ inline W sum_of_lanes(W value, u32 lanes) {
    for (u32 distance = lanes / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
    return value;
}
template <class W> __device__ inline W largest_of_lanes(W value, u32 lanes) {
    for (u32 distance = lanes / 2; distance > 0; distance /= 2) {
        W other = __shfl_xor_sync(0xffffffffu, value, distance);
        value = other > value ? other : value;
    }
    return value;
}

// Calls `INSTANCE(type, suffix)` for every number type.
#define FOR_TYPES(INSTANCE)                                                                                            \
    INSTANCE(float, f32)                                                                                               \
    INSTANCE(double, f64)                                                                                              \
    INSTANCE(bf16, bf16)                                                                                               \
    INSTANCE(f16, f16)

// GELU, exact: x Phi(x), whose derivative is Phi(x) + x phi(x).
#pragma once
#include "kernel.cuh"

__device__ inline float error_function(float x) { return erff(x); }
__device__ inline double error_function(double x) { return erf(x); }

template <class W> __device__ inline W normal_distribution(W x) {
    return W(0.5) * (W(1) + error_function(x * W(0.70710678118654752440)));
}
template <class W> __device__ inline W gelu_of(W x) { return x * normal_distribution(x); }
template <class W> __device__ inline W gelu_slope(W x) {
    return normal_distribution(x) + x * W(0.39894228040143267794) * exponential(W(-0.5) * x * x);
}

// Which positions a dropout sets to 0, as workloads/nn/src/kernels/dropout.rs decides it.
#pragma once
#include "kernel.cuh"

struct Mask {
    u64 seed;
    double factor;
    // A position stays if its random number is at least this.
    u32 threshold;
    u32 is_any;
};

// A mask of a step that may be handed over again as it was.
struct ShiftedMask {
    Mask mask;
    // Added to the seed, where there is one: what such a step has instead of a new seed.
    const u64* shift;
};

__device__ inline Mask shifted(const ShiftedMask& a) {
    Mask mask = a.mask;
    if (a.shift) mask.seed += *a.shift;
    return mask;
}

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

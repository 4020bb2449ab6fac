// Adam over all parameters at once, as workloads/src/train/adam.rs has it.
#include "kernel.cuh"

// A parameter with its gradient and moments, all of `count` elements.
struct Slot {
    float* value;
    const float* gradient;
    float* mean;
    float* square;
    u64 count;
    float weight_decay;
    u32 unused;
};

struct AdamArguments {
    const Slot* slots;
    // The slot of each block of threads, and which of its runs of `length` elements.
    const u32* block_slot;
    const u32* block_run;
    // Set to 1 where a gradient is no finite number.
    u32* is_bad;
    u64 length;
    float beta1;
    float beta2;
    float one_minus_beta1;
    float one_minus_beta2;
    float epsilon;
    float gradient_scale;
    float step_size;
    float root_correction;
};

KERNEL(adam, AdamArguments, {
    Slot slot = a.slots[a.block_slot[blockIdx.x]];
    u64 first = a.block_run[blockIdx.x] * a.length;
    u64 last = first + a.length < slot.count ? first + a.length : slot.count;
    for (u64 i = first + threadIdx.x; i < last; i += blockDim.x) {
        float value = slot.value[i];
        float gradient = slot.gradient[i] * a.gradient_scale + slot.weight_decay * value;
        float mean = a.beta1 * slot.mean[i] + a.one_minus_beta1 * gradient;
        float square = a.beta2 * slot.square[i] + a.one_minus_beta2 * gradient * gradient;
        slot.mean[i] = mean;
        slot.square[i] = square;
        slot.value[i] = value - a.step_size * mean / (sqrtf(square) / a.root_correction + a.epsilon);
    }
})

KERNEL(find_bad_gradients, AdamArguments, {
    Slot slot = a.slots[a.block_slot[blockIdx.x]];
    u64 first = a.block_run[blockIdx.x] * a.length;
    u64 last = first + a.length < slot.count ? first + a.length : slot.count;
    for (u64 i = first + threadIdx.x; i < last; i += blockDim.x) {
        // A difference with itself is 0 for finite numbers only. Whoever writes, writes the same.
        if (slot.gradient[i] - slot.gradient[i] != 0.f) *a.is_bad = 1;
    }
})

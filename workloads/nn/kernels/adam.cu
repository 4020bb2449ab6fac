// Adam over all parameters at once, as workloads/nn/src/learn/adam.rs has it.
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
    // The two constants below that change from step to step, where they are in memory.
    const float* rates;
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
    float step_size = a.rates ? a.rates[0] : a.step_size;
    float root_correction = a.rates ? a.rates[1] : a.root_correction;
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
        slot.value[i] = value - step_size * mean / (sqrtf(square) / root_correction + a.epsilon);
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

// What changes from one step to the next, see workloads/nn/src/cuda/progress.rs.
struct AdvanceArguments {
    u64* shift;
    // Each beta to the power of the steps done.
    double* powers;
    float* rates;
    u64 seeds;
    double beta1;
    double beta2;
    double learning_rate;
};

// One thread.
KERNEL(advance, AdvanceArguments, {
    *a.shift += a.seeds;
    a.powers[0] *= a.beta1;
    a.powers[1] *= a.beta2;
    a.rates[0] = float(a.learning_rate / (1.0 - a.powers[0]));
    a.rates[1] = float(sqrt(1.0 - a.powers[1]));
})

// Compiles the kernels as C++ for the host, so that their arithmetic and indexing can be tested without a GPU. A block's
// threads are coroutines of one host thread; they change at barriers and at exchanges within a warp. A thread that
// leaves its warp or its block waiting ends the program with a message: on a GPU that would hang.
#pragma once
#define EMULATED 1

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <ucontext.h>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __restrict__
#define KERNEL(name, Arguments, ...)                                                                                   \
    extern "C" {                                                                                                       \
    extern unsigned name##_bytes;                                                                                      \
    unsigned name##_bytes = sizeof(Arguments);                                                                         \
    }                                                                                                                  \
    extern "C" void name(const void* arguments) {                                                                      \
        const Arguments& a = *static_cast<const Arguments*>(arguments);                                                \
        __VA_ARGS__;                                                                                                   \
    }

struct Place {
    unsigned x, y, z;
};
inline Place threadIdx, blockIdx, blockDim, gridDim;

struct __half {
    _Float16 value;
};
inline float __half2float(__half x) { return float(x.value); }
inline __half __float2half_rn(float x) { return __half{_Float16(x)}; }

struct __nv_bfloat16 {
    unsigned short bits;
};
inline float __bfloat162float(__nv_bfloat16 x) {
    unsigned bits = unsigned(x.bits) << 16;
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}
inline __nv_bfloat16 __float2bfloat16_rn(float x) {
    unsigned bits;
    std::memcpy(&bits, &x, 4);
    if (x != x) return __nv_bfloat16{0x7fff};
    return __nv_bfloat16{(unsigned short)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)};
}

namespace emulation {

enum State { READY, AT_WARP, AT_BLOCK, DONE };

struct Thread {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    State state;
    unsigned char exchanged[8];
};

inline std::vector<Thread> threads;
inline ucontext_t scheduler;
inline unsigned current;
inline void (*kernel)(const void*);
inline const void* arguments;
constexpr unsigned WARP = 32;
constexpr size_t STACK = 64 * 1024;

inline void wait(State state) {
    threads[current].state = state;
    swapcontext(&threads[current].context, &scheduler);
}

inline void body() {
    kernel(arguments);
    threads[current].state = DONE;
    swapcontext(&threads[current].context, &scheduler);
}

// Makes those threads ready that all arrived at a barrier; whether there were any.
inline bool release(unsigned first, unsigned last, State barrier) {
    bool any = false;
    for (unsigned i = first; i < last; ++i) {
        if (threads[i].state != barrier && threads[i].state != DONE) return false;
        any = any || threads[i].state == barrier;
    }
    for (unsigned i = first; any && i < last; ++i) {
        if (threads[i].state == DONE && barrier == AT_WARP) {
            std::fprintf(stderr, "a thread ended while its warp exchanges values\n");
            std::abort();
        }
        if (threads[i].state == barrier) threads[i].state = READY;
    }
    return any;
}

inline void run_block(unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
        Thread& thread = threads[i];
        if (!thread.stack) thread.stack.reset(new char[STACK]);
        getcontext(&thread.context);
        thread.context.uc_stack.ss_sp = thread.stack.get();
        thread.context.uc_stack.ss_size = STACK;
        thread.context.uc_link = nullptr;
        makecontext(&thread.context, body, 0);
        thread.state = READY;
    }
    for (bool going = true; going;) {
        going = false;
        for (current = 0; current < count; ++current) {
            if (threads[current].state != READY) continue;
            threadIdx = {current % blockDim.x, current / blockDim.x % blockDim.y, current / blockDim.x / blockDim.y};
            swapcontext(&scheduler, &threads[current].context);
            going = true;
        }
        for (unsigned first = 0; first < count; first += WARP)
            going = release(first, first + WARP < count ? first + WARP : count, AT_WARP) || going;
        going = release(0, count, AT_BLOCK) || going;
    }
    for (unsigned i = 0; i < count; ++i) {
        if (threads[i].state != DONE) {
            std::fprintf(stderr, "threads of a block wait for each other at different places\n");
            std::abort();
        }
    }
}

template <class T> T exchange(T value, unsigned partner) {
    static_assert(sizeof(T) <= 8, "one register");
    unsigned lane = current;
    std::memcpy(threads[lane].exchanged, &value, sizeof(T));
    Place place = threadIdx;
    wait(AT_WARP);
    std::memcpy(&value, threads[lane - lane % WARP + partner % WARP].exchanged, sizeof(T));
    wait(AT_WARP);
    threadIdx = place;
    return value;
}

} // namespace emulation

inline void __syncthreads() {
    Place place = threadIdx;
    emulation::wait(emulation::AT_BLOCK);
    threadIdx = place;
}
template <class T> T __shfl_xor_sync(unsigned, T value, unsigned distance) {
    return emulation::exchange(value, emulation::current % emulation::WARP ^ distance);
}

// Runs a kernel over a grid of `blocks` of `block` threads.
extern "C" inline __attribute__((used)) void emulate(void (*kernel)(const void*), const unsigned* grid,
                                                      const unsigned* block, const void* arguments) {
    gridDim = {grid[0], grid[1], 1};
    blockDim = {block[0], block[1], 1};
    emulation::kernel = kernel;
    emulation::arguments = arguments;
    unsigned count = block[0] * block[1];
    if (count > 256 || grid[1] > 65535) {
        std::fprintf(stderr, "a grid of %u x %u blocks of %u threads\n", grid[0], grid[1], count);
        std::abort();
    }
    if (emulation::threads.size() < count) emulation::threads.resize(count);
    for (blockIdx.y = 0; blockIdx.y < grid[1]; ++blockIdx.y)
        for (blockIdx.x = 0; blockIdx.x < grid[0]; ++blockIdx.x) emulation::run_block(count);
}

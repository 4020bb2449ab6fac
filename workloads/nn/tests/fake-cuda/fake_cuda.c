// As much of libcuda.so as the tests need: a stream on which each recorded event takes a millisecond of real time, and a pool of
// a gigabyte that keeps what is freed. What is done on the stream is in fake_work.c.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

enum { SUCCESS = 0, INVALID = 1, OUT_OF_MEMORY = 2, NOT_FOUND = 500, NOT_READY = 600, CAPTURE_UNSUPPORTED = 900, CAPTURE_INVALIDATED = 901 };
enum { THRESHOLD = 4, RESERVED = 5, RESERVED_HIGH = 6, USED = 7, USED_HIGH = 8 };

enum { DEVICES = 3, READ_WRITE = 3 };
typedef struct { int kind, device, flags; } Access;
static int may_use[DEVICES];

static const uint64_t TOTAL = 1ull << 30;
static uint64_t used, used_high, reserved, reserved_high, threshold;
static double done_ms;
static _Thread_local void *current;

typedef struct { double reached_ms; } Event;

// Ends a capture that runs, in which a call cannot be; 0 where none runs.
static int refuse_in_capture(void);

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

int cuInit(unsigned flags) { return SUCCESS; }
int cuDeviceGetCount(int *count) { *count = 1; return SUCCESS; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return ordinal < DEVICES ? SUCCESS : INVALID; }
int cuDeviceGetAttribute(int *value, int attribute, int device) { *value = 1; return SUCCESS; }
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = &threshold; return SUCCESS; }
int cuDevicePrimaryCtxRelease_v2(int device) { return SUCCESS; }
int cuCtxGetCurrent(void **context) { *context = current; return SUCCESS; }
int cuCtxSetCurrent(void *context) { current = context; return SUCCESS; }
int cuCtxSynchronize(void) { return refuse_in_capture(); }

int cuStreamCreate(void **stream, unsigned flags) { *stream = &done_ms; return current ? SUCCESS : INVALID; }
int cuStreamDestroy_v2(void *stream) { return SUCCESS; }
int cuThreadExchangeStreamCaptureMode(int *mode) { *mode = 0; return SUCCESS; }
int cuStreamWaitEvent(void *stream, void *event, unsigned flags) { return SUCCESS; }

int cuStreamSynchronize(void *stream) {
    if (refuse_in_capture()) return CAPTURE_UNSUPPORTED;
    while (now_ms() < done_ms) { }
    return current ? SUCCESS : INVALID;
}

int cuEventCreate(void **event, unsigned flags) {
    *event = calloc(1, sizeof(Event));
    return *event && current ? SUCCESS : INVALID;
}

int cuEventDestroy_v2(void *event) { free(event); return SUCCESS; }

int cuEventRecord(Event *event, void *stream) {
    // A driver would make it a node; nobody here wants one.
    if (refuse_in_capture()) return CAPTURE_UNSUPPORTED;
    double now = now_ms();
    done_ms = (now > done_ms ? now : done_ms) + 1;
    event->reached_ms = done_ms;
    return current ? SUCCESS : INVALID;
}

int cuEventQuery(Event *event) { return !current ? INVALID : now_ms() < event->reached_ms ? NOT_READY : SUCCESS; }

int cuEventSynchronize(Event *event) {
    while (now_ms() < event->reached_ms) { }
    return SUCCESS;
}

int cuEventElapsedTime_v2(float *ms, Event *from, Event *to) {
    if (now_ms() < from->reached_ms || now_ms() < to->reached_ms) return NOT_READY;
    *ms = (float)(to->reached_ms - from->reached_ms);
    return SUCCESS;
}

int cuEventElapsedTime(float *ms, Event *from, Event *to) { return cuEventElapsedTime_v2(ms, from, to); }

int cuDeviceGetMemPool(void **pool, int device) { *pool = &used; return SUCCESS; }

int cuMemPoolGetAttribute(void *pool, int attribute, uint64_t *value) {
    switch (attribute) {
    case THRESHOLD: *value = threshold; return SUCCESS;
    case RESERVED: *value = reserved; return SUCCESS;
    case RESERVED_HIGH: *value = reserved_high; return SUCCESS;
    case USED: *value = used; return SUCCESS;
    case USED_HIGH: *value = used_high; return SUCCESS;
    }
    return INVALID;
}

int cuMemPoolSetAttribute(void *pool, int attribute, uint64_t *value) {
    switch (attribute) {
    case THRESHOLD: threshold = *value; return SUCCESS;
    case RESERVED_HIGH: reserved_high = reserved; return *value ? INVALID : SUCCESS;
    case USED_HIGH: used_high = used; return *value ? INVALID : SUCCESS;
    }
    return INVALID;
}

// One device is counted. Of two more, which only share memory, the last cannot reach it.
int cuDeviceCanAccessPeer(int *can, int device, int peer) {
    *can = device == 1 && peer == 0;
    return SUCCESS;
}

int cuMemPoolSetAccess(void *pool, const Access *access, size_t count) {
    if (count != 1 || access->kind != 1 || access->device != 1 || access->flags != READ_WRITE) return INVALID;
    may_use[access->device] = READ_WRITE;
    return SUCCESS;
}

int cuMemPoolGetAccess(int *flags, void *pool, const Access *location) {
    *flags = location->device == 0 ? READ_WRITE : may_use[location->device];
    return SUCCESS;
}

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
    *free_bytes = TOTAL - reserved;
    *total = TOTAL;
    return current ? SUCCESS : INVALID;
}

static int pool_take(size_t bytes) {
    if (used + bytes > TOTAL) return OUT_OF_MEMORY;
    used += bytes;
    if (used > reserved) reserved = used;
    if (used > used_high) used_high = used;
    if (reserved > reserved_high) reserved_high = reserved;
    return SUCCESS;
}

static void pool_give(size_t bytes) { used -= bytes; }

#include "fake_work.c"

int cuGetErrorName(int error, const char **name) {
    *name = error == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_INVALID_VALUE";
    return SUCCESS;
}

int cuGetErrorString(int error, const char **text) {
    *text = error == OUT_OF_MEMORY ? "out of memory" : "invalid argument";
    return SUCCESS;
}

/* A stand-in for CUDA's driver: one stream that works in order, on a clock of its own that drifts from the host's.
 * Only what gnntop calls is here, and what a test sets: which calls fail, and what was called.
 *
 * Compiled as a library called libcuda.so.1. With -DWITHOUT_ELAPSED_TIME it lacks a function, as an old driver may.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SUCCESS = 0, INVALID_CONTEXT = 201, INVALID_HANDLE = 400, NOT_READY = 600, ILLEGAL_ADDRESS = 700, RELAXED = 2 };
/* A quartz that is 20 millionths fast, and a clock that began at another time. */
#define DRIFT 20e-6
#define BEGAN 1e15

typedef struct { double reached; int is_recorded; } event_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static double free_at;      /* when the stream has done all its work, in nanoseconds of CLOCK_MONOTONIC */
static double last_mark;    /* when the event that was recorded last is reached */
static int marks_until_error = -1, never_ready, is_capturing, capture_ended_by_us, events_alive, syncs;
static __thread void *contexts[8];
static __thread int depth;
static __thread int capture_mode = 0;

/* ---- what a test sets and asks ---- */

void fake_context(void *context) { depth = 1; contexts[0] = context; }
void fake_never_ready(void) { never_ready = 1; }
void fake_fail_after(int marks) { marks_until_error = marks; }
void fake_capture(int on) { is_capturing = on; }
int fake_capture_ended(void) { return capture_ended_by_us; }
int fake_events_alive(void) { return events_alive; }
int fake_syncs(void) { return syncs; }

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Hands over work of so many microseconds. */
void fake_work(long us) {
    pthread_mutex_lock(&lock);
    free_at = (free_at > now() ? free_at : now()) + (double)us * 1e3;
    pthread_mutex_unlock(&lock);
}

/* When the device reaches the event that was recorded last. */
uint64_t fake_last_mark(void) {
    pthread_mutex_lock(&lock);
    uint64_t last = (uint64_t)last_mark;
    pthread_mutex_unlock(&lock);
    return last;
}

/* ---- the driver ---- */

/* An error that stays, as a kernel's bad access does. */
static int broken(void) { return marks_until_error == 0 ? ILLEGAL_ADDRESS : SUCCESS; }

int cuCtxGetCurrent(void **context) { *context = depth ? contexts[depth - 1] : NULL; return SUCCESS; }

int cuCtxPushCurrent_v2(void *context) {
    if (!context || depth == 8) return INVALID_CONTEXT;
    contexts[depth++] = context;
    return SUCCESS;
}

int cuCtxPopCurrent_v2(void **context) {
    if (!depth) return INVALID_CONTEXT;
    *context = contexts[--depth];
    return SUCCESS;
}

int cuThreadExchangeStreamCaptureMode(int *mode) {
    int was = capture_mode;
    capture_mode = *mode;
    *mode = was;
    return SUCCESS;
}

int cuStreamIsCapturing(void *stream, int *status) {
    (void)stream;
    *status = is_capturing;
    return broken();
}

int cuEventCreate(void **event, unsigned flags) {
    if (flags & 2 || !depth) return INVALID_CONTEXT; /* 2: one that keeps no time */
    int code = broken();
    if (code) return code;
    *event = calloc(1, sizeof(event_t));
    __sync_fetch_and_add(&events_alive, 1);
    return SUCCESS;
}

int cuEventDestroy_v2(void *event) {
    free(event);
    __sync_fetch_and_sub(&events_alive, 1);
    return SUCCESS;
}

int cuEventRecord(void *event, void *stream) {
    (void)stream;
    if (!depth || is_capturing) return INVALID_CONTEXT;
    int code = broken();
    if (code) return code;
    pthread_mutex_lock(&lock);
    event_t *e = event;
    e->reached = free_at > now() ? free_at : now();
    e->is_recorded = 1;
    last_mark = e->reached;
    if (marks_until_error > 0) marks_until_error--;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

/* In the wrong mode a question ends what is being captured, on whichever thread. */
static void noticed_by_capture(void) {
    if (is_capturing && capture_mode != RELAXED) capture_ended_by_us = 1;
}

int cuEventQuery(void *event) {
    noticed_by_capture();
    if (!depth) return INVALID_CONTEXT;
    int code = broken();
    if (code) return code;
    pthread_mutex_lock(&lock);
    event_t *e = event;
    int is_reached = e->is_recorded && !never_ready && now() >= e->reached;
    pthread_mutex_unlock(&lock);
    return is_reached ? SUCCESS : NOT_READY;
}

#ifndef WITHOUT_ELAPSED_TIME
static double device_clock(double ns) { return (ns - BEGAN) * (1 + DRIFT); }

int cuEventElapsedTime(float *ms, void *from, void *to) {
    noticed_by_capture();
    int code = broken();
    if (code) return code;
    pthread_mutex_lock(&lock);
    event_t *a = from, *b = to;
    int is_valid = a->is_recorded && b->is_recorded;
    *ms = (float)((device_clock(b->reached) - device_clock(a->reached)) / 1e6);
    pthread_mutex_unlock(&lock);
    return is_valid ? SUCCESS : INVALID_HANDLE;
}
#endif

/* Who waits for the device is caught: it may never come back. */
int cuStreamSynchronize(void *stream) {
    (void)stream;
    syncs++;
    while (never_ready) pause();
    return SUCCESS;
}

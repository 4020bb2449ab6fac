/* A stand-in for NCCL, without a GPU: loads the profiler plugin the way NCCL does, makes a communicator, and reports
 * operations, from a thread that hands them over and one that watches the kernels.
 *
 *     nccl LIBRARY VERSION        VERSION: 3, 4 or 5
 *
 * The structures are written down from NCCL's headers a second time, so that a C compiler lays them out and not the one that compiled the
 * plugin. Writes a line for each operation: name, bytes, when its kernel began and ended in nanoseconds of CLOCK_MONOTONIC.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { GROUP = 1, COLLECTIVE = 2, POINT_TO_POINT = 4, PROXY_OP = 8, PROXY_STEP = 16, CHANNEL = 64, NET = 128 };
enum { CHANNEL_STOP = 22, CHANNELS = 2, STEPS = 40 };

typedef struct {
    uint8_t type; void *parent; int rank;
    union {
        struct { const char *name; uint64_t hash, sequence; const char *func; const void *send; void *recv; size_t count;
                 int root; const char *datatype; uint8_t nMaxChannels, nWarps; const char *algo, *proto; } coll;
        struct { const char *name; uint64_t hash; const char *func; void *buff; const char *datatype; size_t count;
                 int peer; } p2p;
        struct { uint8_t channel; } kernel;
        struct { int64_t id; void *data; } net;
    };
} descriptor3;

typedef struct {
    uint8_t type; void *parent; int rank;
    union {
        struct { uint64_t sequence; const char *func; const void *send; void *recv; size_t count; int root;
                 const char *datatype; uint8_t nChannels, nWarps; const char *algo, *proto; } coll;
        struct { const char *func; void *buff; const char *datatype; size_t count; int peer; uint8_t nChannels; } p2p;
        struct { uint8_t channel; uint64_t timer; } kernel;
    };
} descriptor4;

typedef struct {
    uint64_t type; void *parent; int rank;
    union {
        struct { bool captured; int depth; } group;
        struct { uint64_t sequence; const char *func; const void *send; void *recv; size_t count; int root;
                 const char *datatype; uint8_t nChannels, nWarps; const char *algo, *proto; void *group; } coll;
        struct { const char *func; void *buff; const char *datatype; size_t count; int peer; uint8_t nChannels;
                 void *group; } p2p;
        struct { uint8_t channel; uint64_t timer; } kernel;
    };
} descriptor5;

typedef union { struct { size_t size; } step; struct { uint64_t timer; } kernel; } state_args;

typedef int (*init3)(void **, int *);
typedef int (*init4)(void **, int *, const char *, uint64_t, int, int, int, void *);
typedef int (*init5)(void **, uint64_t, int *, const char *, int, int, int, void *);
typedef struct {
    const char *name;
    void *init;
    int (*start)(void *, void **, void *);
    int (*stop)(void *);
    int (*record)(void *, int, state_args *);
    int (*finalize)(void *);
} plugin_t;

static plugin_t *plugin;
static int version;

static void check(bool holds, const char *what) {
    if (!holds) { fprintf(stderr, "not so: %s\n", what); exit(3); }
}

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void wait_us(long us) {
    struct timespec t = { 0, us * 1000 };
    nanosleep(&t, NULL);
}

static void *find(void *library, const char *name) {
    void *found = dlsym(library, name);
    check(found != NULL, name);
    return found;
}

static void *communicator(const char *name, int *mask) {
    void *context = (void *)1; /* what a plugin leaves is used */
    int result = -1;
    *mask = 0;
    if (version == 3) result = ((init3)plugin->init)(&context, mask);
    if (version == 4) result = ((init4)plugin->init)(&context, mask, name, 0xC0, 1, 4, 1, NULL);
    if (version == 5) result = ((init5)plugin->init)(&context, 0xC0, mask, name, 2, 4, 1, NULL);
    check(result == 0, "init succeeds");
    return context;
}

/* An operation that is handed over. What no field says is filled with nonsense, as it may be. */
static void *hand_over(void *context, const char *func, const char *datatype, size_t count, uint8_t channels) {
    bool is_coll = func == NULL || (strcmp(func, "Send") && strcmp(func, "Recv"));
    void *event = (void *)0xDEAD;
    union { descriptor3 d3; descriptor4 d4; descriptor5 d5; } d;
    memset(&d, 0xA5, sizeof d);
    #define FILL(D) \
        D.type = is_coll ? COLLECTIVE : POINT_TO_POINT; D.parent = NULL; D.rank = 1; \
        if (is_coll) { D.coll.func = func; D.coll.datatype = datatype; D.coll.count = count; } \
        else { D.p2p.func = func; D.p2p.datatype = datatype; D.p2p.count = count; }
    if (version == 3) { FILL(d.d3) if (is_coll) { d.d3.coll.name = NULL; d.d3.coll.nMaxChannels = 24; } }
    if (version == 4) { FILL(d.d4) if (is_coll) d.d4.coll.nChannels = channels; else d.d4.p2p.nChannels = channels; }
    if (version == 5) { FILL(d.d5) if (is_coll) d.d5.coll.nChannels = channels; else d.d5.p2p.nChannels = channels; }
    check(plugin->start(context, &event, &d) == 0, "an operation starts");
    return event;
}

static void *begin_channel(void *context, void *operation, int channel, uint64_t timer) {
    void *event = (void *)0xDEAD;
    union { descriptor3 d3; descriptor4 d4; descriptor5 d5; } d;
    memset(&d, 0xA5, sizeof d);
    #define KERNEL(D) D.type = CHANNEL; D.parent = operation; D.kernel.channel = (uint8_t)channel;
    if (version == 3) { KERNEL(d.d3) }
    if (version == 4) { KERNEL(d.d4) d.d4.kernel.timer = timer; }
    if (version == 5) { KERNEL(d.d5) d.d5.kernel.timer = timer; }
    check(plugin->start(context, &event, &d) == 0, "a channel starts");
    return event;
}

static void *other_event(void *context, uint64_t type) {
    void *event = (void *)0xDEAD;
    union { descriptor3 d3; descriptor4 d4; descriptor5 d5; } d;
    memset(&d, 0xA5, sizeof d);
    if (version == 5) d.d5.type = type; else d.d3.type = (uint8_t)type;
    check(plugin->start(context, &event, &d) == 0, "any event starts");
    return event;
}

/* ---- the thread that watches kernels: a queue of one ---- */

typedef struct { void *context, *operation; const char *name; size_t bytes; long us; } work_t;
static work_t queued;
static bool is_queued, is_over;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void run_kernel(work_t *work) {
    void *channels[CHANNELS];
    uint64_t begin = now();
    for (int c = 0; c < CHANNELS; c++) channels[c] = begin_channel(work->context, work->operation, c, begin);
    wait_us(work->us);
    uint64_t end = now();
    for (int c = 0; c < CHANNELS; c++) {
        state_args args = { .kernel = { end } };
        check(plugin->record(channels[c], CHANNEL_STOP, version == 3 ? NULL : &args) == 0, "a state is told");
        check(plugin->stop(channels[c]) == 0, "a channel stops");
    }
    if (work->name) printf("%s %zu %llu %llu\n", work->name, work->bytes, (unsigned long long)begin, (unsigned long long)now());
}

static void *watch_kernels(void *nothing) {
    for (;;) {
        pthread_mutex_lock(&lock);
        while (!is_queued && !is_over) pthread_cond_wait(&changed, &lock);
        bool end = !is_queued;
        work_t work = queued;
        pthread_mutex_unlock(&lock);
        if (end) return nothing;
        run_kernel(&work);
        pthread_mutex_lock(&lock);
        is_queued = false;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
}

/* Hands an operation over, and has its kernel run; the host goes on at once but for the queue's length. */
static void operate(void *context, const char *func, const char *datatype, size_t count, size_t bytes, long us) {
    pthread_mutex_lock(&lock);
    while (is_queued) pthread_cond_wait(&changed, &lock);
    queued = (work_t){ context, hand_over(context, func, datatype, count, CHANNELS), func ? func : "?", bytes, us };
    check(queued.operation != NULL, "an operation has a handle while a session is open");
    is_queued = true;
    pthread_cond_broadcast(&changed);
    check(plugin->stop(queued.operation) == 0, "an operation stops when it was handed over");
    pthread_mutex_unlock(&lock);
}

static void drain(void) {
    pthread_mutex_lock(&lock);
    while (is_queued) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

/* ---- what NCCL never does, and what other versions of it may ---- */

static void misuse(void *context) {
    const uint64_t types[] = { 0, GROUP, PROXY_OP, PROXY_STEP, 32, NET, 255, 256, 512, 1024, 2048, 1ull << 40 };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (version != 5 && types[i] > 255) continue;
        check(other_event(context, types[i]) == NULL, "what was not asked for has no handle");
    }
    void *strange[] = { NULL, (void *)1, (void *)0xDEADBEEF, (void *)UINTPTR_MAX, context };
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
        check(plugin->stop(strange[i]) == 0 && plugin->record(strange[i], CHANNEL_STOP, NULL) == 0, "no handle is followed");
        check(begin_channel(context, strange[i], 0, 1) == NULL, "a channel of nothing");
        check(hand_over(i == 0 ? NULL : strange[3], "AllReduce", "ncclFloat32", 1, 1) == NULL, "no communicator");
    }
    void *event = (void *)0xDEAD;
    check(plugin->start(context, &event, NULL) == 0 && event == NULL, "no descriptor");
    descriptor5 d = { .type = CHANNEL };
    check(plugin->start(context, NULL, &d) == 0, "nowhere to put a handle");
    void *operation = hand_over(context, "Gather", "ncclFloat32", 1, 1);
    void *channel = begin_channel(context, operation, 0, 0);
    check(plugin->stop(channel) == 0 && plugin->stop(channel) == 0, "stopped twice");
    check(plugin->record(channel, 9999, NULL) == 0, "an unknown state");
    check(plugin->finalize(NULL) == 0 && plugin->finalize(strange[3]) == 0, "ends nothing");
}

/* Many threads at once, each with operations of its own. */
static void *storm(void *context) {
    for (int i = 0; i < 2000; i++) {
        void *operation = hand_over(context, "Broadcast", "ncclInt8", 8, 1);
        void *channel = begin_channel(context, operation, 0, 0);
        plugin->stop(operation);
        plugin->stop(channel);
    }
    return NULL;
}

int main(int argc, char **argv) {
    check(argc == 3, "usage: nccl LIBRARY VERSION");
    version = atoi(argv[2]);
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    check(library != NULL, dlerror() ? "the library is there" : "dlopen");
    char symbol[32];
    snprintf(symbol, sizeof symbol, "ncclProfiler_v%d", version);
    plugin = find(library, symbol);
    int (*open_session)(const char *, const char *) = (int (*)(const char *, const char *))find(library, "gnntop_open");
    void (*close_session)(void) = (void (*)(void))find(library, "gnntop_close");
    check(!strcmp(plugin->name, "gnntop"), "its name");

    int mask;
    void *context = communicator("default_pg", &mask);
    if (getenv("GNNTOP")) {
        check(mask == 0 && context == NULL, "turned off it asks for nothing");
        check(hand_over(context, "AllReduce", "ncclFloat32", 1, 1) == NULL, "and takes nothing");
        return plugin->finalize(context);
    }
    check(mask == (COLLECTIVE | POINT_TO_POINT | CHANNEL), "it asks for what it uses and no more");
    check(context != NULL, "a communicator is watched before there is a session");
    check(hand_over(context, "AllReduce", "ncclFloat32", 1, 1) == NULL, "without a session nothing is kept");
    misuse(NULL);

    check(open_session("ranks", "rank=1\nranks=4"), "a session");
    pthread_t watcher, storms[4];
    pthread_create(&watcher, NULL, watch_kernels, NULL);
    for (int step = 0; step < STEPS; step++) operate(context, "AllReduce", "ncclFloat32", 1000, 4000, 500);
    operate(context, "AllGather", "ncclBfloat16", 1000, 2000, 700);
    operate(context, "ReduceScatter", "ncclFloat64", 1000, 8000, 700);
    operate(context, "Broadcast", "ncclUint8", 1000, 1000, 700);
    operate(context, "Send", "ncclInt64", 10, 80, 700);
    operate(context, "Recv", "ncclInt32", 10, 40, 700);
    operate(context, NULL, NULL, 10, 0, 700);
    operate(context, "SomethingNew", "ncclFloat4", 10, 0, 700);
    drain();
    void *second = communicator(NULL, &mask);
    misuse(second);
    for (int i = 0; i < 4; i++) pthread_create(&storms[i], NULL, storm, second);
    for (int i = 0; i < 4; i++) pthread_join(storms[i], NULL);
    check(plugin->finalize(second) == 0, "a communicator ends");
    check(hand_over(second, "AllReduce", "ncclFloat32", 1, 1) == NULL, "and is no more");
    is_over = true;
    pthread_cond_broadcast(&changed);
    pthread_join(watcher, NULL);
    check(plugin->finalize(context) == 0, "a communicator ends");
    close_session();
    check(dlclose(library) == 0, "NCCL closes its plugins");
    return 0;
}

/* A training on the stand-in for a GPU, reported the way Python's hooks do.
 *
 *     training LIBRARY DRIVER CASE
 *
 * CASE: healthy, never (the device never answers), breaks (every call fails from some mark on), captures (a graph is captured for
 * some steps), old (a driver that lacks a function), alone (no context). Writes for each phase that the
 * device does: name, step, when it began and ended there, in nanoseconds of CLOCK_MONOTONIC.
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

#include "gnntop.h"

enum { STEPS = 60 };

static void check(bool holds, const char *what) {
    if (!holds) { fprintf(stderr, "not so: %s\n", what); exit(3); }
}

static void *find(void *library, const char *name) {
    void *found = dlsym(library, name);
    check(found != NULL, name);
    return found;
}

#define FUNCTION(library, name) __typeof__(&name) p_##name = (__typeof__(&name))find(library, #name)
#define FAKE(type, name, ...) type (*name)(__VA_ARGS__) = (type (*)(__VA_ARGS__))find(driver, #name)

int main(int argc, char **argv) {
    check(argc == 4, "usage: training LIBRARY DRIVER CASE");
    const char *which = argv[3];
    bool is_never = !strcmp(which, "never"), breaks = !strcmp(which, "breaks"), captures = !strcmp(which, "captures");
    void *driver = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    check(driver && library, "both libraries are there");
    FUNCTION(library, gnntop_name);
    FUNCTION(library, gnntop_open);
    FUNCTION(library, gnntop_track);
    FUNCTION(library, gnntop_begin);
    FUNCTION(library, gnntop_end);
    FUNCTION(library, gnntop_step);
    FUNCTION(library, gnntop_cuda);
    FUNCTION(library, gnntop_track_end);
    FUNCTION(library, gnntop_close);
    FAKE(void, fake_context, void *);
    FAKE(void, fake_never_ready, void);
    FAKE(void, fake_fail_after, int);
    FAKE(void, fake_capture, int);
    FAKE(int, fake_capture_ended, void);
    FAKE(int, fake_events_alive, void);
    FAKE(int, fake_syncs, void);
    FAKE(void, fake_work, long);
    FAKE(uint64_t, fake_last_mark, void);

    const char *names[] = { "forward", "backward", "optimizer" };
    int phases[3];
    for (int p = 0; p < 3; p++) phases[p] = p_gnntop_name(GNNTOP_PHASE, names[p]);
    check(p_gnntop_open("gpu", ""), "a session");
    p_gnntop_track("train", GNNTOP_TRAINING);
    if (strcmp(which, "alone")) fake_context((void *)0xC0);
    if (is_never) fake_never_ready();
    int is_timed = p_gnntop_cuda(0, 0x57);
    bool expects = strcmp(which, "old") && strcmp(which, "alone");
    check(is_timed == expects, "whether the device is timed");
    if (breaks) fake_fail_after(150);

    for (int step = 1; step <= STEPS; step++) {
        bool is_captured = captures && step > 20 && step <= 30;
        if (captures) fake_capture(is_captured);
        for (int p = 0; p < 3; p++) {
            p_gnntop_begin(phases[p]);
            uint64_t begin = fake_last_mark();
            fake_work(300 * (p + 1));
            p_gnntop_end();
            uint64_t end = fake_last_mark();
            if (!is_captured) printf("%s %d %llu %llu\n", names[p], step, (unsigned long long)begin, (unsigned long long)end);
        }
        /* The host reads the loss: it waits for the device, as far as that ever answers. */
        struct timespec wait = { 0, 2000000 };
        nanosleep(&wait, NULL);
        check(p_gnntop_step() == step, "a step ends");
    }
    struct timespec wait = { 0, 60000000 };
    nanosleep(&wait, NULL);
    p_gnntop_track_end();
    p_gnntop_close();
    check(fake_syncs() == 0, "nobody waits for the device");
    check(!fake_capture_ended(), "no question ends a capture");
    check(fake_events_alive() == 0, "every event is destroyed");
    return 0;
}

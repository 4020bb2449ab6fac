/* A training loop of C that gnntop can look at, by the interface that Python's hooks use too.
 *
 *     cargo build --release -p gnntop-python
 *     cc -I python/include python/examples/loop.c target/release/libgnntop_python.so -o loop
 *     LD_LIBRARY_PATH=target/release gnntop run -- ./loop            says where phases and steps begin and end
 *     LD_LIBRARY_PATH=target/release gnntop run -- ./loop 1000 work  says what it does: gnntop finds the steps
 */
#define _POSIX_C_SOURCE 199309L /* clock_gettime */
#include <gnntop.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Stands for work. */
static void busy(long microseconds) {
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1000000 + (now.tv_nsec - begin.tv_nsec) / 1000 < microseconds);
}

/* Stands for one piece of work. */
static void work(int kind, long microseconds, uint64_t which) {
    int32_t token = gnntop_work_begin(kind);
    busy(microseconds);
    gnntop_work_end(kind, token, which);
}

/* Reports its work, so that gnntop finds the steps: two micro-batches each, and an evaluation before every fourth. */
static void train_by_work(int steps) {
    for (int step = 0; step < steps; step++) {
        for (int batch = 0; step % 4 == 3 && batch < 3; batch++) {
            work(GNNTOP_FETCH, 20, 1);
            work(GNNTOP_EVALUATION, 50, 0);
        }
        for (int batch = 0; batch < 2; batch++) {
            work(GNNTOP_FETCH, 20, 1);
            work(GNNTOP_FORWARD, 50, 0);
            work(GNNTOP_BACKWARD, 70, 0);
        }
        work(GNNTOP_OPTIMIZER, 30, 1);
    }
}

int main(int argc, char **argv) {
    int steps = argc > 1 ? atoi(argv[1]) : 1000;
    if (gnntop_abi() != GNNTOP_ABI) {
        fprintf(stderr, "the library belongs to another version of gnntop.h\n");
        return 1;
    }
    int32_t data_wait = gnntop_name(GNNTOP_PHASE, "data wait");
    int32_t forward = gnntop_name(GNNTOP_PHASE, "forward");
    int32_t backward = gnntop_name(GNNTOP_PHASE, "backward");
    int32_t layer = gnntop_name(GNNTOP_SPAN, "layer");
    int32_t queue = gnntop_name(GNNTOP_COUNTER, "queue depth");

    if (gnntop_open("loop in C", "framework=none\n")) {
        gnntop_track("train", GNNTOP_TRAINING);
    }
    if (argc > 2) {
        train_by_work(steps);
        steps = 0;
    }
    for (int step = 0; step < steps; step++) {
        gnntop_begin(data_wait);
        busy(100);
        gnntop_end();
        gnntop_counter_int(queue, step % 4);

        int32_t depth = gnntop_begin(forward);
        gnntop_begin(layer);
        busy(500);
        gnntop_end_to(depth);

        /* Known only after the fact, as where a library calls back at the end. */
        gnntop_stamp(0);
        busy(700);
        gnntop_span_between(backward, 0, GNNTOP_NOW);

        gnntop_batch(64, 128, -1, -1, -1);
        gnntop_step();
    }
    gnntop_close();
    return 0;
}

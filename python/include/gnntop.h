/* gnntop.h - instrument a training loop for gnntop, from C or any language that can call C.
 *
 *     int forward = gnntop_name(GNNTOP_PHASE, "forward");
 *     gnntop_open("my training", "");
 *     gnntop_track("train", GNNTOP_TRAINING);
 *     for (...) {
 *         gnntop_begin(forward);  ...  gnntop_end();
 *         gnntop_step();
 *     }
 *     gnntop_close();
 *
 * What it promises the program:
 *   - It never waits and never fails. Each thread writes into its own ring; a full ring drops the newest event and counts
 *     it. A call that cannot do its work does nothing.
 *   - Names, tracks and rings allocate memory (512 KiB a track, 128 KiB a worker's ring); events never do.
 *   - Nothing unwinds out of a call, and nothing is written to stdout or stderr.
 *   - GNNTOP=0 in the environment turns everything off.
 *
 * Threads: events go to the track of the calling thread. Any thread may make any call at any time. A thread without a
 * track that begins a span while a session is open gets one; at most eight threads of a process do.
 *
 * Before a session is open, the last 512 spans, counters and marks of a thread are kept and written when the thread gets
 * its track, so that opening late loses nothing of a first step. A process that never opens a session publishes nothing
 * and starts no thread.
 *
 * A forked child is inert, except for a loader's worker that attaches to its ring (gnntop_worker_attach).
 *
 * Texts are UTF-8 and end with a NUL; texts of more than 200 bytes are truncated. NULL stands for "".
 */
#ifndef GNNTOP_H
#define GNNTOP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. If gnntop_abi() returns another number, the library does not match this header. */
#define GNNTOP_ABI 1
int32_t gnntop_abi(void);

/* ---- names ------------------------------------------------------------------------------------------------------ */

/* What a name is for. A phase is a span that, with the other phases, tiles a step. What is reported has a meaning for gnntop,
 * by one of these texts: the counters "denormals", "one rank items/s", "blocks", "micro-batches", "training set" and "live
 * activations"; the spans "wait" and "reduce" inside the phase "all-reduce", "barrier", "broadcast" and "micro-batch N". */
enum { GNNTOP_MARK = 0, GNNTOP_SPAN = 1, GNNTOP_PHASE = 2, GNNTOP_COUNTER = 3, GNNTOP_REPORTED = 4 };

/* Registers a text; returns its number, above 0. The same kind and text give the same number for the life of the process,
 * also in forked children. Takes a lock: call it once and keep the number. Use gnntop's names for phases: "data wait",
 * "sample", "gather", "transfer", "forward", "loss", "backward", "all-reduce", "optimizer", "validation", "gc",
 * "checkpoint", "compile". */
int32_t gnntop_name(int32_t kind, const char *text);

/* ---- session ---------------------------------------------------------------------------------------------------- */

/* Opens the process's session, called `name`. Returns 1 if it is open (even if it already was), else 0: turned off, a
 * forked child, or a worker. `facts` are lines "key=value". These keys give the process's place in a run of several
 * ranks: run, rank, ranks, engine, device, threads, host_ranks, host_cores, stage, stages, copy, copies.
 * directory is where sessions are, in place of $GNNTOP_DIR. All others are facts of the session: framework=PyTorch 2.9.1
 * says what the program is built on, others are its own. To be called on the training thread: it starts two threads, which
 * takes some milliseconds. After a session was closed, another may be opened. */
int32_t gnntop_open(const char *name, const char *facts);

/* Ends the session normally and waits some milliseconds for its last bytes to be written. */
void gnntop_close(void);

/* Writes out everything recorded so far, so that a viewer or `gnntop report` sees it; without this that takes up to half a
 * second. Returns 1, or 0 without a session and where it takes longer than a second. */
int32_t gnntop_flush(void);

enum {
    GNNTOP_NOT_OPEN = 0,   /* no session yet, or closed */
    GNNTOP_PUBLISHING = 1,
    GNNTOP_OFF = 2,        /* GNNTOP=0 */
    GNNTOP_FORKED = 3,     /* a child of a process that had a session or had tried names: inert */
    GNNTOP_FAILED = 4,     /* nothing can be published now; gnntop_text(GNNTOP_WARNING) says why. It is tried again */
    GNNTOP_WORKER = 5      /* records into its parent's ring */
};
int32_t gnntop_status(void);

/* Adds or changes a fact of the open session, or of the next one, at any time; at most 64. It is shown, and means nothing to
 * gnntop, whatever it is called. */
void gnntop_fact(const char *key, const char *value);

/* Reports that the program resumes from a checkpoint taken after so many steps of the run: the steps since then are
 * repeated. To be called before the first step. */
void gnntop_resumed(uint64_t steps);

/* Reports how far the run is meant to go: this many steps more than the calling thread's loop has done; with 0, this many
 * epochs in all. `by` says who knows that, for people. What `gnntop run --goal` says counts more. */
void gnntop_goal(uint64_t more_steps, uint64_t epochs, const char *by);

/* Reports how many workers each of the program's loaders has. With none, the thread that asks for a batch makes it. */
void gnntop_loader_workers(uint64_t workers);

/* Reports the type of most of the model's parameters, such as "float32", and the share of them, in percent, that is in embeddings
 * whose gradients have a row for each of theirs. */
void gnntop_parameters(const char *number_type, uint64_t dense_embeddings);

/* Reports what is not in the open session, or in the next one, and how much of it: "values that are no number", "4 or more". */
void gnntop_not_recorded(const char *what, const char *amount);

/* Declares that this phase is not measured directly but inferred, and how: "from the batch's arrival to backward". This
 * is shown wherever the phase is. */
void gnntop_inferred(int32_t name, const char *how);

/* Texts about the session. Copies at most `size` bytes, including the NUL, and returns the length of the whole text. */
enum { GNNTOP_DIRECTORY = 0, GNNTOP_WARNING = 1, GNNTOP_REQUEST = 2 };
int32_t gnntop_text(int32_t which, char *buffer, int32_t size);

/* Whether a person asks something of this program, as `gnntop trace` does: to be looked at after each step. A load, no more.
 * GNNTOP_REQUEST is the text, empty when the request was withdrawn: "trace ID STEPS". The answer goes into the file `answer`
 * of the session's directory. gnntop_answered() says that this request has been dealt with; a newer one stays. */
int32_t gnntop_asked(void);
void gnntop_answered(const char *request);

/* Adds `text` to this file, which is made if there is none, for its user alone. 1, or 0 if that fails. */
int32_t gnntop_append(const char *path, const char *text);

/* The same file open to be added to, under a number from 1,000 upwards: a program that closes all descriptors does not get it for
 * a file of its own. -1 if it cannot be opened, or the limit on open files is lower. */
int32_t gnntop_open_high(const char *path);

/* ---- tracks ----------------------------------------------------------------------------------------------------- */

/* Operators are what a profiler recorded on a thread; a stream has the kernels and copies of one stream of a GPU. */
enum { GNNTOP_OTHER = 0, GNNTOP_TRAINING = 1, GNNTOP_LOADER = 2, GNNTOP_OPERATORS = 3, GNNTOP_STREAM = 4 };

/* Opens a track for the calling thread; returns 1 if it records. The thread keeps it until it ends. A second call on
 * the same thread changes nothing, unless it makes this a training thread. Of several threads that train at the same time each
 * has its own, with its number, from 2 on, after the name; that is returned then. One that trains after another has ended, or has
 * been idle for 10 s, continues its track. */
int32_t gnntop_track(const char *name, int32_t role);

/* For Python only: records the calling thread's Python stack when one of its phases takes twice its p99 and at least
 * `least_ms`, unless `least_ms` is 0; and samples `a_second` stacks a second, at most 200, in any case. `frame` is what
 * Python says about the calling frame, as "NAME (FILE:LINE)". Returns 1 if the thread is watched. */
int32_t gnntop_stacks(const char *frame, int32_t least_ms, int32_t a_second);

/* Ends the calling thread's track before the thread ends. */
void gnntop_track_end(void);

/* ---- spans as they happen --------------------------------------------------------------------------------------- */

/* Begins a span inside this thread's open spans. Returns how many were open before (at most 63 for a span to be recorded;
 * deeper spans are only counted). */
int32_t gnntop_begin(int32_t name);

/* Ends the innermost open span of this thread. Without one it does nothing. */
void gnntop_end(void);

/* Ends open spans until `depth` are left: gnntop_end_to(gnntop_begin(x)) ends x and everything left open inside it, as
 * after an exception. */
void gnntop_end_to(int32_t depth);

/* ---- spans after the fact --------------------------------------------------------------------------------------- */

/* Notes the time in one of this thread's 16 slots (0 to 15). */
void gnntop_stamp(int32_t slot);

/* Stands for the current time, instead of a slot. */
#define GNNTOP_NOW (-1)

/* Records the span between two stamped instants of this thread. A slot that was never stamped, or an end before the
 * begin, records nothing. */
void gnntop_span_between(int32_t name, int32_t begin_slot, int32_t end_slot);

/* The clock's ticks, for spans whose ends are kept elsewhere or come from another thread. */
uint64_t gnntop_now(void);
void gnntop_span_at(int32_t name, uint64_t begin, uint64_t end);
/* Converts ticks to nanoseconds. */
double gnntop_ns(uint64_t ticks);

/* ---- steps ------------------------------------------------------------------------------------------------------ */

/* Spans belong to the step that ends next on their thread. */

/* Sets the batch size of the step that ends next and of those after it, until the next call; -1 for unknown. Samples are
 * rows of a batch that is not a graph. */
void gnntop_batch(int64_t nodes, int64_t edges, int64_t graphs, int64_t seeds, int64_t samples);

/* Sets the epoch from here on, as the program counts; 0 before. */
void gnntop_epoch(int64_t epoch);

/* Ends a step now and begins the next. Returns the number of steps so far, from 1; 0 if this thread has no track, and while
 * nothing can be published: the step is then counted, and missing in what is. */
int32_t gnntop_step(void);

/* Ends a step at a stamped instant. It began at `begin_slot`, or for GNNTOP_NOW at the end of the previous step.
 * Spans recorded since then keep the number of the step that has now ended. */
int32_t gnntop_step_between(int32_t begin_slot, int32_t end_slot);

/* Says that a profiler slows down the step that ends next: percentiles and findings leave it out. */
void gnntop_traced(void);

/* ---- a loop whose steps gnntop finds ------------------------------------------------------------------------------ */

/* Instead of spans and steps, a loop may report its work, as the hooks into PyTorch do: gnntop makes phases of it that do
 * not overlap, and ends a step after the optimizer's, or after the last of several in turn. What happens between forward and
 * backward is the loss, evaluations between steps are one validation, and several backward passes before an optimizer's step
 * are micro-batches. Evaluations with environments between them are a rollout. Each thread that reports GNNTOP_BACKWARD trains,
 * and needs a track; what it did before is recorded, too. Where nothing trains, each batch that the model is called for is a
 * step or, without GNNTOP_FETCH, each call without gradients. */
enum {
    GNNTOP_FETCH = 0,                    /* the loop asks for a batch */
    GNNTOP_SAMPLE = 1,                   /* a loader draws a neighbourhood, in a fetch or outside */
    GNNTOP_GATHER = 2,                   /* a loader collects the features of what was drawn */
    GNNTOP_TRANSFER = 3,                 /* a batch is moved to a device */
    GNNTOP_FORWARD = 4,                  /* the model is called */
    GNNTOP_FORWARD_WITHOUT_GRADIENTS = 5, /* the same, to train, without gradients */
    GNNTOP_EVALUATION = 6,               /* the model is called, but not to train */
    GNNTOP_BACKWARD = 7,                 /* gradients of the parameters are computed */
    GNNTOP_GRADIENTS = 8,                /* gradients that are no micro-batch's, as for a penalty */
    GNNTOP_OPTIMIZER = 9,                /* an optimizer steps */
    GNNTOP_CLOSURE = 10,                 /* an optimizer steps by a closure: forward and backward are inside */
    GNNTOP_ZERO_GRAD = 11,               /* gradients are set to zero */
    GNNTOP_UNSCALE = 12,                 /* gradients are unscaled */
    GNNTOP_CLIP = 13,                    /* gradients are clipped */
    GNNTOP_COLLECTIVE = 14,              /* the program itself communicates with other ranks */
    GNNTOP_CHECKPOINT = 15,              /* a checkpoint is written */
    GNNTOP_COMPILE = 16,                 /* code is compiled */
    GNNTOP_ENVIRONMENT = 17,             /* an environment steps or is reset */
    GNNTOP_FROZEN = 18                   /* a model that nothing trains is called in a training step */
};

/* Work begins. Returns what its end is to be told, or -1 if it is part of the work around it and not recorded. */
int32_t gnntop_work_begin(int32_t work);

/* The work is done, or has failed; `token` is from its begin, and -1 does nothing. `which` is, for an optimizer, a number of
 * it above 0; for a fetch, 1, or 0 if there was no batch; else 0. Returns the number of the step that has ended with it, or 0. */
int32_t gnntop_work_end(int32_t work, int32_t token, uint64_t which);

/* ---- numbers ---------------------------------------------------------------------------------------------------- */

void gnntop_counter(int32_t name, double value);
void gnntop_counter_int(int32_t name, int32_t value);
void gnntop_mark(int32_t name);
void gnntop_mark_value(int32_t name, double value);
/* Records a mark at the end of something that began at the stamp, such as a checkpoint. */
void gnntop_mark_since(int32_t name, int32_t slot);
/* The same with both times by gnntop_now. Nothing is recorded without a begin, or if it is after the end. */
void gnntop_mark_at(int32_t name, uint64_t begin, uint64_t end);
/* Records a large allocation of this many bytes (negative: a release) in the open phase, and the bytes live after it. */
void gnntop_allocation(int64_t bytes, uint64_t live_bytes);

/* ---- workers: tracks of other processes ------------------------------------------------------------------------- */

/* Makes a ring for a worker that this process is about to start, called `name` on the screen. Writes the text by
 * which the worker attaches to `address` (64 bytes are enough). Returns a handle, or -1. The parent's session drains the
 * ring once it is open. */
int32_t gnntop_worker_ring(const char *name, char *address, int32_t size);

/* In the worker, forked or not: the calling thread records to the ring from now on: spans, counters, marks and stamps.
 * Returns 1, or 0 if the ring cannot be reached or already has a writer, or the thread already has a ring. */
int32_t gnntop_worker_attach(const char *address);

/* In the parent: closes a worker's ring. What it holds is still written. Not needed for a worker that died. */
void gnntop_worker_close(int32_t handle);

/* ---- GPU -------------------------------------------------------------------------------------------------------- */

/* Times the calling thread's phases by the device's own clock, on this CUDA stream (0 is the default stream), with
 * events at both ends of each phase. The CUDA context of the device must be current. Returns 1 if that works. Never waits. */
int32_t gnntop_cuda(int32_t device, uint64_t stream);

#ifdef __cplusplus
}
#endif

#endif

/* gnntop.h - make a training loop visible to gnntop, from C or anything that can call C.
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
 *   - It never waits and never fails: a thread writes into a ring of its own, a full ring drops the newest event and
 *     counts it, and a call that cannot do what it says does nothing.
 *   - Memory is taken when a name, track or ring is made (512 KiB a track, 128 KiB a worker's ring), never by an event.
 *   - Nothing unwinds out of a call, and nothing is written to stdout or stderr.
 *   - GNNTOP=0 in the environment turns everything off.
 *
 * Threads: events go to the track of the calling thread. All calls may come from any thread at any time. A thread that
 * begins a span while a session is open and has no track gets one, up to eight such threads a process.
 *
 * Before the session is open, the last 512 spans, counters and marks of a thread are kept and written when the thread
 * gets its track, so that nothing of a first step is lost to opening late. A process that never opens a session
 * publishes nothing and starts no thread.
 *
 * After a fork the child is inert, but for a loader's worker that attaches to its ring (gnntop_worker_attach).
 *
 * Texts are UTF-8 and end with a NUL; what is longer than 200 bytes is cut. NULL stands for "".
 */
#ifndef GNNTOP_H
#define GNNTOP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. A library that answers gnntop_abi() with another number is not this one. */
#define GNNTOP_ABI 1
int32_t gnntop_abi(void);

/* ---- names ------------------------------------------------------------------------------------------------------ */

/* What a name is for. A phase is a span that, with the other phases, tiles a step. */
enum { GNNTOP_MARK = 0, GNNTOP_SPAN = 1, GNNTOP_PHASE = 2, GNNTOP_COUNTER = 3 };

/* The number that stands for this text, above 0. The same kind and text give the same number for the life of the process,
 * children by fork included. Takes a lock: ask once and keep it. Phases are called as gnntop calls them: "data wait", "sample", "gather",
 * "transfer", "forward", "loss", "backward", "all-reduce", "optimizer", "validation", "gc", "checkpoint", "compile". */
int32_t gnntop_name(int32_t kind, const char *text);

/* ---- session ---------------------------------------------------------------------------------------------------- */

/* Opens the process's session, called `name`. Returns 1 where it is open (also from before), else 0: turned off, a
 * forked child, or a worker. `facts` are lines "key=value". These say where this process stands in a run of several:
 * run, rank, ranks, engine, device, threads, host_ranks, host_cores, stage, stages, copy, copies. All others are facts
 * of the session, such as framework=PyTorch 2.9.1. The training thread calls this: it starts two threads, some
 * milliseconds in all. A session that was closed may be followed by another. */
int32_t gnntop_open(const char *name, const char *facts);

/* Ends the session in good order and waits some milliseconds for its last bytes to be written. */
void gnntop_close(void);

/* Writes out everything recorded so far, so that a viewer or `gnntop report` sees it; without this that takes up to half a
 * second. Returns 1, or 0 without a session and where it takes longer than a second. */
int32_t gnntop_flush(void);

enum {
    GNNTOP_NOT_OPEN = 0,   /* no session yet, or closed */
    GNNTOP_PUBLISHING = 1,
    GNNTOP_OFF = 2,        /* GNNTOP=0 */
    GNNTOP_FORKED = 3,     /* a child of a process that had a session or had tried names: inert */
    GNNTOP_FAILED = 4,     /* nothing can be published; gnntop_text(GNNTOP_WARNING) says why */
    GNNTOP_WORKER = 5      /* records into its parent's ring */
};
int32_t gnntop_status(void);

/* Adds a fact or changes it, at any time. Kept for the session that is open or is opened next; at most 64. */
void gnntop_fact(const char *key, const char *value);

/* Says that this phase is not measured by hooks of its own but inferred, and how: "from the batch's arrival to
 * backward". It is shown wherever the phase is. */
void gnntop_inferred(int32_t name, const char *how);

/* Texts about the session. Copies at most `size` bytes, the NUL included, and returns the length of the whole text. */
enum { GNNTOP_DIRECTORY = 0, GNNTOP_WARNING = 1 };
int32_t gnntop_text(int32_t which, char *buffer, int32_t size);

/* ---- tracks ----------------------------------------------------------------------------------------------------- */

enum { GNNTOP_OTHER = 0, GNNTOP_TRAINING = 1, GNNTOP_LOADER = 2 };

/* Opens a track for the calling thread; returns 1 where it records. The thread keeps it until it ends. A second call on
 * the same thread changes nothing and returns 1, but where it makes the thread the one that trains. */
int32_t gnntop_track(const char *name, int32_t role);

/* For Python alone: when a phase of the calling thread takes twice its p99, and `least_ms` at least, its Python stack is taken
 * and recorded, unless `least_ms` is 0; and `a_second` stacks are, 200 at most, whatever it does. `frame` is what Python says of the
 * frame that calls, as "NAME (FILE:LINE)". Returns 1 where that is watched. */
int32_t gnntop_stacks(const char *frame, int32_t least_ms, int32_t a_second);

/* Ends the calling thread's track before the thread ends. */
void gnntop_track_end(void);

/* ---- spans as they happen --------------------------------------------------------------------------------------- */

/* Begins a span inside those that are open on this thread. Returns how many were open before (up to 63 may be, deeper
 * ones are counted and not recorded). */
int32_t gnntop_begin(int32_t name);

/* Ends the innermost open span of this thread. Without one it does nothing. */
void gnntop_end(void);

/* Ends open spans until `depth` are left: gnntop_end_to(gnntop_begin(x)) ends x with all that was left open in it, as
 * after an exception. */
void gnntop_end_to(int32_t depth);

/* ---- spans after the fact --------------------------------------------------------------------------------------- */

/* Notes the time in one of this thread's 16 slots (0 to 15). */
void gnntop_stamp(int32_t slot);

/* Stands for this instant in place of a slot. */
#define GNNTOP_NOW (-1)

/* Records the span between two stamped instants of this thread. A slot that was never stamped, or an end before the
 * begin, records nothing. */
void gnntop_span_between(int32_t name, int32_t begin_slot, int32_t end_slot);

/* The clock's ticks, for spans whose ends are kept elsewhere or come from another thread. */
uint64_t gnntop_now(void);
void gnntop_span_at(int32_t name, uint64_t begin, uint64_t end);
/* How long ticks last, in nanoseconds. */
double gnntop_ns(uint64_t ticks);

/* ---- steps ------------------------------------------------------------------------------------------------------ */

/* Spans belong to the step that ends next on their thread. */

/* How large the batch is of the step that ends next and of those after it, until told anew; -1 for what is not known. Samples
 * are rows of a batch that is no graph. */
void gnntop_batch(int64_t nodes, int64_t edges, int64_t graphs, int64_t seeds, int64_t samples);

/* The epoch from here on, as the program counts; 0 before. */
void gnntop_epoch(int64_t epoch);

/* Ends a step at this instant; the next one begins. Returns the number of steps so far, from 1; 0 where this thread has
 * no track and keeps none of it. */
int32_t gnntop_step(void);

/* Ends a step at a stamped instant. It began at `begin_slot`, or with GNNTOP_NOW at the end of the step before.
 * Spans recorded since then keep the number of the step that has now ended. */
int32_t gnntop_step_between(int32_t begin_slot, int32_t end_slot);

/* ---- numbers ---------------------------------------------------------------------------------------------------- */

void gnntop_counter(int32_t name, double value);
void gnntop_counter_int(int32_t name, int32_t value);
void gnntop_mark(int32_t name);
void gnntop_mark_value(int32_t name, double value);
/* A mark of now whose value is the time since the stamp, in milliseconds. */
void gnntop_mark_since(int32_t name, int32_t slot);
/* A large allocation of this many bytes (negative: a release) in the phase that is open, and the bytes live after it. */
void gnntop_allocation(int64_t bytes, uint64_t live_bytes);

/* ---- workers: tracks of other processes ------------------------------------------------------------------------- */

/* Makes a ring for a worker that this process is about to start, called `name` on the screen. Writes the text that
 * the worker attaches by into `address` (64 bytes are enough). Returns a handle, or -1. The parent's session drains it,
 * from when it opens. */
int32_t gnntop_worker_ring(const char *name, char *address, int32_t size);

/* In the worker, by fork or not: the calling thread records there from now on: spans, counters, marks and stamps.
 * Returns 1, or 0 where the ring cannot be reached, has a writer already, or the thread has a ring. */
int32_t gnntop_worker_attach(const char *address);

/* In the parent: the worker is over. What is in the ring is still written. A worker that died is noticed without. */
void gnntop_worker_close(int32_t handle);

/* ---- GPU -------------------------------------------------------------------------------------------------------- */

/* Times the calling thread's phases by the device's own clock, on this CUDA stream (0 is the default stream), with
 * events at the phases' ends. The CUDA context of the device must be current. Returns 1 where that works. Never waits. */
int32_t gnntop_cuda(int32_t device, uint64_t stream);

#ifdef __cplusplus
}
#endif

#endif

//! The training loops of this process, one for each thread that has any: where what a [`Loop`] understands is recorded.
//!
//! What a thread does is kept until its first backward pass shows that it trains. Then it gets a track, with all of that.

use std::cell::RefCell;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Mutex, PoisonError};

use crate::early::EarlyEvent;
use crate::recorded::number;
use crate::session::{self, Status};
use crate::steps::{Loop, Name, OptimizerId, Record, Shape, Ticks, Work};
use crate::thread::{self, Thread};
use crate::warning::catch_panic;

/// How torch's threads that differentiate are called.
const AUTOGRAD: &str = "pt_autograd";

/// Whether any thread of this process has begun what may be a training loop.
static HAS_BEGUN: AtomicBool = AtomicBool::new(false);
/// Whether this process does not train: it is a loader's worker, or the child of a process that trains.
static IS_ELSEWHERE: AtomicBool = AtomicBool::new(false);
/// Whether it is such a child, and it is not known yet that it trains, too.
static IS_UNSEEN: AtomicBool = AtomicBool::new(false);
/// Whether a session has been requested.
static IS_OPEN: AtomicBool = AtomicBool::new(false);
/// Whether the rule ends steps; not once the program has said where they end.
static IS_AUTOMATIC: AtomicBool = AtomicBool::new(true);
/// Whether backward passes send gradients to other ranks.
static HAS_PEERS: AtomicBool = AtomicBool::new(false);
/// The optimizers that exist, and how often they were counted.
static EXPECTED: Mutex<Vec<OptimizerId>> = Mutex::new(Vec::new());
static EXPECTATIONS: AtomicU32 = AtomicU32::new(0);
/// When threads that do not train had saved a checkpoint, in ticks, and whether there are any: a thread that trains marks them,
/// without a duration, as it has not waited.
static SAVED_ASIDE: Mutex<Vec<Ticks>> = Mutex::new(Vec::new());
static HAS_SAVED_ASIDE: AtomicBool = AtomicBool::new(false);
/// Most of these that are kept.
const MAX_SAVED_ASIDE: usize = 64;

/// A loop, and how often the optimizers had been counted when it heard of them.
struct ThreadLoop {
    training: Loop,
    expectations: u32,
    /// The optimizers that this thread has made.
    made: Vec<OptimizerId>,
    /// Whether this thread's work is reported to it, and whether it has a track for it.
    has_begun: bool,
    trains: bool,
    /// Whether this thread, which does not train, saves a checkpoint.
    saves_aside: bool,
}

impl ThreadLoop {
    fn new() -> Self {
        Self {
            training: Loop::new(),
            expectations: 0,
            made: Vec::new(),
            has_begun: false,
            trains: false,
            saves_aside: false,
        }
    }
}

thread_local! {
    static LOOP: RefCell<ThreadLoop> = RefCell::new(ThreadLoop::new());
}

/// Runs `f` with the calling thread's loop and its state; returns `otherwise` at the thread's very end, or if `f` panics.
#[inline]
fn with_loop<T>(otherwise: T, f: impl FnOnce(&mut ThreadLoop, &mut Thread) -> T) -> T {
    let run = |thread: &mut Thread| {
        let run = |found: &RefCell<ThreadLoop>| {
            let mut found = found.try_borrow_mut().ok()?;
            found.update();
            if found.trains && HAS_SAVED_ASIDE.load(Relaxed) {
                mark_saved_aside(thread);
            }
            thread.is_candidate = !found.trains;
            Some(f(&mut found, thread))
        };
        let result = LOOP.try_with(run).ok().flatten();
        thread.is_candidate = false;
        result
    };
    catch_panic(None, || thread::with(None, run)).unwrap_or(otherwise)
}

/// As [`with_loop`], for work of a thread whose loop has begun, or begins with it.
#[inline]
fn with_admitted<T>(work: Work, otherwise: T, f: impl FnOnce(&mut Loop, &mut Thread) -> T) -> T {
    if is_elsewhere() {
        return otherwise;
    }
    let run = |found: &mut ThreadLoop, thread: &mut Thread| {
        (found.has_begun || found.may_begin(work)).then(|| f(&mut found.training, thread))
    };
    with_loop(None, run).unwrap_or(otherwise)
}

impl ThreadLoop {
    /// Takes over what other threads may have set.
    #[inline]
    fn update(&mut self) {
        self.training.is_automatic = IS_AUTOMATIC.load(Relaxed);
        self.training.has_peers = HAS_PEERS.load(Relaxed);
        let expectations = EXPECTATIONS.load(Relaxed);
        if self.expectations != expectations {
            self.expectations = expectations;
            self.expect(&EXPECTED.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

// ---- threads and processes ---------------------------------------------------------------------------------------------

impl ThreadLoop {
    /// Of the optimizers that exist, expects those that this thread has made, if any: others train on other threads.
    fn expect(&mut self, optimizers: &[OptimizerId]) {
        self.made.retain(|optimizer| optimizers.contains(optimizer));
        self.training.expect(if self.made.is_empty() { optimizers } else { &self.made });
    }

    /// This thread trains, or runs a model, and is recorded. Returns what that takes.
    #[inline]
    fn train(&mut self, thread: &mut Thread) -> Needs {
        thread.keep_slot();
        let status = session::state().0;
        let opens = !IS_OPEN.load(Relaxed) && open();
        // While another thread opens the session, what this one records is kept for the track that it will get.
        self.trains = opens || status != Status::NotOpen;
        if opens {
            return Needs::Session;
        }
        if thread.trains() == 0 && status == Status::Publishing {
            return Needs::Track;
        }
        Needs::Nothing
    }

    /// Whether this work begins a loop: not what other threads do for it, nor what torch does on threads of its own, which
    /// differentiate again what was not kept for them (reentrant checkpoints).
    #[cold]
    fn may_begin(&mut self, work: Work) -> bool {
        use Work::*;
        let is_for_others =
            matches!(work, Sample | Gather | Transfer | Unscale | Clip | Collective | Checkpoint | Compile);
        if is_for_others || thread::name().starts_with(AUTOGRAD) {
            return false;
        }
        if !HAS_BEGUN.swap(true, Relaxed) {
            // SAFETY: the handler only changes an atomic, which is allowed between fork and exec.
            unsafe { libc::pthread_atfork(None, None, Some(forked)) };
        }
        self.has_begun = true;
        true
    }
}

/// With this work, if it is accepted, the calling thread trains. Returns what that takes.
#[inline]
pub(crate) fn train(work: Work) -> Needs {
    let train = |found: &mut ThreadLoop, thread: &mut Thread| {
        let is_accepted = (found.has_begun || found.may_begin(work)) && found.training.accepts(work);
        if is_accepted { found.train(thread) } else { Needs::Nothing }
    };
    if is_elsewhere() {
        return if IS_UNSEEN.swap(false, Relaxed) { Needs::Notice } else { Needs::Nothing };
    }
    with_loop(Needs::Nothing, train)
}

/// What a thread needs that trains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    Nothing,
    /// A track; the session is open.
    Track,
    /// A session, and a track.
    Session,
    /// A message to `gnntop run`: nothing that it trains is seen.
    Notice,
}

/// Whether the calling thread trains. Before any does, the first that may train counts.
pub(crate) fn is_here() -> bool {
    !is_elsewhere() && with_loop(false, |found, _| found.trains || found.has_begun && !IS_OPEN.load(Relaxed))
}

/// Whether the calling thread trains, and compiles nothing now.
#[inline]
pub(crate) fn computes() -> bool {
    !is_elsewhere() && with_loop(false, |found, _| found.trains && !found.training.is_compiling())
}

/// Whether this process does not train.
#[inline]
pub(crate) fn is_elsewhere() -> bool {
    IS_ELSEWHERE.load(Relaxed)
}

/// This process does not train.
pub(crate) fn set_elsewhere() {
    IS_ELSEWHERE.store(true, Relaxed);
    IS_UNSEEN.store(false, Relaxed);
}

/// This process is a child of one that trains, or may train: only what has not begun may begin here.
extern "C" fn forked() {
    if HAS_BEGUN.load(Relaxed) {
        IS_ELSEWHERE.store(true, Relaxed);
        IS_UNSEEN.store(true, Relaxed);
    }
}

/// Notes that the session is requested now; returns whether it had not been.
fn open() -> bool {
    !IS_OPEN.swap(true, Relaxed)
}

/// The session is closed: the next backward pass may open another.
pub(crate) fn close() {
    IS_OPEN.store(false, Relaxed);
}

/// Sets whether the rule ends steps.
pub(crate) fn set_automatic(is_automatic: bool) {
    IS_AUTOMATIC.store(is_automatic, Relaxed);
}

/// Sets whether backward passes send gradients to other ranks.
pub(crate) fn set_peers(has_peers: bool) {
    HAS_PEERS.store(has_peers, Relaxed);
}

/// The calling thread has made an optimizer.
pub(crate) fn made(optimizer: OptimizerId) {
    with_loop((), |found, _| found.made.push(optimizer));
}

/// Sets the optimizers that exist.
pub(crate) fn expect(optimizers: Vec<OptimizerId>) {
    *EXPECTED.lock().unwrap_or_else(PoisonError::into_inner) = optimizers;
    EXPECTATIONS.fetch_add(1, Relaxed);
}

// ---- work --------------------------------------------------------------------------------------------------------------

/// Whether this work of the calling thread would be recorded now.
#[inline]
pub(crate) fn accepts(work: Work) -> bool {
    with_admitted(work, false, |training, _| training.accepts(work))
}

/// Whether the calling thread has a loop that is in no work now.
#[inline]
pub(crate) fn is_between() -> bool {
    !is_elsewhere() && with_loop(false, |found, _| found.has_begun && found.training.accepts(Work::Forward))
}

/// The calling thread, which does not train, begins to save a checkpoint of what another one trains. Returns what its end is to
/// be told.
#[cold]
fn save_aside() -> Option<i32> {
    let is_trained = IS_OPEN.load(Relaxed) && session::state().0 == Status::Publishing;
    is_trained.then(|| with_loop((), |found, _| found.saves_aside = true)).map(|()| 0)
}

/// It has saved it.
#[cold]
fn saved_aside(at: Ticks) {
    let mut saved = SAVED_ASIDE.lock().unwrap_or_else(PoisonError::into_inner);
    if saved.len() < MAX_SAVED_ASIDE {
        saved.push(at);
        HAS_SAVED_ASIDE.store(true, Relaxed);
    }
}

/// Marks what other threads have saved.
#[cold]
fn mark_saved_aside(thread: &mut Thread) {
    HAS_SAVED_ASIDE.store(false, Relaxed);
    let saved = std::mem::take(&mut *SAVED_ASIDE.lock().unwrap_or_else(PoisonError::into_inner));
    let mark = |at| EarlyEvent::Mark { name: number(Name::SavedAside), at, value: None };
    saved.into_iter().for_each(|at| thread.record_now(mark(at)));
}

/// Work of the calling thread begins. Returns what its end is to be told, or `None` if it is not recorded, and the number of
/// the step that ended where it began, if one did.
#[inline]
pub(crate) fn begin(work: Work) -> (Option<i32>, Option<i32>) {
    if !is_elsewhere() {
        let begin =
            |training: &mut Loop, thread: &mut Thread| Some((training.begin(work, thread), training.take_ended()));
        return match with_admitted(work, None, begin) {
            Some(begun) => begun,
            None if work == Work::Checkpoint => (save_aside(), None),
            None => (None, None),
        };
    }
    // A worker's thread loads, and does nothing else.
    let name = match work {
        Work::Sample => Name::Sample,
        Work::Gather => Name::Gather,
        _ => return (None, None),
    };
    (Some(thread::with(0, |thread| thread.begin(number(name)))), None)
}

/// The work is done, or has raised. [`settle`] or, for a fetch, [`fetched`] is to follow.
#[inline]
pub(crate) fn end(work: Work, token: i32) {
    if is_elsewhere() {
        return thread::with((), |thread| thread.end_to(token));
    }
    with_loop((), |found, thread| {
        if work == Work::Checkpoint && std::mem::take(&mut found.saves_aside) {
            return saved_aside(thread.now());
        }
        found.training.end(work, token, thread);
    });
}

/// What follows from work that has ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Settled {
    /// If a step ended with it, its number, which is 0 if nothing is recorded.
    pub(crate) step: Option<i32>,
    /// Whether it is sure now that the thread runs a model and does not train it: [`infer`] is to follow.
    pub(crate) is_inference: bool,
}

/// What follows from work that has ended.
#[inline]
pub(crate) fn settle(work: Work, optimizer: OptimizerId) -> Settled {
    with_loop(Settled::default(), |found, thread| Settled {
        step: found.training.settle(work, optimizer, thread),
        is_inference: found.training.is_surely_inference(),
    })
}

/// The calling thread runs a model. Returns what that takes before [`infer`].
pub(crate) fn before_infer() -> Needs {
    with_loop(Needs::Nothing, ThreadLoop::train)
}

/// The steps so far of a thread that runs a model are recorded.
pub(crate) fn infer() {
    with_loop((), |found, thread| found.training.publish_inference(thread));
}

/// The calling thread's loop is over: what has not ended does.
pub(crate) fn finish() {
    with_loop((), |found, thread| found.training.finish(thread));
}

/// The loop has a batch of this size, as far as known; or `None`: there was none.
#[inline]
pub(crate) fn fetched(batch: Option<Option<Shape>>) {
    with_loop((), |found, thread| match batch {
        Some(shape) => found.training.fetched(shape, thread),
        None => found.training.exhausted(),
    });
}

/// An optimizer begins a step.
#[inline]
pub(crate) fn optimizer_begin(optimizer: OptimizerId, has_closure: bool) {
    let begin = |training: &mut Loop, thread: &mut Thread| training.optimizer_begin(optimizer, has_closure, thread);
    with_admitted(Work::Optimizer, (), begin);
}

/// An optimizer has stepped. Returns what to [`end`], if that is recorded.
#[inline]
pub(crate) fn optimizer_end(optimizer: OptimizerId) -> Option<(Work, i32)> {
    with_loop(None, |found, thread| found.training.optimizer_end(optimizer, thread))
}

/// Steps of optimizers that the calling thread has begun.
pub(crate) fn optimizer_steps() -> u64 {
    with_loop(0, |found, _| found.training.optimizer_steps())
}

/// The calling thread sends gradients to other ranks.
pub(crate) fn reducing() {
    if is_here() {
        with_loop((), |found, thread| found.training.reducing(thread));
    }
}

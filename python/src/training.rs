//! The training loop of this process: which thread it is on, and where what its [`Loop`] understands is recorded.
//!
//! The first event of the main thread makes it the training thread, as does the first backward pass of any other.

use std::cell::RefCell;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};
use std::sync::{Mutex, OnceLock, PoisonError};

use gnntop_probe::{Fact, NameKind, Reported, after};

use crate::early::EarlyEvent;
use crate::steps::{Loop, Name, OptimizerId, Record, Shape, Ticks, Work};
use crate::thread::{self, Thread};
use crate::warning::{self, catch_panic};
use crate::{names, session};

/// Where an inferred forward begins.
const FROM_ARRIVAL: &str =
    "from the batch's arrival to backward: no module was called that holds the optimizer's parameters";

/// No thread trains yet.
const NOBODY: usize = 0;
/// This process does not train: it is a loader's worker, or the child of a process that trains.
const NEVER: usize = usize::MAX;

/// The training thread, or one of the above.
static TRAINING: AtomicUsize = AtomicUsize::new(NOBODY);
/// Whether a session has been requested, so that no other thread can become the training thread.
static IS_OPEN: AtomicBool = AtomicBool::new(false);
/// Whether the rule ends steps; not once the program has said where they end.
static IS_AUTOMATIC: AtomicBool = AtomicBool::new(true);
/// Whether backward passes send gradients to other ranks.
static HAS_PEERS: AtomicBool = AtomicBool::new(false);
/// The optimizers that exist, and how often they were counted.
static EXPECTED: Mutex<Vec<OptimizerId>> = Mutex::new(Vec::new());
static EXPECTATIONS: AtomicU32 = AtomicU32::new(0);
/// The numbers of the names. Registered with the first record, not before.
static NAMES: OnceLock<[i32; Name::COUNT]> = OnceLock::new();

/// A loop, and how often the optimizers had been counted when it heard of them.
struct ThreadLoop {
    training: Loop,
    expectations: u32,
}

thread_local! {
    static PLACE: u8 = const { 0 };
    static LOOP: RefCell<ThreadLoop> = RefCell::new(ThreadLoop { training: Loop::new(), expectations: 0 });
}

/// Identifies the calling thread among those that live.
#[inline]
fn this_thread() -> usize {
    PLACE.with(|place| std::ptr::from_ref(place) as usize)
}

/// Runs `f` with the calling thread's loop and its state; returns `otherwise` at the thread's very end, or if `f` panics.
#[inline]
fn with_loop<T>(otherwise: T, f: impl FnOnce(&mut Loop, &mut Thread) -> T) -> T {
    let run = |thread: &mut Thread| {
        let run = |found: &RefCell<ThreadLoop>| {
            let mut found = found.try_borrow_mut().ok()?;
            found.update();
            Some(f(&mut found.training, thread))
        };
        LOOP.try_with(run).ok().flatten()
    };
    catch_panic(None, || thread::with(None, run)).unwrap_or(otherwise)
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
            self.training.expect(&EXPECTED.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

// ---- threads and processes ---------------------------------------------------------------------------------------------

/// Whether the calling thread is the training thread, or becomes it with this work.
#[inline]
fn admits(work: Work) -> bool {
    TRAINING.load(Relaxed) == this_thread() || decide(work)
}

#[cold]
fn decide(work: Work) -> bool {
    use Work::*;
    let is_backward = matches!(work, Backward | Gradients);
    let is_first_here = match TRAINING.load(Relaxed) {
        NEVER => false,
        NOBODY if is_main_thread() => {
            !matches!(work, Sample | Gather | Transfer | Unscale | Clip | Collective | Checkpoint | Compile)
        }
        _ => false,
    };
    // The first thread that differentiates is the training thread.
    let is_first = is_backward && !IS_OPEN.load(Relaxed) && TRAINING.load(Relaxed) != NEVER;
    if is_first_here || is_first {
        TRAINING.store(this_thread(), Relaxed);
        with_loop((), |training, _| training.restart());
    }
    is_first_here || is_first
}

#[cfg(target_os = "linux")]
fn is_main_thread() -> bool {
    rustix::thread::gettid() == rustix::process::getpid()
}

#[cfg(not(target_os = "linux"))]
fn is_main_thread() -> bool {
    false
}

/// Whether the calling thread is the training thread.
pub(crate) fn is_here() -> bool {
    TRAINING.load(Relaxed) == this_thread()
}

/// Whether this process does not train.
pub(crate) fn is_elsewhere() -> bool {
    TRAINING.load(Relaxed) == NEVER
}

/// This process does not train.
pub(crate) fn set_elsewhere() {
    TRAINING.store(NEVER, Relaxed);
}

/// This process is a child of one that trains, or may train: only what has not begun may begin here.
extern "C" fn forked() {
    if TRAINING.load(Relaxed) != NOBODY {
        set_elsewhere();
    }
}

/// Notes that the session is requested now; returns whether it had not been.
pub(crate) fn open() -> bool {
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

/// Sets the optimizers that exist.
pub(crate) fn expect(optimizers: Vec<OptimizerId>) {
    *EXPECTED.lock().unwrap_or_else(PoisonError::into_inner) = optimizers;
    EXPECTATIONS.fetch_add(1, Relaxed);
}

// ---- work --------------------------------------------------------------------------------------------------------------

/// Whether this work of the calling thread would be recorded now.
#[inline]
pub(crate) fn accepts(work: Work) -> bool {
    admits(work) && with_loop(false, |training, _| training.accepts(work))
}

/// Work of the calling thread begins. Returns what its end is to be told, or `None` if it is not recorded.
#[inline]
pub(crate) fn begin(work: Work) -> Option<i32> {
    if admits(work) {
        return with_loop(None, |training, thread| training.begin(work, thread));
    }
    // A worker's thread loads, and does nothing else.
    let name = match work {
        Work::Sample => Name::Sample,
        Work::Gather => Name::Gather,
        _ => return None,
    };
    is_elsewhere().then(|| thread::with(0, |thread| thread.begin(number(name))))
}

/// The work is done, or has raised. [`settle`] or, for a fetch, [`fetched`] is to follow.
#[inline]
pub(crate) fn end(work: Work, token: i32) {
    if is_elsewhere() {
        return thread::with((), |thread| thread.end_to(token));
    }
    with_loop((), |training, thread| training.end(work, token, thread));
}

/// What follows from work that has ended; if a step ended with it, its number, which is 0 if nothing is recorded.
#[inline]
pub(crate) fn settle(work: Work, optimizer: OptimizerId) -> Option<i32> {
    with_loop(None, |training, thread| training.settle(work, optimizer, thread))
}

/// The loop has a batch of this size, as far as known; or `None`: there was none.
#[inline]
pub(crate) fn fetched(batch: Option<Option<Shape>>) {
    with_loop((), |training, thread| match batch {
        Some(shape) => training.fetched(shape, thread),
        None => training.exhausted(),
    });
}

/// An optimizer begins a step.
#[inline]
pub(crate) fn optimizer_begin(optimizer: OptimizerId, has_closure: bool) {
    if admits(Work::Optimizer) {
        with_loop((), |training, thread| training.optimizer_begin(optimizer, has_closure, thread));
    }
}

/// An optimizer has stepped. Returns what to [`end`], if that is recorded.
#[inline]
pub(crate) fn optimizer_end(optimizer: OptimizerId) -> Option<(Work, i32)> {
    with_loop(None, |training, thread| training.optimizer_end(optimizer, thread))
}

/// Steps of optimizers that the calling thread has begun.
pub(crate) fn optimizer_steps() -> u64 {
    with_loop(0, |training, _| training.optimizer_steps())
}

/// The calling thread sends gradients to other ranks.
pub(crate) fn reducing() {
    if is_here() {
        with_loop((), |training, thread| training.reducing(thread));
    }
}

// ---- where it is recorded ----------------------------------------------------------------------------------------------

/// The number of a name.
#[inline]
fn number(name: Name) -> i32 {
    NAMES.get_or_init(register)[name as usize]
}

#[cold]
fn register() -> [i32; Name::COUNT] {
    warning::set_panic_hook();
    session::watch_forks();
    // SAFETY: the handler only changes an atomic, which is allowed between fork and exec.
    unsafe { libc::pthread_atfork(None, None, Some(forked)) };
    use NameKind::{Phase, Span, Text};
    let validated = NameKind::Reported(Reported::Validation);
    [
        (Phase, "data wait"),
        (Phase, "sample"),
        (Phase, "gather"),
        (Phase, "transfer"),
        (Phase, "forward"),
        (Phase, "loss"),
        (Phase, "backward"),
        (Phase, "all-reduce"),
        (Phase, "optimizer"),
        (Phase, "validation"),
        (Phase, "checkpoint"),
        (Phase, "compile"),
        (Span, "backward and all-reduce"),
        (Span, "micro-batch"),
        (Span, "unscale gradients"),
        (Span, "clip gradients"),
        (validated, "validation"),
        (Text, "checkpoint"),
    ]
    .map(|(kind, text)| names::register(kind, text))
}

impl Record for Thread {
    #[inline]
    fn now(&mut self) -> Ticks {
        after::ticks()
    }

    #[inline]
    fn begin(&mut self, name: Name) -> i32 {
        Self::begin(self, number(name))
    }

    #[inline]
    fn depth(&self) -> i32 {
        Self::depth(self)
    }

    #[inline]
    fn end_to(&mut self, depth: i32) {
        Self::end_to(self, depth);
    }

    #[inline]
    fn span(&mut self, name: Name, begin: Ticks, end: Ticks) {
        if begin != 0 && end >= begin {
            self.record_now(EarlyEvent::Span { name: number(name), begin, end });
        }
    }

    fn timed_mark(&mut self, name: Name, begin: Ticks, end: Ticks) {
        if begin != 0 && end >= begin {
            self.record_now(EarlyEvent::TimedMark { name: number(name), begin, end });
        }
    }

    fn hold(&mut self) {
        Self::hold(self);
    }

    fn release(&mut self, until: Ticks) {
        Self::release(self, until);
    }

    fn inferred(&mut self) {
        session::fact(Fact::Inferred { phase: "forward".to_owned(), how: FROM_ARRIVAL.to_owned() });
    }

    fn epoch(&mut self, epoch: u64) {
        self.set_epoch(epoch);
    }

    fn batch(&mut self, batch: Option<Shape>) {
        self.set_shape(batch.unwrap_or([-1; 5]));
    }

    fn step(&mut self) -> i32 {
        self.end_step(None, after::ticks())
    }
}

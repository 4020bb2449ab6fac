//! The thread that checks whether the training thread is overdue, and then records its stack, frame by frame, on a track
//! of its own.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use gnntop_probe::{Fact, NameKind, StackThread, TrackRole, after, phase};

use super::blocked;
use super::frames::{self, PythonProcess, Stack, format_frame, is_idle, is_ours};
use super::layout::{self, Layout};
use super::sample::Sampler;
use super::workers::{LOADER_WORKER, MAX_WORKERS};
use crate::memory::{Address, Process};
use crate::names::{self, RegisteredName};
use crate::overdue::{self, CurrentPhase};
use crate::session::{self, Status};
use crate::{thread as own_thread, worker};

/// Interval between checks.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// A phase is overdue after this many times its p99...
const TIMES: u64 = 2;
/// ...or, if its p99 is unknown, after this many times the minimum.
const UNKNOWN_TIMES: u64 = 20;

/// The track of the stacks.
const TRACK: &str = "stacks of train";

/// The session being watched.
static WATCHED: AtomicU32 = AtomicU32::new(0);

/// Watches the calling thread from now on. Takes a stack when one of its phases is overdue and has lasted at least `least`,
/// unless that is 0, and samples `a_second` stacks a second in any case. `expected` is what Python says about the calling
/// frame, as `NAME (FILE:LINE)`. Only the first thread of a session that asks is watched. Returns why it cannot be done.
pub(crate) fn watch(expected: &str, least: Duration, a_second: u32) -> Result<(), &'static str> {
    let (status, session) = session::state();
    if status != Status::Publishing || WATCHED.swap(session, Ordering::Relaxed) == session {
        return Ok(());
    }
    let process = Process::own()?;
    let python = PythonProcess { layout: Layout::read(&process)?, process };
    let own = thread_state().ok_or("this thread's state in Python cannot be found")?;
    let stack = frames::read_stack(&python, own)?;
    // If this frame cannot be read correctly, no other can.
    if stack.frames.first().map(format_frame).as_deref() != Some(expected) {
        return Err("a stack that is known was read wrong, so this build of Python has another layout");
    }
    // Before the sampler asks for the phase.
    overdue::set_watched(true);
    crate::thread::with((), |thread| thread.set_watched());
    if a_second > 0 {
        let thread = (own, rustix::thread::gettid().as_raw_pid());
        let sampler = Sampler::new(python.clone(), thread, session, a_second);
        start("gnntop sampler", move || sampler.run())?;
    }
    if least > Duration::ZERO {
        let thread_id = rustix::thread::gettid().as_raw_pid();
        let watch = ThreadWatcher {
            python,
            thread: own,
            thread_id,
            session,
            least_ns: least.as_nanos() as u64,
            taken: None,
            unread: 0,
        };
        start("gnntop stacks", move || watch.run())?;
    }
    Ok(())
}

/// What the standard library gives a thread.
const STACK_BYTES: usize = 2 << 20;

fn start(name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), &'static str> {
    // With a size, or RUST_MIN_STACK says it, which a person may set for another program.
    let started = without_signals(|| thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES).spawn(run));
    started.map(|_| ()).map_err(|_| "no thread can be started")
}

/// The state of the calling thread, from CPython's stable interface; `None` without Python, or if this is not one of its
/// threads. Needs no GIL.
pub(crate) fn thread_state() -> Option<Address> {
    let get = layout::symbol(c"PyGILState_GetThisThreadState")?;
    // SAFETY: the symbol is CPython's function of this type, which has been in its stable interface since 3.2. It looks the
    // calling thread's state up, and returns NULL if it has none.
    let get = unsafe { std::mem::transmute::<Address, unsafe extern "C" fn() -> *mut c_void>(get) };
    // SAFETY: as above.
    Some(unsafe { get() } as Address).filter(|state| *state != 0)
}

/// Runs `start` so that threads that it starts receive no signals: they are the program's.
fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: both sets are written before they are read: the first by sigfillset, the second by a call that cannot fail
    // with these arguments.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let started = start();
    // SAFETY: the set was written above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    started
}

/// A watched thread.
struct ThreadWatcher {
    python: PythonProcess,
    thread: Address,
    thread_id: libc::pid_t,
    session: u32,
    least_ns: u64,
    /// The phase whose stack was taken, and the ticks after which the next one is due.
    taken: Option<(CurrentPhase, u64)>,
    /// Stacks that could not be read.
    unread: u64,
}

impl ThreadWatcher {
    fn run(mut self) {
        own_thread::with(false, |thread| thread.track(TRACK, TrackRole::Stacks));
        while session::state() == (Status::Publishing, self.session) {
            if let Some(now) = self.overdue_phase() {
                self.record_own();
                if names::get(now.name).is_some_and(is_data_wait) {
                    self.record_workers();
                }
            }
            thread::sleep(POLL_INTERVAL);
        }
        own_thread::with((), |thread| thread.track_end());
    }

    fn record_own(&mut self) {
        let call = blocked::frame(&self.python.process, self.thread_id);
        match self.python.process.prepare().and_then(|()| frames::read_stack(&self.python, self.thread)) {
            Ok(stack) => record(call.as_deref(), &stack, StackThread::Training),
            Err(why) => {
                self.unread += 1;
                let why = format!("{} could not be read: {why}", self.unread);
                session::fact_at_once(Fact::NoStacks { why });
            }
        }
    }

    /// Records what the loader workers do that are making batches: the training thread waits for one of them.
    fn record_workers(&self) {
        for (process, state) in worker::python_workers().into_iter().take(MAX_WORKERS) {
            let Some(process) = Process::descendant(process) else { continue };
            // A worker makes its batches on its main thread, which has the process's id.
            let call = blocked::frame(&process, process.id());
            let python = PythonProcess { process, ..self.python.clone() };
            let stack = frames::read_stack(&python, state).ok();
            if let Some(stack) = stack.filter(|stack| !is_idle(&stack.frames)) {
                record(call.as_deref(), &stack, StackThread::LoaderWorker);
            }
        }
    }

    /// The current phase, if it is overdue and has lasted twice as long as when its stack was last taken.
    fn overdue_phase(&mut self) -> Option<CurrentPhase> {
        let now = overdue::current()?;
        let lasted = after::ticks().saturating_sub(now.since);
        let lasted_ns = after::ticks_ns(lasted);
        if lasted_ns < self.least_ns {
            return None;
        }
        let is_due = match self.taken {
            Some((taken, next)) if taken == now => lasted >= next,
            _ => match overdue::p99(now.name) {
                Some(p99) => lasted >= p99.saturating_mul(TIMES),
                None => lasted_ns >= self.least_ns.saturating_mul(UNKNOWN_TIMES),
            },
        };
        if is_due {
            self.taken = Some((now, lasted.saturating_mul(2)));
        }
        is_due.then_some(now)
    }
}

/// Whether the loop waits for its next batch, and does not merely call a span of its own so.
fn is_data_wait(name: &RegisteredName) -> bool {
    name.kind == NameKind::Phase && &*name.text == phase::DATA_WAIT.text()
}

/// Records the frames of a thread, innermost first, with the system call inside them.
fn record(call: Option<&str>, stack: &Stack, thread: StackThread) {
    let at = after::ticks();
    let mut depth = 0;
    let mut frame = |text: &str| {
        if let Some(name) = names::get(names::register(NameKind::Text, text)) {
            after::stack_frame(name.probe(), at, depth, thread);
        }
        depth += 1;
    };
    call.into_iter().for_each(&mut frame);
    for (number, called) in stack.frames.iter().enumerate() {
        if let Some((_, frames)) = stack.left_out.filter(|(before, _)| *before == number) {
            frame(&format!("({frames} frames more)"));
        }
        if !is_ours(called) {
            frame(&format_frame(called));
        }
    }
    if thread == StackThread::LoaderWorker {
        frame(LOADER_WORKER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_span_called_data_wait_is_no_wait() {
        let is_wait = |kind| is_data_wait(names::get(names::register(kind, "data wait")).unwrap());
        assert!(is_wait(NameKind::Phase) && !is_wait(NameKind::Span));
    }

    #[test]
    fn without_a_python_there_is_no_layout() {
        assert!(Layout::read(&Process::own().unwrap()).is_err());
    }
}

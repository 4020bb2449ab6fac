//! The thread that looks whether the training thread is overdue, and then records its stack: a mark for each frame, all at the
//! same time, with the frame's depth as its number, on a track of its own whose name readers know.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use gnntop_probe::{NameKind, TrackRole, after};

use super::frames::{self, Frame, Stack};
use super::layout::{self, Layout};
use super::memory::Address;
use crate::early::Event;
use crate::overdue::{self, Now};
use crate::session::{self, Status};
use crate::{names, thread as own_thread};

/// Time between two looks.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);
/// A phase is overdue after so many times its p99...
const TIMES: u64 = 2;
/// ...or after this many times the least, where its p99 is not known.
const UNKNOWN_TIMES: u64 = 20;
/// The track of the stacks; what reads recordings knows it by this name.
const TRACK: &str = "stacks of train";

/// Which session is watched.
static WATCHED: AtomicU32 = AtomicU32::new(0);

/// Watches the calling thread from now on: a stack is taken when a phase of it is overdue, and has lasted `least` at least.
/// `expected` is what Python says of the frame that calls, as `NAME (FILE:LINE)`. Gives why it cannot be done.
pub(crate) fn watch(expected: &str, least: Duration) -> Result<(), &'static str> {
    let (status, session) = session::state();
    if status != Status::Publishing || WATCHED.swap(session, Ordering::Relaxed) == session {
        return Ok(());
    }
    let layout = Layout::of_this_process().ok_or("the layout of this Python is not known")?;
    let own = own_state().ok_or("this Python does not tell its thread's state")?;
    let stack = frames::stack(&layout, own).ok_or("this process's memory cannot be read")?;
    // What cannot be read right here would be wrong everywhere.
    if stack.frames.first().map(told).as_deref() != Some(expected) {
        return Err("what is read of this Python's stack is not what it says itself");
    }
    let look = move || Watch { layout, thread: own, session, least_ns: least.as_nanos() as u64, taken: None }.run();
    without_signals(|| thread::Builder::new().name("gnntop stacks".to_owned()).spawn(look))
        .map_err(|_| "no thread can be started")?;
    overdue::set_watched(true);
    Ok(())
}

/// The calling thread's state, as CPython's stable interface gives it.
fn own_state() -> Option<Address> {
    let get = layout::symbol(c"PyThreadState_Get")?;
    // SAFETY: the symbol is CPython's function of this type, which has been in its stable interface since 3.2; whoever calls us
    // holds the GIL, or in a free-threaded build is attached, as it asks for.
    let get = unsafe { std::mem::transmute::<Address, unsafe extern "C" fn() -> *mut c_void>(get) };
    // SAFETY: as above.
    Some(unsafe { get() } as Address).filter(|state| *state != 0)
}

/// Runs `start` so that a thread that it starts accepts no signals: they are the program's.
fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: both sets are written before they are read: the first one by sigfillset, the second one by a call that cannot
    // fail with arguments like these.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let started = start();
    // SAFETY: the set was written above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    started
}

/// A thread that is watched.
struct Watch {
    layout: Layout,
    thread: Address,
    session: u32,
    least_ns: u64,
    /// The phase of which a stack was taken, and after how many ticks the next one is due.
    taken: Option<(Now, u64)>,
}

impl Watch {
    fn run(mut self) {
        own_thread::with(false, |thread| thread.track(TRACK, TrackRole::Other));
        while session::state() == (Status::Publishing, self.session) {
            if self.is_due()
                && let Some(stack) = frames::stack(&self.layout, self.thread)
            {
                record(&stack);
            }
            thread::sleep(LOOK_INTERVAL);
        }
        own_thread::with((), |thread| thread.track_end());
    }

    /// Whether what runs now is overdue, and has lasted twice as long as when a stack of it was last taken.
    fn is_due(&mut self) -> bool {
        let Some(now) = overdue::now() else { return false };
        let lasted = after::ticks().saturating_sub(now.since);
        let lasted_ns = after::ticks_ns(lasted);
        if lasted_ns < self.least_ns {
            return false;
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
        is_due
    }
}

/// Records the frames as marks, innermost first.
fn record(stack: &Stack) {
    let at = after::ticks();
    let mut depth = 0.0;
    let mut mark = |text: &str| {
        let name = names::number(NameKind::Text, text);
        own_thread::with((), |thread| thread.record(Event::Mark { name, at, value: Some(depth) }));
        depth += 1.0;
    };
    for (number, frame) in stack.frames.iter().enumerate() {
        if let Some((_, frames)) = stack.left_out.filter(|(before, _)| *before == number) {
            mark(&format!("({frames} frames more)"));
        }
        if !is_ours(frame) {
            mark(&told(frame));
        }
    }
}

/// `collate (data.py:81)`; a library's file with its folders from the library on, and Python's own with `python/`.
fn told(frame: &Frame) -> String {
    let Frame { name, file, line } = frame;
    if let Some((_, library)) = ["site-packages/", "dist-packages/"].iter().find_map(|of| file.split_once(of)) {
        return format!("{name} ({library}:{line})");
    }
    if let Some((_, library)) = file.split_once("/lib/python3").and_then(|(_, rest)| rest.split_once('/')) {
        return format!("{name} (python/{library}:{line})");
    }
    format!("{name} ({}:{line})", file.rsplit('/').next().unwrap_or(file))
}

/// Whether a frame is of our own hooks, which stand between the program and what it calls.
fn is_ours(frame: &Frame) -> bool {
    frame.file.contains("/gnntop/hooks/") || frame.file.ends_with("/gnntop/_native.py")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_told_by_its_name_and_a_librarys_by_its_folders() {
        let at = |file: &str| told(&Frame { name: "f".to_owned(), file: file.to_owned(), line: 3 });
        assert_eq!(at("/home/me/data.py"), "f (data.py:3)");
        assert_eq!(at("/env/lib/python3.11/site-packages/torch/nn/linear.py"), "f (torch/nn/linear.py:3)");
        assert_eq!(at("/usr/lib/python3.11/threading.py"), "f (python/threading.py:3)");
        assert_eq!(at("<string>"), "f (<string>:3)");
    }

    #[test]
    fn without_a_python_there_is_no_layout() {
        assert_eq!(Layout::of_this_process(), None);
    }
}

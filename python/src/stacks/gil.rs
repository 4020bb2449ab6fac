//! Whether the training thread waits for CPython's interpreter lock (the GIL), and where the thread is that holds it.
//!
//! The lock's record has the interval after which it is requested, its last holder, and whether it is held, and then what is waited
//! on: a thread that waits for an address within the record waits for the lock. The record is found once, by its beginning, while
//! the calling thread holds the lock.

use super::blocked;
use super::frames::{self, PythonProcess, format_frame, is_own};
use super::layout::symbol;
use crate::memory::{Address, Process};

/// The interval at which a thread requests the lock, in microseconds, unless a program changes it.
const INTERVAL: usize = 5000;
/// Bytes of Python's own state that are searched, in pieces.
const SEARCHED: usize = 1 << 20;
const PIECE: usize = 1 << 16;
/// Bytes of the record that may be waited on.
const RECORD: usize = 512;
const WORD: usize = size_of::<usize>();

/// Where the lock is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InterpreterLock(Address);

impl InterpreterLock {
    /// The lock, which the calling thread holds, whose state this is; `None` if it is not found.
    pub(super) fn find(process: &Process, own: Address) -> Option<Self> {
        let runtime = symbol(c"_PyRuntime")?;
        let pieces = (0..SEARCHED / PIECE).map(|piece| runtime + piece * PIECE);
        let searched = pieces.map_while(|from| Some((from, process.bytes(from, PIECE + 2 * WORD)?)));
        searched.into_iter().find_map(|(from, bytes)| {
            let words: Vec<usize> =
                bytes.as_chunks::<WORD>().0.iter().map(|word| usize::from_ne_bytes(*word)).collect();
            let is_it = |at: &usize| words[*at] == INTERVAL && words[at + 1] == own && is_held(words[at + 2]);
            (0..words.len() - 2).find(is_it).map(|at| Self(from + at * WORD))
        })
    }

    /// Where the thread is that holds the lock, if this one waits for it: `GIL held in refresh (monitor.py:12)`.
    pub(super) fn holder(self, python: &PythonProcess, (thread, id): (Address, libc::pid_t)) -> Option<String> {
        let holder = python.process.word(self.0 + WORD).filter(|holder| *holder != 0 && *holder != thread)?;
        if !is_held(python.process.word(self.0 + 2 * WORD)?) || !self.is_waited_on(blocked::futex(id)?) {
            return None;
        }
        let stack = frames::read_stack(python, holder).ok()?;
        let own = stack.frames.iter().find(|frame| is_own(frame)).or(stack.frames.first())?;
        Some(format!("{}{}", gnntop_probe::Sampling::HELD_IN, format_frame(own)))
    }

    fn is_waited_on(self, address: u64) -> bool {
        usize::try_from(address).is_ok_and(|address| (self.0..self.0 + RECORD).contains(&address))
    }
}

/// Whether it is held, as an int says.
fn is_held(word: usize) -> bool {
    word as u32 == 1
}

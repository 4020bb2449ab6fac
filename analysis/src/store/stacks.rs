//! Stacks taken while a phase took too long; the newest are kept.

use std::collections::VecDeque;
use std::ops::Range;

use gnntop_wire::{NameId, StackFrame, StackThread};

/// Most frames of a stack; one with more is not from our publisher.
const MAX_FRAMES: usize = 256;

/// Where a thread was at an instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stack {
    /// When.
    pub t_ns: u64,
    /// Whose it is.
    pub thread: StackThread,
    /// Names of the frames, such as `collate (data.py:81)`, innermost first.
    pub frames: Vec<NameId>,
}

/// The newest stacks, oldest first.
#[derive(Clone, Debug)]
pub struct Stacks {
    kept: VecDeque<Stack>,
    discarded: u64,
    capacity: usize,
    /// Whether the newest stack takes more frames.
    is_open: bool,
}

impl Stacks {
    pub(super) fn new(capacity: usize) -> Self {
        Self { kept: VecDeque::new(), discarded: 0, capacity: capacity.max(1), is_open: false }
    }

    /// The kept stacks, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Stack> + ExactSizeIterator {
        self.kept.iter()
    }

    /// The stacks taken after the start of this range, up to and including its end.
    pub fn within(&self, times: Range<u64>) -> impl Iterator<Item = &Stack> {
        self.kept.iter().filter(move |stack| times.start < stack.t_ns && stack.t_ns <= times.end)
    }

    /// The newest stack.
    pub fn last(&self) -> Option<&Stack> {
        self.kept.back()
    }

    /// Number of older stacks, which are no longer kept.
    pub fn discarded(&self) -> u64 {
        self.discarded
    }

    /// Adds a frame: to a new stack at depth 0, else to the newest one. Returns whether it belongs to a stack. `is_exit` says that
    /// the program is exiting in it: its stack shows nothing of a step, and is dropped.
    pub(super) fn push(&mut self, frame: &StackFrame, is_exit: bool) -> bool {
        let StackFrame { name, t_ns, depth, thread } = *frame;
        if depth == 0 {
            if self.kept.len() >= self.capacity {
                self.kept.pop_front();
                self.discarded += 1;
            }
            self.kept.push_back(Stack { t_ns, thread, frames: vec![name] });
            self.is_open = true;
        }
        if is_exit && std::mem::take(&mut self.is_open) {
            self.kept.pop_back();
            return true;
        }
        if depth == 0 {
            return true;
        }
        match self.kept.back_mut() {
            // A stack whose beginning was dropped is ignored.
            Some(stack) if self.is_open && stack.frames.len() == depth as usize && stack.frames.len() < MAX_FRAMES => {
                stack.frames.push(name);
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_become_stacks_only_from_depth_zero() {
        let mut stacks = Stacks::new(2);
        let frame = |name, t_ns, depth| StackFrame { name: NameId(name), t_ns, depth, thread: StackThread::Training };
        assert!(!stacks.push(&frame(9, 5, 3), false), "its beginning was lost");
        for t_ns in [10, 20, 30] {
            assert!(stacks.push(&frame(1, t_ns, 0), false) && stacks.push(&frame(2, t_ns, 1), false));
            assert!(!stacks.push(&frame(3, t_ns, 7), false), "a frame in between was lost");
        }
        let kept: Vec<_> = stacks.iter().map(|stack| (stack.t_ns, stack.frames.len())).collect();
        assert_eq!((kept, stacks.discarded()), (vec![(20, 2), (30, 2)], 1));
        assert_eq!(stacks.within(20..30).count(), 1);
        assert!((0..1000).all(|depth| !stacks.push(&frame(1, 40, u32::MAX - depth), false)));
    }

    #[test]
    fn stack_of_an_exiting_program_is_dropped() {
        let mut stacks = Stacks::new(4);
        let frame = |name, depth| StackFrame { name: NameId(name), t_ns: 7, depth, thread: StackThread::Training };
        assert!(
            stacks.push(&frame(1, 0), false) && stacks.push(&frame(2, 0), false) && stacks.push(&frame(3, 1), true)
        );
        assert!(!stacks.push(&frame(4, 1), false), "no frame of it belongs to the stack before");
        let kept: Vec<&[NameId]> = stacks.iter().map(|stack| stack.frames.as_slice()).collect();
        assert_eq!(kept, [[NameId(1)]]);
    }
}

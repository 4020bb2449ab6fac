//! Stacks taken while a phase took too long; the newest are kept.
//!
//! They come as marks on a track of their own ([`gnntop_wire::stacks`]).

use std::collections::VecDeque;
use std::ops::Range;

use gnntop_wire::NameId;

/// Most frames of a stack; one with more is not from our publisher.
const MAX_FRAMES: usize = 256;

/// Where a thread was at an instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stack {
    /// When.
    pub t_ns: u64,
    /// Names of the frames, such as `collate (data.py:81)`, innermost first.
    pub frames: Vec<NameId>,
}

/// The newest stacks, oldest first.
#[derive(Clone, Debug)]
pub struct Stacks {
    kept: VecDeque<Stack>,
    discarded: u64,
    capacity: usize,
}

impl Stacks {
    pub(super) fn new(capacity: usize) -> Self {
        Self { kept: VecDeque::new(), discarded: 0, capacity: capacity.max(1) }
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

    /// Adds a frame: to a new stack at depth 0, else to the newest one. Returns whether it belongs to a stack.
    pub(super) fn push(&mut self, frame: NameId, t_ns: u64, depth: f64) -> bool {
        if depth == 0.0 {
            if self.kept.len() >= self.capacity {
                self.kept.pop_front();
                self.discarded += 1;
            }
            self.kept.push_back(Stack { t_ns, frames: vec![frame] });
            return true;
        }
        match self.kept.back_mut() {
            // A stack whose beginning was dropped is ignored.
            Some(stack) if stack.frames.len() as f64 == depth && stack.frames.len() < MAX_FRAMES => {
                stack.frames.push(frame);
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
    fn frames_become_stacks_and_those_without_a_beginning_do_not() {
        let mut stacks = Stacks::new(2);
        assert!(!stacks.push(NameId(9), 5, 3.0), "its beginning was lost");
        for t_ns in [10, 20, 30] {
            assert!(stacks.push(NameId(1), t_ns, 0.0) && stacks.push(NameId(2), t_ns, 1.0));
            assert!(!stacks.push(NameId(3), t_ns, 7.0), "a frame in between was lost");
        }
        let kept: Vec<_> = stacks.iter().map(|stack| (stack.t_ns, stack.frames.len())).collect();
        assert_eq!((kept, stacks.discarded()), (vec![(20, 2), (30, 2)], 1));
        assert_eq!(stacks.within(20..30).count(), 1);
        assert!((0..1000).all(|depth| depth == 0 || !stacks.push(NameId(1), 40, 1e9 + f64::from(depth))));
    }
}

//! A thread's innermost open span, readable by another thread at any time: a sequence lock with one writer.
//!
//! The version is odd while the span changes, and never repeats, so values read between two equal even versions belong
//! together. The span's start time cannot serve as the version: it recurs when an inner span ends.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, fence};

/// A word of memory that two threads share; tests use one that shows every possible order of loads and stores.
pub(super) trait AtomicWord: Default {
    fn load(&self) -> u64;
    fn store(&self, value: u64);
}

impl AtomicWord for AtomicU64 {
    #[inline]
    fn load(&self) -> u64 {
        self.load(Relaxed)
    }

    #[inline]
    fn store(&self, value: u64) {
        self.store(value, Relaxed);
    }
}

/// A span that is open, or none where `since` is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Open {
    pub(super) name: u32,
    /// Ticks at which it began.
    pub(super) since: u64,
    pub(super) step: u64,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct OpenSpan<W = AtomicU64> {
    version: W,
    name: W,
    since: W,
    step: W,
}

impl<W: AtomicWord> OpenSpan<W> {
    /// Changes the span. Only its own thread may.
    #[inline]
    pub(super) fn set(&self, open: Open) {
        let version = self.version.load();
        self.version.store(version.wrapping_add(1));
        // No reader sees any of the new words without seeing the odd version.
        fence(Release);
        self.name.store(u64::from(open.name));
        self.since.store(open.since);
        self.step.store(open.step);
        // No reader sees the new version without seeing all of the new words.
        fence(Release);
        self.version.store(version.wrapping_add(2));
    }

    /// Name and begin of the span, for its own thread.
    #[inline]
    pub(super) fn get_from_own_thread(&self) -> (u32, u64) {
        (self.name.load() as u32, self.since.load())
    }

    /// The span, for any thread; `None` if no span is open, and while it changes.
    pub(super) fn get(&self) -> Option<Open> {
        let before = self.version.load();
        fence(Acquire);
        let open = Open { name: self.name.load() as u32, since: self.since.load(), step: self.step.load() };
        fence(Acquire);
        let is_whole = before.is_multiple_of(2) && self.version.load() == before;
        (is_whole && open.since != 0).then_some(open)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::collections::HashSet;
    use std::rc::Rc;

    use super::*;

    /// The writer's stores, in order, and how many of them each load of the reader may see.
    #[derive(Default)]
    struct Tape {
        stores: RefCell<Vec<(usize, u64)>>,
        /// The reader's next loads: each sees the memory after this many stores.
        loads: RefCell<std::vec::IntoIter<usize>>,
        words: Cell<usize>,
        is_reading: Cell<bool>,
    }

    thread_local! {
        static TAPE: Rc<Tape> = Rc::default();
    }

    /// A word on the tape.
    struct Taped {
        tape: Rc<Tape>,
        id: usize,
    }

    impl Default for Taped {
        fn default() -> Self {
            let tape = TAPE.with(Rc::clone);
            let id = tape.words.replace(tape.words.get() + 1);
            Self { tape, id }
        }
    }

    impl AtomicWord for Taped {
        fn load(&self) -> u64 {
            let stores = self.tape.stores.borrow();
            let seen = if self.tape.is_reading.get() {
                self.tape.loads.borrow_mut().next().expect("as many loads as planned")
            } else {
                stores.len()
            };
            stores[..seen].iter().rev().find(|(word, _)| *word == self.id).map_or(0, |(_, value)| *value)
        }

        fn store(&self, value: u64) {
            self.tape.stores.borrow_mut().push((self.id, value));
        }
    }

    /// Every way to place `loads` loads, in order, among `stores` stores.
    fn every_order(loads: usize, stores: usize) -> Vec<Vec<usize>> {
        let mut orders = vec![Vec::new()];
        for _ in 0..loads {
            orders = orders
                .into_iter()
                .flat_map(|order| {
                    let from = order.last().copied().unwrap_or(0);
                    (from..=stores).map(move |at| order.iter().copied().chain([at]).collect())
                })
                .collect();
        }
        orders
    }

    #[test]
    fn open_span_is_consistent_in_every_order() {
        let span = OpenSpan::<Taped>::default();
        let outer = Open { name: 1, since: 10, step: 7 };
        // An outer span, one inside it, the outer one again (which is what made `since` useless as a version), and another.
        let spans = [outer, Open { name: 2, since: 20, step: 8 }, outer, Open { name: 3, since: 10, step: 9 }];
        spans.iter().for_each(|open| span.set(*open));
        let tape = TAPE.with(Rc::clone);
        let stores = tape.stores.borrow().len();
        tape.is_reading.set(true);
        let mut seen = HashSet::new();
        for order in every_order(5, stores) {
            *tape.loads.borrow_mut() = order.clone().into_iter();
            let Some(open) = span.get() else { continue };
            assert!(spans.contains(&open), "{open:?}, in the order {order:?}");
            seen.insert((open.name, open.step));
        }
        assert_eq!(seen.len(), 3, "each of them is seen in some order: {seen:?}");
    }

    #[test]
    fn open_span_is_consistent_across_threads() {
        let span = OpenSpan::<AtomicU64>::default();
        let of = |i: u64| Open { name: i as u32, since: i % 3 + 1, step: i };
        std::thread::scope(|scope| {
            scope.spawn(|| (1..200_000).for_each(|i| span.set(of(i))));
            for _ in 0..200_000 {
                if let Some(open) = span.get() {
                    assert_eq!(open, of(open.step));
                }
            }
        });
    }
}

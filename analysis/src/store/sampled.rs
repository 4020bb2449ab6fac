//! Continuously sampled stacks: how many ended at each path since the session began.
//!
//! A path's count comes with every stack that ends there, and is repeated in turn, so it is known even if the beginning of
//! the stream is missing.

use std::collections::HashMap;

use gnntop_wire::{NameId, NameKind, Sampling};

/// Most paths kept; a publisher has fewer.
const MAX_PATHS: usize = 1 << 14;
/// Largest plausible count.
const MOST: u64 = 1 << 53;

/// A number that only grows, and restarts with each start of the run.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    before: u64,
    now: u64,
}

impl Count {
    fn see(&mut self, value: u64) {
        self.now = self.now.max(value);
    }

    fn total(self) -> u64 {
        self.before.saturating_add(self.now)
    }
}

/// A frame and its callers.
#[derive(Clone, Debug)]
struct Path {
    name: NameId,
    /// Index of the caller's path; `None` for a phase.
    caller: Option<usize>,
    count: Count,
}

/// What the samples of a name count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counted {
    Path(usize),
    Figure(Sampling),
}

/// The counts of all paths.
#[derive(Clone, Debug, Default)]
pub struct Sampled {
    paths: Vec<Path>,
    by_name: HashMap<NameId, Counted>,
    taken: Count,
    unread: Count,
    cost_us: Count,
    a_second: u64,
}

impl Sampled {
    /// Whether no stack was sampled, or could have been.
    pub fn is_empty(&self) -> bool {
        self.taken() == 0 && self.unread() == 0
    }

    /// Stacks taken over the whole session.
    pub fn taken(&self) -> u64 {
        self.taken.total().max(self.known())
    }

    /// Stacks whose place is known. If the beginning of the stream is missing, the counts of the others have not been
    /// repeated yet.
    pub fn known(&self) -> u64 {
        self.paths.iter().map(|path| path.count.total()).fold(0, u64::saturating_add)
    }

    /// Stacks that could not be read.
    pub fn unread(&self) -> u64 {
        self.unread.total()
    }

    /// CPU time spent on taking them, in nanoseconds.
    pub fn cost_ns(&self) -> u64 {
        self.cost_us.total().saturating_mul(1000)
    }

    /// Stacks taken a second; 0 if unknown.
    pub fn a_second(&self) -> u64 {
        self.a_second
    }

    /// The known stacks, each with its path's names from the innermost frame to the phase, and how many were equal.
    pub fn stacks(&self) -> impl Iterator<Item = (Vec<NameId>, u64)> {
        let counted = self.paths.iter().filter(|path| path.count.total() > 0);
        counted.map(|path| {
            let outwards = std::iter::successors(Some(path), |path| path.caller.map(|at| &self.paths[at]));
            (outwards.map(|path| path.name).collect(), path.count.total())
        })
    }

    /// Notes a name that may stand for a path or a figure.
    pub(super) fn define(&mut self, name: NameId, kind: NameKind) {
        let counted = match kind {
            NameKind::Path(caller) => self.path(name, caller).map(Counted::Path),
            NameKind::Sampling(figure) => Some(Counted::Figure(figure)),
            _ => None,
        };
        if let Some(counted) = counted {
            self.by_name.insert(name, counted);
        }
    }

    /// The index of the path with this name. Its callers were defined before it, so no path is its own caller.
    fn path(&mut self, name: NameId, caller: NameId) -> Option<usize> {
        if let Some(Counted::Path(at)) = self.by_name.get(&name) {
            return Some(*at);
        }
        let caller = match (caller, self.by_name.get(&caller)) {
            (NameId::NONE, _) => None,
            (_, Some(Counted::Path(at))) => Some(*at),
            _ => return None,
        };
        if self.paths.len() >= MAX_PATHS {
            return None;
        }
        self.paths.push(Path { name, caller, count: Count::default() });
        Some(self.paths.len() - 1)
    }

    /// Adds a count; returns whether its name is known.
    pub(super) fn count(&mut self, name: NameId, value: u64) -> bool {
        let Some(counted) = self.by_name.get(&name).filter(|_| value <= MOST) else { return false };
        match counted {
            Counted::Path(at) => self.paths[*at].count.see(value),
            Counted::Figure(Sampling::Taken) => self.taken.see(value),
            Counted::Figure(Sampling::Unread) => self.unread.see(value),
            Counted::Figure(Sampling::CostUs) => self.cost_us.see(value),
            Counted::Figure(Sampling::Rate) => self.a_second = value,
        }
        true
    }

    /// Begins the next start of the run, which counts from 0 again.
    pub(super) fn begin_attempt(&mut self) {
        let paths = self.paths.iter_mut().map(|path| &mut path.count);
        for count in paths.chain([&mut self.taken, &mut self.unread, &mut self.cost_us]) {
            *count = Count { before: count.total(), now: 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Defines a stack from the phase inwards, of these many names from `first` on; returns the innermost name.
    fn define(sampled: &mut Sampled, first: u32, frames: u32) -> NameId {
        let names = first..first + frames;
        names.fold(NameId::NONE, |caller, name| {
            sampled.define(NameId(name), NameKind::Path(caller));
            NameId(name)
        })
    }

    #[test]
    fn counts_are_those_of_the_whole_session_wherever_the_stream_begins() {
        let mut sampled = Sampled::default();
        let path = define(&mut sampled, 1, 3);
        assert!(sampled.is_empty());
        assert!(sampled.count(path, 941) && sampled.count(path, 942) && sampled.count(path, 942));
        let stacks: Vec<_> = sampled.stacks().collect();
        assert_eq!(stacks, [(vec![NameId(3), NameId(2), NameId(1)], 942)]);
        sampled.define(NameId(4), NameKind::Sampling(Sampling::Taken));
        assert!(sampled.count(NameId(4), 1000));
        assert_eq!((sampled.taken(), sampled.known()), (1000, 942));
    }

    #[test]
    fn a_further_start_is_added() {
        let mut sampled = Sampled::default();
        let path = define(&mut sampled, 1, 2);
        sampled.count(path, 10);
        sampled.begin_attempt();
        let again = define(&mut sampled, 1, 2);
        sampled.count(again, 4);
        assert_eq!(sampled.taken(), 14);
    }

    #[test]
    fn what_is_hostile_is_bounded() {
        let mut sampled = Sampled::default();
        assert!(!sampled.count(NameId(7), 1), "a name that is no path");
        sampled.define(NameId(1), NameKind::Path(NameId(12345)));
        assert!(!sampled.count(NameId(1), 1), "its caller is not known");
        sampled.define(NameId(2), NameKind::Path(NameId(2)));
        assert!(!sampled.count(NameId(2), 1), "its own caller");
        for n in 3..2 * MAX_PATHS as u32 {
            sampled.define(NameId(n), NameKind::Path(NameId::NONE));
        }
        assert_eq!(sampled.paths.len(), MAX_PATHS);
        assert!(!sampled.count(NameId(3), u64::MAX));
        assert!(sampled.is_empty());
    }
}

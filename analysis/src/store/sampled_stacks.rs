//! Continuously sampled stacks: how many ended at each path since the session began.
//!
//! A path's count comes with every stack that ends there, and is repeated in turn, so it is known even if the beginning of
//! the stream is missing.

use std::collections::HashMap;

use gnntop_wire::{NameId, NameKind, Sampling};

/// Most paths kept; a publisher has fewer.
const MAX_PATHS: usize = 1 << 14;
/// Largest plausible count.
const MAX_COUNT: u64 = 1 << 53;

/// A number that only grows, and restarts with each start of the run.
#[derive(Clone, Copy, Debug, Default)]
struct RestartedCount {
    previous: u64,
    now: u64,
}

impl RestartedCount {
    fn update(&mut self, value: u64) {
        self.now = self.now.max(value);
    }

    fn total(self) -> u64 {
        self.previous.saturating_add(self.now)
    }
}

/// A frame and its callers.
#[derive(Clone, Debug)]
struct Path {
    name: NameId,
    /// Index of the caller's path; `None` for a phase.
    caller: Option<usize>,
    count: RestartedCount,
}

/// What the samples of a name count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SampleName {
    Path(usize),
    Figure(Sampling),
}

/// The counts of all paths.
#[derive(Clone, Debug, Default)]
pub struct SampledStacks {
    paths: Vec<Path>,
    by_name: HashMap<NameId, SampleName>,
    taken: RestartedCount,
    unread: RestartedCount,
    held: RestartedCount,
    cost_us: RestartedCount,
    a_second: u64,
}

impl SampledStacks {
    /// Whether no stack was sampled, or could have been.
    pub fn is_empty(&self) -> bool {
        self.total() == 0 && self.unread() == 0
    }

    /// Stacks taken over the whole session.
    pub fn total(&self) -> u64 {
        self.taken.total().max(self.located())
    }

    /// Stacks whose place is known. If the beginning of the stream is missing, the counts of the others have not been
    /// repeated yet.
    pub fn located(&self) -> u64 {
        self.paths.iter().map(|path| path.count.total()).fold(0, u64::saturating_add)
    }

    /// Stacks that could not be read.
    pub fn unread(&self) -> u64 {
        self.unread.total()
    }

    /// Stacks in which the thread waited for the interpreter lock.
    pub fn held(&self) -> u64 {
        self.held.total()
    }

    /// CPU time spent on taking them, in nanoseconds.
    pub fn cost_ns(&self) -> u64 {
        self.cost_us.total().saturating_mul(1000)
    }

    /// Stacks taken a second; 0 if unknown.
    pub fn per_second(&self) -> u64 {
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
            NameKind::Path(caller) => self.path(name, caller).map(SampleName::Path),
            NameKind::Sampling(figure) => Some(SampleName::Figure(figure)),
            _ => None,
        };
        if let Some(counted) = counted {
            self.by_name.insert(name, counted);
        }
    }

    /// The index of the path with this name. Its callers were defined before it, so no path is its own caller.
    fn path(&mut self, name: NameId, caller: NameId) -> Option<usize> {
        if let Some(SampleName::Path(at)) = self.by_name.get(&name) {
            return Some(*at);
        }
        let caller = match (caller, self.by_name.get(&caller)) {
            (NameId::NONE, _) => None,
            (_, Some(SampleName::Path(at))) => Some(*at),
            _ => return None,
        };
        if self.paths.len() >= MAX_PATHS {
            return None;
        }
        self.paths.push(Path { name, caller, count: RestartedCount::default() });
        Some(self.paths.len() - 1)
    }

    /// Adds a count; returns whether its name is known.
    pub(super) fn count(&mut self, name: NameId, value: u64) -> bool {
        let Some(counted) = self.by_name.get(&name).filter(|_| value <= MAX_COUNT) else { return false };
        match counted {
            SampleName::Path(at) => self.paths[*at].count.update(value),
            SampleName::Figure(Sampling::Taken) => self.taken.update(value),
            SampleName::Figure(Sampling::Held) => self.held.update(value),
            SampleName::Figure(Sampling::Unread) => self.unread.update(value),
            SampleName::Figure(Sampling::CostUs) => self.cost_us.update(value),
            SampleName::Figure(Sampling::Rate) => self.a_second = value,
        }
        true
    }

    /// Begins the next start of the run, which counts from 0 again.
    pub(super) fn begin_attempt(&mut self) {
        let paths = self.paths.iter_mut().map(|path| &mut path.count);
        for count in paths.chain([&mut self.taken, &mut self.unread, &mut self.held, &mut self.cost_us]) {
            *count = RestartedCount { previous: count.total(), now: 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Defines a stack from the phase inwards, of these many names from `first` on; returns the innermost name.
    fn define(sampled: &mut SampledStacks, first: u32, frames: u32) -> NameId {
        let names = first..first + frames;
        names.fold(NameId::NONE, |caller, name| {
            sampled.define(NameId(name), NameKind::Path(caller));
            NameId(name)
        })
    }

    #[test]
    fn sampled_counts_cover_session_from_any_start() {
        let mut sampled = SampledStacks::default();
        let path = define(&mut sampled, 1, 3);
        assert!(sampled.is_empty());
        assert!(sampled.count(path, 941) && sampled.count(path, 942) && sampled.count(path, 942));
        let stacks: Vec<_> = sampled.stacks().collect();
        assert_eq!(stacks, [(vec![NameId(3), NameId(2), NameId(1)], 942)]);
        sampled.define(NameId(4), NameKind::Sampling(Sampling::Taken));
        assert!(sampled.count(NameId(4), 1000));
        assert_eq!((sampled.total(), sampled.located()), (1000, 942));
    }

    #[test]
    fn sampled_counts_add_next_attempt() {
        let mut sampled = SampledStacks::default();
        let path = define(&mut sampled, 1, 2);
        sampled.count(path, 10);
        sampled.begin_attempt();
        let again = define(&mut sampled, 1, 2);
        sampled.count(again, 4);
        assert_eq!(sampled.total(), 14);
    }

    #[test]
    fn sampled_hostile_input_is_bounded() {
        let mut sampled = SampledStacks::default();
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

//! Continuously sampled stacks: how many ended at each path since the session began.
//!
//! A path's count comes with every stack that ends there, and is repeated in turn, so it is known even if the beginning of
//! the stream is missing. [`gnntop_wire::sampled`] describes the encoding.

use std::collections::HashMap;

use gnntop_wire::NameId;
use gnntop_wire::sampled::{self, Figure, ROOT};

/// Most paths kept; a publisher has fewer.
const MAX_PATHS: usize = 1 << 14;
/// Largest plausible count.
const MOST: f64 = (1_u64 << 53) as f64;

/// A number that only grows, and restarts with each start of the run.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    before: u64,
    now: u64,
}

impl Count {
    fn see(&mut self, value: f64) {
        self.now = self.now.max(value as u64);
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

/// What a name's marks count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counted {
    Path(usize),
    Figure(Figure),
}

/// The counts of all paths.
#[derive(Clone, Debug, Default)]
pub struct Sampled {
    paths: Vec<Path>,
    by_id: HashMap<u64, usize>,
    by_name: HashMap<NameId, Counted>,
    taken: Count,
    unread: Count,
    cost_us: Count,
    a_second: u64,
}

impl Sampled {
    /// Whether no stack was sampled.
    pub fn is_empty(&self) -> bool {
        self.taken() == 0
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
    pub(super) fn define(&mut self, name: NameId, text: &str) {
        let counted = match sampled::path(text) {
            Some((caller, _)) => self.path(name, caller, sampled::path_id(text)).map(Counted::Path),
            None => Figure::ALL.iter().find(|(known, _)| *known == text).map(|(_, figure)| Counted::Figure(*figure)),
        };
        if let Some(counted) = counted {
            self.by_name.insert(name, counted);
        }
    }

    /// The index of the path with this id. Its callers were defined before it, so no path is its own caller.
    fn path(&mut self, name: NameId, caller: u64, id: u64) -> Option<usize> {
        if let Some(at) = self.by_id.get(&id) {
            return Some(*at);
        }
        let caller = if caller == ROOT { None } else { Some(*self.by_id.get(&caller)?) };
        if self.paths.len() >= MAX_PATHS {
            return None;
        }
        self.paths.push(Path { name, caller, count: Count::default() });
        self.by_id.insert(id, self.paths.len() - 1);
        Some(self.paths.len() - 1)
    }

    /// Adds a count; returns whether its name is known.
    pub(super) fn count(&mut self, name: NameId, value: f64) -> bool {
        let value = value.abs();
        let Some(counted) = self.by_name.get(&name).filter(|_| value <= MOST) else { return false };
        match counted {
            Counted::Path(at) => self.paths[*at].count.see(value),
            Counted::Figure(Figure::Taken) => self.taken.see(value),
            Counted::Figure(Figure::Unread) => self.unread.see(value),
            Counted::Figure(Figure::CostUs) => self.cost_us.see(value),
            Counted::Figure(Figure::ASecond) => self.a_second = value as u64,
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
    use gnntop_wire::sampled::{path_id, path_text};

    /// Defines a stack from the phase inwards, with names from `first` on; returns the innermost name.
    fn define(sampled: &mut Sampled, first: u32, frames: &[&str]) -> NameId {
        let mut caller = ROOT;
        for (name, frame) in (first..).zip(frames) {
            let text = path_text(caller, frame);
            sampled.define(NameId(name), &text);
            caller = path_id(&text);
        }
        NameId(first + frames.len() as u32 - 1)
    }

    #[test]
    fn counts_are_those_of_the_whole_session_wherever_the_stream_begins() {
        let mut sampled = Sampled::default();
        let path = define(&mut sampled, 1, &["forward", "main (a.py:1)", "f (a.py:7)"]);
        assert!(sampled.is_empty());
        assert!(sampled.count(path, 941.0) && sampled.count(path, -942.0) && sampled.count(path, 942.0));
        let stacks: Vec<_> = sampled.stacks().collect();
        assert_eq!(stacks, [(vec![NameId(3), NameId(2), NameId(1)], 942)]);
        sampled.define(NameId(4), Figure::ALL[0].0);
        assert!(sampled.count(NameId(4), 1000.0));
        assert_eq!((sampled.taken(), sampled.known()), (1000, 942));
    }

    #[test]
    fn a_further_start_is_added() {
        let mut sampled = Sampled::default();
        let path = define(&mut sampled, 1, &["forward", "f"]);
        sampled.count(path, 10.0);
        sampled.begin_attempt();
        let again = define(&mut sampled, 1, &["forward", "f"]);
        sampled.count(again, 4.0);
        assert_eq!(sampled.taken(), 14);
    }

    #[test]
    fn what_is_hostile_is_bounded() {
        let mut sampled = Sampled::default();
        assert!(!sampled.count(NameId(7), 1.0), "a name that is no path");
        sampled.define(NameId(1), &path_text(12345, "its caller is not known"));
        assert!(!sampled.count(NameId(1), 1.0));
        for n in 0..2 * MAX_PATHS as u32 {
            sampled.define(NameId(n), &path_text(ROOT, &n.to_string()));
        }
        assert_eq!(sampled.paths.len(), MAX_PATHS);
        for value in [f64::NAN, f64::INFINITY, 1e300, -1e300] {
            assert!(!sampled.count(NameId(0), value), "{value}");
        }
        assert!(sampled.is_empty());
    }
}

//! Paths of frames in a stream: each is named once, then counted.

use std::collections::HashMap;

use gnntop_probe::{NameId, NameKind, NameRef, intern};

/// Most paths, and bytes of their names: a part of the probe's limits.
const MAX_PATHS: usize = 1500;
const MAX_BYTES: usize = 128 * 1024;
/// Longest text of a frame, in bytes.
const MAX_FRAME: usize = 160;
/// The frame for stacks beyond the limit on paths.
const OTHER: &str = "(other)";

/// A path: a frame and its callers.
struct StackPath {
    name: NameRef,
    /// Number of stacks that ended here.
    count: u64,
}

/// All paths so far.
pub(super) struct StackPaths {
    all: Vec<StackPath>,
    /// Index by the caller's path and the frame.
    by_frame: HashMap<(NameId, Box<str>), usize>,
    bytes: usize,
    /// Index of the path whose count is repeated next.
    next: usize,
}

impl StackPaths {
    /// Only the path for stacks that do not fit.
    pub(super) fn new() -> Self {
        let mut paths = Self { all: Vec::new(), by_frame: HashMap::new(), bytes: 0, next: 0 };
        paths.child(NameId::NONE, OTHER);
        paths
    }

    /// Counts a stack, given from the outermost frame on; returns the name of its path, and the path's count.
    pub(super) fn count<'f>(&mut self, frames: impl Iterator<Item = &'f str>) -> (NameRef, u64) {
        // The first path is for stacks that do not fit.
        let (mut at, mut caller) = (0, NameId::NONE);
        for frame in frames {
            at = self.child(caller, frame).unwrap_or(0);
            if at == 0 {
                break;
            }
            caller = self.all[at].name.id();
        }
        let path = &mut self.all[at];
        path.count += 1;
        (path.name, path.count)
    }

    /// The next counted path in turn, and its count.
    pub(super) fn repeat(&mut self) -> Option<(NameRef, u64)> {
        for _ in 0..self.all.len() {
            self.next = (self.next + 1) % self.all.len();
            let StackPath { name, count, .. } = self.all[self.next];
            if count > 0 {
                return Some((name, count));
            }
        }
        None
    }

    /// The index of the path that continues `caller`; `None` if there is no room for it.
    fn child(&mut self, caller: NameId, frame: &str) -> Option<usize> {
        let key = (caller, Box::from(frame));
        if let Some(at) = self.by_frame.get(&key) {
            return Some(*at);
        }
        let text = &frame[..frame.floor_char_boundary(MAX_FRAME)];
        if self.all.len() == MAX_PATHS || self.bytes + text.len() > MAX_BYTES {
            return None;
        }
        self.bytes += text.len();
        let at = self.all.len();
        self.all.push(StackPath { name: intern(NameKind::Path(caller), text), count: 0 });
        self.by_frame.insert(key, at);
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_counted_under_its_callers_and_repeated_in_turn() {
        let mut paths = StackPaths::new();
        let (a, _) = paths.count(["forward", "main", "f"].into_iter());
        let (b, _) = paths.count(["backward", "main", "f"].into_iter());
        assert_ne!(a, b, "the phase tells them apart");
        assert_eq!(paths.count(["forward", "main", "f"].into_iter()), (a, 2));
        let repeated: Vec<_> = (0..3).filter_map(|_| paths.repeat()).collect();
        assert_eq!(repeated, [(a, 2), (b, 1), (a, 2)], "paths that no stack ended at have nothing to tell");
    }

    #[test]
    fn paths_beyond_the_limit_are_counted_as_other() {
        let mut paths = StackPaths::new();
        let other = paths.all[0].name;
        for n in 0..3 * MAX_PATHS {
            paths.count(["forward", &format!("f{n}")].into_iter());
        }
        assert!(paths.all.len() <= MAX_PATHS && paths.bytes <= MAX_BYTES);
        let counted: u64 = paths.all.iter().map(|path| path.count).sum();
        assert_eq!(counted, 3 * MAX_PATHS as u64);
        assert_eq!(paths.count(["new"].into_iter()).0, other);
        assert_eq!(paths.count(["forward", "f0"].into_iter()).1, 2, "what is known is still told apart");
    }
}

//! Stacks of `--stacks`, counted by their paths until the end of the file: forms that draw flames get them with the time that they
//! represent, and others leave them out.

use std::collections::{BTreeMap, HashMap};

use gnntop_wire::sampled::{self, Figure, ROOT, TRACK_END};
use gnntop_wire::{Definition, Mark, NameKind, TrackId};

/// Most paths that are distinguished, and bytes of their frames.
const MAX_PATHS: usize = 1 << 16;
const MAX_TEXT: usize = 16 << 20;
/// Frames of a stack.
const MAX_DEPTH: usize = 128;
const SECOND_NS: u64 = 1_000_000_000;

/// A path: its caller's, and its frame.
struct Path {
    caller: u64,
    frame: String,
}

/// Stacks of a track that ended at a path.
#[derive(Clone, Copy, Default)]
struct Count {
    /// Before the first one that was read.
    before: u64,
    read: u64,
}

#[derive(Default)]
struct Track {
    counts: BTreeMap<u64, Count>,
    a_second: u64,
}

/// Equal stacks: the phase, the frames from the outermost on, and the time that they represent.
pub(super) struct Stack<'s> {
    pub(super) frames: Vec<&'s str>,
    pub(super) ns: u64,
}

/// The stacks of all tracks.
#[derive(Default)]
pub(super) struct Sampled {
    paths: HashMap<u64, Path>,
    text: usize,
    tracks: BTreeMap<u32, Track>,
}

/// Whether the marks of a track called so are samples.
pub(super) fn is_sampled(title: &str) -> bool {
    title.ends_with(TRACK_END)
}

impl Sampled {
    /// Notes names that represent paths, as far as there is room.
    pub(super) fn define(&mut self, definition: &Definition) {
        let Definition::Name { kind: NameKind::Text, text, .. } = definition else { return };
        let Some((caller, frame)) = sampled::path(text) else { return };
        if self.paths.len() < MAX_PATHS && self.text + frame.len() <= MAX_TEXT {
            self.text += frame.len();
            self.paths.insert(sampled::path_id(text), Path { caller, frame: frame.to_owned() });
        }
    }

    /// Takes a mark whose name has this text; `is_wanted` if it is in the window.
    pub(super) fn mark(&mut self, track: TrackId, text: &str, mark: &Mark, is_wanted: bool) {
        let Some(value) = mark.value.filter(|value| value.is_finite()) else { return };
        let track = self.tracks.entry(track.0).or_default();
        if Figure::ALL.iter().any(|(known, figure)| *known == text && *figure == Figure::ASecond) {
            track.a_second = value as u64;
        }
        let id = sampled::path_id(text);
        if self.paths.contains_key(&id) {
            let is_sample = value > 0.0;
            let before = || Count { before: (value.abs() as u64).saturating_sub(u64::from(is_sample)), read: 0 };
            track.counts.entry(id).or_insert_with(before).read += u64::from(is_sample && is_wanted);
        }
    }

    /// The stacks of each track, those before the first one that was read included where `is_whole`.
    pub(super) fn stacks(&self, is_whole: bool) -> impl Iterator<Item = (TrackId, Vec<Stack<'_>>)> {
        self.tracks.iter().map(move |(id, track)| {
            let interval_ns = SECOND_NS / track.a_second.max(1);
            let stack = |(path, count): (&u64, &Count)| {
                let count = count.read.saturating_add(if is_whole { count.before } else { 0 });
                (count > 0).then(|| Stack { frames: self.frames(*path), ns: count.saturating_mul(interval_ns) })
            };
            (TrackId(*id), track.counts.iter().filter_map(stack).collect())
        })
    }

    fn frames(&self, path: u64) -> Vec<&str> {
        let outwards = std::iter::successors(self.paths.get(&path), |path| {
            if path.caller == ROOT { None } else { self.paths.get(&path.caller) }
        });
        let mut frames: Vec<&str> = outwards.take(MAX_DEPTH).map(|path| path.frame.as_str()).collect();
        frames.reverse();
        frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnntop_wire::NameId;

    /// Defines a path and gives the text of its name.
    fn path(sampled: &mut Sampled, caller: u64, frame: &str) -> String {
        let text = sampled::path_text(caller, frame);
        sampled.define(&Definition::Name { id: NameId(1), kind: NameKind::Text, text: text.clone() });
        text
    }

    fn mark(sampled: &mut Sampled, text: &str, value: f64, is_wanted: bool) {
        let mark = Mark { name: NameId(1), t_ns: 1, value: Some(value) };
        sampled.mark(TrackId(3), text, &mark, is_wanted);
    }

    fn told(sampled: &Sampled, is_whole: bool) -> Vec<(String, u64)> {
        let all = sampled.stacks(is_whole).flat_map(|(_, stacks)| stacks);
        all.map(|stack| (stack.frames.join(";"), stack.ns / 1_000_000)).collect()
    }

    #[test]
    fn counts_before_the_first_one_read_are_of_the_whole_and_of_no_window() {
        let mut sampled = Sampled::default();
        let outer = path(&mut sampled, ROOT, "forward");
        let inner = path(&mut sampled, sampled::path_id(&outer), "f (a.py:1)");
        mark(&mut sampled, "stacks a second", 20.0, false);
        mark(&mut sampled, &inner, -7.0, true);
        mark(&mut sampled, &inner, 8.0, true);
        mark(&mut sampled, &inner, -8.0, true);
        mark(&mut sampled, &inner, 9.0, false);
        assert_eq!(
            told(&sampled, true),
            [("forward;f (a.py:1)".to_owned(), 400)],
            "seven before, one wanted, of 50 ms each"
        );
        assert_eq!(told(&sampled, false), [("forward;f (a.py:1)".to_owned(), 50)]);
    }

    #[test]
    fn what_is_hostile_is_bounded() {
        let mut sampled = Sampled::default();
        (0..2 * MAX_PATHS).for_each(|n| drop(path(&mut sampled, ROOT, &n.to_string())));
        assert_eq!(sampled.paths.len(), MAX_PATHS);
        sampled.paths.insert(7, Path { caller: 7, frame: "calls itself".to_owned() });
        assert_eq!(sampled.frames(7).len(), MAX_DEPTH);
        let cut = sampled::path_text(99, "its caller is missing");
        for value in [f64::NAN, f64::INFINITY, 1e300] {
            mark(&mut sampled, &cut, value, true);
        }
        assert!(told(&sampled, true).is_empty());
    }
}

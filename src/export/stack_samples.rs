//! Stacks of `--stacks`, counted by their paths until the end of the file: forms that draw flames get them with the time that they
//! represent, and others leave them out.

use std::collections::{BTreeMap, HashMap};

use gnntop_wire::{Definition, NameId, NameKind, Sampling, StackSample, TrackId};

/// Most paths that are distinguished, and bytes of their frames.
const MAX_PATHS: usize = 1 << 16;
const MAX_TEXT: usize = 16 << 20;
/// Frames of a stack.
const MAX_DEPTH: usize = 128;
const SECOND_NS: u64 = 1_000_000_000;

/// A path: its caller's, and its frame.
struct StackPath {
    caller: NameId,
    frame: String,
}

/// Stacks of a track that ended at a path.
#[derive(Clone, Copy, Default)]
struct PathCount {
    /// Before the first one that was read.
    before: u64,
    read: u64,
}

#[derive(Default)]
struct SampledTrack {
    counts: BTreeMap<NameId, PathCount>,
    a_second: u64,
}

/// Equal stacks: the phase, the frames from the outermost on, and the time that they represent.
pub(super) struct SampledStack<'s> {
    pub(super) frames: Vec<&'s str>,
    pub(super) ns: u64,
}

/// The stacks of all tracks.
#[derive(Default)]
pub(super) struct StackSamples {
    paths: HashMap<NameId, StackPath>,
    /// The name of the figure of how many stacks are taken a second.
    rate: Option<NameId>,
    text: usize,
    tracks: BTreeMap<u32, SampledTrack>,
}

impl StackSamples {
    /// Notes names that represent paths, as far as there is room.
    pub(super) fn define(&mut self, definition: &Definition) {
        let Definition::Name { id, kind, text } = definition else { return };
        match *kind {
            NameKind::Sampling(Sampling::Rate) => self.rate = Some(*id),
            NameKind::Path(caller) if self.paths.len() < MAX_PATHS && self.text + text.len() <= MAX_TEXT => {
                self.text += text.len();
                self.paths.insert(*id, StackPath { caller, frame: text.clone() });
            }
            _ => (),
        }
    }

    /// Takes a sample; `is_wanted` if it is in the window.
    pub(super) fn add(&mut self, track: TrackId, sample: &StackSample, is_wanted: bool) {
        let StackSample { path, count, is_repeat, .. } = *sample;
        let track = self.tracks.entry(track.0).or_default();
        if self.rate == Some(path) {
            track.a_second = count;
        }
        if self.paths.contains_key(&path) {
            let before = || PathCount { before: count.saturating_sub(u64::from(!is_repeat)), read: 0 };
            track.counts.entry(path).or_insert_with(before).read += u64::from(!is_repeat && is_wanted);
        }
    }

    /// The stacks of each track, those before the first one that was read included where `is_whole`.
    pub(super) fn stacks(&self, is_whole: bool) -> impl Iterator<Item = (TrackId, Vec<SampledStack<'_>>)> {
        self.tracks.iter().map(move |(id, track)| {
            let interval_ns = SECOND_NS / track.a_second.max(1);
            let stack = |(path, count): (&NameId, &PathCount)| {
                let count = count.read.saturating_add(if is_whole { count.before } else { 0 });
                (count > 0).then(|| SampledStack { frames: self.frames(*path), ns: count.saturating_mul(interval_ns) })
            };
            (TrackId(*id), track.counts.iter().filter_map(stack).collect())
        })
    }

    fn frames(&self, path: NameId) -> Vec<&str> {
        let outwards = std::iter::successors(self.paths.get(&path), |path| {
            if path.caller == NameId::NONE { None } else { self.paths.get(&path.caller) }
        });
        let mut frames: Vec<&str> = outwards.take(MAX_DEPTH).map(|path| path.frame.as_str()).collect();
        frames.reverse();
        frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Defines a path.
    fn path(sampled: &mut StackSamples, id: u32, caller: NameId, frame: &str) -> NameId {
        let (id, kind) = (NameId(id), NameKind::Path(caller));
        sampled.define(&Definition::Name { id, kind, text: frame.to_owned() });
        id
    }

    fn take(sampled: &mut StackSamples, path: NameId, count: u64, is_repeat: bool, is_wanted: bool) {
        sampled.add(TrackId(3), &StackSample { path, t_ns: 1, count, is_repeat }, is_wanted);
    }

    fn collect_stacks(sampled: &StackSamples, is_whole: bool) -> Vec<(String, u64)> {
        let all = sampled.stacks(is_whole).flat_map(|(_, stacks)| stacks);
        all.map(|stack| (stack.frames.join(";"), stack.ns / 1_000_000)).collect()
    }

    #[test]
    fn counts_before_first_sample_count_only_for_the_whole() {
        let mut sampled = StackSamples::default();
        let outer = path(&mut sampled, 1, NameId::NONE, "forward");
        let inner = path(&mut sampled, 2, outer, "f (a.py:1)");
        let kind = NameKind::Sampling(Sampling::Rate);
        sampled.define(&Definition::Name { id: NameId(3), kind, text: String::new() });
        take(&mut sampled, NameId(3), 20, false, false);
        take(&mut sampled, inner, 7, true, true);
        take(&mut sampled, inner, 8, false, true);
        take(&mut sampled, inner, 8, true, true);
        take(&mut sampled, inner, 9, false, false);
        assert_eq!(
            collect_stacks(&sampled, true),
            [("forward;f (a.py:1)".to_owned(), 400)],
            "seven before, one wanted, of 50 ms each"
        );
        assert_eq!(collect_stacks(&sampled, false), [("forward;f (a.py:1)".to_owned(), 50)]);
    }

    #[test]
    fn paths_and_depth_are_bounded() {
        let mut sampled = StackSamples::default();
        (0..2 * MAX_PATHS as u32).for_each(|n| _ = path(&mut sampled, n, NameId::NONE, "f"));
        assert_eq!(sampled.paths.len(), MAX_PATHS);
        sampled.paths.insert(NameId(7), StackPath { caller: NameId(7), frame: "calls itself".to_owned() });
        assert_eq!(sampled.frames(NameId(7)).len(), MAX_DEPTH);
        take(&mut sampled, NameId(u32::MAX), 1, false, true);
        assert!(collect_stacks(&sampled, true).is_empty());
    }
}

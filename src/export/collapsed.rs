//! Collapsed stacks, one a line with the time spent in it and in nothing below it, in microseconds: what flame graph
//! tools read (`flamegraph.pl`, inferno, speedscope).
//!
//! A span is recorded at its end, so the spans inside it come first. A span that may still be inside
//! another one waits in a tree, which is never deeper or wider than one step.

use std::collections::BTreeMap;
use std::io::{self, Write};

use gnntop_wire::TrackId;

use super::format::{Entry, FormatWriter};
use super::stack_samples::SampledStack;

/// Steps are one frame, around their phases.
const STEP: &str = "step";
/// Frames that are distinguished; further ones are [`OTHERS`].
const MAX_FRAMES: usize = 1 << 16;
/// Spans of a track that may wait for the span around them, alone or inside others.
const MAX_WAITING: usize = 1 << 16;
/// Frames of a stack; deeper ones count as time of the innermost.
const MAX_DEPTH: usize = 128;
const OTHERS: &str = "(others)";

/// Time in a frame, and the frames inside of it.
#[derive(Default)]
struct FrameTime {
    total_ns: u64,
    inner: BTreeMap<String, FrameTime>,
}

/// A span that has ended, with the spans inside it.
struct EndedSpan {
    start_ns: u64,
    name: String,
    frame: FrameTime,
    /// Frames on the longest way down from it, itself included.
    depth: usize,
}

#[derive(Default)]
struct CollapsedTrack {
    title: String,
    waiting: Vec<EndedSpan>,
    /// Spans that ended since nothing waited.
    ended: usize,
    frame: FrameTime,
}

pub(super) struct Collapsed<W: Write> {
    out: W,
    tracks: BTreeMap<u32, CollapsedTrack>,
    frames: usize,
}

impl<W: Write> Collapsed<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, tracks: BTreeMap::new(), frames: 0 }
    }
}

impl FrameTime {
    /// Adds another frame's time and the frames inside it, as far as there is room for new ones.
    fn add(&mut self, other: Self, frames: &mut usize) {
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        for (name, inner) in other.inner {
            self.add_inner(name, inner, frames);
        }
    }

    fn add_inner(&mut self, name: String, inner: Self, frames: &mut usize) {
        let name = if *frames < MAX_FRAMES || self.inner.contains_key(&name) { name } else { OTHERS.to_owned() };
        let known = self.inner.entry(name).or_insert_with(|| {
            *frames += 1;
            Self::default()
        });
        known.add(inner, frames);
    }

    /// Writes a line for this frame and for each one inside it. `stack` names it and the frames around it.
    fn write(&self, stack: &str, out: &mut impl Write) -> io::Result<()> {
        let inside: u64 = self.inner.values().map(|inner| inner.total_ns).fold(0, u64::saturating_add);
        let own_us = self.total_ns.saturating_sub(inside) / 1000;
        if own_us > 0 {
            writeln!(out, "{stack} {own_us}")?;
        }
        self.inner.iter().try_for_each(|(name, inner)| inner.write(&format!("{stack};{name}"), out))
    }
}

impl CollapsedTrack {
    fn end(&mut self, name: &str, (start_ns, end_ns): (u64, u64)) {
        let inside = self.waiting.iter().rposition(|ended| ended.start_ns < start_ns).map_or(0, |at| at + 1);
        let mut frame = FrameTime { total_ns: end_ns.saturating_sub(start_ns), inner: BTreeMap::new() };
        // Counted again when they join the track's own frames.
        let (mut uncounted, mut depth) = (0, 1);
        for ended in self.waiting.drain(inside..).filter(|ended| ended.depth < MAX_DEPTH) {
            depth = depth.max(ended.depth + 1);
            frame.add_inner(ended.name, ended.frame, &mut uncounted);
        }
        self.waiting.push(EndedSpan { start_ns, name: name.to_owned(), frame, depth });
        self.ended += 1;
    }

    /// No later span can be around what waits.
    fn settle(&mut self, frames: &mut usize) {
        for ended in self.waiting.drain(..) {
            self.frame.add_inner(ended.name, ended.frame, frames);
        }
        self.ended = 0;
    }
}

/// A name as a frame: semicolons part frames, a space parts the number, and a line ends.
fn frame_name(name: &str) -> String {
    name.replace(';', ":").replace(['\n', '\r'], " ")
}

impl<W: Write> FormatWriter for Collapsed<W> {
    fn track(&mut self, track: TrackId, title: &str) -> io::Result<()> {
        self.tracks.entry(track.0).or_default().title = frame_name(title);
        Ok(())
    }

    fn entry(&mut self, track: TrackId, entry: &Entry<'_>) -> io::Result<()> {
        let (name, is_step) = match entry {
            Entry::Span { name, .. } => (frame_name(name), false),
            Entry::Step { .. } => (STEP.to_owned(), true),
            _ => return Ok(()),
        };
        let track = self.tracks.entry(track.0).or_default();
        track.end(&name, entry.time_ns());
        if is_step || track.ended == MAX_WAITING {
            track.settle(&mut self.frames);
        }
        Ok(())
    }

    fn stacks(&mut self, track: TrackId, title: &str, stacks: &[SampledStack<'_>]) -> io::Result<()> {
        let track = self.tracks.entry(track.0).or_default();
        track.title = frame_name(title);
        for SampledStack { frames, ns } in stacks {
            let mut stack = FrameTime { total_ns: *ns, inner: BTreeMap::new() };
            for name in frames.iter().skip(1).rev() {
                stack = FrameTime { total_ns: *ns, inner: BTreeMap::from([(frame_name(name), stack)]) };
            }
            let outermost = frames.first().map_or(OTHERS, |name| name);
            track.frame.add_inner(frame_name(outermost), stack, &mut self.frames);
        }
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        for track in self.tracks.values_mut() {
            track.settle(&mut self.frames);
            track.frame.inner.iter().try_for_each(|(name, frame)| {
                let stack = format!("{};{name}", track.title);
                frame.write(&stack, &mut self.out)
            })?;
        }
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnntop_wire::{BatchShape, NameId, Span, Step, StepId};

    fn span(name: &str, start_ns: u64, end_ns: u64) -> Entry<'_> {
        Entry::Span { name, is_phase: true, span: Span { name: NameId(1), start_ns, end_ns, step: StepId(1) } }
    }

    fn step(start_ns: u64, end_ns: u64) -> Entry<'static> {
        let batch = BatchShape::default();
        Entry::Step { step: Step { step: StepId(1), epoch: 0, start_ns, end_ns, batch, ..Step::default() } }
    }

    fn written(entries: &[Entry<'_>]) -> String {
        let mut out = Vec::new();
        let mut collapsed = Collapsed::new(&mut out);
        collapsed.track(TrackId(1), "main; 1").unwrap();
        entries.iter().for_each(|entry| collapsed.entry(TrackId(1), entry).unwrap());
        collapsed.end().unwrap();
        drop(collapsed);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn frame_times_are_own_times_and_add_up() {
        let one = |t: u64| {
            let forward = [span("layer 0", t + 1_000, t + 4_000), span("forward", t, t + 10_000)];
            forward.into_iter().chain([span("backward", t + 10_000, t + 30_000), step(t, t + 31_000)])
        };
        let entries: Vec<Entry<'_>> = one(0).chain(one(50_000)).chain([span("save", 90_000, 95_000)]).collect();
        let expected = "main: 1;save 5\nmain: 1;step 2\nmain: 1;step;backward 40\nmain: 1;step;forward 14\n\
                        main: 1;step;forward;layer 0 6\n";
        assert_eq!(written(&entries), expected);
    }

    #[test]
    fn overlapping_spans_become_siblings() {
        let expected = "main: 1;a 10\nmain: 1;b 15\n";
        assert_eq!(written(&[span("a", 0, 10_000), span("b", 5_000, 20_000)]), expected);
    }

    #[test]
    fn deep_nesting_is_cut_off() {
        let tower: Vec<Entry<'_>> = (1..200_000).map(|n| span("in", 1_000_000 - n, 1_000_000 + n * 1_000)).collect();
        let deepest = written(&tower).lines().map(|line| line.matches(';').count()).max();
        assert_eq!(deepest, Some(MAX_DEPTH));
    }

    #[test]
    fn frame_count_is_bounded() {
        let names: Vec<String> = (0..MAX_FRAMES + 10).map(|n| format!("n{n}")).collect();
        let spans = names.iter().zip(0..).map(|(name, n)| span(name, n * 2_000, n * 2_000 + 1_000));
        let text = written(&spans.collect::<Vec<_>>());
        assert_eq!(text.lines().count(), MAX_FRAMES + 1);
        assert!(text.contains("main: 1;(others) 10\n"), "{}", &text[..200]);
    }
}

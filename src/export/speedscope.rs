//! speedscope's JSON: an evented profile for each track, see `file-format-spec.ts` of that project.
//!
//! A profile's events are in one piece of the file and must nest, so spans are held until the end, [`MAX_SPANS`] at
//! most, which is more than speedscope opens. Spans of a track that overlap without nesting go to a further profile
//! of that track. Times count from the first span, since JavaScript's numbers do not hold larger ones exactly.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

use gnntop_wire::TrackId;

use super::definitions::Interner;
use super::format::{Entry, FormatWriter, Lanes, MAX_LANES, json};
use super::stack_samples::SampledStack;

/// Spans held, 24 bytes each.
const MAX_SPANS: usize = 4_000_000;
/// Steps are one frame: their time adds up, their phases are inside.
const STEP: &str = "step";

#[derive(Clone, Copy)]
struct SpeedscopeSlice {
    start_ns: u64,
    end_ns: u64,
    frame: u32,
}

#[derive(Default)]
struct SpeedscopeTrack {
    title: String,
    slices: Vec<SpeedscopeSlice>,
}

/// The events of one profile, and the slices that are open at its end.
#[derive(Default)]
struct Profile {
    events: Vec<(bool, u32, u64)>,
    open: Vec<SpeedscopeSlice>,
}

/// Stacks that were taken all the time, each with its frames from the outermost on and the time that it represents.
struct SampledProfile {
    title: String,
    stacks: Vec<(Vec<u32>, u64)>,
}

pub(super) struct Speedscope<W: Write> {
    out: W,
    frames: Interner,
    tracks: BTreeMap<u32, SpeedscopeTrack>,
    sampled: Vec<SampledProfile>,
    spans: usize,
    max_spans: usize,
}

impl<W: Write> Speedscope<W> {
    pub(super) fn new(out: W) -> Self {
        Self {
            out,
            frames: Interner::default(),
            tracks: BTreeMap::new(),
            sampled: Vec::new(),
            spans: 0,
            max_spans: MAX_SPANS,
        }
    }

    fn slice(&mut self, track: TrackId, name: &str, (start_ns, end_ns): (u64, u64)) -> io::Result<()> {
        if self.spans == self.max_spans {
            let spans = self.max_spans;
            return Err(io::Error::other(format!(
                "speedscope opens no more than {spans} spans: export fewer with --steps or --from and --until"
            )));
        }
        self.spans += 1;
        let (frame, _) = self.frames.intern(name)?;
        let slices = &mut self.tracks.entry(track.0).or_default().slices;
        slices.push(SpeedscopeSlice { start_ns, end_ns: end_ns.max(start_ns), frame });
        Ok(())
    }

    fn write_profile(&mut self, title: &str, events: &[(bool, u32, u64)], first_ns: u64) -> io::Result<()> {
        let at = |event: Option<&(bool, u32, u64)>| event.map_or(0, |event| event.2 - first_ns);
        let (start, end) = (at(events.first()), at(events.last()));
        let head = "{\"type\":\"evented\",\"unit\":\"nanoseconds\",\"name\":";
        write!(self.out, "{head}{},\"startValue\":{start},\"endValue\":{end},\"events\":[", json(title))?;
        for (nth, (opens, frame, t_ns)) in events.iter().enumerate() {
            let (comma, kind) = (if nth == 0 { "" } else { "," }, if *opens { 'O' } else { 'C' });
            write!(self.out, "{comma}{{\"type\":\"{kind}\",\"frame\":{frame},\"at\":{}}}", t_ns - first_ns)?;
        }
        self.out.write_all(b"]}")
    }

    fn write_sampled(&mut self, profile: &SampledProfile) -> io::Result<()> {
        let SampledProfile { title, stacks } = profile;
        let all_ns: u64 = stacks.iter().map(|(_, ns)| *ns).fold(0, u64::saturating_add);
        let head = "{\"type\":\"sampled\",\"unit\":\"nanoseconds\",\"name\":";
        let samples = serde_json::to_string(&stacks.iter().map(|(frames, _)| frames).collect::<Vec<_>>())?;
        let weights = serde_json::to_string(&stacks.iter().map(|(_, ns)| *ns).collect::<Vec<_>>())?;
        let range = format!("\"startValue\":0,\"endValue\":{all_ns}");
        write!(self.out, "{head}{},{range},\"samples\":{samples},\"weights\":{weights}}}", json(title))
    }

    fn write_frames(&mut self) -> io::Result<()> {
        let frames: Vec<String> = self.frames.all().iter().map(|name| format!("{{\"name\":{}}}", json(name))).collect();
        write!(self.out, "],\n\"shared\":{{\"frames\":[{}]}}}}\n", frames.join(","))
    }
}

impl Profile {
    /// Adds a slice that is inside the slices that are open when it begins.
    fn add(&mut self, slice: SpeedscopeSlice) {
        self.close_until(slice.start_ns);
        self.events.push((true, slice.frame, slice.start_ns));
        self.open.push(slice);
    }

    fn close_until(&mut self, t_ns: u64) {
        while let Some(inner) = self.open.pop_if(|inner| inner.end_ns <= t_ns) {
            self.events.push((false, inner.frame, inner.end_ns));
        }
    }
}

/// Distributes slices over as few profiles as their nesting allows, the first one first.
fn profiles(slices: &mut [SpeedscopeSlice], step: Option<u32>) -> io::Result<Vec<Profile>> {
    // A step begins with its first phase and is around it even if both last equally long.
    slices.sort_by_key(|slice| (slice.start_ns, Reverse(slice.end_ns), Some(slice.frame) != step));
    let (mut lanes, mut profiles) = (Lanes::default(), Vec::<Profile>::new());
    for slice in slices {
        let lane = lanes.place(slice.start_ns, slice.end_ns);
        if lane + 1 == MAX_LANES {
            let message = format!("{MAX_LANES} or more spans of a track overlap: speedscope cannot show them");
            return Err(io::Error::other(message));
        }
        profiles.resize_with(profiles.len().max(lane + 1), Profile::default);
        if let Some(profile) = profiles.get_mut(lane) {
            profile.add(*slice);
        }
    }
    profiles.iter_mut().for_each(|profile| profile.close_until(u64::MAX));
    Ok(profiles)
}

impl<W: Write> FormatWriter for Speedscope<W> {
    fn track(&mut self, track: TrackId, title: &str) -> io::Result<()> {
        title.clone_into(&mut self.tracks.entry(track.0).or_default().title);
        Ok(())
    }

    fn entry(&mut self, track: TrackId, entry: &Entry<'_>) -> io::Result<()> {
        match entry {
            Entry::Span { name, .. } => self.slice(track, name, entry.time_ns()),
            Entry::Step { .. } => self.slice(track, STEP, entry.time_ns()),
            _ => Ok(()),
        }
    }

    fn stacks(&mut self, _track: TrackId, title: &str, stacks: &[SampledStack<'_>]) -> io::Result<()> {
        let mut profile = SampledProfile { title: title.to_owned(), stacks: Vec::new() };
        for SampledStack { frames, ns } in stacks {
            let numbers: io::Result<Vec<u32>> = frames.iter().map(|name| Ok(self.frames.intern(name)?.0)).collect();
            profile.stacks.push((numbers?, *ns));
        }
        if !profile.stacks.is_empty() {
            self.sampled.push(profile);
        }
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        let step = self.frames.get(STEP);
        let tracks = std::mem::take(&mut self.tracks);
        let first_ns = tracks.values().flat_map(|track| &track.slices).map(|slice| slice.start_ns).min().unwrap_or(0);
        let head = "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"gnntop\",";
        write!(self.out, "{head}\"profiles\":[")?;
        let mut is_first = true;
        for mut track in tracks.into_values() {
            for (nth, profile) in profiles(&mut track.slices, step)?.iter().enumerate() {
                self.out.write_all(if std::mem::take(&mut is_first) { b"\n" } else { b",\n" })?;
                let title = if nth == 0 { track.title.clone() } else { format!("{} ({})", track.title, nth + 1) };
                self.write_profile(&title, &profile.events, first_ns)?;
            }
        }
        for profile in std::mem::take(&mut self.sampled) {
            self.out.write_all(if std::mem::take(&mut is_first) { b"\n" } else { b",\n" })?;
            self.write_sampled(&profile)?;
        }
        self.write_frames()?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(start_ns: u64, end_ns: u64, frame: u32) -> SpeedscopeSlice {
        SpeedscopeSlice { start_ns, end_ns, frame }
    }

    #[test]
    fn overlapping_spans_get_another_profile() {
        let mut slices = vec![slice(0, 10, 0), slice(5, 15, 1), slice(6, 9, 2), slice(10, 12, 3), slice(11, 11, 4)];
        let profiles = profiles(&mut slices, None).unwrap();
        let events: Vec<_> = profiles.iter().map(|profile| profile.events.clone()).collect();
        let first = [(true, 0, 0), (true, 2, 6), (false, 2, 9), (false, 0, 10), (true, 3, 10), (true, 4, 11)];
        assert_eq!(events[0][..6], first);
        assert_eq!(events[0][6..], [(false, 4, 11), (false, 3, 12)]);
        assert_eq!(events[1..], [vec![(true, 1, 5), (false, 1, 15)]]);
    }

    #[test]
    fn too_many_spans_are_refused() {
        let mut out = Vec::new();
        let mut form = Speedscope { max_spans: 2, ..Speedscope::new(&mut out) };
        form.slice(TrackId(1), "a", (0, 1)).unwrap();
        form.slice(TrackId(1), "a", (1, 2)).unwrap();
        let refusal = form.slice(TrackId(1), "a", (2, 3)).unwrap_err().to_string();
        assert!(refusal.contains("no more than 2 spans: export fewer with --steps"), "{refusal}");
        let mut overlapping: Vec<SpeedscopeSlice> = (0..100).map(|n| slice(n, 200 + n, 0)).collect();
        assert!(profiles(&mut overlapping, None).is_err());
    }
}

//! Takes what a source yields and writes it in a format.

use std::collections::HashSet;
use std::io::{self, Write};
use std::ops::RangeInclusive;

use gnntop_wire::{Counter, DeviceSpan, Event, Events, Item, Mark, NameId, NameKind, Sample, Span, TrackId};

use super::definitions::Definitions;
use super::format::{Entry, FormatWriter};
use super::stack_samples::StackSamples;
use super::{chrome, collapsed, hlog, parquet, perfetto, rows, speedscope};
use gnntop_analysis::stream::Sink;

/// Tracks that are exported; events of further ones are counted as left out.
const MAX_TRACKS: usize = 1 << 12;

/// A form that a recording can be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// Perfetto's protobuf, for ui.perfetto.dev and its trace processor.
    Perfetto,
    /// Chrome's JSON, for chrome://tracing and everything that reads it.
    Chrome,
    /// One event a line, for a sheet.
    Csv,
    /// One event a line as JSON.
    Ndjson,
    /// One event a row, in typed columns.
    Parquet,
    /// HdrHistogram's interval log, version 2: a histogram of steps and one of each phase in every interval.
    Hlog {
        /// Length of an interval in nanoseconds, not 0.
        interval_ns: u64,
    },
    /// speedscope's JSON: a flame chart for each track.
    Speedscope,
    /// One stack a line with its time, for flame graphs.
    Collapsed,
}

impl ExportFormat {
    /// All formats, with the name of each and the size of an export relative to the recording: a little more
    /// than the labelled recordings give, 0 where it stays small.
    pub const ALL: [(&'static str, Self, u64); 8] = [
        ("perfetto", Self::Perfetto, 9),
        ("chrome", Self::Chrome, 23),
        ("csv", Self::Csv, 13),
        ("ndjson", Self::Ndjson, 25),
        ("parquet", Self::Parquet, 4),
        ("hlog", Self::Hlog { interval_ns: 1_000_000_000 }, 0),
        ("speedscope", Self::Speedscope, 10),
        ("collapsed", Self::Collapsed, 0),
    ];
}

/// Takes what a source yields and writes it in a format.
pub struct Exporter<'w> {
    format: Box<dyn FormatWriter + 'w>,
    window_ns: RangeInclusive<u64>,
    definitions: Definitions,
    begun: HashSet<TrackId>,
    sampled: StackSamples,
    written: u64,
    left_out: u64,
    error: Option<io::Error>,
}

impl<'w> Exporter<'w> {
    /// An exporter of everything that is, wholly or partly, in `window_ns` on the publisher's clock.
    pub fn new(form: ExportFormat, out: impl Write + Send + 'w, window_ns: RangeInclusive<u64>) -> Self {
        let format: Box<dyn FormatWriter + 'w> = match form {
            ExportFormat::Perfetto => Box::new(perfetto::Perfetto::new(out)),
            ExportFormat::Chrome => Box::new(chrome::Chrome::new(out)),
            ExportFormat::Csv => Box::new(rows::EventCsv::new(out)),
            ExportFormat::Ndjson => Box::new(rows::Ndjson::new(out)),
            ExportFormat::Parquet => Box::new(parquet::Parquet::new(out)),
            ExportFormat::Hlog { interval_ns } => Box::new(hlog::Hlog::new(out, interval_ns)),
            ExportFormat::Speedscope => Box::new(speedscope::Speedscope::new(out)),
            ExportFormat::Collapsed => Box::new(collapsed::Collapsed::new(out)),
        };
        Self {
            format,
            window_ns,
            definitions: Definitions::default(),
            begun: HashSet::new(),
            sampled: StackSamples::default(),
            written: 0,
            left_out: 0,
            error: None,
        }
    }

    /// Ends the file. Returns how many events were written, and how many could not be since what they refer to is
    /// not known.
    ///
    /// # Errors
    /// When anything could not be written, now or before.
    pub fn finish(mut self) -> io::Result<(u64, u64)> {
        match self.error.take() {
            Some(error) => Err(error),
            None => {
                let is_whole = self.window_ns == (0..=u64::MAX);
                for (track, stacks) in self.sampled.stacks(is_whole) {
                    self.format.stacks(track, &self.definitions.title(track), &stacks)?;
                    self.written += stacks.len() as u64;
                }
                self.format.end().map(|()| (self.written, self.left_out))
            }
        }
    }

    /// Takes the events of a block.
    fn write_all(&mut self, track: TrackId, events: &mut Events<'_>) -> io::Result<()> {
        events.try_for_each(|event| match event {
            Event::StackSample(sample) => {
                self.sampled.add(track, &sample, self.window_ns.contains(&sample.t_ns));
                Ok(())
            }
            event => self.write(track, &event),
        })
    }

    fn write(&mut self, track: TrackId, event: &Event) -> io::Result<()> {
        if !is_exportable(event) {
            return Ok(());
        }
        let mut composed = String::new();
        let has_room = self.begun.len() < MAX_TRACKS || self.begun.contains(&track);
        let entry = to_entry(&self.definitions, event, &mut composed).filter(|_| has_room);
        let Some(entry) = entry else {
            self.left_out += 1;
            return Ok(());
        };
        let (start_ns, end_ns) = entry.time_ns();
        if end_ns < *self.window_ns.start() || start_ns > *self.window_ns.end() {
            return Ok(());
        }
        if self.begun.insert(track) {
            self.format.track(track, &self.definitions.title(track))?;
        }
        self.written += 1;
        self.format.entry(track, &entry)
    }
}

/// Whether these formats can say it. They have no place for what is open, absent or allocated. A whole step of the device has no
/// name, and its spans must not be taken for the host's.
fn is_exportable(event: &Event) -> bool {
    match event {
        Event::DeviceSpan(span) => span.name != NameId::NONE,
        Event::Span(_) | Event::Step(_) | Event::Counter(_) | Event::Mark(_) | Event::StackFrame(_) => true,
        Event::Rival(_) | Event::Sample(_) => true,
        _ => false,
    }
}

/// The event with its names, where they are defined. A text that is made of one is put into `composed`.
fn to_entry<'a>(definitions: &'a Definitions, event: &Event, composed: &'a mut String) -> Option<Entry<'a>> {
    let named = |name: NameId| definitions.name(name);
    let mark = |name, t_ns, value| Some(Entry::Mark { name, t_ns, value });
    match event {
        Event::DeviceSpan(DeviceSpan { name, start_ns, end_ns, step, .. }) => {
            *composed = format!("{} (device clock)", named(*name)?.1);
            let span = Span { name: *name, start_ns: *start_ns, end_ns: *end_ns, step: *step };
            Some(Entry::Span { name: composed, is_phase: false, span })
        }
        Event::Span(span) => {
            let (kind, name) = named(span.name)?;
            Some(Entry::Span { name, is_phase: kind == NameKind::Phase, span: *span })
        }
        Event::Step(step) => Some(Entry::Step { step: *step }),
        Event::Counter(Counter { name, t_ns, value }) => {
            Some(Entry::Counter { name: named(*name)?.1, t_ns: *t_ns, value: *value })
        }
        Event::Mark(Mark { name, t_ns, value, took_ns: None }) => mark(named(*name)?.1, *t_ns, *value),
        // These formats know one number of a mark. Its unit is in its text.
        Event::Mark(Mark { name, t_ns, took_ns: Some(ns), .. }) => {
            *composed = format!("{} (ms)", named(*name)?.1);
            mark(composed, *t_ns, Some(*ns as f64 / 1e6))
        }
        Event::StackFrame(frame) => mark(named(frame.name)?.1, frame.t_ns, Some(f64::from(frame.depth))),
        Event::Rival(rival) => {
            *composed = rival.describe(named(rival.name)?.1);
            mark(composed, rival.t_ns, Some(rival.cores))
        }
        Event::Sample(Sample { signal, t_ns, value }) => {
            let (name, unit) = definitions.signal(signal.0)?;
            Some(Entry::Sample { name, unit, t_ns: *t_ns, value: *value })
        }
        _ => None,
    }
}

impl Sink for Exporter<'_> {
    fn apply(&mut self, item: Item<'_>) {
        match item {
            _ if self.error.is_some() => (),
            Item::Segment(info) => self.format.session(&info),
            Item::Definitions(definitions) => {
                definitions.iter().for_each(|new| self.sampled.define(new));
                definitions.into_iter().for_each(|new| self.definitions.define(new));
            }
            Item::Block(info, mut events) => {
                let written = self.write_all(info.track, &mut events);
                self.error = written.and_then(|()| self.format.block_end()).err();
            }
            _ => (),
        }
    }

    fn reset(&mut self) {}
}

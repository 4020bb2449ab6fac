//! Takes what a source yields and writes it in a format.

use std::collections::HashSet;
use std::io::{self, Write};
use std::ops::RangeInclusive;

use gnntop_wire::{DeviceSpan, Event, Events, Item, NameId, NameKind, Span, TrackId};

use super::definitions::Definitions;
use super::format::{Entry, Format};
use super::sampled::Sampled;
use super::{chrome, collapsed, hlog, parquet, perfetto, rows, speedscope};
use gnntop_analysis::stream::Sink;

/// Tracks that are exported; events of further ones are counted as left out.
const MAX_TRACKS: usize = 1 << 12;

/// A form that a recording can be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
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

impl Form {
    /// All formats, with the name of each and the size of an export relative to the recording: a little more
    /// than the labelled recordings give, 0 where it stays small.
    pub const ALL: [(&'static str, Self, u64); 8] = [
        ("perfetto", Self::Perfetto, 6),
        ("chrome", Self::Chrome, 15),
        ("csv", Self::Csv, 9),
        ("ndjson", Self::Ndjson, 17),
        ("parquet", Self::Parquet, 3),
        ("hlog", Self::Hlog { interval_ns: 1_000_000_000 }, 0),
        ("speedscope", Self::Speedscope, 6),
        ("collapsed", Self::Collapsed, 0),
    ];
}

/// Takes what a source yields and writes it in a format.
pub struct Exporter<'w> {
    format: Box<dyn Format + 'w>,
    window_ns: RangeInclusive<u64>,
    definitions: Definitions,
    begun: HashSet<TrackId>,
    sampled: Sampled,
    written: u64,
    left_out: u64,
    error: Option<io::Error>,
}

impl<'w> Exporter<'w> {
    /// An exporter of everything that is, wholly or partly, in `window_ns` on the publisher's clock.
    pub fn new(form: Form, out: impl Write + Send + 'w, window_ns: RangeInclusive<u64>) -> Self {
        let format: Box<dyn Format + 'w> = match form {
            Form::Perfetto => Box::new(perfetto::Perfetto::new(out)),
            Form::Chrome => Box::new(chrome::Chrome::new(out)),
            Form::Csv => Box::new(rows::Csv::new(out)),
            Form::Ndjson => Box::new(rows::Ndjson::new(out)),
            Form::Parquet => Box::new(parquet::Parquet::new(out)),
            Form::Hlog { interval_ns } => Box::new(hlog::Hlog::new(out, interval_ns)),
            Form::Speedscope => Box::new(speedscope::Speedscope::new(out)),
            Form::Collapsed => Box::new(collapsed::Collapsed::new(out)),
        };
        Self {
            format,
            window_ns,
            definitions: Definitions::default(),
            begun: HashSet::new(),
            sampled: Sampled::default(),
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
                self.sampled.take(track, &sample, self.window_ns.contains(&sample.t_ns));
                Ok(())
            }
            event => self.write(track, &event),
        })
    }

    fn write(&mut self, track: TrackId, event: &Event) -> io::Result<()> {
        let named = |name: &NameId| self.definitions.name(*name);
        let (on_device, other);
        let entry = match event {
            // A whole step of the device has no name, and its spans must not be taken for the host's.
            Event::DeviceSpan(span) if span.name == NameId::NONE => return Ok(()),
            Event::DeviceSpan(DeviceSpan { name, start_ns, end_ns, step, .. }) => match named(name) {
                Some((_, text)) => {
                    on_device = format!("{text} (device clock)");
                    let span = Span { name: *name, start_ns: *start_ns, end_ns: *end_ns, step: *step };
                    Some(Entry::Span { name: &on_device, is_phase: false, span })
                }
                None => None,
            },
            Event::Span(span) => named(&span.name).map(|(kind, name)| Entry::Span {
                name,
                is_phase: kind == NameKind::Phase,
                span: *span,
            }),
            Event::Step(step) => Some(Entry::Step { step: *step }),
            Event::Counter(counter) => {
                named(&counter.name).map(|(_, name)| Entry::Counter { name, t_ns: counter.t_ns, value: counter.value })
            }
            Event::Mark(mark) => {
                let took_ms = mark.took_ns.map(|ns| ns as f64 / 1e6);
                named(&mark.name).map(|(_, name)| Entry::Mark { name, t_ns: mark.t_ns, value: mark.value.or(took_ms) })
            }
            Event::StackFrame(frame) => {
                let value = Some(f64::from(frame.depth));
                named(&frame.name).map(|(_, name)| Entry::Mark { name, t_ns: frame.t_ns, value })
            }
            Event::Rival(rival) => match named(&rival.name) {
                Some((_, command)) => {
                    other = rival.in_words(command);
                    Some(Entry::Mark { name: &other, t_ns: rival.t_ns, value: Some(rival.cores) })
                }
                None => None,
            },
            Event::Sample(sample) => self.definitions.signal(sample.signal.0).map(|(name, unit)| Entry::Sample {
                name,
                unit,
                t_ns: sample.t_ns,
                value: sample.value,
            }),
            // These formats have no place for what is open, absent or allocated.
            _ => return Ok(()),
        };
        let has_room = self.begun.len() < MAX_TRACKS || self.begun.contains(&track);
        let Some(entry) = entry.filter(|_| has_room) else {
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

//! HdrHistogram's interval log, version 2 with deflate: for each interval a histogram of the steps that ended in it,
//! without a tag, and one of each phase, with the phase's name as its tag.
//!
//! The form is that of the Java library's `HistogramLogWriter`, which its `HistogramLogProcessor` reads: header lines,
//! a legend, and lines in the order of time. Tracks are read block by block and are some seconds apart, so the newest
//! [`OPEN_INTERVALS`] are kept open.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::{Duration, UNIX_EPOCH};

use gnntop_wire::{Anchor, SessionInfo, TrackId};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, IntervalLogWriterError, Tag};

use super::format::{Entry, FormatWriter};
use gnntop_analysis::store::{LONGEST_NS, SIGNIFICANT_DIGITS};

/// Intervals that still take durations; later durations count to the oldest of them.
const OPEN_INTERVALS: usize = 8;
/// Tags in an interval, whose histograms take up to 140 KB each; the durations of further phases count to [`OTHER`].
const MAX_TAGS: usize = 64;
const OTHER: &str = "(other)";
const LEGEND: &str = "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"";

/// Durations by tag; steps have the empty one.
type Interval = BTreeMap<String, Histogram<u32>>;

pub(super) struct Hlog<W: Write> {
    out: W,
    serializer: V2DeflateSerializer,
    interval_ns: u64,
    start: Option<Anchor>,
    has_head: bool,
    open: BTreeMap<u64, Interval>,
    /// Intervals before this one are written.
    oldest_open: u64,
}

impl<W: Write> Hlog<W> {
    pub(super) fn new(out: W, interval_ns: u64) -> Self {
        let serializer = V2DeflateSerializer::new();
        let interval_ns = interval_ns.max(1);
        Self { out, serializer, interval_ns, start: None, has_head: false, open: BTreeMap::new(), oldest_open: 0 }
    }

    fn record(&mut self, tag: &str, (start_ns, end_ns): (u64, u64)) -> io::Result<()> {
        let begin_ns = self.start.map_or(0, |start| start.monotonic_ns);
        let at = (end_ns.saturating_sub(begin_ns) / self.interval_ns).max(self.oldest_open);
        let interval = self.open.entry(at).or_default();
        let tag = if interval.len() < MAX_TAGS || interval.contains_key(tag) { tag } else { OTHER };
        if !interval.contains_key(tag) {
            let histogram = Histogram::new(SIGNIFICANT_DIGITS).map_err(io::Error::other)?;
            interval.insert(tag.to_owned(), histogram);
        }
        let ns = end_ns.saturating_sub(start_ns).min(LONGEST_NS);
        if let Some(histogram) = interval.get_mut(tag) {
            histogram.record(ns).map_err(io::Error::other)?;
        }
        Ok(())
    }

    /// Writes all intervals but the newest `kept`.
    fn write_all_but(&mut self, kept: usize) -> io::Result<()> {
        self.head()?;
        while self.open.len() > kept
            && let Some((at, interval)) = self.open.pop_first()
        {
            self.oldest_open = at.saturating_add(1);
            self.write_interval(at, &interval)?;
        }
        Ok(())
    }

    fn write_interval(&mut self, at: u64, interval: &Interval) -> io::Result<()> {
        let length = Duration::from_nanos(self.interval_ns);
        let start = Duration::from_nanos(at.saturating_mul(self.interval_ns));
        let mut log = IntervalLogWriterBuilder::new().begin_log_with(&mut self.out, &mut self.serializer)?;
        for (tag, histogram) in interval {
            let tag = Tag::new(tag).filter(|tag| !tag.is_empty());
            log.write_histogram(histogram, start, length, tag).map_err(|error| match error {
                IntervalLogWriterError::IoError(error) => error,
                IntervalLogWriterError::SerializeError(error) => io::Error::other(error),
            })?;
        }
        Ok(())
    }

    fn head(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.has_head, true) {
            return Ok(());
        }
        let mut head = IntervalLogWriterBuilder::new();
        head.add_comment("[Histogram log format version 1.3]");
        head.add_comment("[Durations in nanoseconds: steps without a tag, phases by theirs. Written by gnntop]");
        if let Some(start) = self.start.filter(|start| start.wall_ns > 0) {
            let start = UNIX_EPOCH + Duration::from_nanos(start.wall_ns);
            head.with_start_time(start).with_base_time(start);
        }
        head.begin_log_with(&mut self.out, &mut self.serializer)?;
        writeln!(self.out, "{LEGEND}")
    }
}

impl<W: Write> FormatWriter for Hlog<W> {
    fn session(&mut self, info: &SessionInfo) {
        if !self.has_head && self.open.is_empty() {
            self.start = Some(info.start);
        }
    }

    fn track(&mut self, _track: TrackId, _title: &str) -> io::Result<()> {
        Ok(())
    }

    fn entry(&mut self, _track: TrackId, entry: &Entry<'_>) -> io::Result<()> {
        match entry {
            Entry::Span { name, is_phase: true, .. } => self.record(&tag(name), entry.time_ns()),
            Entry::Step { .. } => self.record("", entry.time_ns()),
            _ => Ok(()),
        }?;
        // A block may hold hours of a sparse track.
        if self.open.len() > 2 * OPEN_INTERVALS { self.write_all_but(OPEN_INTERVALS) } else { Ok(()) }
    }

    fn block_end(&mut self) -> io::Result<()> {
        if self.open.len() > OPEN_INTERVALS { self.write_all_but(OPEN_INTERVALS) } else { Ok(()) }
    }

    fn end(&mut self) -> io::Result<()> {
        self.write_all_but(0)?;
        self.out.flush()
    }
}

/// A phase's name without what separates the fields of a line.
fn tag(name: &str) -> String {
    let tag: String =
        name.chars().map(|c| if c == ',' || c.is_whitespace() || c.is_control() { '_' } else { c }).collect();
    if tag.is_empty() { "_".to_owned() } else { tag }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the intervals begin, in seconds, and their tags, by line.
    fn lines(log: &[u8]) -> Vec<(f64, String)> {
        let text = String::from_utf8(log.to_vec()).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with(['#', '"']));
        lines
            .map(|line| {
                let (tag, rest) = line.strip_prefix("Tag=").and_then(|line| line.split_once(',')).unwrap_or(("", line));
                (rest.split(',').next().unwrap().parse().unwrap(), tag.to_owned())
            })
            .collect()
    }

    #[test]
    fn lines_are_in_time_order_with_few_open_intervals() {
        let mut out = Vec::new();
        let mut log = Hlog::new(&mut out, 1_000_000_000);
        for second in [5, 3, 9, 4, 20, 1_000_000, 7, u64::MAX / 1_000_000_000] {
            log.record("a", (0, second * 1_000_000_000)).unwrap();
            log.write_all_but(2).unwrap();
            assert!(log.open.len() <= 2);
        }
        log.end().unwrap();
        drop(log);
        let starts: Vec<f64> = lines(&out).into_iter().map(|line| line.0).collect();
        assert!(starts.is_sorted(), "{starts:?}");
        assert_eq!(starts[..6], [3.0, 4.0, 5.0, 9.0, 10.0, 20.0], "the 7 comes too late and counts to the 10");
        assert_eq!(starts.len(), 8);
    }

    #[test]
    fn phases_beyond_the_limit_share_a_tag() {
        let mut out = Vec::new();
        let mut log = Hlog::new(&mut out, 1_000_000_000);
        for phase in 0..1000 {
            log.record(&tag(&format!("phase {phase}")), (0, 7)).unwrap();
        }
        log.end().unwrap();
        drop(log);
        let lines = lines(&out);
        assert_eq!(lines.len(), MAX_TAGS + 1);
        assert!(lines.iter().any(|line| line.1 == OTHER) && lines.iter().any(|line| line.1 == "phase_17"));
    }
}

//! What is known of the recordings played together before they are read: when the first of them begins and the last one
//! ends, on one clock.

use std::path::{Path, PathBuf};

use gnntop_wire::SessionInfo;

use super::super::chunks::Chunks;
use super::super::outline::{Outline, TimeSpan};
use super::super::recording::{Recording, RecordingError};
use crate::stream::align;

/// Events this close before a position may not be due, so summaries must not cover them.
const READ_BEFORE_NS: u64 = 3_000_000_000;

/// An outline for each recording; none for a pipe or a session's directory.
pub(super) struct Outlines(Vec<Option<Outline>>);

impl Outlines {
    /// Scans the files at `paths`.
    pub(super) fn scan(paths: &[PathBuf]) -> Self {
        let outline = |path: &PathBuf| if path == Path::new("-") { None } else { Recording::outline(path) };
        Self(paths.iter().map(outline).collect())
    }

    /// The best chunk after which to begin reading recording `at` for a position, in nanoseconds from the first instant of
    /// all; `None` for its beginning.
    pub(super) fn chunk_before_position(&self, at: usize, position_ns: u64) -> Option<(&Chunks, usize)> {
        let outline = self.0.get(at)?.as_ref().filter(|outline| outline.parts.len() == 1)?;
        let offset_ns = offset_ns(outline, self.0.iter().flatten().next()?.reference.as_ref());
        let t_ns = self.span()?.first_ns.saturating_add(position_ns).saturating_add_signed(offset_ns.saturating_neg());
        let chunks = outline.chunks.as_ref()?;
        Some((chunks, chunks.before_time(t_ns.saturating_sub(READ_BEFORE_NS))?))
    }

    /// The best chunk after which to begin reading the first recording to find this step.
    pub(super) fn chunk_before_step(&self, step: u64) -> Option<(&Outline, &Chunks, usize)> {
        let outline = self.0.first()?.as_ref().filter(|outline| outline.parts.len() == 1)?;
        let chunks = outline.chunks.as_ref()?;
        Some((outline, chunks, chunks.before_step(step)?))
    }

    /// In the order of the files.
    pub(super) fn all(&self) -> &[Option<Outline>] {
        &self.0
    }

    /// An error if one of several files is of another run than the first.
    pub(super) fn refuse_other_runs(&self, paths: &[PathBuf]) -> Result<(), RecordingError> {
        let run = |outline: &Option<Outline>| Some(outline.as_ref()?.reference.as_ref()?.place.as_ref()?.run.clone());
        let (Some(first), Some(path)) = (self.0.first(), paths.first()) else { return Ok(()) };
        let is_other = |outline: &Option<Outline>| run(outline).is_none() || run(outline) != run(first);
        match self.0.iter().skip(1).position(is_other).and_then(|at| paths.get(at + 1)) {
            Some(other) => {
                Err(RecordingError::OtherRun { path: path.display().to_string(), other: other.display().to_string() })
            }
            None => Ok(()),
        }
    }

    /// Whether one file has parts that must be read in parallel.
    pub(super) fn has_several_parts(&self) -> bool {
        self.0.iter().flatten().any(|outline| outline.parts.len() > 1)
    }

    /// The first instant of all, on the clock of the first session, and that session.
    pub(super) fn start(&self) -> Option<(u64, Option<SessionInfo>)> {
        let reference = self.0.iter().flatten().next()?.reference.clone();
        Some((self.span()?.first_ns, reference))
    }

    /// When the first recording begins, from the first instant of all.
    pub(super) fn first_start_ns(&self) -> u64 {
        let first = self.0.first().and_then(Option::as_ref).map(|outline| outline.span.first_ns);
        first.zip(self.span()).map_or(0, |(first_ns, span)| first_ns.saturating_sub(span.first_ns))
    }

    /// Total length; `None` if nothing has a time.
    pub(super) fn total_ns(&self, paths: &[PathBuf]) -> Option<u64> {
        let alone = || if let [path] = paths { Recording::time_span(path) } else { None };
        self.span().or_else(alone).map(|span| span.last_ns - span.first_ns)
    }

    /// First and last instant of all, on the clock of the first session.
    fn span(&self) -> Option<TimeSpan> {
        let reference = self.0.iter().flatten().next()?.reference.as_ref();
        let on_common_clock = |outline: &Outline| {
            let offset_ns = offset_ns(outline, reference);
            let TimeSpan { first_ns, last_ns } = outline.span;
            (first_ns.saturating_add_signed(offset_ns), last_ns.saturating_add_signed(offset_ns))
        };
        let spans = self.0.iter().flatten().map(on_common_clock);
        let (first_ns, last_ns) = spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
        Some(TimeSpan { first_ns, last_ns: last_ns.max(first_ns) })
    }
}

/// To be added to a recording's times to get those of this session.
fn offset_ns(outline: &Outline, reference: Option<&SessionInfo>) -> i64 {
    outline.reference.as_ref().zip(reference).map_or(0, |(session, reference)| align(session, reference).offset_ns)
}

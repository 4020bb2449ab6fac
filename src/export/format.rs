//! The input of every format: entries of tracks, with what their ids mean.

use std::io;

use super::stack_samples::SampledStack;
use gnntop_wire::{SessionInfo, Span, Step, TrackId, Unit};

/// One event with what its ids mean. Times are nanoseconds of the publisher's clock.
#[derive(Clone, Copy, Debug)]
pub(super) enum Entry<'a> {
    Span { name: &'a str, is_phase: bool, span: Span },
    Step { step: Step },
    Counter { name: &'a str, t_ns: u64, value: f64 },
    Mark { name: &'a str, t_ns: u64, value: Option<f64> },
    Sample { name: &'a str, unit: Unit, t_ns: u64, value: i64 },
}

impl Entry<'_> {
    /// When it begins and ends.
    pub(super) fn time_ns(&self) -> (u64, u64) {
        match self {
            Self::Span { span, .. } => (span.start_ns, span.end_ns),
            Self::Step { step } => (step.start_ns, step.end_ns),
            Self::Counter { t_ns, .. } | Self::Mark { t_ns, .. } | Self::Sample { t_ns, .. } => (*t_ns, *t_ns),
        }
    }
}

/// Writes entries.
pub(super) trait FormatWriter {
    /// The session whose events follow; called at the beginning of every segment.
    fn session(&mut self, _info: &SessionInfo) {}
    /// A track, before its first entry.
    fn track(&mut self, track: TrackId, title: &str) -> io::Result<()>;
    /// An entry of a track.
    fn entry(&mut self, track: TrackId, entry: &Entry<'_>) -> io::Result<()>;
    /// The entries of a block are through.
    fn block_end(&mut self) -> io::Result<()> {
        Ok(())
    }
    /// Stacks that were taken of a track all the time: a form that has no place for them leaves them out. Comes last.
    fn stacks(&mut self, _track: TrackId, _title: &str, _stacks: &[SampledStack<'_>]) -> io::Result<()> {
        Ok(())
    }
    /// Nothing more follows.
    fn end(&mut self) -> io::Result<()>;
}

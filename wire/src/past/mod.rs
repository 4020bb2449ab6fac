//! The remains of the segments that a session dropped: figures over the whole time before, and over slices of it.
//!
//! A publisher that drops its oldest segment first adds it to these, so that they and the segments that follow cover the
//! whole run, and nothing twice. Only the data is here; `gnntop-history` computes it.

mod durations;
mod entry;
mod put;
mod read;
mod readings;

pub use durations::{Durations, FINE_BITS, LONGEST_NS, SLICE_BITS};
pub use entry::{DurationSeries, PastEntry, PastTotals, Slice, SlowStep, StepFigures, Sum, TrackEnd, Unfinished};
pub use put::put_past;
pub(crate) use read::parse_past;
pub use readings::Readings;

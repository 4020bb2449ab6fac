//! Everything known about one session, in bounded memory.
//!
//! A [`Store`] receives the items of one stream through [`Store::apply`], whether of a live session or a recording. It
//! never trusts the stream: ids index bounded tables, times may go backwards, and what does not fit is counted in [`Losses`].
//!
//! ```text
//! Item ─▶ feed.rs ─▶ contents.rs: the Store ─┬─ session.rs   who publishes, clocks, state
//!                                            ├─ ids/         what ids mean: names, phases
//!                                            ├─ attempts.rs  starts of a run; restarting.rs: the next one; translation.rs: its ids and times
//!                                            ├─ tracks.rs    the threads and streams that events are on
//!                                            ├─ steps/       tiling ─▶ rows ─▶ older ones reduced; figures, columns for bars;
//!                                            │               the device's steps, by its clock
//!                                            ├─ spans/       durations by name; each track's spans as boxes in time
//!                                            ├─ signals/     series of readings ─▶ resampled for charts; energy counters as curves
//!                                            ├─ memory/      allocations; trends
//!                                            ├─ instants.rs  marks
//!                                            ├─ stacks.rs    where the program was when it took too long
//!                                            └─ losses.rs    what is missing
//!                    derived/ ─▶ computed from all that on request: hardware for people, marks by text, memory growth,
//!                                device memory, throughput, energy under assumptions
//! ```
//!
//! The modules depend on each other in one direction: `ids/`, `spans/` and `signals/` at the bottom, on them `steps/` and
//! `memory/`, then `tracks.rs`, `contents.rs` and `feed.rs`, and `derived/` on top. Lanes and series keep the newest data
//! in full, `history.rs` holds what is left of the rest, and `limits.rs` says how much that is.

mod attempts;
mod contents;
mod derived;
mod device_spans;
mod feed;
mod history;
mod ids;
mod instants;
mod limits;
mod losses;
mod memory;
mod past;
mod restarting;
mod sampled_stacks;
mod session;
mod signals;
mod spans;
mod stacks;
mod steps;
#[cfg(test)]
mod tests;
mod tracks;
mod translation;

pub use attempts::{Attempt, Attempts};
pub use contents::{PastExtent, Store};
pub use derived::device_memory::DeviceMemory;
pub use derived::growth::{Growth, GrowthSource};
pub use derived::hardware::{Absence, CpuUse, HardwareReadings, HardwareValue, RATE_WINDOW_NS, THROTTLE_REASONS};
pub use derived::logged::LoggedValue;
pub use derived::marks::{MarkTotals, describe_place};
pub use derived::progress::RunProgress;
pub use derived::restarts::{Outage, Restarts};
pub use derived::stacks::StackTree;
pub use derived::throughput::Throughput;
pub use ids::phases::{GAP, MAX_PHASES, Phase, PhaseSlot};
pub use instants::{Marks, Newest, StoredMark, Timed};
pub use limits::{EventSelection, Limits};
pub use losses::{Loss, Losses};
pub use memory::allocations::{Allocated, Memory, Peak, StepEnd};
pub use memory::trend::{FEWEST_POINTS, Trend};
pub use sampled_stacks::SampledStacks;
pub use session::{ClockStep, SessionState, StoredSession};
pub use signals::course::{Course, TimedValue};
pub use signals::resample::{Bin, TimeColumns};
pub use signals::series::{Point, Series, Summary, Value};
pub use signals::signal::{CounterSeries, Signal, Signals};
pub use spans::distribution::{Distribution, LONGEST_NS, SIGNIFICANT_DIGITS, SpanStatistics};
pub use spans::lanes::{Busy, Lane, LaneBox, Reduced};
pub use stacks::{Stack, Stacks};
pub use steps::columns::StepColumn;
pub use steps::device::DeviceTime;
pub use steps::measure::StepMeasure;
pub use steps::reduced_steps::{PastSlowStep, SlowSteps};
pub use steps::statistics::{BatchTotals, StepStatistics, Total};
pub use steps::step_row::StepRow;
pub use steps::table::StepTable;
pub use tracks::Track;

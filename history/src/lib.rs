//! What remains of a run when its events are dropped: figures in bounded memory that add up.
//!
//! ```text
//! items of a stream ─▶ Digest ─┬─ tiling.rs    a step's wall time by phase; the store uses the same code
//!                              ├─ slices.rs    seconds, and minutes made of them
//!                              ├─ slowest.rs   the slowest steps of each hour, with their spans
//!                              └─ series.rs    durations over the whole time
//!                                 │
//!                                 ▼
//!                 entries of `gnntop_wire::past`, ready to be written; merge.rs halves old ones,
//!                 window.rs cuts out a part
//! ```
//!
//! Nothing here knows of threads, files or clocks.

mod digest;
mod merge;
mod readings;
mod resume;
mod series;
mod slices;
mod slowest;
#[cfg(test)]
mod tests;
mod tiling;
mod tracks;
mod window;

pub use digest::{Closed, Digest};
pub use merge::coarsen;
pub use slices::{MINUTE_NS, SECOND_NS};
pub use slowest::{HOUR_NS, SLOWEST_AN_HOUR};
pub use tiling::{MAX_PHASES, Tiled, Tiling, WaitingPhases};
pub use window::PastWindow;

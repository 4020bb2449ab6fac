//! What several sessions of one run show together: arithmetic over their stores, without drawing or reading.
//!
//! ```text
//! Run (run.rs: a store a session) ─▶ Ranks (rank.rs: the current session of each rank, and whether it runs)
//!                                      ├─ divided.rs    a run that two threads have read
//!                                      ├─ energy.rs     of all of them, each machine once
//!                                      ├─ CommonStep     one step on every rank
//!                                      ├─ work.rs       who waits for whom, and how much work the run does
//!                                      ├─ strip.rs      a rank's phases in time, waiting shown separately
//!                                      ├─ pipeline.rs   a step of a pipeline, by schedule.rs and by what was measured
//!                                      ├─ watchdog.rs   whether the run advances, and who holds it up; hang.rs: in words
//!                                      ├─ lone_hang.rs  the same of a process that is no rank of several
//!                                      └─ facts.rs      what ranks publish about themselves
//! ```

#[cfg(test)]
mod attempts_tests;
mod divided;
mod energy;
pub mod facts;
#[cfg(test)]
pub(crate) mod fixture;
pub mod hang;
pub mod lone_hang;
pub mod pipeline;
mod rank;
mod run;
pub mod schedule;
mod strip;
pub mod watchdog;
mod work;

pub use energy::RunEnergy;
pub use rank::{CommonStep, Presence, Rank, Ranks};
pub use run::{Run, RunMember};
pub use strip::{Activity, StripColumn, strip};
pub use work::{MAX_COMMON_STEPS, RankStep, RankWork, RunWork, StepWork, quantile};

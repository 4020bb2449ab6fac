//! Instruments a training loop for `gnntop`: link this crate, mark the loop's steps and phases, and attach at any time.
//!
//! ```no_run
//! use gnntop_probe::{Session, TrackRole, phase, span, step};
//!
//! let session = Session::builder("my training").start();
//! let _track = session.track("train", TrackRole::Training);
//! for batch in 0..1000 {
//!     let mut step = step(0); // epoch 0
//!     { let _wait = span(&phase::DATA_WAIT); /* next batch */ }
//!     { let _forward = span(&phase::FORWARD); /* model and loss */ }
//!     { let _backward = span(&phase::BACKWARD); /* gradients */ }
//!     step.loss(1.0 / f64::from(batch + 1));
//! }
//! ```
//!
//! Then, in another terminal: `gnntop attach`.
//!
//! # What it promises the program
//! - It never waits. Each thread writes into its own ring; a full ring drops the newest event and counts it. Steps
//!   have places of their own, which no flood of marks or phases takes.
//! - It never grows. A ring takes 512 KiB, reserved when its track opens; the drain thread keeps under 2 MiB, and up to 8
//!   more in a run of weeks, for the figures of dropped segments.
//! - It never fails. If nothing can be published, the program gets one warning ([`SessionBuilder::on_warning`]) and
//!   continues.
//! - It never notices viewers. They follow files that are written whether or not anyone looks.
//! - It does not wait for a GPU either: [`device`] times one by its own clock, and measures its memory by phase.
//! - `GNNTOP=0` in the environment turns everything off; a span then costs one relaxed load.
//!
//! A forked child records nothing and leaves its parent's session alone; it may start its own.

// The examples of the README are compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod accounts;
mod allocator;
mod clock;
pub mod device;
mod drain;
pub mod foreign;
mod fork;
mod host;
mod launched;
mod names;
mod outage;
mod output;
mod past;
pub mod phase;
mod prune;
mod publisher;
mod requests;
mod ring;
mod rivals;
mod sensing;
mod session;
mod settings;
mod source;
mod switch;
mod threads;
mod timer;
#[cfg(feature = "tracing")]
mod tracing_layer;
mod track;
mod usage;
mod warning;

pub use allocator::TrackingAllocator;
pub use gnntop_sensors::{SensorOptions, monotonic_ns};
pub use gnntop_wire::{
    BatchShape, ClockOffset, Engine, Fact, Framework, FrameworkName, Goal, GoalUnit, Mode, NameId, NameKind, Origin,
    Place, RankKind, Reported, Sampling, StackThread, TrackRole, WaitingCall,
};
pub use host::host_identity;
pub use launched::Launched;
pub use names::{Name, NameRef, OVERFLOW, intern};
pub use session::{Session, SessionBuilder};
#[cfg(feature = "tracing")]
pub use tracing_layer::TracingLayer;
pub use track::{Opener, Span, Step, Track, after, counter, mark, opener, set_step, span, step, timed_mark, track};
pub use warning::Warning;

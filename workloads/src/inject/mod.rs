//! Causes of slowness on demand: `--inject` makes a training run do something besides its work, so that it is known
//! what a profiler should find.
//!
//! ```text
//! --inject stall:130ms@every=40 ─▶ parse.rs ─▶ Injection ─▶ injector.rs, around every step ─▶ causes.rs
//! ```
//!
//! Every cause really happens: the thread sleeps, pages are touched, memory is kept, cores are kept busy. Without
//! `--inject`, nothing is done around a step.

mod causes;
mod injection;
mod injector;
mod parse;

pub(crate) use injection::{ALONE, HELP, loader_delay};
pub use injection::{Cause, ChargedTo, Injection, When};
pub(crate) use injector::Injector;

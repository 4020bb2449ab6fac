//! Analyses training runs: reads gnntop's sessions and recordings and works out what a run did. The `gnntop` program is
//! built on this crate; other programs can read recordings with it too.
//!
//! ```text
//!  a live session │ a recording │ a run of several ranks │ sensors alone
//!         ▼
//!      source ── items, a few at a time ──▶ stream::Sink ──▶ recorder ─▶ a recording
//!                                              ▼
//!  energy ─ joules from readings ─▶ store: everything known about one session, in bounded memory
//!                                     ▼
//!                                   ranks: a run, a store for each of its sessions
//!                                     ▼
//!                                   findings: what is slow, with evidence and its numbers
//!                                     ▼
//!                                   catalogue: every number of a run, by name
//!                                     ▼
//!                                   comparison: which of two sides gets its work done faster
//!                                   many_runs: a few figures of each of hundreds of runs, at a bounded cost
//!
//!  figures: numbers for people, used by all of them
//! ```
//!
//! Each module knows only those below it. A source passes items to a `stream::Sink`; a store, a run and a recorder are
//! sinks, and none of them knows the source.
//!
//! Nothing here knows of a terminal, prints or exits.

pub mod catalogue;
pub mod comparison;
pub mod energy;
pub mod figures;
pub mod findings;
pub mod many_runs;
pub mod ranks;
pub mod recorder;
pub mod source;
pub mod store;
pub mod stream;

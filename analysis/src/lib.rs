//! Analyses training runs: reads gnntop's sessions and recordings and works out what a run did. The `gnntop` program is
//! built on this crate; other programs can read recordings with it too.
//!
//! ```text
//! comparison                    two runs, or several a side: which gets its work done faster
//! catalogue                     every number of a run, by name
//!    │
//! findings                      what is slow, as text, with evidence
//!    │
//! ranks                         a run: a store for each of its sessions, and arithmetic over all of them
//!    │
//! store                         everything known about one session, in bounded memory
//!    │
//! energy                        arithmetic alone: joules from counter readings, models, carbon
//!    │          source          a live session, a recording, a run of several ranks, or sensors alone
//!    │          recorder        writes what a source passes on into a recording
//! figures       stream          numbers for people; what receives the items of a stream, and offsets between clocks
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
pub mod ranks;
pub mod recorder;
pub mod source;
pub mod store;
pub mod stream;

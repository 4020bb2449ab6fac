//! What lies between the stream and the screen: reads gnntop's sessions and recordings and works out what a training
//! run did. The `gnntop` program is built on it; other programs can read recordings with it too.
//!
//! ```text
//! comparison                    two runs, or several a side: which gets its work done faster
//!    │
//! findings                      what is slow, in words, with evidence
//!    │
//! ranks                         a run: a store for each of its sessions, and arithmetic over all of them
//!    │
//! store                         all that is known of one session, in bounded memory
//!    │
//! energy                        arithmetic alone: joules from counter readings, models, carbon
//!    │          source          a live session, a recording, a run of several ranks, or sensors alone
//!    │          recorder        writes what a source hands over into a recording
//! figures       stream          numbers for people; what takes in the items of a stream, and how clocks lie to each other
//! ```
//!
//! Each knows only what stands below it. A source hands items to a `stream::Sink`, which a store, a run and a recorder are:
//! none of the three knows the source.
//!
//! Nothing here knows a terminal, prints or exits.

pub mod comparison;
pub mod energy;
pub mod figures;
pub mod findings;
pub mod ranks;
pub mod recorder;
pub mod source;
pub mod store;
pub mod stream;

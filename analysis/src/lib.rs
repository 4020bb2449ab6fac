//! What lies between the stream and the screen: reads gnntop's sessions and recordings and works out what a training
//! run did. The `gnntop` program is built on it; other programs can read recordings with it too.
//!
//! ```text
//! source ─▶ recorder            a live session, a recording, a run of several ranks, or sensors alone
//!    ▼
//! store ◀── energy              all that is known of one session, in bounded memory; joules from counter readings
//!    ▼
//! ranks                         a run: a store for each of its sessions, and arithmetic over all of them
//!    ▼
//! findings                      what is slow, in words, with evidence
//! ```
//!
//! Nothing here knows a terminal, prints or exits.

pub mod energy;
pub mod figures;
pub mod findings;
pub mod ranks;
pub mod recorder;
pub mod source;
pub mod store;

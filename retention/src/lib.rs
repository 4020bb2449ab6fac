//! Lists and removes ended sessions in the directory of all sessions. The publisher does so when a session begins,
//! `gnntop clean` on request.
//!
//! What is removed must be proved to be a dead session of this user: its name is the one that its first segment gives
//! it, everything in it is a file that [`layout`](gnntop_wire::layout) knows, all of it belongs to this user, and no
//! process holds the lock, on a file system on which this machine would see that. Anything else stays, such as a copy
//! that a person made, and [`Doubt`] says why.
//!
//! Every name is looked up inside a directory that is already open, and never through a link, so that nothing outside
//! it can be reached, whatever others do to it in the meantime.

mod content;
mod doubt;
mod place;
mod sessions;

pub use doubt::Doubt;
pub use sessions::{Idle, Look, Sessions};

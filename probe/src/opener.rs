//! How threads that nobody hands a session open tracks on one.

use std::sync::Weak;

use gnntop_wire::TrackRole;

use crate::publisher::Publisher;
use crate::track::{self, Track};

/// Opens tracks on one session from any thread: hand one to the threads that a rank starts. See [`opener`].
#[derive(Clone)]
pub struct Opener {
    publisher: Weak<Publisher>,
}

impl Opener {
    /// Opens a track for the calling thread, as [`Session::track`](crate::Session::track) does: on this session, or once that is over on the
    /// one started last. Records nothing when there is none.
    pub fn track(&self, name: &str, role: TrackRole) -> Track {
        // In a forked child the session that the thread recorded to is its parent's.
        let own = self.publisher.upgrade().filter(|publisher| publisher.is_of_this_process());
        own.or_else(Publisher::latest).map_or_else(Track::inert, |publisher| Track::open(&publisher, name, role))
    }
}

impl std::fmt::Debug for Opener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opener").field("is_publishing", &(self.publisher.strong_count() > 0)).finish()
    }
}

/// What opens tracks on the session that the calling thread records to, or without one on the session that was
/// started last when a track is opened.
pub fn opener() -> Opener {
    Opener { publisher: track::current_publisher().unwrap_or_default() }
}

/// Opens a track on the session that [`opener`] finds: for libraries and worker threads that nobody hands a
/// [`Session`](crate::Session). Records nothing when there is none.
pub fn track(name: &str, role: TrackRole) -> Track {
    opener().track(name, role)
}

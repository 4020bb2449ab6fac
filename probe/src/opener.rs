//! Opens tracks on threads that are not handed a session.

use std::sync::Weak;

use gnntop_wire::TrackRole;

use crate::publisher::Publisher;
use crate::track::{self, Track};

/// Opens tracks on one session from any thread; give one to the threads that a rank starts. See [`opener`].
#[derive(Clone)]
pub struct Opener {
    publisher: Weak<Publisher>,
}

impl Opener {
    /// Opens a track for the calling thread, like [`Session::track`](crate::Session::track): on this session, or if that
    /// has ended, on the one started last. Records nothing without a session.
    pub fn track(&self, name: &str, role: TrackRole) -> Track {
        // In a forked child, this session is the parent's.
        let own = self.publisher.upgrade().filter(|publisher| publisher.is_of_this_process());
        own.or_else(Publisher::latest).map_or_else(Track::inert, |publisher| Track::open(&publisher, name, role))
    }
}

impl std::fmt::Debug for Opener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opener").field("is_publishing", &(self.publisher.strong_count() > 0)).finish()
    }
}

/// An [`Opener`] for the session that the calling thread records to. Without one, it uses the session started last at the
/// time when a track is opened.
pub fn opener() -> Opener {
    Opener { publisher: track::current_publisher().unwrap_or_default() }
}

/// Opens a track on the session that [`opener`] finds: for libraries and worker threads that are not handed a
/// [`Session`](crate::Session). Records nothing without a session.
pub fn track(name: &str, role: TrackRole) -> Track {
    opener().track(name, role)
}

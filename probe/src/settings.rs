//! How a session writes its stream: the drain thread's settings.

use std::path::PathBuf;
use std::time::Duration;

use gnntop_wire::{Origin, Place};

use crate::requests::OnRequest;
use crate::warning::WarningListener;

/// How a session writes its stream.
pub(crate) struct Settings {
    pub(crate) name: String,
    /// One new file for everything, instead of a session's directory.
    pub(crate) recording: Option<PathBuf>,
    /// Most bytes that a session's directory keeps.
    pub(crate) max_bytes: u64,
    pub(crate) drain_interval: Duration,
    pub(crate) origin: Origin,
    pub(crate) place: Option<Place>,
    pub(crate) on_warning: WarningListener,
    /// Without it, nothing looks for requests.
    pub(crate) on_request: Option<OnRequest>,
}

//! How a session writes its stream: the drain thread's settings, and what the stream says about the session.

use std::path::PathBuf;
use std::time::Duration;

use gnntop_wire::{Origin, Place, SessionInfo};

use crate::host;
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

impl Settings {
    /// What a stream says about its session.
    pub(crate) fn session_info(&self, id: u128) -> SessionInfo {
        let command: Vec<String> = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect();
        SessionInfo {
            session_id: id,
            name: self.name.clone(),
            pid: std::process::id(),
            host: host::name(),
            command: command.join(" "),
            publisher: concat!("gnntop-probe ", env!("CARGO_PKG_VERSION")).to_owned(),
            origin: self.origin,
            boot_id: host::boot_id(),
            start: gnntop_wire::Anchor::default(),
            segment: 0,
            place: self.place.clone().map(Box::new),
        }
    }
}

//! The head of a report: who published what, when.

use std::collections::BTreeMap;

use serde::Serialize;

use gnntop_analysis::store::{SessionState, Store};

/// Who published what, when. Texts are empty where nothing is known.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Session {
    /// The session's name.
    pub name: String,
    /// The session's random id, 32 hexadecimal digits.
    pub session_id: String,
    /// The publishing process.
    pub pid: Option<u32>,
    /// Host name.
    pub host: String,
    /// The program's command line.
    pub command: String,
    /// What published.
    pub publisher: String,
    /// What the program says about itself, such as `framework`; a key `inferred NAME` says how this phase was inferred.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, String>,
    /// `running`, `ended` (normally), `gone` (killed or crashed) or `unknown` (as in a recording that was cut).
    pub state: &'static str,
    /// Why the program died, in a paragraph; `null` if it did not, or the reason is unknown.
    pub died: Option<String>,
    /// The same in a word, such as `out-of-memory` or `exception`.
    pub died_of: Option<String>,
    /// Why the session ended, where it says so.
    pub end_reason: Option<String>,
    /// When what was read begins, in nanoseconds since 1970-01-01 UTC.
    pub begin_unix_ns: Option<u64>,
    /// Time from the earliest to the newest event read.
    pub covered_ns: u64,
}

impl Session {
    pub(in crate::report) fn of(store: &Store) -> Self {
        let session = store.session();
        let info = session.info().cloned().unwrap_or_default();
        let (state, end_reason) = match session.state() {
            SessionState::Unknown => ("unknown", None),
            SessionState::Running => ("running", None),
            SessionState::Gone => ("gone", None),
            SessionState::Ended(end) => ("ended", Some(end.reason.clone()).filter(|reason| !reason.is_empty())),
        };
        Self {
            name: info.name,
            session_id: format!("{:032x}", info.session_id),
            // Imported recordings have no process.
            pid: session.info().map(|info| info.pid).filter(|pid| *pid > 0),
            host: info.host,
            command: info.command,
            publisher: info.publisher,
            facts: session.facts().clone(),
            died: session.died().map(str::to_owned),
            died_of: session.died_of().map(str::to_owned),
            state,
            end_reason,
            begin_unix_ns: store.first_ns().and_then(|first| session.wall_ns(first)),
            covered_ns: store.elapsed_ns(),
        }
    }
}

//! A deep trace that a key has asked for: `gnntop trace`, run beside the screen.

use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};

use gnntop_wire::SessionInfo;

use crate::app::{Action, View};
use crate::platform::process::{in_own_group, interrupt};

/// The `gnntop trace` that runs, if one does. Dropped, it withdraws its request and ends.
#[derive(Debug, Default)]
pub struct TraceProcess(Option<Child>);

impl TraceProcess {
    /// Traces the next steps of a session's program, at once or after a slow step; returns the message about it.
    pub fn begin(&mut self, session: Option<&SessionInfo>, after_slow: bool) -> Action {
        let Some(session) = session else { return Action::Failed("the session is not known yet".to_owned()) };
        if self.0.is_some() {
            return Action::Failed("a trace is already running".to_owned());
        }
        match start(session.pid, after_slow) {
            Ok(child) => {
                self.0 = Some(child);
                Action::Message(if after_slow { "tracing begins after a slow step" } else { "tracing" }.to_owned())
            }
            Err(error) => Action::Failed(format!("cannot start `gnntop trace`: {error}")),
        }
    }

    /// Its result, once it has ended.
    pub fn ended(&mut self) -> Option<Action> {
        let child = self.0.as_mut()?;
        let action = match child.try_wait() {
            Ok(None) => return None,
            Ok(Some(status)) => outcome(child, status),
            Err(error) => Action::Failed(format!("cannot wait for `gnntop trace`: {error}")),
        };
        self.0 = None;
        Some(action)
    }
}

impl Drop for TraceProcess {
    fn drop(&mut self) {
        let Some(child) = &mut self.0 else { return };
        if matches!(child.try_wait(), Ok(None)) {
            interrupt(child);
            let _ = child.wait();
        }
    }
}

fn start(pid: u32, after_slow: bool) -> io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["trace", "--at", if after_slow { "slow" } else { "now" }, &pid.to_string()]);
    in_own_group(&mut command).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()
}

/// Its first line, which names the file or says what went wrong.
fn outcome(child: &mut Child, status: ExitStatus) -> Action {
    let mut said = String::new();
    if let Some(stderr) = &mut child.stderr {
        // The exit code still shows how it ended.
        let _ = stderr.read_to_string(&mut said);
    }
    let line = said.lines().next().unwrap_or_default();
    let line = line.trim_start_matches("gnntop: ").trim_start_matches("error: ");
    match View::Tracks.key() {
        _ if !status.success() => Action::Failed(line.to_owned()),
        Some(key) => Action::Message(format!("{line}; {key} shows its operators here")),
        None => Action::Message(line.to_owned()),
    }
}

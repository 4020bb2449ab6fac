//! What is reported: a line for people, and JSON for programs.

use gnntop_wire::text;
use serde_json::json;

use super::conditions::Cause;
use gnntop_analysis::ranks::Run;

/// One message about a run.
#[derive(Debug)]
pub(super) struct Notice {
    name: String,
    pid: u32,
    host: String,
    session: String,
    step: Option<u64>,
    cause: Cause,
}

impl Notice {
    /// A message about this cause.
    pub(super) fn new(run: &Run, cause: Cause) -> Self {
        let store = run.store();
        let info = store.session().info();
        Self {
            name: info.map_or_else(String::new, |info| clean(&info.name)),
            pid: info.map_or(0, |info| info.pid),
            host: info.map_or_else(String::new, |info| clean(&info.host)),
            session: info.map_or_else(String::new, |info| format!("{:032x}", info.session_id)),
            step: store.steps().last().map(|row| row.step().0),
            cause,
        }
    }

    /// As one line.
    pub(super) fn line(&self) -> String {
        let Self { name, pid, host, .. } = self;
        let at = self.step.map(|step| format!(" at step {step}")).unwrap_or_default();
        format!("{name} (process {pid} on {host}){at}: {}", clean(&self.cause.text))
    }

    /// As an object whose `text` and `content` are what chat services show.
    pub(super) fn json(&self) -> String {
        let lines = |lines: &[String]| lines.iter().map(|line| clean(line)).collect::<Vec<_>>();
        json!({
            "text": self.line(), "content": self.line(), "cause": self.cause.id, "summary": clean(&self.cause.text),
            "evidence": lines(&self.cause.evidence), "advice": lines(&self.cause.advice),
            "name": self.name, "pid": self.pid, "host": self.host, "session": self.session, "step": self.step,
        })
        .to_string()
    }
}

/// In one line, and without what could drive a terminal.
fn clean(text: &str) -> String {
    text.chars().map(|c| if text::is_harmful(c) { ' ' } else { c }).collect()
}

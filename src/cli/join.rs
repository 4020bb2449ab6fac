//! `gnntop attach PID` of a Python that publishes nothing: joins it if possible, and otherwise says why not.

use std::time::Duration;

use gnntop_analysis::source::{Control, Progress, Source, Status};
use gnntop_analysis::stream::Sink;

use super::output;
use crate::python::joining::{JoinError, JoinedPython};
use crate::python::remote::RemoteError;

/// The source of a process, with its Python joined for as long as it is watched.
pub(super) fn join(pid: u32, source: Box<dyn Source>) -> Box<dyn Source> {
    let (joined, hint) = match JoinedPython::join(pid) {
        Ok(joined) => (Some(joined), "joined its Python: steps appear from the next backward pass on".to_owned()),
        Err(JoinError::Remote(RemoteError::NoPython)) => return source,
        Err(error) => (
            None,
            format!(
                "hardware only: {error}; start it with `gnntop run -- python ...`, or add `import gnntop; gnntop.start()` to it"
            ),
        ),
    };
    output::print_note(&format!("process {pid}: {hint}"));
    Box::new(JoinHintSource { source, hint, _joined: joined })
}

/// A source that says, for a program without steps, whether its Python was joined.
struct JoinHintSource {
    source: Box<dyn Source>,
    hint: String,
    _joined: Option<JoinedPython>,
}

impl Source for JoinHintSource {
    fn poll(&mut self, sink: &mut dyn Sink, budget: Duration) -> Progress {
        self.source.poll(sink, budget)
    }

    fn status(&self) -> Status {
        let mut status = self.source.status();
        if let Some(hint) = &mut status.hint {
            self.hint.clone_into(hint);
        }
        status
    }

    fn control(&mut self, control: Control) {
        self.source.control(control);
    }
}

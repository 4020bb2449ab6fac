//! The only thing that a publisher reports to its program: that it cannot publish, and why.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gnntop_sessions::Error;
use gnntop_wire::text;

/// Why nothing is published (any more). The program itself continues as usual.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// The directory for sessions cannot be used.
    #[error("gnntop cannot publish: {path} {problem}; set GNNTOP_DIR to a directory of your own", path = path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it; follows its name in the message.
        problem: String,
    },
    /// A file or directory cannot be created or written.
    #[error("gnntop cannot publish: writing {path} failed: {error}. It will retry", path = path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A recording would overwrite a file.
    #[error("gnntop does not record: {path} already exists", path = path.display())]
    RecordingExists {
        /// The file.
        path: PathBuf,
    },
    /// The file system did not accept the end of the stream in time.
    #[error("gnntop did not finish its stream: the file system did not accept it within {waited:?}")]
    Unfinished {
        /// How long the program waited.
        waited: Duration,
    },
    /// The thread that publishes could not be started.
    #[error("gnntop cannot publish: starting a thread failed: {error}")]
    Thread {
        /// The system's error.
        error: io::Error,
    },
    /// The system's clock is frozen, as under `faketime`: nothing can be timed.
    #[error("gnntop cannot publish: the system's clock is frozen, as under faketime")]
    FrozenClock,
    /// The thread that samples hardware could not be started. Everything else is published.
    #[error("gnntop publishes without hardware readings: starting a thread failed: {error}")]
    SensorThread {
        /// The system's error.
        error: io::Error,
    },
}

impl Warning {
    /// For a file or directory of a session that cannot be used.
    pub(crate) fn unusable(path: &Path, error: Error) -> Self {
        match error {
            Error::Io(error) => Self::Write { path: path.to_owned(), error },
            refused => Self::Directory { path: path.to_owned(), problem: refused.to_string() },
        }
    }
}

/// Called with each warning.
type WarningCallback = dyn FnMut(&Warning) + Send;

/// Receives warnings, from the thread that detects the problem.
#[derive(Clone)]
pub(crate) struct WarningListener(Arc<Mutex<WarningCallback>>);

impl WarningListener {
    pub(crate) fn new(tell: impl FnMut(&Warning) + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(tell)))
    }

    /// A listener that writes a line to stderr.
    pub(crate) fn stderr() -> Self {
        Self::new(|warning| {
            // If stderr is closed, the warning is lost.
            let line: String = text::clean(warning.to_string().as_bytes());
            let _ = writeln!(io::stderr(), "warning: {line}");
        })
    }

    pub(crate) fn notify(&self, warning: &Warning) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)(warning);
    }
}

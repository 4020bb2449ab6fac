//! `gnntop run --record`: follows the session of the program beside the view, on a thread of its own.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;

use super::super::output;
use super::super::record::{Recorded, create};
use gnntop_analysis::recorder::RecorderOptions;
use gnntop_analysis::source::{discover, follow, session_of};

/// Time between two looks at the session.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// After the program's end its session is waited for this long.
const GRACE: Duration = Duration::from_secs(2);

/// The file that will be the recording.
pub(super) struct Recording {
    file: File,
    path: PathBuf,
}

/// A recording that is being written.
pub(super) struct Following {
    path: PathBuf,
    program_ended: Arc<AtomicBool>,
    thread: JoinHandle<anyhow::Result<Option<String>>>,
}

impl Recording {
    /// Makes the file before anything is started, so that a wrong name costs nothing.
    pub(super) fn create(path: &Path, force: bool) -> anyhow::Result<Self> {
        Ok(Self { file: create(path, force)?, path: path.to_owned() })
    }

    /// Starts recording the session of process `pid`, which has started at `since`.
    pub(super) fn follow(self, pid: u32, since: SystemTime) -> anyhow::Result<Following> {
        let program_ended = Arc::new(AtomicBool::new(false));
        let (ended, path, file) = (Arc::clone(&program_ended), self.path, self.file);
        let name = path.display().to_string();
        let follow = move || record(pid, since, file, &name, &ended);
        let thread = thread::Builder::new().name("gnntop recorder".to_owned()).spawn(follow);
        Ok(Following { path, program_ended, thread: thread.context("cannot start the recorder")? })
    }
}

impl Following {
    /// Ends the recording after the program has ended, and says what became of it.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        self.program_ended.store(true, Ordering::Relaxed);
        let result = self.thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("the recorder failed")));
        match result? {
            Some(summary) => output::note(&format!("recorded {summary}")),
            None => {
                // Nothing of this file is worth keeping, and it was made a moment ago.
                let _ = fs::remove_file(&self.path);
                output::complain("warning: the program published nothing, so nothing was recorded");
            }
        }
        Ok(())
    }
}

/// Records until the session ends; `None` where the program ended without having had one.
fn record(
    pid: u32,
    since: SystemTime,
    file: File,
    name: &str,
    program_ended: &AtomicBool,
) -> anyhow::Result<Option<String>> {
    let sessions_dir = discover::sessions_dir();
    let session = loop {
        // Asked before the look, so that a session of a program that has just ended is still found.
        let last_look = program_ended.load(Ordering::Relaxed);
        match session_of(pid, since, &sessions_dir) {
            Some(session) => break session,
            None if last_look => return Ok(None),
            None => thread::sleep(POLL_INTERVAL),
        }
    };
    let mut recording = Recorded::new(follow(&session), file, RecorderOptions::default());
    let mut give_up_at = None;
    while recording.end().is_none() {
        let progress = recording.poll()?;
        if program_ended.load(Ordering::Relaxed) {
            let give_up_at = *give_up_at.get_or_insert_with(|| Instant::now() + GRACE);
            if !progress.more && Instant::now() >= give_up_at {
                break;
            }
        }
        if !progress.more {
            thread::sleep(POLL_INTERVAL);
        }
    }
    recording.finish()?;
    recording.warnings().iter().for_each(|warning| output::complain(&format!("warning: {name}: {warning}")));
    Ok(Some(recording.summary(name)))
}

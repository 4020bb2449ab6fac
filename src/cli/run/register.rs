//! An entry for each program that `gnntop run` has started, beside its log: its keeper, and how it ended. `gnntop stop`
//! and `gnntop attach` find the program there.

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::super::patience::{PATIENCE, within};
use gnntop_analysis::source::Launcher;
use gnntop_analysis::source::process::descends;
use gnntop_sessions::discover::ListedSession;
use gnntop_sessions::{Error, PrivateDir, layout};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

/// Extension of these files.
pub(super) const EXTENSION: &str = "run";
/// Longest file that is read.
const MAX_LEN: u64 = 64 * 1024;

/// The entry of a program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in super::super) struct ProgramEntry {
    /// Its name.
    pub(in super::super) name: String,
    /// Its process.
    pub(in super::super) program: u32,
    /// The process of its keeper.
    keeper: u32,
    pub(in super::super) command: String,
    /// Seconds since 1970.
    pub(in super::super) started_s: u64,
    /// Where its output is.
    pub(in super::super) log: Option<PathBuf>,
    /// What it is recorded into.
    pub(in super::super) recording: Option<PathBuf>,
    /// Its exit code, once it has ended.
    pub(in super::super) code: Option<u8>,
}

/// The entry of a program that is being kept, locked as long as its keeper lives.
pub(super) struct ProgramRegistration {
    entry: ProgramEntry,
    /// If the entry cannot be written, or its file system hangs, the program runs without one.
    file: Option<(File, PrivateDir, String)>,
}

impl ProgramRegistration {
    pub(super) fn new(
        name: &str,
        program: u32,
        command: &[OsString],
        log: Option<&Path>,
        recording: Option<&Path>,
    ) -> Self {
        let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
        let entry = ProgramEntry {
            name: name.to_owned(),
            program,
            keeper: std::process::id(),
            command: words.join(" "),
            started_s: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
            log: log.map(Path::to_owned),
            recording: recording.and_then(|path| std::path::absolute(path).ok()),
            code: None,
        };
        let name = format!("gnntop-{program}-{}.{EXTENSION}", entry.started_s);
        let file = within(PATIENCE, move || create(name).ok()).flatten();
        let mut registered = Self { entry, file };
        registered.write();
        registered
    }

    /// The program has ended.
    pub(super) fn set_exit_code(&mut self, code: u8) {
        self.entry.code = Some(code);
        self.write();
    }

    fn write(&mut self) {
        let Some((mut file, dir, name)) = self.file.take() else { return };
        let Ok(text) = serde_json::to_vec(&self.entry) else { return };
        let write = move || {
            let len = text.len() as u64;
            if file.rewind().and_then(|()| file.write_all(&text)).and_then(|()| file.set_len(len)).is_err() {
                // Half an entry would be useless.
                let _ = dir.remove(&name);
            }
            (file, dir, name)
        };
        self.file = within(PATIENCE, write);
    }
}

/// Creates a file that is locked until it is closed, in the directory of sessions.
fn create(name: String) -> Result<(File, PrivateDir, String), Error> {
    let dir = PrivateDir::open(&layout::sessions_dir())?;
    let file = dir.create_file(&name)?;
    file.lock()?;
    Ok((file, dir, name))
}

/// The programs of this user that `gnntop run` has started, the newest first, and whether each is still kept.
pub(in super::super) fn entries() -> Vec<(ProgramEntry, bool)> {
    let Ok(dir) = PrivateDir::open(&layout::sessions_dir()) else { return Vec::new() };
    let names = dir.names().unwrap_or_default();
    let is_one = |name: &&str| Path::new(name).extension().is_some_and(|extension| extension == EXTENSION);
    let names = names.iter().filter_map(|name| name.to_str()).filter(is_one);
    let mut entries: Vec<_> = names.filter_map(|name| read(&dir, name)).collect();
    entries.sort_by_key(|(entry, _)| std::cmp::Reverse(entry.started_s));
    entries
}

/// The newest entry of the program that is, or has started, this process.
pub(in super::super) fn find_by_process(pid: u32) -> Option<ProgramEntry> {
    let is_it = |entry: &ProgramEntry, is_kept: bool| entry.program == pid || is_kept && descends(pid, entry.program);
    entries().into_iter().find(|(entry, is_kept)| is_it(entry, *is_kept)).map(|(entry, _)| entry)
}

/// Who started this process.
pub(in super::super) fn launcher(pid: u32) -> Launcher {
    if find_by_process(pid).is_some() { Launcher::Gnntop } else { Launcher::Other }
}

/// The programs that are kept and have none of these sessions: those that publish nothing, or nothing yet.
pub(in super::super) fn unpublished(sessions: &[ListedSession]) -> Vec<ProgramEntry> {
    let alive: Vec<u32> = sessions.iter().filter(|session| session.alive).map(|session| session.info.pid).collect();
    let publishes = |entry: &ProgramEntry| alive.iter().any(|pid| descends(*pid, entry.program));
    let kept = entries().into_iter().filter(|(entry, is_kept)| *is_kept && entry.code.is_none());
    kept.map(|(entry, _)| entry).filter(|entry| !publishes(entry)).collect()
}

fn read(dir: &PrivateDir, name: &str) -> Option<(ProgramEntry, bool)> {
    let file = dir.read(name).ok()?;
    let mut text = Vec::new();
    (&file).take(MAX_LEN).read_to_end(&mut text).ok()?;
    let is_kept = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    Some((serde_json::from_slice(&text).ok()?, is_kept))
}

impl ProgramEntry {
    /// Its label in messages, like a session's: `pna (pid 4711)`.
    pub(in super::super) fn label(&self) -> String {
        format!("{} (pid {})", self.name, self.program)
    }

    /// Whether it is kept at this moment.
    pub(in super::super) fn is_kept(&self) -> bool {
        let is_this = |entry: &ProgramEntry| (entry.program, entry.keeper) == (self.program, self.keeper);
        self.code.is_none()
            && entries().iter().any(|(entry, is_kept)| *is_kept && entry.code.is_none() && is_this(entry))
    }

    /// Sends a signal to its keeper, which passes it on.
    ///
    /// # Errors
    /// If it is no longer kept, or the system refuses.
    pub(in super::super) fn signal(&self, signal: Signal) -> io::Result<()> {
        let keeper = i32::try_from(self.keeper).ok().and_then(Pid::from_raw);
        // The held lock proves that this process is still the keeper, and not a later one with its id.
        let keeper = keeper.filter(|_| self.is_kept()).ok_or(rustix::io::Errno::SRCH)?;
        Ok(kill_process(keeper, signal)?)
    }
}

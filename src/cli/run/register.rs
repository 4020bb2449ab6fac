//! An entry for each program that `gnntop run` has started, beside its log: its keeper, and how it ended. `gnntop stop`
//! and `gnntop attach` find the program there.

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::super::patience::{PATIENCE, within};
use super::path_bytes;
use super::pid_space::{PidSpace, ProcessProof, Whereabouts};
use gnntop_analysis::source::Launcher;
use gnntop_analysis::source::process::descends;
use gnntop_sessions::discover::ListedSession;
use gnntop_sessions::{Error, PrivateDir, layout};
use gnntop_wire::SessionInfo;
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
    #[serde(with = "path_bytes")]
    pub(in super::super) log: Option<PathBuf>,
    /// What it is recorded into.
    #[serde(with = "path_bytes")]
    pub(in super::super) recording: Option<PathBuf>,
    /// Its exit code, once it has ended.
    pub(in super::super) code: Option<u8>,
    /// What tells its processes from others with the same ids.
    #[serde(default)]
    proof: Option<ProcessProof>,
}

/// Why a program gets no signal.
#[derive(Debug, thiserror::Error)]
pub(in super::super) enum SignalError {
    #[error("{label} runs {place}; run gnntop there")]
    Elsewhere { label: String, place: &'static str },
    #[error(
        "the keeper of {label} was killed, so nothing passes signals on to it. It still runs: `kill {pid}` ends it"
    )]
    Unkept { label: String, pid: u32 },
    #[error("{0} no longer runs, and its keeper was killed before it could say how it ended")]
    Gone(String),
    #[error("{0} has ended")]
    Ended(String),
    #[error("cannot send a signal to the keeper of {label}: {error}")]
    Refused { label: String, error: io::Error },
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
            proof: Some(ProcessProof::of_own_program(program)),
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

/// The entry of the program that is, or has started, this process of ours.
pub(in super::super) fn find_by_process(pid: u32) -> Option<ProgramEntry> {
    let is_it = |entry: &ProgramEntry, is_kept: bool| {
        entry.is_process(pid) || is_kept && entry.is_here() && descends(pid, entry.program)
    };
    entries().into_iter().find(|(entry, is_kept)| is_it(entry, *is_kept)).map(|(entry, _)| entry)
}

/// The entry of the program that has published this session, or whose child has.
pub(in super::super) fn find_by_session(session: &SessionInfo) -> Option<ProgramEntry> {
    let of_process = entries().into_iter().map(|(entry, _)| entry).find(|entry| entry.publishes(session));
    of_process.or_else(|| is_of_this_boot(session).then(|| find_by_process(session.pid)).flatten())
}

fn is_of_this_boot(session: &SessionInfo) -> bool {
    PidSpace::own().boot_id.is_none_or(|id| id == session.boot_id)
}

/// Who started this process.
pub(in super::super) fn launcher(pid: u32) -> Launcher {
    if find_by_process(pid).is_some() { Launcher::Gnntop } else { Launcher::Other }
}

/// The programs that are kept and have none of these sessions: those that publish nothing, or nothing yet.
pub(in super::super) fn unpublished(sessions: &[ListedSession]) -> Vec<ProgramEntry> {
    let alive: Vec<&SessionInfo> =
        sessions.iter().filter(|session| session.alive).map(|session| &session.info).collect();
    let descends =
        |session: &SessionInfo, entry: &ProgramEntry| entry.is_here() && descends(session.pid, entry.program);
    let publishes =
        |entry: &ProgramEntry| alive.iter().any(|session| entry.publishes(session) || descends(session, entry));
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
        self.code.is_none() && self.now().is_some_and(|(entry, is_kept)| is_kept && entry.code.is_none())
    }

    /// Its entry as it is now.
    fn now(&self) -> Option<(Self, bool)> {
        let key = |entry: &Self| (entry.program, entry.keeper, entry.started_s);
        entries().into_iter().find(|(entry, _)| key(entry) == key(self))
    }

    /// Whether its processes have the same ids for us.
    fn is_here(&self) -> bool {
        Whereabouts::find(self.proof.as_ref()) == Whereabouts::Here
    }

    /// Where it runs, if that is not here.
    pub(in super::super) fn elsewhere(&self) -> Option<&'static str> {
        match Whereabouts::find(self.proof.as_ref()) {
            Whereabouts::Here => None,
            Whereabouts::OtherNamespace => Some("in another PID namespace (container)"),
            Whereabouts::OtherMachine => Some("on another machine, or ran before a reboot"),
            Whereabouts::Unknown => Some("under another version of gnntop, which did not record which process it is"),
        }
    }

    /// Whether it is the process that has this id here.
    fn is_process(&self, pid: u32) -> bool {
        self.program == pid && self.is_here() && self.proof.as_ref().is_some_and(|proof| proof.is_program(pid))
    }

    /// Whether its own process has published this session.
    pub(in super::super) fn publishes(&self, session: &SessionInfo) -> bool {
        let is_of_boot = |proof: &ProcessProof| proof.space.boot_id.as_ref().is_none_or(|id| *id == session.boot_id);
        // Clocks are read one after the other.
        let is_before = self.started_s <= session.start.wall_ns / 1_000_000_000 + 1;
        self.program == session.pid && is_before && self.proof.as_ref().is_none_or(is_of_boot)
    }

    /// Whether it runs here, and its keeper does not.
    pub(in super::super) fn has_lost_keeper(&self) -> bool {
        self.code.is_none() && self.is_process(self.program) && !self.is_kept()
    }

    /// Sends a signal to its keeper, which passes it on.
    ///
    /// # Errors
    /// If its keeper is not seen here, is gone, or the system refuses.
    pub(in super::super) fn signal(&self, signal: Signal) -> Result<(), SignalError> {
        let label = self.label();
        if let Some(place) = self.elsewhere() {
            return Err(SignalError::Elsewhere { label, place });
        }
        // The lock says that it is kept, and the start that the keeper is no later process with its id.
        let is_keeper = self.is_kept() && self.proof.as_ref().is_some_and(|proof| proof.is_keeper(self.keeper));
        let keeper = i32::try_from(self.keeper).ok().and_then(Pid::from_raw).filter(|_| is_keeper);
        let Some(keeper) = keeper else { return Err(self.unkept()) };
        kill_process(keeper, signal).map_err(|error| SignalError::Refused { label, error: error.into() })
    }

    /// What has become of it, which is not kept any more.
    pub(in super::super) fn unkept(&self) -> SignalError {
        let label = self.label();
        match self.now() {
            Some((entry, _)) if entry.code.is_some() => SignalError::Ended(label),
            _ if self.is_process(self.program) => SignalError::Unkept { label, pid: self.program },
            _ => SignalError::Gone(label),
        }
    }
}

//! The program that is watched: started in a process group of its own with its output in a log, waited for, and
//! handed the signals that were meant for it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, IsTerminal, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::SIGKILL;

use super::super::{output, signals};
use gnntop_analysis::source::discover;
use gnntop_analysis::source::process::Process;

/// Time between two looks whether the program has ended.
pub(super) const WAIT_INTERVAL: Duration = Duration::from_millis(50);
/// Logs that are older are removed when a program is started.
const KEEP_LOGS: Duration = Duration::from_secs(7 * 24 * 3600);
/// Ends of the log's names.
const LOG_EXTENSION: &str = "log";
/// Bytes from the end of the log that are searched for its last lines.
const TAIL_LEN: u64 = 8 * 1024;
/// Lines of the log that are shown where the program failed.
const TAIL_LINES: usize = 10;

/// How this program starts a workload, given as its name and its settings.
pub(super) fn own_command(words: &[OsString]) -> anyhow::Result<Vec<OsString>> {
    let own = std::env::current_exe().context("cannot find the gnntop program itself")?;
    let mut command = vec![own.into_os_string(), "train".into()];
    command.extend(words.iter().cloned());
    Ok(command)
}

/// A program that was started.
pub(super) struct Child {
    child: std::process::Child,
    name: String,
    log_path: Option<PathBuf>,
    /// Programs that the kernel had killed for want of memory when it began; `None` where that is not told.
    killed_before: Option<u64>,
}

impl Child {
    /// Starts `command`, to be called `name`, with these variables more in its environment.
    ///
    /// # Errors
    /// When there is no such program, or the system starts none. A log that cannot be written is no error.
    pub(super) fn start<'v>(
        command: &[OsString],
        name: &str,
        variables: impl Iterator<Item = (&'static str, &'v OsStr)>,
    ) -> anyhow::Result<Self> {
        let (program, arguments) = command.split_first().context("nothing to start")?;
        let dir = discover::sessions_dir();
        let log = open_log(&dir, name).or_else(|_| open_log(&std::env::temp_dir(), name));
        let (log, log_path) = match log {
            Ok((file, path)) => (Some(file), Some(path)),
            Err(error) => {
                output::complain(&format!("warning: no log can be written, the program's output is lost: {error}"));
                (None, None)
            }
        };
        let stream = || log.as_ref().and_then(|log| log.try_clone().ok()).map_or_else(Stdio::null, Stdio::from);
        // The keyboard belongs to the view; what is piped in is the program's.
        let stdin = if io::stdin().is_terminal() { Stdio::null() } else { Stdio::inherit() };
        let mut command = Command::new(program);
        command.args(arguments).stdin(stdin).stdout(stream()).stderr(stream()).env("GNNTOP_DIR", &dir);
        command.envs(variables);
        // Ctrl-C at the terminal comes to us alone, and is passed on once.
        let child = command.process_group(0).spawn();
        let child = child.with_context(|| format!("cannot start {}", program.to_string_lossy()))?;
        Ok(Self { child, name: name.to_owned(), log_path, killed_before: killed_for_memory() })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The process, while it lives.
    pub(super) fn process(&self) -> Option<Process> {
        Process::find(self.child.id())
    }

    pub(super) fn log_path(&self) -> Option<PathBuf> {
        self.log_path.clone()
    }

    /// Where the output is, in words.
    pub(super) fn log(&self) -> String {
        self.log_path.as_ref().map_or_else(|| "not kept".to_owned(), |path| path.display().to_string())
    }

    /// The exit code, once it has ended.
    pub(super) fn try_wait(&mut self) -> io::Result<Option<u8>> {
        Ok(self.child.try_wait()?.map(exit_code))
    }

    /// Sends a signal to it and to what it has started.
    pub(super) fn signal(&self, signal: i32) {
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let (Some(group), Some(signal)) = (group, Signal::from_named_raw(signal)) else { return };
        // Our child is not waited for before it has ended, so the group cannot be another's. Where it has just ended, nothing
        // happens.
        let _ = kill_process_group(group, signal);
    }

    /// Says what the program said last, if it failed.
    pub(super) fn report_failure(&self, code: u8) {
        let Some(path) = self.log_path.as_ref().filter(|_| code != 0) else { return };
        output::note(&format!("{} ended with exit code {code}; its output is in {}", self.name, path.display()));
        for line in last_lines(path).unwrap_or_default() {
            output::note(&format!("  {line}"));
        }
        let killed = killed_for_memory().zip(self.killed_before).map_or(0, |(now, before)| now.saturating_sub(before));
        if code == signals::exit_code(SIGKILL) && killed > 0 {
            let words =
                "the kernel killed a program of this machine for want of memory meanwhile (oom_kill in /proc/vmstat)";
            output::note(&format!("{words}: it may have been this one; give it a smaller batch, or fewer ranks"));
        }
    }
}

/// Programs that the kernel has killed for want of memory since it started, those of control groups included. Anyone may ask.
fn killed_for_memory() -> Option<u64> {
    let counts = fs::read_to_string("/proc/vmstat").ok()?;
    counts.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

/// The child's own code, 128 + N where signal N ended it.
fn exit_code(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => u8::try_from(code).unwrap_or(super::super::exit::FAILURE),
        (None, Some(signal)) => signals::exit_code(signal),
        (None, None) => super::super::exit::FAILURE,
    }
}

/// Makes a log in `dir`, for this user alone, and removes those that are too old.
fn open_log(dir: &Path, name: &str) -> io::Result<(File, PathBuf)> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    remove_old_logs(dir);
    let safe: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(40).collect();
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let path = dir.join(format!("gnntop-{safe}-{}-{seconds}.{LOG_EXTENSION}", std::process::id()));
    let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path)?;
    Ok((file, path))
}

fn remove_old_logs(dir: &Path) {
    let now = SystemTime::now();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let ours = entry.file_name().to_string_lossy().starts_with("gnntop-")
            && path.extension().is_some_and(|extension| extension == LOG_EXTENSION);
        let age = entry.metadata().ok().filter(fs::Metadata::is_file).and_then(|meta| meta.modified().ok());
        if ours && age.and_then(|time| now.duration_since(time).ok()).is_some_and(|age| age > KEEP_LOGS) {
            // One that cannot be removed stays.
            let _ = fs::remove_file(path);
        }
    }
}

/// The last lines of a log.
fn last_lines(path: &Path) -> io::Result<Vec<String>> {
    let mut file = File::open(path)?;
    let start = file.metadata()?.len().saturating_sub(TAIL_LEN);
    file.seek(SeekFrom::Start(start))?;
    let mut tail = Vec::new();
    file.take(TAIL_LEN).read_to_end(&mut tail)?;
    let text = String::from_utf8_lossy(&tail);
    let lines: Vec<&str> = text.lines().collect();
    Ok(lines[lines.len().saturating_sub(TAIL_LINES)..].iter().map(|line| (*line).to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_last_lines_are_found() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text: String = (0..10_000).map(|line| format!("line {line}\n")).collect();
        fs::write(file.path(), text).unwrap();
        let lines = last_lines(file.path()).unwrap();
        assert_eq!((lines.len(), lines[9].as_str()), (TAIL_LINES, "line 9999"));
    }

    #[test]
    fn logs_are_private_and_old_ones_go() {
        let dir = tempfile::tempdir().unwrap();
        let old = dir.path().join("gnntop-old-1-1.log");
        let other = dir.path().join("mine.log");
        for path in [&old, &other] {
            let file = File::create(path).unwrap();
            file.set_modified(UNIX_EPOCH + Duration::from_secs(1)).unwrap();
        }
        let (_, path) = open_log(dir.path(), "../../x y").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(path.parent(), Some(dir.path()));
        assert!(!old.exists() && other.exists());
    }
}

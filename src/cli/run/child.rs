//! The program that is watched: starts it in its own process group with its output in a bounded log, waits for it, and
//! passes the signals on that were meant for it.

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal, PipeWriter};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::super::exit::NotStarted;
use super::super::patience::{PATIENCE, within};
use super::super::{passing_on, signals};
use super::collector::Output;
use super::spawn::spawn;
use crate::death::{CpuFigures, Death, MemoryFigures, MemoryWatch, ProcessEnd};
use crate::log;
use anyhow::Context;
use gnntop_analysis::source::program_name::is_shell;
use gnntop_sessions::{Error, PrivateDir, layout, user_id};
use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

/// Time between two looks whether the program has ended.
pub(super) const WAIT_INTERVAL: Duration = Duration::from_millis(50);
/// Older logs are removed when a program is started.
const KEEP_LOGS: Duration = Duration::from_secs(7 * 24 * 3600);
/// Suffixes of logs and of a program's entry.
const LOG_EXTENSION: &str = "log";
const OLD: [&str; 2] = [LOG_EXTENSION, super::register::EXTENSION];
/// Lines of the log that are shown if the program failed.
const TAIL_LINES: usize = 10;

/// Said of a program that is started without what we add to its environment.
const TOO_LONG: &str = "the program's arguments and variables leave no room for those of gnntop (PYTHONPATH and others), so it is \
    started without them: Python programs may show only their hardware";

/// How this program starts a workload, given as its name and its settings.
pub(super) fn own_command(words: &[OsString]) -> anyhow::Result<Vec<OsString>> {
    let own = std::env::current_exe().context("cannot find the gnntop program itself")?;
    let mut command = vec![own.into_os_string(), "train".into()];
    command.extend(words.iter().cloned());
    Ok(command)
}

/// Where a program's output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputPlace {
    /// Into a log.
    Log,
    /// To the terminal that our standard error is, and our standard input, which the program reads.
    Terminal,
}

/// A program that was started.
pub(super) struct Child {
    child: std::process::Child,
    name: String,
    output: Option<Output>,
    /// Why nothing that it publishes can be kept, if that is so.
    unpublished: Option<String>,
    memory: MemoryWatch,
    /// Its short name if it was a shell when it was last seen; a shell may execute another program in its place.
    shell: Option<String>,
    /// Its CPU time, once it has ended.
    cpu: CpuFigures,
    /// How it ended, once it has.
    status: Option<ExitStatus>,
    /// Whether output of it is lost, and its log does not say so.
    has_untold_losses: bool,
}

impl Child {
    /// Starts `command` under the name `name`, with these additional variables in its environment.
    ///
    /// # Errors
    /// If there is no such program, or the system cannot start it. A log that cannot be written is not an error, nor is an
    /// environment that is too long with the variables; `warn` is called.
    pub(super) fn start<'v>(
        command: &[OsString],
        name: &str,
        variables: impl Iterator<Item = (&'static str, &'v OsStr)>,
        place: OutputPlace,
        warn: impl Fn(&str) + Clone + Send + 'static,
    ) -> anyhow::Result<Self> {
        let (program, arguments) = command.split_first().context("nothing to start")?;
        let dir = layout::sessions_dir();
        let (log_dir, unpublished) = choose_log_dir(&dir);
        unpublished.iter().for_each(|why| warn(why));
        let (output, end) = match place {
            OutputPlace::Log => logged_output(&log_dir, name, &warn),
            OutputPlace::Terminal => (None, io::stderr().as_fd().try_clone_to_owned().ok()),
        };
        let stream = || end.as_ref().and_then(|end| end.try_clone().ok()).map_or_else(Stdio::null, Stdio::from);
        // The keyboard belongs to the view, unless the program has the terminal; piped input belongs to the program.
        let has_keyboard = place == OutputPlace::Terminal || !io::stdin().is_terminal();
        let stdin = || if has_keyboard { Stdio::inherit() } else { Stdio::null() };
        let mut ours: Vec<(&str, &OsStr)> = variables.collect();
        // The program may go to another folder.
        let absolute = std::path::absolute(&dir).unwrap_or_else(|_| dir.clone());
        ours.push(("GNNTOP_DIR", absolute.as_os_str()));
        let ignores_exit_codes = passing_on::keep_exit_codes();
        let start = |variables: &[(&str, &OsStr)]| {
            spawn(program, arguments, |command| {
                command.stdin(stdin()).stdout(stream()).stderr(stream()).envs(variables.iter().copied());
                // Ctrl-C at the terminal reaches only this process, and is passed on once.
                command.process_group(0);
                if ignores_exit_codes {
                    passing_on::ignore_exit_codes(command);
                }
            })
        };
        let child = start(&ours).or_else(|error| {
            if Errno::from_io_error(&error) != Some(Errno::TOOBIG) {
                return Err(error);
            }
            start(&[]).inspect(|_| warn(TOO_LONG))
        });
        let child = child.map_err(|error| NotStarted::new(&program.to_string_lossy(), &error))?;
        let memory = MemoryWatch::start(child.id());
        let (shell, cpu) = (shell_name(child.id()), CpuFigures::default());
        Ok(Self {
            child,
            name: name.to_owned(),
            output,
            unpublished,
            memory,
            shell,
            cpu,
            status: None,
            has_untold_losses: false,
        })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Where its output goes.
    pub(super) fn log_path(&self) -> Option<&Path> {
        self.output.as_ref().map(Output::log)
    }

    /// Whether everything that it and its descendants can write is in the log, or is within this time.
    pub(super) fn wait_output_closed(&self, at_most: Duration) -> bool {
        self.output.as_ref().is_none_or(|output| output.wait_closed(at_most))
    }

    /// The exit code, once it has ended and its output is in the log.
    pub(super) fn try_wait(&mut self) -> io::Result<Option<u8>> {
        if self.look_at_end() == Some(false) {
            return Ok(None);
        }
        self.status = self.child.try_wait()?;
        if self.status.is_some() {
            self.has_untold_losses = self.output.as_ref().is_some_and(Output::settle);
        }
        Ok(self.status.map(exit_code))
    }

    /// Whether it has ended, and if so what the system still knows of it, which is until it is waited for; `None` if the system does not say.
    fn look_at_end(&mut self) -> Option<bool> {
        let process = Pid::from_raw(i32::try_from(self.child.id()).ok()?)?;
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let has_ended = waitid(WaitId::Pid(process), ended).ok()?.is_some();
        if has_ended {
            self.cpu = CpuFigures::of_ended(self.child.id());
            self.shell = self.shell.take().filter(|shell| short_name(self.child.id()).as_ref() == Some(shell));
        } else if let Some(is_shell) = runs_shell(self.child.id()) {
            let known = if is_shell { shell_name(self.child.id()).or_else(|| self.shell.take()) } else { None };
            self.shell = known;
        }
        Some(has_ended)
    }

    /// How it ended, once it has.
    pub(super) fn ended(&self) -> Option<ProcessEnd> {
        let status = self.status?;
        status.code().map(ProcessEnd::Code).or_else(|| status.signal().map(ProcessEnd::Signal))
    }

    /// Its CPU time, once it has ended.
    pub(super) fn cpu_figures(&self) -> CpuFigures {
        self.cpu
    }

    /// Whether it was a shell to its end, which may have run a script.
    pub(super) fn is_shell(&self) -> bool {
        self.shell.is_some()
    }

    /// Whether it has ended with exit code 0.
    pub(super) fn ended_well(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// The kernel's figures of its memory.
    pub(super) fn memory_figures(&self) -> MemoryFigures {
        self.memory.end()
    }

    /// The end of its output.
    pub(super) fn last_lines(&self) -> Vec<String> {
        let path = self.log_path().map(Path::to_owned);
        let read = path.and_then(|path| within(PATIENCE, move || log::read(&path)));
        read.and_then(Result::ok).unwrap_or_default()
    }

    /// Sends a signal to it and to what it has started.
    pub(super) fn signal(&self, signal: i32) {
        let Ok(group) = i32::try_from(self.child.id()) else { return };
        // Our child is not waited for before it has ended, so the group cannot be another's. If it has just ended, nothing happens.
        // SAFETY: the call has no access to our memory.
        unsafe { libc::kill(-group, signal) };
    }

    /// The lines after its end: why nothing was published, if that is so, and about a program that failed its last output and why
    /// it died.
    pub(super) fn ending_lines(&self, code: u8, death: Option<&Death>) -> Vec<String> {
        let death = death.filter(|_| code != 0).map(|death| death.text.clone());
        let lost = self
            .log_path()
            .filter(|_| self.has_untold_losses)
            .map(|log| format!("output of {} is missing in {}: it could not be written", self.name, log_place(log)));
        self.unpublished.iter().cloned().chain(lost).chain(self.report_failure(code)).chain(death).collect()
    }

    fn report_failure(&self, code: u8) -> Vec<String> {
        let Some(path) = self.log_path().filter(|_| code != 0) else { return Vec::new() };
        let mut lines =
            vec![format!("{} ended with exit code {code}; its output is in {}", self.name, log_place(path))];
        let last = self.last_lines();
        lines.extend(last[last.len().saturating_sub(TAIL_LINES)..].iter().map(|line| format!("  {line}")));
        lines
    }
}

/// Whether a process runs a shell now, whose exit code may tell of a signal that ended another program; `None` once it is about to end, or is not ours.
fn runs_shell(pid: u32) -> Option<bool> {
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    Some(program.file_name().and_then(OsStr::to_str).is_some_and(is_shell))
}

/// The short name of a process that runs a shell now, if that is certain.
fn shell_name(pid: u32) -> Option<String> {
    // Before and after: what runs a script may execute the shell in between, under another name.
    let is_shell = || runs_shell(pid) == Some(true);
    is_shell().then(|| short_name(pid)).flatten().filter(|_| is_shell())
}

fn short_name(pid: u32) -> Option<String> {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()
}

/// The child's own code, 128 + N where signal N ended it.
fn exit_code(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => u8::try_from(code).unwrap_or(super::super::exit::FAILURE),
        (None, Some(signal)) => signals::exit_code(signal),
        (None, None) => super::super::exit::FAILURE,
    }
}

/// The path of a log, with a note if somebody has removed it.
pub(super) fn log_place(log: &Path) -> String {
    let path = log.to_owned();
    // A file system that hangs has not lost it.
    let is_removed = within(PATIENCE, move || !path.exists()) == Some(true);
    format!("{}{}", log.display(), if is_removed { ", which was removed" } else { "" })
}

/// Where the log goes: beside the sessions, or elsewhere if their directory cannot be used or does not answer. Also why nothing
/// can be published there, in the first case.
fn choose_log_dir(sessions: &Path) -> (PathBuf, Option<String>) {
    match check_usable(sessions) {
        Some(Ok(())) => (sessions.to_owned(), None),
        Some(Err(why)) => (fallback_log_dir(), Some(why)),
        None => (fallback_log_dir(), None),
    }
}

/// Whether anything can be published in the directory of all sessions, and else why not; `None` if it does not answer.
pub(super) fn check_usable(sessions: &Path) -> Option<Result<(), String>> {
    let dir = sessions.to_owned();
    let made = within(PATIENCE, move || -> Result<(), String> {
        PrivateDir::create(&dir).map_err(|error| error.to_string())?;
        tempfile::tempfile_in(&dir).map(drop).map_err(|error| format!("no file can be made there: {error}"))
    })?;
    Some(made.map_err(|why| format!("nothing can be published in {}: {why}", sessions.display())))
}

/// Output that goes into a log, and the end of the pipe that fills it; neither if there can be no log.
fn logged_output(
    dir: &Path,
    name: &str,
    warn: &(impl Fn(&str) + Clone + Send + 'static),
) -> (Option<Output>, Option<OwnedFd>) {
    match start_output(dir, name, warn) {
        Ok((output, end)) => (Some(output), Some(end.into())),
        Err(error) => {
            let dir = fallback_log_dir();
            warn(&format!("cannot write a log, so the program's output is lost: {} {error}", dir.display()));
            (None, None)
        }
    }
}

/// Has a log filled in `dir`, or elsewhere if `dir` cannot have it or does not answer. Returns the end of the pipe that fills it.
fn start_output(
    dir: &Path,
    name: &str,
    warn: &(impl Fn(&str) + Clone + Send + 'static),
) -> Result<(Output, PipeWriter), Error> {
    let (dir, owned_name, owned_warn) = (dir.to_owned(), name.to_owned(), warn.clone());
    match within(PATIENCE, move || start_log(&dir, &owned_name, owned_warn)) {
        Some(Ok(started)) => Ok(started),
        _ => start_log(&fallback_log_dir(), name, warn.clone()),
    }
}

/// Has a log in `dir` filled, for this user alone, and removes those that are too old.
fn start_log(dir: &Path, name: &str, warn: impl Fn(&str) + Send + 'static) -> Result<(Output, PipeWriter), Error> {
    let dir = PrivateDir::create(dir)?;
    remove_old_logs(&dir);
    let safe: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(40).collect();
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let name = format!("gnntop-{safe}-{}-{seconds}.{LOG_EXTENSION}", std::process::id());
    Output::start(&dir, &name, warn)
}

/// Where logs go if the directory of sessions cannot have them: into one that we make, or check, because anyone can
/// write to its parent.
fn fallback_log_dir() -> PathBuf {
    layout::temporary_dir().join(format!("gnntop-{}-logs", user_id()))
}

fn remove_old_logs(dir: &PrivateDir) {
    let now = SystemTime::now();
    for name in dir.names().unwrap_or_default() {
        let Some(name) = name.to_str().filter(|name| name.starts_with("gnntop-")) else { continue };
        let is_of_a_run = Path::new(name).extension().is_some_and(|extension| OLD.iter().any(|old| extension == *old));
        let age = dir.modified(name).ok().and_then(|time| now.duration_since(time).ok());
        if is_of_a_run && age.is_some_and(|age| age > KEEP_LOGS) {
            // One that cannot be removed stays.
            let _ = dir.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn logs_are_private_and_old_logs_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let old = dir.path().join("gnntop-old-1-1.log");
        let other = dir.path().join("mine.log");
        for path in [&old, &other] {
            let file = File::create(path).unwrap();
            file.set_modified(UNIX_EPOCH + Duration::from_secs(1)).unwrap();
        }
        let (output, _end) = start_log(dir.path(), "../../x y", |_| ()).unwrap();
        assert_eq!(fs::metadata(output.log()).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(output.log().parent(), Some(dir.path()));
        assert!(!old.exists() && other.exists());
    }
}

//! Programs that a client has had started, with `gnntop mcp --allow-run`: this program with another command, whose output goes to a
//! folder of its own. One runs at a time, because two would disturb each other's times. They end when the server does.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};

use crate::cli::passing_on;
use crate::locked_dir::{self, LockedDir};

/// The longest that a call waits: clients give up on a tool that takes longer than a minute.
pub(super) const LONGEST_CALL: Duration = Duration::from_secs(50);
/// Time between two looks.
const INTERVAL: Duration = Duration::from_millis(200);
/// A program that was asked to end with SIGINT and keeps running is asked with SIGTERM after this long.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of output that are kept of a program that failed.
const MOST_OUTPUT: usize = 2 << 10;

/// What the names of the folders begin with.
const PREFIX: &str = "gnntop-mcp-";

/// This user's folders of jobs here whose servers are gone.
pub(in crate::cli) fn abandoned(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    locked_dir::abandoned(folder, PREFIX)
}

/// Whether the client is gone: nobody can read an answer any more. That its input has ended says nothing, since a client may have
/// asked all that it wants to.
fn nobody_reads() -> bool {
    let output = std::io::stdout();
    let mut watched = [PollFd::new(&output, PollFlags::empty())];
    poll(&mut watched, Some(&Timespec::default())).is_ok() && watched[0].revents().contains(PollFlags::ERR)
}

/// What was started, and the folder of its files, which is removed with this.
pub(super) struct Jobs {
    /// Before the folder: they write into it until they have ended.
    all: Vec<Job>,
    folder: LockedDir,
    /// How many were started, or could not be.
    started: usize,
}

impl Jobs {
    /// # Errors
    /// If there is no room for temporary files.
    pub(super) fn new() -> anyhow::Result<Self> {
        let temporary = std::env::temp_dir();
        abandoned(&temporary).for_each(|path| _ = fs::remove_dir_all(path));
        let folder = LockedDir::create(&temporary, PREFIX).context("cannot create a folder for temporary files")?;
        Ok(Self { all: Vec::new(), folder, started: 0 })
    }

    /// Starts `gnntop` with these words, in this working directory.
    ///
    /// # Errors
    /// If another job runs, or it cannot be started.
    pub(super) fn start(
        &mut self,
        tool: &'static str,
        directory: &str,
        file: PathBuf,
        words: &[String],
    ) -> anyhow::Result<&mut Job> {
        for job in &mut self.all {
            if job.poll()?.is_none() {
                bail!("{} runs: wait for it, or end it with `stop`; two at a time would disturb each other", job.name);
            }
        }
        self.started += 1;
        let name = format!("{tool}-{}", self.started);
        let folder = self.folder.path().join(&name);
        let child = start(&folder, directory, words)?;
        self.all.push(Job { name, tool, file, folder, child, code: None, asked: None, seen: None, lasts: None });
        self.all.last_mut().context("a job was just added")
    }

    /// Where the next job can put a file, until the server ends.
    pub(super) fn unused_path(&self, tool: &str, extension: &str) -> PathBuf {
        self.folder.path().join(format!("{tool}-{}.{extension}", self.started + 1))
    }

    /// The job of this tool with this name.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn find(&mut self, tool: &str, name: &str) -> anyhow::Result<&mut Job> {
        let names: Vec<&str> = self.all.iter().map(|job| job.name.as_str()).collect();
        let unknown = format!("{tool} has no job {name:?}; the jobs are: {}", names.join(", "));
        self.all.iter_mut().find(|job| job.name == name && job.tool == tool).context(unknown)
    }
}

/// Starts `gnntop` with what it prints in this new folder.
fn start(folder: &Path, directory: &str, words: &[String]) -> anyhow::Result<Child> {
    fs::create_dir(folder)?;
    let own = std::env::current_exe().context("cannot find the gnntop program itself")?;
    let mut command = Command::new(own);
    command.args(words).current_dir(directory).stdin(Stdio::null());
    command.stdout(File::create(folder.join("output"))?).stderr(File::create(folder.join("notes"))?);
    passing_on::end_with_parent(&mut command);
    command.spawn().with_context(|| format!("cannot start it in {directory}"))
}

/// A program that was started.
pub(super) struct Job {
    pub(super) name: String,
    /// What it writes beside what it prints.
    pub(super) file: PathBuf,
    tool: &'static str,
    folder: PathBuf,
    child: Child,
    /// Its exit code, once it has ended.
    code: Option<i32>,
    /// When it was last asked to end.
    asked: Option<Instant>,
    /// When what it is started for was first seen to have begun, and how long it is to last from then on.
    pub(super) seen: Option<Instant>,
    pub(super) lasts: Option<Duration>,
}

impl Job {
    /// The exit code, once it has ended.
    fn poll(&mut self) -> anyhow::Result<Option<i32>> {
        if self.code.is_none() {
            self.code = self.child.try_wait()?.map(|status| status.code().unwrap_or(1));
        }
        Ok(self.code)
    }

    /// Waits for the end as long as a call may, and asks it to end once `is_enough`. Returns the exit code if it has ended.
    pub(super) fn wait(&mut self, mut is_enough: impl FnMut(&mut Self) -> bool) -> anyhow::Result<Option<i32>> {
        let began = Instant::now();
        loop {
            let code = self.poll()?;
            if code.is_some() || began.elapsed() >= LONGEST_CALL {
                return Ok(code);
            }
            if self.asked.is_some() || is_enough(self) || nobody_reads() {
                self.ask_to_end();
            }
            thread::sleep(INTERVAL);
        }
    }

    /// Asks it to end, as Ctrl-C does, and more firmly after a while.
    pub(super) fn ask_to_end(&mut self) {
        // Its process id may be another's by now.
        if !matches!(self.poll(), Ok(None)) {
            return;
        }
        let is_late = self.asked.is_some_and(|asked| asked.elapsed() >= PATIENCE);
        if self.asked.is_none() || is_late {
            // It may have ended a moment ago.
            let _ = kill_process(Pid::from_child(&self.child), if is_late { Signal::TERM } else { Signal::INT });
            self.asked = Some(Instant::now());
        }
    }

    /// Whether it was asked to end before it did.
    pub(super) fn was_asked_to_end(&self) -> bool {
        self.asked.is_some()
    }

    /// What it printed.
    pub(super) fn output(&self) -> String {
        read(&self.folder.join("output"))
    }

    /// The end of what it said on standard error.
    pub(super) fn notes(&self) -> String {
        let notes = read(&self.folder.join("notes"));
        let notes = notes.trim_end();
        let cut = notes.len().saturating_sub(MOST_OUTPUT);
        let cut = (cut..=notes.len()).find(|at| notes.is_char_boundary(*at)).unwrap_or(notes.len());
        notes[cut..].to_owned()
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        // What has not ended by then gets SIGTERM, as this process ends: killing `gnntop run` would not end the program.
        let _ = self.wait(|_| true);
    }
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_cannot_be_started_keeps_no_later_one_from_starting() {
        let mut jobs = Jobs::new().unwrap();
        for _ in 0..2 {
            let file = jobs.unused_path("profile", "gnntop");
            let error = jobs.start("profile", "/nowhere", file, &[]).err().unwrap();
            assert_eq!(error.to_string(), "cannot start it in /nowhere");
        }
    }

    #[test]
    fn the_folder_of_a_killed_server_is_removed_by_the_next() {
        let temporary = tempfile::tempdir().unwrap();
        let left = temporary.path().join(format!("{PREFIX}left"));
        fs::create_dir(&left).unwrap();
        fs::write(left.join(locked_dir::LOCK), "").unwrap();
        assert_eq!(abandoned(temporary.path()).collect::<Vec<_>>(), [left]);
    }
}

//! `gnntop run --share`: the process that copies the program's sessions into a shared directory (`gnntop share`), as its keeper
//! sees it.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use gnntop_sessions::{PrivateDir, layout};

use super::super::patience::within;

/// Environment variable: the shared directory, without `--share`.
const SHARE: &str = "GNNTOP_SHARE";
/// How long the program's start may wait for the directory.
const AT_ONCE: Duration = Duration::from_millis(500);
/// After the program's end, the last copy is waited for this long.
const GRACE: Duration = Duration::from_secs(5);
/// Time between two looks whether it is done.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The shared directory that is meant: the one on the command line, else that of the environment.
pub(super) fn shared_dir(option: Option<&Path>) -> io::Result<Option<PathBuf>> {
    match option {
        Some(dir) => std::path::absolute(dir).map(Some),
        None => Ok(std::env::var_os(SHARE).filter(|value| !value.is_empty()).map(PathBuf::from)),
    }
}

/// Why nothing can be copied there, as far as is known at once: the program does not wait for a directory that hangs.
pub(super) fn refusal(dir: &Path) -> Option<String> {
    if !dir.is_absolute() {
        return Some("is no absolute path".to_owned()); // a variable, in whatever directory a program works
    }
    let dir = dir.to_owned();
    let refuse = move || match PrivateDir::create(&dir) {
        Err(error) => Some(error.to_string()),
        Ok(_) => is_same_directory(&dir, &layout::sessions_dir()).then(|| IS_WHERE_SESSIONS_ARE.to_owned()),
    };
    within(AT_ONCE, refuse).flatten()
}

/// Why a session is not copied into the directory that it is in: it would be overwritten.
pub(in super::super) const IS_WHERE_SESSIONS_ARE: &str =
    "is the directory of this machine's own sessions: name another one";

/// Whether both are one directory, whatever their paths.
pub(in super::super) fn is_same_directory(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| std::fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
    identity(one).is_some_and(|one| identity(other) == Some(one))
}

/// The process that copies.
pub(super) struct ActiveShare {
    to: PathBuf,
    process: Child,
    /// Closed when the program has ended.
    running: Option<ChildStdin>,
    ended: Option<Instant>,
}

impl ActiveShare {
    /// Copies the sessions of the program `pid` to `to`. `warn` is called when that does not work.
    ///
    /// # Errors
    /// If the system cannot start the process or a thread.
    pub(super) fn start(
        to: &Path,
        pid: u32,
        since: SystemTime,
        answers: Option<&Path>,
        warn: impl Fn(&str) + Send + 'static,
    ) -> io::Result<Self> {
        let since_ms = since.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("share").arg(option("--to=", to)).arg(format!("--pid={pid}")).arg(format!("--since-ms={since_ms}"));
        command.args(answers.map(|dir| option("--answers=", dir)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        let mut process = command.spawn()?;
        let (running, warnings) = (process.stdin.take(), process.stdout.take());
        let hear = move || {
            let lines = warnings.into_iter().flat_map(|warnings| BufReader::new(warnings).lines());
            lines.map_while(Result::ok).for_each(|line| warn(line.trim_start_matches("warning: ")));
        };
        thread::Builder::new().name("gnntop share".to_owned()).spawn(hear)?;
        Ok(Self { to: to.to_owned(), process, running, ended: None })
    }

    /// The program has ended, and why it died was added to its session.
    pub(super) fn note_end(&mut self) {
        self.running = None;
        self.ended = Some(Instant::now());
    }

    /// Waits for the last copy, but not for a file system that hangs. Returns what is to be said if it is not complete by then:
    /// the process keeps trying.
    pub(super) fn wait(mut self) -> Option<String> {
        self.running = None;
        let ended = self.ended.unwrap_or_else(Instant::now);
        while ended.elapsed() < GRACE {
            match self.process.try_wait() {
                Ok(None) => thread::sleep(POLL_INTERVAL),
                Ok(Some(status)) if !status.success() => {
                    return Some(format!(
                        "the copy in {} is not complete: its process ended ({status})",
                        self.to.display()
                    ));
                }
                _ => return None,
            }
        }
        let (to, process) = (self.to.display(), self.process.id());
        Some(format!("the copy in {to} is not complete yet; process {process} keeps trying"))
    }
}

fn option(name: &str, path: &Path) -> OsString {
    let mut word = OsString::from(name);
    word.push(path);
    word
}

//! Sessions on disk and the binary beside them, for tests of the whole program.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stderr, dead_code, reason = "each test uses a part of it")]

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use gnntop_sessions::layout;

/// A sessions directory of a test's own, which is gone when the test is over.
pub struct Sessions {
    dir: tempfile::TempDir,
}

/// A session whose publisher is the test.
pub struct Published {
    dir: PathBuf,
    lock: Option<File>,
}

impl Sessions {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// A file beside the sessions.
    pub fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    /// A session that has ended; `bytes` are its only segment.
    pub fn ended(&self, name: &str, bytes: &[u8]) -> Published {
        let dir = self.dir.path().join(name);
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join(layout::segment_file_name(0)), bytes).unwrap();
        Published { dir, lock: None }
    }

    /// A session that lives until [`Published::die`].
    pub fn live(&self, name: &str, bytes: &[u8]) -> Published {
        let session = self.ended(name, bytes);
        let lock = File::create(session.dir.join(layout::LOCK_FILE)).unwrap();
        lock.lock().unwrap();
        Published { lock: Some(lock), ..session }
    }

    /// The binary with this sessions directory and nothing else of the environment that matters.
    pub fn gnntop<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = self.program(env!("CARGO_BIN_EXE_gnntop"));
        command.args(arguments);
        command
    }

    /// Another program in the same surroundings.
    pub fn program(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("GNNTOP_DIR", self.path()).env("XDG_CONFIG_HOME", self.path()).env_remove("GNNTOP");
        // What a Python is watched with is laid down beside the sessions, and goes with them.
        command.env("XDG_CACHE_HOME", self.path().join("cache"));
        command.stdin(Stdio::null()).current_dir(self.path());
        // A shell has what it starts in the background ignore the keyboard's signals, and `nohup` hangups.
        #[cfg(unix)]
        on_signals(&mut command, &[libc::SIGHUP, libc::SIGINT, libc::SIGQUIT], libc::SIG_DFL);
        command
    }

    /// Runs the binary to its end.
    pub fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Ran {
        Ran::new(&self.gnntop(arguments).output().unwrap())
    }

    /// Runs the binary with `input` as its standard input.
    pub fn run_with<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>, input: &[u8]) -> Ran {
        let mut command = self.gnntop(arguments);
        let mut child = spawn(command.stdin(Stdio::piped()));
        // The binary may well leave before it has read everything.
        let _ = child.stdin.take().unwrap().write_all(input);
        Ran::new(&child.wait_with_output().unwrap())
    }
}

impl Published {
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn append(&self, bytes: &[u8]) {
        let path = self.dir.join(layout::segment_file_name(0));
        OpenOptions::new().append(true).open(path).unwrap().write_all(bytes).unwrap();
    }

    /// Ends as a killed process does: without a word.
    pub fn die(&mut self) {
        self.lock = None;
    }
}

/// What the binary did.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
    pub out_bytes: Vec<u8>,
}

impl Ran {
    pub fn new(output: &Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
            out_bytes: output.stdout.clone(),
        }
    }

    /// Checks for a failure that is told in one line.
    #[track_caller]
    pub fn assert_refused(&self, words: &str) {
        assert_eq!(self.code, Some(1), "{self:?}");
        assert!(self.err.contains(words), "no {words:?} in {self:?}");
        assert_eq!(self.err.lines().count(), 1, "{self:?}");
        assert!(self.out.is_empty(), "{self:?}");
    }
}

/// Whether there is a python3 from one version on and below another. Says so where there is none, as what needs it is left out.
pub fn has_python(from: (u32, u32), below: (u32, u32)) -> bool {
    let version = format!("import sys; sys.exit(not {from:?} <= sys.version_info < {below:?})");
    let found = Command::new("python3").args(["-c", &version]).status().is_ok_and(|status| status.success());
    if !found {
        eprintln!("skipped: there is no python3 from {}.{} on and below {}.{}", from.0, from.1, below.0, below.1);
    }
    found
}

/// Starts a command whose output can be read.
pub fn spawn(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Has a command ignore hangups, as `nohup` does.
#[cfg(unix)]
pub fn ignored_hangup(command: &mut Command) -> &mut Command {
    on_signals(command, &[libc::SIGHUP], libc::SIG_IGN)
}

/// What signals do to a command, however the tests themselves were started.
#[cfg(unix)]
pub fn on_signals<'c>(command: &'c mut Command, signals: &'static [i32], does: libc::sighandler_t) -> &'c mut Command {
    let set = move || {
        // SAFETY: signal is async-signal-safe and concerns the child alone.
        signals.iter().for_each(|signal| unsafe { _ = libc::signal(*signal, does) });
        Ok(())
    };
    // SAFETY: what is called between fork and exec takes no lock and no memory.
    unsafe { std::os::unix::process::CommandExt::pre_exec(command, set) }
}

/// Sends a signal to a child.
pub fn signal(child: &Child, name: &str) {
    signal_to(child.id(), name);
}

/// Sends a signal to a process, by a shell: not every system has the program `kill`.
pub fn signal_to(pid: u32, name: &str) {
    let sent = Command::new("sh").args(["-c", "kill -s $0 $1", name, &pid.to_string()]).status().unwrap();
    assert!(sent.success(), "{name} to {pid}");
}

/// Waits until `condition` holds. If it never does, the test fails where it waits, long after any busy machine would have got there.
#[track_caller]
pub fn wait_until(mut condition: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !condition() {
        assert!(start.elapsed().as_secs() < 600, "waited for ten minutes");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Lets a process have so many bytes of address space more than it has now, and no more.
#[cfg(target_os = "linux")]
pub fn limit_memory(pid: u32, more_bytes: u64) {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    let now = line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024;
    let limit = libc::rlimit { rlim_cur: now + more_bytes, rlim_max: now + more_bytes };
    // SAFETY: prlimit reads a live struct of its type, and writes nothing where the last pointer is null.
    let done = unsafe { libc::prlimit(pid as libc::pid_t, libc::RLIMIT_AS, &raw const limit, std::ptr::null_mut()) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

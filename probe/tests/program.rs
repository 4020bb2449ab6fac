//! Runs ignored tests as programs of their own: what forks, is killed or is limited must not be the test itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// The ignored test `child`, by its full name, as a program, publishing under `dir`.
pub fn program(child: &str, dir: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", child, "--ignored", "--nocapture", "--test-threads=1"]).env("GNNTOP_DIR", dir);
    command
}

/// How the program ended, and what it printed.
pub fn output_of(command: &mut Command) -> (ExitStatus, String) {
    let output = command.output().unwrap();
    (output.status, String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The directories of all sessions under `dir`.
pub fn sessions(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

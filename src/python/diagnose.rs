//! What of Python can be watched here, in words.

use std::fs;
use std::process::{Command, Stdio};

use super::package;

/// What was found, and what a person can do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// Whether Python programs are seen from within.
    pub works: bool,
    /// In words.
    pub detail: String,
    /// What would make more of it work.
    pub remedy: Option<String>,
}

/// Looks at this program, and at the `python3` on the path.
pub fn diagnose() -> Diagnosis {
    let works = package::is_embedded();
    let carried = if works { "carried by this program" } else { "this gnntop was built without the Python package" };
    let python = python_version().map_or_else(
        || "no python3 on PATH".to_owned(),
        |version| format!("python3 is {}: {}", dotted(version), what_is_seen(version)),
    );
    let detail = format!(
        "{carried}; {python}; {}; not reached: python -I, -E and -S, frozen programs, sudo, containers started from within",
        joining(ptrace_scope())
    );
    let remedy = "`pip install gnntop`, or build it with `cargo build --release`";
    Diagnosis { works, detail, remedy: (!works).then(|| remedy.to_owned()) }
}

fn what_is_seen(version: (u32, u32)) -> &'static str {
    if version < (3, 10) { "older than 3.10, so only its hardware is shown" } else { "seen under `gnntop run`" }
}

/// Whether `gnntop attach` may join a Python that runs already.
fn joining(ptrace_scope: Option<u32>) -> String {
    let of_whom = match ptrace_scope {
        None | Some(0) => "this user's",
        Some(1) => "only child processes (ptrace_scope is 1), or with CAP_SYS_PTRACE",
        Some(2) => "with CAP_SYS_PTRACE (ptrace_scope is 2)",
        Some(_) => return "no running Python can be joined (ptrace_scope is 3)".to_owned(),
    };
    format!("a running Python of 3.14 or newer can be joined: {of_whom}")
}

fn ptrace_scope() -> Option<u32> {
    fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok()?.trim().parse().ok()
}

fn dotted((major, minor): (u32, u32)) -> String {
    format!("{major}.{minor}")
}

/// The version of the `python3` that a shell would find.
fn python_version() -> Option<(u32, u32)> {
    let mut command = Command::new("python3");
    let command = command.args(["-I", "-S", "-c", "import sys; print(*sys.version_info[:2])"]).stdin(Stdio::null());
    let output = command.stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().split_once(' ')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diagnosis_matches_the_machine() {
        assert!(what_is_seen((3, 9)).contains("older"));
        assert!(what_is_seen((3, 10)).contains("run"));
        assert!(joining(Some(1)).contains("ptrace_scope is 1") && joining(Some(3)).starts_with("no running"));
    }
}

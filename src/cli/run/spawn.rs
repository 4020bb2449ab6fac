//! Starts a command as a shell does: `sh` runs a script that names no interpreter.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command};

use super::execution::execute_in_child;
use rustix::io::Errno;

/// What a shell reads to decide whether a file is a script.
const HEAD: u64 = 128;

/// Starts `program`, which `prepare` gives its surroundings.
///
/// # Errors
/// As the system says.
pub(super) fn spawn(program: &OsStr, arguments: &[OsString], prepare: impl Fn(&mut Command)) -> io::Result<Child> {
    let started = |command: &mut Command| {
        prepare(command);
        execute_in_child(command)?;
        command.spawn()
    };
    started(Command::new(program).args(arguments)).or_else(|error| {
        let script = find(program).filter(|_| Errno::from_io_error(&error) == Some(Errno::NOEXEC));
        match script.filter(is_text) {
            Some(script) => started(Command::new("/bin/sh").arg(script).args(arguments)),
            None => Err(error),
        }
    })
}

/// The file that the system has found for a name.
fn find(program: &OsStr) -> Option<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return Some(program.into());
    }
    let is_program = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(program)).find(is_program)
}

/// Whether it is no program for another machine.
fn is_text(path: &PathBuf) -> bool {
    let mut head = Vec::new();
    File::open(path).is_ok_and(|file| file.take(HEAD).read_to_end(&mut head).is_ok() && !head.contains(&0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(dir: &tempfile::TempDir, name: &str, bytes: &[u8], mode: u32) -> PathBuf {
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn spawn_runs_a_script_without_an_interpreter_by_a_shell() {
        let dir = tempfile::tempdir().unwrap();
        let script = file(&dir, "script", b"[ \"$1\" = 'a b' ] && exit 7", 0o755);
        let mut child = spawn(script.as_os_str(), &["a b".into()], |_| ()).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(7));
    }

    #[test]
    fn spawn_leaves_signals_as_they_are_and_sets_variables() {
        let ignored = |status: &str| status.lines().find(|line| line.starts_with("SigIgn:")).unwrap().to_owned();
        let own = ignored(&fs::read_to_string("/proc/self/status").unwrap());
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("status");
        // What the standard library has had ignored for this process alone.
        let script = "cat /proc/self/status; echo $ADDED";
        let mut child = spawn(OsStr::new("sh"), &["-c".into(), script.into()], |command| {
            command.env("ADDED", "a b").stdout(File::create(&file).unwrap());
        })
        .unwrap();
        assert!(child.wait().unwrap().success());
        let status = fs::read_to_string(&file).unwrap();
        let mask = |line: &str| u64::from_str_radix(line["SigIgn:".len()..].trim(), 16).unwrap() & (0b11 << 31);
        assert_eq!(mask(&ignored(&status)), mask(&own), "{status}");
        assert!(status.ends_with("a b\n"), "{status}");
    }

    #[test]
    fn spawn_refuses_what_a_shell_refuses() {
        let dir = tempfile::tempdir().unwrap();
        let kind = |path: PathBuf| spawn(path.as_os_str(), &[], |_| ()).unwrap_err().kind();
        assert_eq!(kind(file(&dir, "text", b"exit 7", 0o644)), io::ErrorKind::PermissionDenied);
        assert_eq!(kind(dir.path().join("missing")), io::ErrorKind::NotFound);
        assert_eq!(kind(PathBuf::new()), io::ErrorKind::NotFound, "no word at all");
        let binary = file(&dir, "binary", b"\x7fELF\x02\x01\x01\0\0\0", 0o755);
        assert_eq!(spawn(binary.as_os_str(), &[], |_| ()).unwrap_err().raw_os_error(), Some(libc::ENOEXEC));
    }
}

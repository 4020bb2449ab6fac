//! Executes a program in a child that is forked, as a shell does it. The C library's `posix_spawn`, which the standard library calls
//! otherwise, leaves two of its own signals ignored in the program (32 and 33), and its `execvp` has a shell run what is no program.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{CString, NulError, OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::ptr;

use libc::c_char;

use crate::platform::signals::broken_pipes_were_ignored;

/// Where programs are looked for if nothing says so.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Has the child execute the program after everything else that was prepared, with broken pipes ignored if they were when we began. Only files of its name are tried, by `PATH` if it has no
/// slash; the error is that of a shell.
///
/// # Errors
/// If a word has a NUL.
pub(super) fn execute_in_child(command: &mut Command) -> io::Result<()> {
    let words: Vec<&OsStr> = std::iter::once(command.get_program()).chain(command.get_args()).collect();
    let files = files(command.get_program())?;
    let (words, variables) = (CStrings::new(words)?, variables(command)?);
    let ignores_pipes = broken_pipes_were_ignored();
    let execute = move || {
        if ignores_pipes {
            // SAFETY: a signal's action may be set after a fork. The standard library has just made it the system's.
            unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
        }
        let mut denied = None;
        let mut last = io::Error::from_raw_os_error(libc::ENOENT); // with a number, as a child hands on nothing else
        for file in &files.strings {
            // SAFETY: the file and the lists are live texts with their NULs, and the lists end with null.
            unsafe {
                match &variables {
                    Some(variables) => libc::execve(file.as_ptr(), words.as_ptr(), variables.as_ptr()),
                    None => libc::execv(file.as_ptr(), words.as_ptr()),
                }
            };
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EACCES) => denied = Some(error),
                Some(libc::ENOENT | libc::ENOTDIR | libc::ENODEV | libc::ESTALE | libc::ETIMEDOUT) => last = error,
                _ => return Err(error),
            }
        }
        Err(denied.unwrap_or(last))
    };
    // SAFETY: the closure makes system calls on what was prepared before the fork, and takes no memory and no lock.
    unsafe { command.pre_exec(execute) };
    Ok(())
}

/// The files that may be the program.
fn files(program: &OsStr) -> Result<CStrings, NulError> {
    if program.is_empty() {
        return CStrings::new([]);
    }
    if program.as_bytes().contains(&b'/') {
        return CStrings::new([program]);
    }
    let path = env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
    // An empty entry is the current folder.
    let file = |dir: std::path::PathBuf| {
        if dir.as_os_str().is_empty() { Path::new(".").join(program) } else { dir.join(program) }
    };
    let files: Vec<_> = env::split_paths(&path).map(file).collect();
    CStrings::new(files.iter().map(|file| file.as_os_str()))
}

/// The environment of the child; `None` if it is ours. What does not change stays as it is, also an entry that occurs twice or has
/// no value, as a shell leaves it.
fn variables(command: &Command) -> Result<Option<CStrings>, NulError> {
    let changed: BTreeMap<&OsStr, Option<&OsStr>> = command.get_envs().collect();
    if changed.is_empty() {
        return Ok(None);
    }
    let mut entries = own_environment();
    entries.retain(|entry| !changed.contains_key(name_of(entry)));
    let line = |(name, value): (&OsStr, &OsStr)| [name, OsStr::new("="), value].into_iter().collect::<OsString>();
    entries.extend(changed.iter().filter_map(|(name, value)| Some(line((name, (*value)?)))));
    CStrings::new(entries.iter().map(OsString::as_os_str)).map(Some)
}

/// The name of an entry of the environment.
fn name_of(entry: &OsStr) -> &OsStr {
    let bytes = entry.as_bytes();
    OsStr::from_bytes(bytes.split(|byte| *byte == b'=').next().unwrap_or(bytes))
}

/// The environment that this process was started with, entry by entry.
fn own_environment() -> Vec<OsString> {
    let Ok(mut bytes) = std::fs::read("/proc/self/environ") else {
        let line = |(name, value): (OsString, OsString)| [&*name, OsStr::new("="), &value].into_iter().collect();
        return env::vars_os().map(line).collect();
    };
    if bytes.pop().is_none() {
        return Vec::new();
    }
    bytes.split(|byte| *byte == 0).map(|entry| OsStr::from_bytes(entry).to_owned()).collect()
}

/// Texts as the system takes them.
struct CStrings {
    strings: Vec<CString>,
    /// Where each begins, and null.
    pointers: Vec<*const c_char>,
}

// SAFETY: the pointers are to what is owned beside them, which nobody changes.
unsafe impl Send for CStrings {}
// SAFETY: as above.
unsafe impl Sync for CStrings {}

impl CStrings {
    fn new<'t>(texts: impl IntoIterator<Item = &'t OsStr>) -> Result<Self, NulError> {
        let strings = texts.into_iter().map(|text| CString::new(text.as_bytes())).collect::<Result<Vec<_>, _>>()?;
        let pointers = strings.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect();
        Ok(Self { strings, pointers })
    }

    fn as_ptr(&self) -> *const *const c_char {
        self.pointers.as_ptr()
    }
}

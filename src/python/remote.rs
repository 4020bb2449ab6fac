//! Makes a running Python run our script: the protocol of PEP 768, which Python 3.14 and newer support.
//!
//! The interpreter's state begins with a table of offsets. Into the state of the main thread go the script's
//! path and a request to stop; at its next safe point the interpreter reads the file and runs it. Nothing is stopped, no
//! debugger is attached, and an interpreter that is not at a safe point (it waits in C) runs it when it reaches one.

use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::elf;

/// Begins the table.
const COOKIE: u64 = u64::from_le_bytes(*b"xdebugpy");
/// Words of the table that are read: more than 3.14 and 3.15 have.
const WORDS: usize = 256;
/// Where these are in the table, in words: the same since 3.13.
const VERSION: usize = 1;
const INTERPRETERS_HEAD: usize = 5;
const THREADS_MAIN: usize = 10;
/// Version 3.14, the first that can be asked.
const FIRST: u64 = 0x030E_0000;
/// The table's last three words: the offsets of the request and of the path in a thread's support structure, and the
/// longest path.
const SUPPORT: [u64; 3] = [0, 4, 512];
/// Asks a thread to look whether there is something to do.
const PLEASE_STOP: u64 = 1 << 5;

/// Why a script cannot be run in a process.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// It does not run Python, or one that hides it.
    #[error("no Python interpreter found in it")]
    NoPython,
    /// It runs a Python that cannot be asked.
    #[error("it runs Python {0}, and only 3.14 and newer can be joined while running")]
    TooOld(String),
    /// `PYTHON_DISABLE_REMOTE_DEBUG`, `-X disable_remote_debug`, or built without.
    #[error("its Python was started with remote debugging turned off")]
    TurnedOff,
    /// The system does not let this user look into it.
    #[error("this user may not trace it ({0}): see /proc/sys/kernel/yama/ptrace_scope, or use CAP_SYS_PTRACE")]
    Denied(io::Error),
    /// It sees other files than this program.
    #[error("it runs in its own container: run gnntop inside it")]
    Container,
    /// Its interpreter has no thread yet.
    #[error("its Python is still starting; try it again")]
    Starting,
    /// The file's path is too long for the interpreter.
    #[error("the path {path} is too long for it", path = .0.display())]
    Path(PathBuf),
    /// Its memory cannot be read or written for another reason.
    #[error("its memory cannot be read: {0}")]
    Memory(io::Error),
}

/// Has the main thread of the Python in process `pid` run this file at its next safe point.
///
/// # Errors
/// As [`RemoteError`] says. Then nothing was changed.
pub fn run(pid: u32, script: &Path) -> Result<(), RemoteError> {
    let runtime = find_runtime(pid)?;
    let memory = ProcessMemory::open(pid)?;
    let table = DebugOffsets::read(&memory, runtime)?;
    if !sees_our_files(pid) {
        return Err(RemoteError::Container);
    }
    let interpreter = memory.word(runtime.wrapping_add(table.word(INTERPRETERS_HEAD)))?;
    let [breaker, support, enabled] = table.offsets()?;
    if interpreter == 0 || memory.word(interpreter.wrapping_add(enabled))? as u32 == 0 {
        return Err(RemoteError::TurnedOff);
    }
    let thread = memory.word(interpreter.wrapping_add(table.word(THREADS_MAIN)))?;
    let [request_at, path_at, path_len] = SUPPORT;
    let mut path = script.as_os_str().as_bytes().to_vec();
    path.push(0);
    if thread == 0 {
        return Err(RemoteError::Starting);
    }
    if path.len() as u64 > path_len {
        return Err(RemoteError::Path(script.to_owned()));
    }
    let [breaker, support] = [breaker, support].map(|offset| thread.wrapping_add(offset));
    memory.write(support.wrapping_add(path_at), &path)?;
    memory.write(support.wrapping_add(request_at), &1_u32.to_le_bytes())?;
    // The lowest byte alone: the others are the interpreter's version of its monitoring.
    let asked = memory.word(breaker)? | PLEASE_STOP;
    memory.write(breaker, &asked.to_le_bytes()[..1])
}

/// The table at the beginning of the interpreter's state.
struct DebugOffsets([u64; WORDS]);

impl DebugOffsets {
    fn read(memory: &ProcessMemory, runtime: u64) -> Result<Self, RemoteError> {
        let mut bytes = [0; WORDS * 8];
        memory.read(runtime, &mut bytes)?;
        let mut words = [0; WORDS];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        }
        let table = Self(words);
        match (table.word(0) == COOKIE, table.word(VERSION)) {
            (true, version) if version >= FIRST => Ok(table),
            (true, version) => Err(RemoteError::TooOld(format!("3.{}", version >> 16 & 0xFF))),
            (false, _) => Err(RemoteError::TooOld("before 3.13".to_owned())),
        }
    }

    fn word(&self, at: usize) -> u64 {
        self.0.get(at).copied().unwrap_or(0)
    }

    /// The offsets of the breaker and the support structure in a thread, and of the permission flag in an interpreter.
    /// They are before the end of the table, whose length differs from version to version.
    fn offsets(&self) -> Result<[u64; 3], RemoteError> {
        let at = self.0.windows(6).position(|words| words[3..] == SUPPORT).ok_or(RemoteError::TurnedOff)?;
        Ok([self.word(at), self.word(at + 1), self.word(at + 2)])
    }
}

/// The addresses and the file of a line of `maps`. The file is last and may have spaces.
fn mapped_file(line: &str) -> Option<(&str, &str)> {
    let path = line.get(line.find('/')?..)?;
    Some((line.split_ascii_whitespace().next()?, path.trim_end_matches(" (deleted)")))
}

/// The address of the interpreter's state in the process.
fn find_runtime(pid: u32) -> Result<u64, RemoteError> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).map_err(denied)?;
    let mut tried = Vec::new();
    for line in maps.lines() {
        let Some((range, path)) = mapped_file(line) else { continue };
        // The first mapping of a file is that of its beginning.
        let name = path.rsplit('/').next().unwrap_or(path);
        if !name.contains("python") || tried.contains(&path) {
            continue;
        }
        tried.push(path);
        let start = range.split('-').next().and_then(|start| u64::from_str_radix(start, 16).ok());
        let file = File::open(format!("/proc/{pid}/root{path}"));
        if let (Some(start), Ok(file)) = (start, file)
            && let Some(offset) = elf::section(&file, b".PyRuntime")
        {
            return Ok(start.wrapping_add(offset));
        }
    }
    Err(RemoteError::NoPython)
}

fn sees_our_files(pid: u32) -> bool {
    let of = |process: &str| fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    of(&pid.to_string()) == of("self")
}

fn denied(error: io::Error) -> RemoteError {
    match error.kind() {
        io::ErrorKind::PermissionDenied => RemoteError::Denied(error),
        _ => RemoteError::Memory(error),
    }
}

/// The memory of another process.
struct ProcessMemory(File);

impl ProcessMemory {
    fn open(pid: u32) -> Result<Self, RemoteError> {
        let file = File::options().read(true).write(true).open(format!("/proc/{pid}/mem"));
        file.map(Self).map_err(denied)
    }

    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), RemoteError> {
        self.0.read_exact_at(bytes, address).map_err(denied)
    }

    fn word(&self, address: u64) -> Result<u64, RemoteError> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), RemoteError> {
        self.0.write_all_at(bytes, address).map_err(denied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read_from_its_end() {
        let mut words = [7; WORDS];
        words[88..95].copy_from_slice(&[8, 24, 304, 8076, 0, 4, 512]);
        assert_eq!(DebugOffsets(words).offsets().unwrap(), [24, 304, 8076], "as in 3.14.10");
        assert!(DebugOffsets([7; WORDS]).offsets().is_err());
    }

    #[test]
    fn a_mapped_file_may_have_spaces_in_its_name() {
        let line = "7f00-7f10 r--p 00000000 08:01 12   /home/me/my env/bin/python3.14";
        assert_eq!(mapped_file(line), Some(("7f00-7f10", "/home/me/my env/bin/python3.14")));
        assert_eq!(mapped_file("7f00-7f10 rw-p 00000000 00:00 0   [heap]"), None);
    }

    #[test]
    fn process_without_python_is_recognised() {
        let error = run(std::process::id(), Path::new("/nowhere.py")).unwrap_err();
        assert!(matches!(error, RemoteError::NoPython), "{error}");
    }
}

//! Whether a filter (seccomp) decides which system calls this thread may make. One that is not expected may end the program.

use std::fs::File;
use std::io::Read as _;

/// Longer than a thread's status usually is, in bytes.
const STATUS: usize = 4096;

/// Whether the calling thread's system calls are filtered: by a container, by systemd, or by a program that has restricted itself.
/// Also true if that cannot be found out. It is read from a file, since filters may forbid the call that asks for it (prctl(2)).
pub fn has_syscall_filter() -> bool {
    // Read at once: this is asked before each stack.
    let mut status = Vec::with_capacity(STATUS);
    let read = File::open("/proc/thread-self/status").and_then(|mut file| file.read_to_end(&mut status));
    read.is_err() || is_filtered(&status)
}

/// What a thread's status (proc(5)) says. Kernels without filters have no such line.
fn is_filtered(status: &[u8]) -> bool {
    let mode = status.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"Seccomp:"));
    mode.is_some_and(|mode| mode.trim_ascii() != b"0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_filtered_only_with_a_mode_other_than_0() {
        assert!(is_filtered(b"NoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n"));
        assert!(!is_filtered(b"NoNewPrivs:\t0\nSeccomp:\t0\nSeccomp_filters:\t0\n"));
        assert!(!is_filtered(b"Name:\tpython\n"));
    }
}

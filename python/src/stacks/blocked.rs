//! The system call that a thread waits in: the native frame below its Python frames, where the kernel reports it. It does not
//! stop the thread, and reports nothing of one that runs.

use std::fs;

use gnntop_probe::WaitingCall;

use super::mounts;
use crate::memory::Process;

/// Calls that take long where they wait, and whether their first argument is a file descriptor.
const CALLS: [(libc::c_long, &str, bool); 31] = [
    (libc::SYS_read, "read", true),
    (libc::SYS_pread64, "pread", true),
    (libc::SYS_readv, "readv", true),
    (libc::SYS_preadv, "preadv", true),
    (libc::SYS_write, "write", true),
    (libc::SYS_pwrite64, "pwrite", true),
    (libc::SYS_writev, "writev", true),
    (libc::SYS_recvfrom, "recv", true),
    (libc::SYS_recvmsg, "recvmsg", true),
    (libc::SYS_sendto, "send", true),
    (libc::SYS_sendmsg, "sendmsg", true),
    (libc::SYS_accept, "accept", true),
    (libc::SYS_accept4, "accept", true),
    (libc::SYS_connect, "connect", true),
    (libc::SYS_fsync, "fsync", true),
    (libc::SYS_fdatasync, "fdatasync", true),
    (libc::SYS_flock, "flock", true),
    (libc::SYS_fcntl, "fcntl", true),
    (libc::SYS_ioctl, "ioctl", true),
    (libc::SYS_openat, "open", false),
    (libc::SYS_futex, "futex", false),
    (libc::SYS_ppoll, "poll", false),
    (libc::SYS_pselect6, "select", false),
    (libc::SYS_epoll_pwait, "epoll_wait", false),
    (libc::SYS_nanosleep, "nanosleep", false),
    (libc::SYS_clock_nanosleep, "clock_nanosleep", false),
    (libc::SYS_wait4, "wait", false),
    (libc::SYS_waitid, "wait", false),
    (libc::SYS_msync, "msync", false),
    (libc::SYS_munmap, "munmap", false),
    (libc::SYS_io_getevents, "io_getevents", false),
];
/// Older calls that only this architecture has.
#[cfg(target_arch = "x86_64")]
const OLDER: [(libc::c_long, &str, bool); 3] =
    [(libc::SYS_poll, "poll", false), (libc::SYS_select, "select", false), (libc::SYS_epoll_wait, "epoll_wait", false)];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: [(libc::c_long, &str, bool); 0] = [];

/// Longest name of a file.
const MAX_NAME: usize = 60;

/// The call that this thread waits in, as a frame ([`WaitingCall`]); `None` if it runs, or where the kernel does not report it.
pub(super) fn frame(process: &Process, thread: libc::pid_t) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{}/task/{thread}/syscall", process.id())).ok()?;
    let (name, descriptor) = parse_syscall(&text)?;
    let target = descriptor.and_then(|descriptor| Target::find(process, descriptor));
    let (target, filesystem) = target.map_or((None, None), |target| (Some(target.name), target.filesystem));
    Some(WaitingCall { name, target: target.as_deref(), filesystem: filesystem.as_deref() }.frame())
}

/// The address that this thread of this process waits for another to change, as for a lock; `None` if it does not.
pub(super) fn futex(thread: libc::pid_t) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/self/task/{thread}/syscall")).ok()?;
    let mut words = text.split_whitespace();
    let number: libc::c_long = words.next()?.parse().ok()?;
    let address = words.next()?.strip_prefix("0x")?;
    if number == libc::SYS_futex { u64::from_str_radix(address, 16).ok() } else { None }
}

/// The name of the call in a line of `/proc/PID/task/TID/syscall` (proc(5)), and the file descriptor that it was given.
fn parse_syscall(line: &str) -> Option<(&'static str, Option<u32>)> {
    let mut words = line.split_whitespace();
    let number: libc::c_long = words.next()?.parse().ok()?;
    let (_, name, has_descriptor) = CALLS.iter().chain(&OLDER).find(|(known, ..)| *known == number)?;
    let mut first = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    let descriptor = if *has_descriptor { first().and_then(|fd| u32::try_from(fd).ok()) } else { None };
    Some((name, descriptor))
}

/// What a file descriptor refers to.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    /// The kind, or the name of a file.
    name: String,
    /// The type of a file's file system.
    filesystem: Option<String>,
}

impl Target {
    fn find(process: &Process, descriptor: u32) -> Option<Self> {
        let path = fs::read_link(format!("/proc/{}/fd/{descriptor}", process.id())).ok()?;
        let path = path.to_str()?;
        let kind = match path.split_once(':') {
            Some(("pipe", _)) => Some(WaitingCall::PIPE),
            Some(("socket", _)) => Some(WaitingCall::SOCKET),
            _ if path.starts_with("/dev/pts/") || path.starts_with("/dev/tty") => Some(WaitingCall::TERMINAL),
            _ => None,
        };
        if let Some(kind) = kind {
            return Some(Self { name: kind.to_owned(), filesystem: None });
        }
        let name = path.rsplit('/').next()?.chars().filter(|c| !c.is_control()).take(MAX_NAME).collect();
        Some(Self { name, filesystem: mounts::filesystem(process, path) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, pipe};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, mpsc};
    use std::thread;
    use std::time::Duration;

    #[test]
    fn syscall_line_is_parsed() {
        let line = |number: libc::c_long| format!("{number} 0x3 0x7f00 0x1 0x0 0x0 0x0 0x7ffd 0x7f11");
        assert_eq!(parse_syscall(&line(libc::SYS_read)), Some(("read", Some(3))));
        assert_eq!(parse_syscall(&line(libc::SYS_futex)), Some(("futex", None)));
        for nothing in ["running", "-1 0x7ffd 0x7f11", "", "99999 0x0"] {
            assert_eq!(parse_syscall(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn target_of_file_has_its_file_system() {
        use std::os::fd::AsRawFd;
        let process = Process::own().unwrap();
        let target = |file: &dyn AsRawFd| Target::find(&process, file.as_raw_fd() as u32).unwrap();
        let own = fs::File::open("/proc/self/stat").unwrap();
        assert_eq!(target(&own), Target { name: "stat".to_owned(), filesystem: Some("proc".to_owned()) });
        let (_, writer) = pipe().unwrap();
        assert_eq!(target(&writer), Target { name: "a pipe".to_owned(), filesystem: None });
    }

    #[test]
    fn blocked_frame_of_waiting_thread_and_none_of_running_thread() {
        let (mut reader, writer) = pipe().unwrap();
        let (send, receive) = mpsc::channel();
        let waiting = thread::spawn(move || {
            // SAFETY: the call has no preconditions.
            send.send(unsafe { libc::gettid() }).unwrap();
            reader.read(&mut [0]).unwrap()
        });
        let id = receive.recv().unwrap();
        let seen = || {
            thread::sleep(Duration::from_millis(10));
            frame(&Process::own().unwrap(), id)
        };
        let Some(seen) = (0..200).find_map(|_| seen()) else {
            return eprintln!("skipped: this kernel does not report the system calls of threads");
        };
        assert_eq!(seen, "read of a pipe (<system call>)");
        drop(writer);
        assert_eq!(waiting.join().unwrap(), 0);
        let (send, receive) = mpsc::channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let busy = thread::spawn({
            let is_over = Arc::clone(&is_over);
            move || {
                // SAFETY: as above.
                send.send(unsafe { libc::gettid() }).unwrap();
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            }
        });
        let id = receive.recv().unwrap();
        assert!((0..200).any(|_| frame(&Process::own().unwrap(), id).is_none()), "a thread that runs waits in no call");
        is_over.store(true, Ordering::Relaxed);
        busy.join().unwrap();
    }
}

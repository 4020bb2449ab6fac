//! Threads of gnntop's in the program: they get none of the program's signals.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::thread::JoinHandle;

/// What starts a thread; one that fails, for tests.
pub(crate) type Spawn = fn(&str, Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>>;

/// Starts a thread on which every signal but a fault of its own is blocked: the program's handlers run on the program's threads, and a signal that
/// the system sends to the writer of a file (SIGXFSZ) becomes an error of that write and does not end the program.
pub(crate) fn spawn(name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>> {
    let _blocked = BlockedSignals::new();
    spare_address_space();
    std::thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES).spawn(body)
}

/// Enough for what our threads do, and for the driver that the sensors ask.
const STACK_BYTES: usize = 512 << 10;

/// Under a limit on the address space (`ulimit -v`): has the allocator of glibc share what it has between threads. It would
/// reserve 64 MiB for each new thread, ours among them, and a program that fits into its limit alone would not with us.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn spare_address_space() {
    use rustix::process::{Resource, getrlimit};
    if getrlimit(Resource::As).current.is_some() && std::env::var_os("MALLOC_ARENA_MAX").is_none() {
        // SAFETY: it only sets a number of the allocator's, which takes its own lock for that.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn spare_address_space() {}

/// What the processor raises where a thread goes wrong. Blocked, it would end the program without its crash handler.
const FAULTS: [libc::c_int; 7] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS, libc::SIGABRT];

/// All signals but [`FAULTS`] blocked on the calling thread, and on those it starts, until this is dropped.
struct BlockedSignals {
    /// What was blocked before, where the system told.
    before: Option<libc::sigset_t>,
}

impl BlockedSignals {
    fn new() -> Self {
        let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: both are valid places for a set; `all` is written by `sigfillset`, which cannot fail, before it is read,
        // and `before` is read only where the call says that it wrote it.
        let before = unsafe {
            libc::sigfillset(all.as_mut_ptr());
            FAULTS.iter().for_each(|signal| _ = libc::sigdelset(all.as_mut_ptr(), *signal));
            let status = libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
            (status == 0).then(|| before.assume_init())
        };
        Self { before }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // SAFETY: `before` is a set that the system wrote.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, ptr::null_mut()) };
        }
    }
}

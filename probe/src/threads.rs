//! gnntop's own threads in the program: they receive none of the program's signals.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::thread::JoinHandle;

/// Starts a thread; tests replace it by one that fails.
pub(crate) type Spawn = fn(&str, Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>>;

/// Starts a thread that blocks every signal except its own faults. So the program's handlers run on the program's threads,
/// and a signal that the system sends to a file's writer (SIGXFSZ) becomes a write error instead of ending the program.
pub(crate) fn spawn(name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>> {
    let _blocked = BlockedSignals::new();
    spare_address_space();
    std::thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES).spawn(body)
}

/// How the names of our threads begin.
const OURS: &[u8] = b"gnntop";

/// Whether the program is over but for our threads, which would keep it alive: its main thread has ended by itself (`pthread_exit`), and
/// then its others. Where the system does not say, it is not.
#[cfg(target_os = "linux")]
pub(crate) fn are_alone() -> bool {
    let main = std::process::id().to_string();
    let read = |thread: &str, file: &str| std::fs::read(format!("/proc/self/task/{thread}/{file}")).unwrap_or_default();
    if !is_zombie(&read(&main, "stat")) {
        return false;
    }
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let names: Vec<String> = threads.filter_map(|thread| thread.file_name().into_string().ok()).collect();
    !names.is_empty() && names.iter().all(|thread| *thread == main || read(thread, "comm").starts_with(OURS))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn are_alone() -> bool {
    false
}

/// Whether this file `stat` is that of a thread that has ended. The state follows the name, which may have any characters.
#[cfg(target_os = "linux")]
fn is_zombie(stat: &[u8]) -> bool {
    let after_name = stat.iter().rposition(|byte| *byte == b')').map(|at| &stat[at..]);
    after_name.is_some_and(|state| state.starts_with(b") Z"))
}

/// Enough for our threads, and for the GPU driver that the sensors call.
const STACK_BYTES: usize = 512 << 10;

/// Under an address space limit (`ulimit -v`), makes glibc's allocator use one arena for all threads. Otherwise it reserves
/// 64 MiB for each new thread, including ours, and a program that just fits its limit would no longer fit.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn spare_address_space() {
    if gnntop_sessions::Limit::AddressSpace.current().is_some() && std::env::var_os("MALLOC_ARENA_MAX").is_none() {
        // SAFETY: it only sets an allocator parameter, under the allocator's own lock.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn spare_address_space() {}

/// Raised by the CPU when a thread faults. If blocked, they would end the program without its crash handler.
const FAULTS: [libc::c_int; 7] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS, libc::SIGABRT];

/// Blocks all signals except [`FAULTS`] on the calling thread and the threads it starts, until this is dropped.
struct BlockedSignals {
    /// What was blocked before, if the system reported it.
    previous_mask: Option<libc::sigset_t>,
}

impl BlockedSignals {
    fn new() -> Self {
        let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: both are valid places for a set. `all` is written by `sigfillset`, which cannot fail, before it is read.
        // `before` is read only if the call reports that it was written.
        let previous_mask = unsafe {
            libc::sigfillset(all.as_mut_ptr());
            FAULTS.iter().for_each(|signal| _ = libc::sigdelset(all.as_mut_ptr(), *signal));
            let status = libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
            (status == 0).then(|| before.assume_init())
        };
        Self { previous_mask }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        if let Some(before) = &self.previous_mask {
            // SAFETY: `before` is a set that the system wrote.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, ptr::null_mut()) };
        }
    }
}

//! Ends a training run that the system refuses memory with one line that names the rank.
//!
//! Rust itself would abort: a line without a rank, a core dump, and under MPI a page of addresses. Code here must
//! neither allocate nor unwind.

use std::alloc::{GlobalAlloc, Layout};
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Wraps a global allocator: once training has started, the process ends when memory is refused. Before that, and in
/// programs that train nothing, the refusal is passed on.
#[derive(Debug)]
pub struct EndsWhenRefused<A> {
    inner: A,
}

/// Whether training has started.
static TRAINS: AtomicBool = AtomicBool::new(false);
/// The rank that this process is; `NO_RANK` if it is not one, or is several.
static RANK: AtomicU32 = AtomicU32::new(NO_RANK);
const NO_RANK: u32 = u32::MAX;
/// A thread is writing the line.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// From now on, this process ends when it is refused memory.
pub(crate) fn training_begins() {
    TRAINS.store(true, Ordering::Relaxed);
}

/// This process is the rank with this number, and no other.
pub(crate) fn this_process_is(rank: u32) {
    RANK.store(rank, Ordering::Relaxed);
}

impl<A> EndsWhenRefused<A> {
    /// Allocates with `inner`.
    pub const fn new(inner: A) -> Self {
        Self { inner }
    }
}

// SAFETY: every call goes to `inner` with the caller's arguments and returns its answer; on a refusal the process may
// end, without allocating or unwinding.
unsafe impl<A: GlobalAlloc> GlobalAlloc for EndsWhenRefused<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps `alloc`'s contract.
        granted(unsafe { self.inner.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps `alloc_zeroed`'s contract.
        granted(unsafe { self.inner.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps `dealloc`'s contract.
        unsafe { self.inner.dealloc(memory, layout) };
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller keeps `realloc`'s contract.
        granted(unsafe { self.inner.realloc(memory, layout, new_size) }, new_size)
    }
}

#[inline]
fn granted(memory: *mut u8, bytes: usize) -> *mut u8 {
    if memory.is_null() && TRAINS.load(Ordering::Relaxed) {
        end(bytes);
    }
    memory
}

/// Writes the line and ends the process.
#[cold]
fn end(bytes: usize) -> ! {
    // A second thread waits for the end.
    while IS_ENDING.swap(true, Ordering::Relaxed) {
        // SAFETY: pause waits for a signal and touches no memory.
        unsafe { libc::pause() };
    }
    let (mut line, mut name) = ([0; 192], [0; 16]);
    let len = words(&mut line, RANK.load(Ordering::Relaxed), thread_name(&mut name), bytes);
    // SAFETY: write reads the first `len` bytes of a live buffer that is longer.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), len) };
    // SAFETY: _exit runs nothing more of this program.
    unsafe { libc::_exit(1) }
}

/// Writes the line to `line`, cut to its size, and returns the length.
fn words(line: &mut [u8], rank: u32, thread: &str, bytes: usize) -> usize {
    let room = line.len();
    let mut rest = &mut line[..];
    // The threads that a rank computes with are named after it: `rank 1 thread 0`.
    let of_thread = thread.strip_prefix("rank ").and_then(|rest| rest.split(' ').next()?.parse().ok());
    let rank = Some(rank).filter(|rank| *rank != NO_RANK).or(of_thread);
    // A cut line says enough.
    let _ = match rank {
        Some(rank) => writeln!(rest, "gnntop: rank {rank} is out of memory: the system refuses {bytes} more bytes"),
        None => writeln!(rest, "gnntop: out of memory: the system refuses {bytes} more bytes to thread \"{thread}\""),
    };
    room - rest.len()
}

/// The calling thread's name; empty if unknown.
fn thread_name(name: &mut [u8; 16]) -> &str {
    #[cfg(target_os = "linux")]
    // SAFETY: PR_GET_NAME writes at most 16 bytes into a live buffer of 16, the last of them 0.
    unsafe {
        libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr())
    };
    let len = name.iter().position(|byte| *byte == 0).unwrap_or(0);
    std::str::from_utf8(&name[..len]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(rank: u32, thread: &str) -> String {
        let mut line = [0; 192];
        let len = words(&mut line, rank, thread, 33_554_432);
        String::from_utf8(line[..len].to_vec()).unwrap()
    }

    #[test]
    fn the_line_names_the_rank() {
        let one = "gnntop: rank 1 is out of memory: the system refuses 33554432 more bytes\n";
        assert_eq!(refusal(1, "loader 0"), one);
        // Threads of one process are named after their rank; the system cuts the name at 15 bytes.
        assert_eq!([refusal(NO_RANK, "rank 1"), refusal(NO_RANK, "rank 1 thread 0")], [one, one]);
        assert!(refusal(NO_RANK, "rank 12 thread ").contains("rank 12 is out of"));
        let other = "gnntop: out of memory: the system refuses 33554432 more bytes to thread \"loader 0\"\n";
        assert_eq!(refusal(NO_RANK, "loader 0"), other);
    }

    #[test]
    fn a_line_that_is_too_long_is_cut() {
        let mut line = [0; 20];
        assert_eq!(words(&mut line, 7, "", 1), 20);
        assert_eq!(&line, b"gnntop: rank 7 is ou");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_thread_knows_its_name() {
        let named = std::thread::Builder::new().name("rank 3 thread 1".to_owned());
        let thread = named.spawn(|| thread_name(&mut [0; 16]).to_owned()).unwrap();
        assert_eq!(thread.join().unwrap(), "rank 3 thread 1");
    }

    #[test]
    fn memory_that_is_granted_is_the_inner_allocators() {
        let allocator = EndsWhenRefused::new(std::alloc::System);
        let layout = Layout::from_size_align(64, 8).unwrap();
        // SAFETY: the layout has a size; what is given back was allocated with it, or resized from it.
        unsafe {
            let memory = allocator.alloc_zeroed(layout);
            assert_eq!(*memory, 0);
            let larger = allocator.realloc(memory, layout, 128);
            assert_eq!(*larger, 0);
            allocator.dealloc(larger, Layout::from_size_align(128, 8).unwrap());
        }
    }
}

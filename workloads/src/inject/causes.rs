//! The causes themselves.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use gnntop_probe::{NameRef, mark};
use memmap2::MmapMut;

use gnntop_nn::subnormals::keeping_subnormals;

/// Default number of threads per core: enough that the training thread waits for a core most of the time.
const THREADS_A_CORE: usize = 3;
/// No page is smaller, so that every one is touched.
const PAGE: usize = 4096;

/// Sleeps, and sets a mark with the milliseconds where there is one.
pub(super) fn pause(time: Duration, name: Option<NameRef>) {
    thread::sleep(time);
    if let Some(name) = name {
        mark(name, Some(time.as_secs_f64() * 1e3));
    }
}

/// Waits until the process ends, without using the processor, like a lock that is never released.
pub(super) fn wait_for_ever() {
    loop {
        thread::park();
    }
}

/// Takes fresh pages directly from the system, since the allocator would keep some; touches each and frees all.
pub(super) fn fault(bytes: usize) -> std::io::Result<()> {
    let mut pages = MmapMut::map_anon(bytes)?;
    // With huge pages there would be five hundred times fewer faults. If they cannot be turned off, there are fewer.
    #[cfg(target_os = "linux")]
    let _ = pages.advise(memmap2::Advice::NoHugePage);
    touch(&mut pages);
    Ok(())
}

/// Memory that is in use, every page of it.
pub(super) fn occupied(bytes: usize) -> Vec<u8> {
    let mut memory = vec![0; bytes];
    touch(&mut memory);
    memory
}

fn touch(memory: &mut [u8]) {
    memory.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
    black_box(memory);
}

/// Multiplies `count` times with a subnormal result, which this thread does not flush to zero in that time. Returns the
/// number of results that were subnormal.
pub(super) fn multiply_subnormals(count: u32) -> u64 {
    const START: f32 = 1e-40;
    keeping_subnormals(|| {
        let (mut x, factor) = (black_box(START), black_box(0.999_f32));
        let mut subnormal = 0;
        for _ in 0..count {
            x = black_box(x * factor);
            subnormal += u64::from(x.is_subnormal());
            x = if x < START * 0.5 { START } else { x };
        }
        subnormal
    })
}

/// Threads that keep cores busy until this is dropped.
#[derive(Debug)]
pub(super) struct Spinners {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Spinners {
    /// Starts the threads, without those that the system refuses.
    pub(super) fn start(threads: Option<usize>) -> Self {
        let count = threads
            .unwrap_or_else(|| THREADS_A_CORE * thread::available_parallelism().map_or(1, std::num::NonZero::get));
        let is_over = Arc::new(AtomicBool::new(false));
        let spawn = |_| {
            let is_over = Arc::clone(&is_over);
            let spin = move || {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            };
            thread::Builder::new().name("injected load".to_owned()).spawn(spin).ok()
        };
        let threads = (0..count).filter_map(spawn).collect();
        Self { is_over, threads }
    }

    /// How many threads run.
    pub(super) fn count(&self) -> usize {
        self.threads.len()
    }
}

impl Drop for Spinners {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // They cannot panic.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn every_page_is_a_fault() {
        let faults = || {
            // SAFETY: getrusage fills the struct, which is plain numbers, and reads nothing else.
            let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
            // SAFETY: `usage` is live and of the type that the call fills.
            let done = unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
            assert_eq!(done, 0);
            usage.ru_minflt
        };
        let before = faults();
        fault(16 << 20).unwrap();
        assert!(faults() - before >= (16 << 20) / PAGE as i64);
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_results_are_subnormal_and_the_thread_is_as_before() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        pool.install(|| {
            gnntop_nn::subnormals::set_subnormals(gnntop_nn::subnormals::Subnormals::Flush);
            let is_flushed = || black_box(f32::MIN_POSITIVE) * black_box(0.5) == 0.0;
            assert!(is_flushed());
            assert_eq!(multiply_subnormals(1000), 1000);
            assert!(is_flushed());
        });
    }

    #[test]
    fn spinners_end_with_what_holds_them() {
        let spinners = Spinners::start(Some(3));
        assert_eq!(spinners.count(), 3);
        let is_over = Arc::clone(&spinners.is_over);
        drop(spinners);
        assert!(is_over.load(Ordering::Relaxed));
        assert_eq!(Arc::strong_count(&is_over), 1, "a thread is left");
    }

    #[test]
    fn occupied_memory_is_as_large_as_asked_for() {
        let memory = occupied(10_000);
        assert_eq!((memory.len(), memory[0], memory[4096], memory[1]), (10_000, 1, 1, 0));
    }
}

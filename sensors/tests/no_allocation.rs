//! A sampling pass allocates nothing once the set is warm, whether its signals are there or absent.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use gnntop_sensors::{SensorOptions, SensorSet};

/// The system's allocator, counting the allocations of each thread.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations_of_warm_passes(options: &SensorOptions) -> (u64, usize) {
    let mut set = SensorSet::open(options);
    let mut readings = 0;
    for _ in 0..3 {
        readings = 0;
        set.read(&mut |_| readings += 1);
    }
    let before = ALLOCATIONS.with(Cell::get);
    for _ in 0..100 {
        set.read(&mut |_| ());
    }
    (ALLOCATIONS.with(Cell::get) - before, readings)
}

#[test]
fn a_warm_pass_allocates_nothing() {
    // An empty folder counts: the counter itself works.
    let before = ALLOCATIONS.with(Cell::get);
    drop(std::hint::black_box(vec![0_u8; 10]));
    assert_eq!(ALLOCATIONS.with(Cell::get) - before, 1);

    let here = SensorOptions { gpu: false, ..SensorOptions::default() };
    let (allocations, readings) = allocations_of_warm_passes(&here);
    assert!(readings > 20, "{readings} readings");
    assert_eq!(allocations, 0);
}

#[test]
fn a_pass_over_absent_signals_allocates_nothing() {
    // The standard library builds paths of up to 384 bytes on the stack when it opens a file.
    let nowhere = SensorOptions {
        proc_root: "/nonexistent/proc".into(),
        sys_root: "/nonexistent/sys".into(),
        nvml_library: Some("/nonexistent/libnvidia-ml.so.1".into()),
        ..SensorOptions::default()
    };
    assert_eq!(allocations_of_warm_passes(&nowhere), (0, 0));
}

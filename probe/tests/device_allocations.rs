//! What watching a device's memory takes from the training thread: nothing that the thread would have to wait for.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use gnntop_probe::device::{Attach, Holdings, report_holdings};
use gnntop_probe::{Session, TrackRole, phase, span, step};
use gnntop_simulated::{DeviceModel, Simulated, SimulatedPool};

/// Counts the calling thread's allocations.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator as it came; counting touches a plain thread-local.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps `alloc`'s contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps `dealloc`'s contract.
        unsafe { System.dealloc(memory, layout) };
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn train(steps: u64) {
    for _ in 0..steps {
        let _step = step(0);
        drop(span(&phase::FORWARD));
        drop(span(&phase::BACKWARD));
    }
}

#[test]
fn device_spans_allocate_nothing_on_training_thread() {
    let temp = tempfile::tempdir().unwrap();
    let session =
        Session::builder("watched").directory(temp.path()).sensors(None).on_warning(|w| panic!("{w}")).start();
    let _track = session.track("train", TrackRole::Training);
    // Names that are used for the first time are registered then, with or without a device.
    train(1);
    let pool = SimulatedPool::new(1 << 30);
    let device = Simulated::new(DeviceModel::default());
    assert!(Attach::new("a device").stream(device).pool(Box::new(pool.clone())).start());
    report_holdings(Holdings { parameters: 1, gradients: 1, optimizer: 2 });
    let before = ALLOCATIONS.get();
    train(1);
    std::thread::sleep(Duration::from_millis(110)); // at most ten steps a second are measured
    train(1);
    assert_eq!(ALLOCATIONS.get() - before, 0, "allocations in two measured steps");
    assert!(pool.reads() >= 10, "both steps were measured: {} reads", pool.reads());
}

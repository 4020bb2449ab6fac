//! The data that NCCL passes to a profiler, byte for byte: versions 3, 4 and 5 of the interface, as in NCCL's headers
//! `plugin/profiler/profiler_v*.h`. Of events that are not requested, only the size matters.

use std::ffi::{c_char, c_int, c_void};

/// A collective.
pub(super) const COLLECTIVE: u64 = 1 << 1;
/// A send or receive.
pub(super) const POINT_TO_POINT: u64 = 1 << 2;
/// One channel of an operation's kernel.
pub(super) const KERNEL_CHANNEL: u64 = 1 << 6;
/// The state that reports when the GPU ended a kernel's channel.
pub(super) const KERNEL_CHANNEL_STOPPED: c_int = 22;

/// The start of an event. Version 5 has the kind in 64 bits, the others in the first 8 of them.
#[repr(C)]
pub(super) struct Descriptor<T> {
    pub(super) kind: u64,
    pub(super) parent: *mut c_void,
    pub(super) rank: c_int,
    pub(super) details: T,
}

/// A collective in version 3.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Collective3 {
    pub(super) communicator: *const c_char,
    pub(super) communicator_hash: u64,
    pub(super) sequence: u64,
    pub(super) function: *const c_char,
    pub(super) send_buffer: *const c_void,
    pub(super) receive_buffer: *mut c_void,
    pub(super) count: usize,
    pub(super) root: c_int,
    pub(super) datatype: *const c_char,
    pub(super) most_channels: u8,
    pub(super) warps: u8,
    pub(super) algorithm: *const c_char,
    pub(super) protocol: *const c_char,
}

/// A send or receive in version 3.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct PointToPoint3 {
    pub(super) communicator: *const c_char,
    pub(super) communicator_hash: u64,
    pub(super) function: *const c_char,
    pub(super) buffer: *mut c_void,
    pub(super) datatype: *const c_char,
    pub(super) count: usize,
    pub(super) peer: c_int,
}

/// A collective in version 4; version 5 appends another pointer.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Collective4 {
    pub(super) sequence: u64,
    pub(super) function: *const c_char,
    pub(super) send_buffer: *const c_void,
    pub(super) receive_buffer: *mut c_void,
    pub(super) count: usize,
    pub(super) root: c_int,
    pub(super) datatype: *const c_char,
    pub(super) channels: u8,
    pub(super) warps: u8,
    pub(super) algorithm: *const c_char,
    pub(super) protocol: *const c_char,
}

/// A send or receive in version 4; version 5 appends another pointer.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct PointToPoint4 {
    pub(super) function: *const c_char,
    pub(super) buffer: *mut c_void,
    pub(super) datatype: *const c_char,
    pub(super) count: usize,
    pub(super) peer: c_int,
    pub(super) channels: u8,
}

/// A kernel's channel; version 3 has no time.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct KernelChannel {
    pub(super) channel: u8,
    /// The GPU's clock when the kernel began, in nanoseconds; 0 if it was not read.
    pub(super) began_ns: u64,
}

/// The details of the state in which a kernel's channel stopped.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct KernelChannelStopped {
    pub(super) ended_ns: u64,
}

pub(super) type StartEvent = unsafe extern "C" fn(*mut c_void, *mut *mut c_void, *const c_void) -> c_int;
pub(super) type StopEvent = unsafe extern "C" fn(*mut c_void) -> c_int;
pub(super) type RecordState = unsafe extern "C" fn(*mut c_void, c_int, *const c_void) -> c_int;
pub(super) type Finalize = unsafe extern "C" fn(*mut c_void) -> c_int;
pub(super) type Init3 = unsafe extern "C" fn(*mut *mut c_void, *mut c_int) -> c_int;
pub(super) type Init4 =
    unsafe extern "C" fn(*mut *mut c_void, *mut c_int, *const c_char, u64, c_int, c_int, c_int, *const c_void) -> c_int;
pub(super) type Init5 =
    unsafe extern "C" fn(*mut *mut c_void, u64, *mut c_int, *const c_char, c_int, c_int, c_int, *const c_void) -> c_int;

/// The struct that NCCL finds as `ncclProfiler_v` and a version; only `init` differs between versions.
#[repr(C)]
pub struct Profiler<Init> {
    pub(super) name: *const c_char,
    pub(super) init: Init,
    pub(super) start_event: StartEvent,
    pub(super) stop_event: StopEvent,
    pub(super) record_state: RecordState,
    pub(super) finalize: Finalize,
}

// SAFETY: the name is a constant of this library, and the functions may be called from any thread.
unsafe impl<Init: Sync> Sync for Profiler<Init> {}

/// The layouts of the C headers on the 64-bit machines that NCCL runs on.
#[cfg(target_pointer_width = "64")]
const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(Descriptor<Collective4>, details) == 24);
    assert!(offset_of!(Collective3, count) == 48 && offset_of!(Collective3, most_channels) == 72);
    assert!(offset_of!(PointToPoint3, count) == 40 && offset_of!(PointToPoint3, peer) == 48);
    assert!(offset_of!(Collective4, count) == 32 && offset_of!(Collective4, channels) == 56);
    assert!(offset_of!(PointToPoint4, count) == 24 && offset_of!(PointToPoint4, channels) == 36);
    assert!(offset_of!(KernelChannel, began_ns) == 8);
    assert!(size_of::<Profiler<Init4>>() == 48);
};

//! A profiler plugin for NCCL: data exchanged by the ranks' GPUs, as one track per communicator.
//!
//! NCCL opens the library that `NCCL_PROFILER_PLUGIN` names and looks for the newest version of its interface: 5 (NCCL 2.28
//! and newer), 4 (2.27) and 3 (2.26) exist here. Older versions of NCCL do not report when the GPU worked, and find nothing.
//!
//! The plugin requests collectives, sends and receives, and the channels of their kernels, which show when the GPU did the
//! work. Without a session each call returns at once. No call fails, and only creating and closing a communicator may wait.

mod communicators;
mod layout;
mod operations;

use std::borrow::Cow;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

use communicators::EventHandle;
use layout::{
    COLLECTIVE, Collective3, Collective4, Descriptor, Init3, Init4, Init5, KERNEL_CHANNEL, KERNEL_CHANNEL_STOPPED,
    KernelChannel, KernelChannelStopped, POINT_TO_POINT, PointToPoint3, PointToPoint4, Profiler,
};
use operations::Work;

use crate::session;
use crate::warning::{self, catch_panic};

/// Return value of every call: `ncclSuccess`.
const SUCCESS: c_int = 0;
/// The requested events.
const WANTED: u64 = COLLECTIVE | POINT_TO_POINT | KERNEL_CHANNEL;
const NAME: &CStr = c"gnntop";

/// NCCL's entry point for version 3.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "NCCL looks for this name")]
pub static ncclProfiler_v3: Profiler<Init3> = profiler(init_3, start_event::<Version3>);
/// NCCL's entry point for version 4.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "NCCL looks for this name")]
pub static ncclProfiler_v4: Profiler<Init4> = profiler(init_4, start_event::<Version4>);
/// NCCL's entry point for version 5.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "NCCL looks for this name")]
pub static ncclProfiler_v5: Profiler<Init5> = profiler(init_5, start_event::<Version5>);

const fn profiler<Init>(init: Init, start_event: layout::StartEvent) -> Profiler<Init> {
    Profiler { name: NAME.as_ptr(), init, start_event, stop_event, record_state, finalize }
}

/// Differences between the versions in the start of an event.
trait Version {
    type Collective: Copy;
    type PointToPoint: Copy;
    /// Whether the kind has 64 bits rather than 8.
    const WIDE: bool;
    /// Whether a kernel's channel has the GPU's clock.
    const HAS_CLOCK: bool;

    fn collective(told: &Self::Collective) -> ReportedOperation;
    fn point_to_point(told: &Self::PointToPoint) -> ReportedOperation;
}

/// An operation as reported by NCCL.
struct ReportedOperation {
    function: *const c_char,
    datatype: *const c_char,
    count: usize,
    channels: u8,
}

struct Version3;
struct Version4;
struct Version5;

impl Version for Version3 {
    type Collective = Collective3;
    type PointToPoint = PointToPoint3;
    const WIDE: bool = false;
    const HAS_CLOCK: bool = false;

    // It reports the most channels possible, not their actual number.
    fn collective(told: &Collective3) -> ReportedOperation {
        ReportedOperation { function: told.function, datatype: told.datatype, count: told.count, channels: 0 }
    }

    fn point_to_point(told: &PointToPoint3) -> ReportedOperation {
        ReportedOperation { function: told.function, datatype: told.datatype, count: told.count, channels: 0 }
    }
}

impl Version for Version4 {
    type Collective = Collective4;
    type PointToPoint = PointToPoint4;
    const WIDE: bool = false;
    const HAS_CLOCK: bool = true;

    fn collective(told: &Collective4) -> ReportedOperation {
        ReportedOperation {
            function: told.function,
            datatype: told.datatype,
            count: told.count,
            channels: told.channels,
        }
    }

    fn point_to_point(told: &PointToPoint4) -> ReportedOperation {
        ReportedOperation {
            function: told.function,
            datatype: told.datatype,
            count: told.count,
            channels: told.channels,
        }
    }
}

impl Version for Version5 {
    type Collective = Collective4;
    type PointToPoint = PointToPoint4;
    const WIDE: bool = true;
    const HAS_CLOCK: bool = true;

    fn collective(told: &Collective4) -> ReportedOperation {
        Version4::collective(told)
    }

    fn point_to_point(told: &PointToPoint4) -> ReportedOperation {
        Version4::point_to_point(told)
    }
}

/// # Safety
/// `context` and `mask` are NULL or can be written.
unsafe extern "C" fn init_3(context: *mut *mut c_void, mask: *mut c_int) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { init(context, mask, ptr::null(), 1) }
}

/// # Safety
/// `context` and `mask` are NULL or can be written, `name` is NULL or a C string.
unsafe extern "C" fn init_4(
    context: *mut *mut c_void,
    mask: *mut c_int,
    name: *const c_char,
    _hash: u64,
    machines: c_int,
    _ranks: c_int,
    _rank: c_int,
    _log: *const c_void,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { init(context, mask, name, machines) }
}

/// # Safety
/// As for [`init_4`].
unsafe extern "C" fn init_5(
    context: *mut *mut c_void,
    _hash: u64,
    mask: *mut c_int,
    name: *const c_char,
    machines: c_int,
    _ranks: c_int,
    _rank: c_int,
    _log: *const c_void,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { init(context, mask, name, machines) }
}

/// Creates a communicator of ranks on this many machines. Its context is a number, never dereferenced; NULL if it is not observed.
///
/// # Safety
/// As for [`init_4`].
unsafe fn init(context: *mut *mut c_void, mask: *mut c_int, name: *const c_char, machines: c_int) -> c_int {
    let (at, wanted) = catch_panic((None, 0), || {
        if session::is_off() {
            return (None, 0);
        }
        warning::set_panic_hook();
        // SAFETY: as the caller promises.
        let name = String::from_utf8_lossy(unsafe { c_bytes(&name) });
        let name = if name.is_empty() { Cow::Borrowed("nccl") } else { Cow::Owned(format!("nccl {name}")) };
        // NCCL has one mask for all communicators, so it is the same even if this one cannot be observed.
        (communicators::open(&name, machines > 1), WANTED as c_int)
    });
    if !context.is_null() {
        // SAFETY: it is not NULL, so it can be written.
        unsafe { *context = ptr::without_provenance_mut(at.map_or(0, |at| at + 1)) };
    }
    if !mask.is_null() {
        // SAFETY: as above.
        unsafe { *mask = wanted };
    }
    SUCCESS
}

/// # Safety
/// `event` is NULL or can be written, `descriptor` is NULL or one of this version.
unsafe extern "C" fn start_event<V: Version>(
    context: *mut c_void,
    event: *mut *mut c_void,
    descriptor: *const c_void,
) -> c_int {
    let handle = catch_panic(None, || {
        // SAFETY: as the caller promises.
        (!descriptor.is_null()).then(|| unsafe { begin_event::<V>(context, descriptor) })?
    });
    if !event.is_null() {
        let bits = handle.map_or(0, EventHandle::to_bits);
        // SAFETY: it is not NULL, so it can be written. Its old value may belong to another event.
        unsafe { *event = ptr::without_provenance_mut(usize::try_from(bits).unwrap_or(0)) };
    }
    SUCCESS
}

/// The handle of an event that begins; `None` if it was not requested.
///
/// # Safety
/// `descriptor` must be one of this version.
unsafe fn begin_event<V: Version>(context: *mut c_void, descriptor: *const c_void) -> Option<EventHandle> {
    // SAFETY: every descriptor begins with its kind, in this version's width.
    let kind = unsafe { if V::WIDE { *descriptor.cast::<u64>() } else { u64::from(*descriptor.cast::<u8>()) } };
    match kind {
        COLLECTIVE => {
            let at = context.addr().checked_sub(1)?;
            // SAFETY: an event of this kind has these details.
            let told = unsafe { V::collective(&(*descriptor.cast::<Descriptor<V::Collective>>()).details) };
            // SAFETY: NCCL's texts are C strings.
            communicators::start(at, unsafe { work(&told) })
        }
        POINT_TO_POINT => {
            let at = context.addr().checked_sub(1)?;
            // SAFETY: as above.
            let told = unsafe { V::point_to_point(&(*descriptor.cast::<Descriptor<V::PointToPoint>>()).details) };
            // SAFETY: as above.
            communicators::start(at, unsafe { work(&told) })
        }
        KERNEL_CHANNEL => {
            // SAFETY: every descriptor has its parent at this offset.
            let parent = unsafe { (*descriptor.cast::<Descriptor<()>>()).parent };
            let gpu_ns = if V::HAS_CLOCK {
                // SAFETY: an event of this kind has these details, including the clock.
                unsafe { (*descriptor.cast::<Descriptor<KernelChannel>>()).details.began_ns }
            } else {
                0
            };
            communicators::begin_channel(EventHandle::from_bits(parent.addr() as u64)?, gpu_ns)
        }
        _ => None,
    }
}

/// # Safety
/// The texts are NULL or C strings.
unsafe fn work(told: &ReportedOperation) -> Work {
    // SAFETY: as the caller promises.
    let (function, datatype) = unsafe { (c_bytes(&told.function), c_bytes(&told.datatype)) };
    let bytes = operations::datatype_bytes(datatype).map(|size| size.saturating_mul(told.count as u64));
    Work { kind: operations::kind_from_name(function), bytes, channels: u32::from(told.channels) }
}

/// # Safety
/// The text is NULL or a C string, and stays as long as the pointer to it.
unsafe fn c_bytes(text: &*const c_char) -> &[u8] {
    if text.is_null() {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(*text) }.to_bytes()
}

/// The channel of a kernel that `event` represents.
fn channel_of_event(event: *mut c_void) -> Option<EventHandle> {
    EventHandle::from_bits(event.addr() as u64).filter(|handle| handle.is_channel)
}

/// An operation stops when it was submitted, which means nothing; a kernel's channel stops when the GPU is done with it.
unsafe extern "C" fn stop_event(event: *mut c_void) -> c_int {
    catch_panic((), || {
        if let Some(channel) = channel_of_event(event) {
            communicators::end_channel(channel);
        }
    });
    SUCCESS
}

/// # Safety
/// `details` is NULL or what this state comes with.
unsafe extern "C" fn record_state(event: *mut c_void, state: c_int, details: *const c_void) -> c_int {
    catch_panic((), || {
        if state == KERNEL_CHANNEL_STOPPED
            && !details.is_null()
            && let Some(channel) = channel_of_event(event)
        {
            // SAFETY: this state has these details.
            let ended_ns = unsafe { (*details.cast::<KernelChannelStopped>()).ended_ns };
            communicators::channel_ended_at(channel, ended_ns);
        }
    });
    SUCCESS
}

/// Closes a communicator.
unsafe extern "C" fn finalize(context: *mut c_void) -> c_int {
    catch_panic((), || {
        if let Some(at) = context.addr().checked_sub(1) {
            communicators::close(at);
        }
    });
    SUCCESS
}

//! The C interface: `include/gnntop.h` describes each call. Nothing unwinds out of here.
#![allow(missing_docs, reason = "the header says it, where those who call it look")]

use std::borrow::Cow;
use std::ffi::{CStr, c_char};
use std::time::Duration;

use gnntop_probe::{Fact, NameKind, TrackRole, after};

use crate::early::EarlyEvent;
use crate::warning::catch_panic;
use crate::{names, session, stacks, thread, training, warning};

/// The roles of tracks, by their numbers in `gnntop.h`.
const ROLES: [TrackRole; 5] =
    [TrackRole::Other, TrackRole::Training, TrackRole::Loader, TrackRole::Operators, TrackRole::Stream];
/// The version of the interface.
const ABI: i32 = 1;
/// What `gnntop_status` returns for a worker.
const WORKER: i32 = 5;
/// The kind of a name that readers know the meaning of.
const REPORTED: i32 = 4;

/// The text at `text`; empty for NULL.
///
/// # Safety
/// `text` must be NULL or point to bytes that end with a NUL and do not change during the call.
pub(crate) unsafe fn text<'a>(text: *const c_char) -> Cow<'a, str> {
    if text.is_null() {
        return Cow::Borrowed("");
    }
    // SAFETY: guaranteed by the caller.
    unsafe { CStr::from_ptr(text) }.to_string_lossy()
}

/// Copies as much of `text` as fits, and a NUL; returns the full length.
///
/// # Safety
/// `buffer` must be NULL or have room for `size` bytes.
pub(crate) unsafe fn copy_out(text: &str, buffer: *mut c_char, size: i32) -> i32 {
    let room = usize::try_from(size).unwrap_or(0);
    if !buffer.is_null() && room > 0 {
        let len = text.floor_char_boundary(room - 1).min(text.len());
        // SAFETY: `len` bytes and the NUL fit into the room that the caller guarantees. The two do not overlap, as `text`
        // is ours.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr().cast(), buffer, len);
            *buffer.add(len) = 0;
        }
    }
    i32::try_from(text.len()).unwrap_or(i32::MAX)
}

#[unsafe(no_mangle)]
pub extern "C" fn gnntop_abi() -> i32 {
    ABI
}

/// # Safety
/// `name` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gnntop_name(kind: i32, name: *const c_char) -> i32 {
    catch_panic(0, || {
        warning::set_panic_hook();
        session::watch_forks();
        // SAFETY: as the caller promises.
        let name = unsafe { text(name) };
        let plain = usize::try_from(kind).ok().and_then(|kind| NameKind::PLAIN.get(kind));
        let kind = if kind == REPORTED { names::reported(&name) } else { plain.copied().unwrap_or_default() };
        names::register(kind, &name)
    })
}

/// # Safety
/// `name` and `facts` are NULL or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gnntop_open(name: *const c_char, facts: *const c_char) -> i32 {
    catch_panic(0, || {
        // SAFETY: as the caller promises.
        let (name, facts) = unsafe { (text(name), text(facts)) };
        let is_worker = thread::with(false, |thread| thread.is_worker());
        i32::from(!is_worker && thread::open_session(&name, &facts))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn gnntop_close() {
    catch_panic((), || {
        training::finish();
        thread::with((), |thread| thread.release(u64::MAX));
        session::close();
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn gnntop_flush() -> i32 {
    catch_panic(0, || i32::from(session::with_session(gnntop_probe::Session::flush).unwrap_or(false)))
}

#[unsafe(no_mangle)]
pub extern "C" fn gnntop_status() -> i32 {
    catch_panic(session::Status::Failed as i32, || match thread::with(false, |thread| thread.is_worker()) {
        true => WORKER,
        false => match session::state().0 {
            session::Status::Publishing if !session::is_publishing() => session::Status::Failed as i32,
            status => status as i32,
        },
    })
}

/// # Safety
/// `key` and `value` are NULL or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gnntop_fact(key: *const c_char, value: *const c_char) {
    catch_panic((), || {
        // SAFETY: as the caller promises.
        let (key, text) = unsafe { (text(key), text(value)) };
        if !key.is_empty() {
            session::fact(Fact::Other { key: key.into_owned(), text: text.into_owned() });
        }
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn gnntop_resumed(steps: u64) {
    catch_panic((), || session::fact(Fact::Resumed { steps }));
}

/// # Safety
/// `by` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gnntop_goal(more_steps: u64, epochs: u64, by: *const c_char) {
    catch_panic((), || {
        // SAFETY: as the caller promises.
        let by = unsafe { text(by) };
        session::goal(thread::with(0, |thread| thread.steps_done()), more_steps, epochs, by.into_owned());
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn gnntop_loader_workers(workers: u64) {
    catch_panic((), || session::fact(Fact::LoaderWorkers(workers)));
}

/// # Safety
/// `number_type` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gnntop_parameters(number_type: *const c_char, dense_embeddings: u64) {
    catch_panic((), || {
        // SAFETY: as the caller promises.
        let number_type = unsafe { text(number_type) }.into_owned();
        session::fact(Fact::Parameters { number_type, dense_embeddings });
    });
}

/// # Safety
/// `what` and `amount` are NULL or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gnntop_not_recorded(what: *const c_char, amount: *const c_char) {
    catch_panic((), || {
        // SAFETY: as the caller promises.
        let (what, amount) = unsafe { (text(what), text(amount)) };
        session::fact(Fact::NotRecorded { what: what.into_owned(), amount: amount.into_owned() });
    });
}

/// # Safety
/// `how` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gnntop_inferred(name: i32, how: *const c_char) {
    catch_panic((), || {
        // SAFETY: as the caller promises.
        let how = unsafe { text(how) };
        if let Some(named) = names::get(name) {
            session::fact(Fact::Inferred { phase: named.text.to_string(), how: how.into_owned() });
        }
    });
}

/// # Safety
/// `buffer` is NULL or has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gnntop_text(which: i32, buffer: *mut c_char, size: i32) -> i32 {
    catch_panic(0, || {
        let text = match which {
            0 => session::directory(),
            1 => warning::text(),
            2 => session::request(),
            _ => String::new(),
        };
        // SAFETY: as the caller promises.
        unsafe { copy_out(&text, buffer, size) }
    })
}

/// # Safety
/// `name` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gnntop_track(name: *const c_char, role: i32) -> i32 {
    catch_panic(0, || {
        // SAFETY: as the caller promises.
        let name = unsafe { text(name) };
        let role = usize::try_from(role).ok().and_then(|role| ROLES.get(role)).copied().unwrap_or(TrackRole::Other);
        thread::with(0, |thread| if thread.track(&name, role) { thread.trains().max(1) as i32 } else { 0 })
    })
}

/// # Safety
/// `expected` is NULL or a C string. The calling thread may call CPython.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gnntop_stacks(expected: *const c_char, least_ms: i32, a_second: i32) -> i32 {
    catch_panic(0, || {
        // SAFETY: as the caller promises.
        let expected = unsafe { text(expected) };
        let least = Duration::from_millis(u64::try_from(least_ms).unwrap_or(0));
        match stacks::watch(&expected, least, u32::try_from(a_second).unwrap_or(0)) {
            Ok(()) => 1,
            Err(why) => {
                session::fact(Fact::NoStacks { why: format!("none: {why}") });
                0
            }
        }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn gnntop_asked() -> i32 {
    i32::from(session::is_requested())
}

/// # Safety
/// `request` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gnntop_answered(request: *const c_char) {
    catch_panic((), || {
        // SAFETY: as the caller promises.
        let answered = unsafe { text(request) };
        session::close_request(&answered);
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn gnntop_track_end() {
    catch_panic((), || thread::with((), |thread| thread.track_end()));
}

#[unsafe(no_mangle)]
pub extern "C" fn gnntop_begin(name: i32) -> i32 {
    catch_panic(0, || thread::with(0, |thread| thread.begin(name)))
}

#[unsafe(no_mangle)]
pub extern "C" fn gnntop_end() {
    catch_panic((), || thread::with((), |thread| thread.end()));
}

#[unsafe(no_mangle)]
pub extern "C" fn gnntop_end_to(depth: i32) {
    catch_panic((), || thread::with((), |thread| thread.end_to(depth)));
}

#[unsafe(no_mangle)]
pub extern "C" fn gnntop_stamp(slot: i32) {
    catch_panic((), || thread::with((), |thread| thread.stamp(slot)));
}

#[unsafe(no_mangle)]
pub extern "C" fn gnntop_span_between(name: i32, begin_slot: i32, end_slot: i32) {
    catch_panic((), || {
        thread::with((), |thread| {
            if let (Some(begin), Some(end)) = (thread.stamped(begin_slot), thread.stamped(end_slot))
                && end >= begin
            {
                thread.record(EarlyEvent::Span { name, begin, end });
            }
        });
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn gnntop_now() -> u64 {
    catch_panic(0, after::ticks)
}

#[unsafe(no_mangle)]
pub extern "C" fn gnntop_span_at(name: i32, begin: u64, end: u64) {
    catch_panic((), || {
        if begin != 0 && end >= begin {
            thread::with((), |thread| thread.record(EarlyEvent::Span { name, begin, end }));
        }
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn gnntop_ns(ticks: u64) -> f64 {
    catch_panic(0.0, || after::ticks_ns(ticks) as f64)
}

#[unsafe(no_mangle)]
pub extern "C" fn gnntop_batch(nodes: i64, edges: i64, graphs: i64, seeds: i64, samples: i64) {
    catch_panic((), || {
        thread::with((), |thread| thread.set_shape([nodes, edges, graphs, seeds, samples, -1]));
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn gnntop_epoch(epoch: i64) {
    catch_panic((), || thread::with((), |thread| thread.set_epoch(u64::try_from(epoch).unwrap_or(0))));
}

#[unsafe(no_mangle)]
pub extern "C" fn gnntop_step() -> i32 {
    catch_panic(0, || thread::with(0, |thread| thread.end_step(None, after::ticks())))
}

#[unsafe(no_mangle)]
pub extern "C" fn gnntop_step_between(begin_slot: i32, end_slot: i32) -> i32 {
    catch_panic(0, || {
        thread::with(0, |thread| {
            let begin = if begin_slot < 0 { None } else { thread.stamped(begin_slot) };
            thread.stamped(end_slot).map_or(0, |end| thread.end_step(begin, end))
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn gnntop_traced() {
    catch_panic((), || thread::with((), |thread| thread.set_traced()));
}

#[unsafe(no_mangle)]
pub extern "C" fn gnntop_counter(name: i32, value: f64) {
    catch_panic((), || {
        thread::with((), |thread| thread.record(EarlyEvent::Counter { name, at: after::ticks(), value }))
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn gnntop_counter_int(name: i32, value: i32) {
    gnntop_counter(name, f64::from(value));
}

fn mark(name: i32, value: Option<f64>) {
    catch_panic((), || thread::with((), |thread| thread.record(EarlyEvent::Mark { name, at: after::ticks(), value })));
}

#[unsafe(no_mangle)]
pub extern "C" fn gnntop_mark(name: i32) {
    mark(name, None);
}

#[unsafe(no_mangle)]
pub extern "C" fn gnntop_mark_value(name: i32, value: f64) {
    mark(name, Some(value));
}

#[unsafe(no_mangle)]
pub extern "C" fn gnntop_mark_since(name: i32, slot: i32) {
    catch_panic((), || {
        thread::with((), |thread| {
            let end = after::ticks();
            thread.record(match thread.stamped(slot) {
                Some(begin) => EarlyEvent::TimedMark { name, begin, end },
                None => EarlyEvent::Mark { name, at: end, value: None },
            });
        });
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn gnntop_mark_at(name: i32, begin: u64, end: u64) {
    catch_panic((), || {
        if begin != 0 && end >= begin {
            thread::with((), |thread| thread.record(EarlyEvent::TimedMark { name, begin, end }));
        }
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn gnntop_allocation(bytes: i64, live_bytes: u64) {
    catch_panic((), || thread::with((), |thread| thread.allocation(bytes, live_bytes)));
}

#[unsafe(no_mangle)]
pub extern "C" fn gnntop_cuda(device: i32, stream: u64) -> i32 {
    catch_panic(0, || i32::from(crate::cuda::attach(device, stream)))
}

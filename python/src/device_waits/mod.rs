//! How often the training thread waits for a device, and where: `item()` and the like of tensors that are not on the CPU, and
//! synchronization.
//!
//! Nothing of Python's is replaced. A built-in function refers to a table of C functions; it is made to refer to a copy, whose
//! function calls the original. To the program it is the same object, of the same type, in all that Python shows of it. Where the
//! layout is not the known one, the function is left alone.

mod function;
mod place;

use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::OnceLock;

use gnntop_probe::after;

use crate::abi::gnntop_span_at;
use crate::batches;
use crate::cpython::{METH_NOARGS, Object, Python};
use crate::warning::catch_panic;
use crate::{thread, training};
use function::Function;

/// Shorter waits are counted, and their places are not looked up.
const WORTH_A_PLACE_NS: u64 = 20_000;
const METH_KEYWORDS: c_int = 0x03;

/// What a watched function does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// It reads a value of a tensor, which is waited for where the tensor is on a device.
    ForValue = 0,
    /// It does so, but what it does on the CPU is no read.
    ForTensor = 1,
    /// It always waits for a device.
    Always = 2,
}

/// A watched function, and what Python calls it.
struct WatchedFunction {
    function: Function,
    waits: Waits,
    text: String,
}

type WithoutArguments = unsafe extern "C" fn(Object, Object) -> Object;
type WithKeywords = unsafe extern "C" fn(Object, Object, Object) -> Object;

/// Most functions that are watched.
const MOST: usize = 16;
static WATCHED: [OnceLock<WatchedFunction>; MOST] = [const { OnceLock::new() }; MOST];
/// For each place in the table, the function that stands for the one there.
macro_rules! for_each_place {
    ($of:ident) => {
        for_each_place!($of 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
    ($of:ident $($at:literal)+) => {
        [$($of::<$at>),+]
    };
}
static WITHOUT_ARGUMENTS: [WithoutArguments; MOST] = for_each_place!(without_arguments);
static WITH_KEYWORDS: [WithKeywords; MOST] = for_each_place!(with_keywords);

/// Watches a built-in function or method from now on. Returns whether it is one that can be watched.
///
/// # Safety
/// As for [`Python::small`].
pub(crate) unsafe fn watch(python: &Python, object: Object, waits: i32) -> bool {
    let Some(waits) = [Waits::ForValue, Waits::ForTensor, Waits::Always].into_iter().find(|it| *it as i32 == waits)
    else {
        return false;
    };
    // SAFETY: guaranteed by the caller.
    let Some(function) = (unsafe { Function::find(python, object) }) else { return false };
    let Some(at) = WATCHED.iter().position(|place| match place.get() {
        Some(known) => known.function.is_of(object),
        None => true,
    }) else {
        return false;
    };
    let call = match function.flags() {
        METH_NOARGS => WITHOUT_ARGUMENTS[at] as *const (),
        METH_KEYWORDS => WITH_KEYWORDS[at] as *const (),
        _ => return false,
    };
    let text = function.name().trim_matches('_').to_owned();
    let watched = WATCHED[at].get_or_init(|| WatchedFunction { function, waits, text });
    // SAFETY: the function takes its arguments as the original does, by the same flags. The object is never released.
    unsafe {
        (python.keep)(object);
        watched.function.replace(call);
    }
    true
}

/// Functions that were watched are as before.
pub(crate) fn switch_off() {
    WATCHED.iter().filter_map(OnceLock::get).for_each(|watched| watched.function.restore());
}

unsafe extern "C" fn without_arguments<const AT: usize>(this: Object, nothing: Object) -> Object {
    // SAFETY: Python calls this in place of a function with these arguments; a place is filled before it is called.
    unsafe {
        let Some(watched) = WATCHED[AT].get() else { return null_mut() };
        let real = std::mem::transmute::<*const (), WithoutArguments>(watched.function.original());
        around(watched, this, || real(this, nothing))
    }
}

unsafe extern "C" fn with_keywords<const AT: usize>(this: Object, arguments: Object, names: Object) -> Object {
    // SAFETY: as above.
    unsafe {
        let Some(watched) = WATCHED[AT].get() else { return null_mut() };
        let real = std::mem::transmute::<*const (), WithKeywords>(watched.function.original());
        around(watched, this, || real(this, arguments, names))
    }
}

/// Calls the original, and measures it if it waits for a device.
#[inline]
unsafe fn around(watched: &WatchedFunction, this: Object, call: impl FnOnce() -> Object) -> Object {
    // SAFETY: guaranteed by the caller: Python calls this, and holds the interpreter.
    let Some(python) = (unsafe { Python::get() }).filter(|_| training::computes()) else { return call() };
    let is_device = match watched.waits {
        Waits::Always => true,
        // SAFETY: as above.
        _ => match unsafe { batches::is_on_cpu(python, this) } {
            Some(is_on_cpu) => !is_on_cpu,
            None => return call(),
        },
    };
    if !is_device {
        if watched.waits == Waits::ForValue {
            thread::with((), |thread| thread.waits.reads += 1);
        }
        return call();
    }
    let begin = after::ticks();
    let result = call();
    // SAFETY: as above.
    unsafe { waited(python, watched, begin) };
    result
}

/// The training thread has waited for a device since then.
unsafe fn waited(python: &Python, watched: &WatchedFunction, begin: u64) {
    let end = after::ticks();
    let ns = after::ticks_ns(end.saturating_sub(begin));
    thread::with((), |thread| {
        thread.waits.times += 1;
        thread.waits.ns += ns;
    });
    if ns >= WORTH_A_PLACE_NS {
        // SAFETY: guaranteed by the caller.
        let name = catch_panic(0, || unsafe { place::name(python, &watched.text) });
        gnntop_span_at(name, begin, end);
    }
}

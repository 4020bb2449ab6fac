//! Work of a training loop in a process with Python: it begins and ends without a frame of Python.
//!
//! What needs Python, such as opening the session with what torch says of itself, calls one of the functions that Python has
//! set with `listen`. They handle their own errors: what they raise is the program's, such as a signal's handler's.

use std::ffi::{CStr, c_long};
use std::ptr::null_mut;

use crate::cpython::{Object, Python, Raised};
use crate::listeners::{self, Listener, listener};
use crate::steps::{OptimizerId, Work};
use crate::training::{self, Needs, Settled};
use crate::{batches, roots, session};

/// Calls what Python has set, if it has. `argument` makes a reference, or returns NULL for none.
///
/// # Safety
/// As for [`Python::small`], and for all that follows.
#[inline]
pub(crate) unsafe fn notify(
    python: &Python,
    function: Object,
    argument: impl FnOnce() -> Object,
) -> Result<(), Raised> {
    if !function.is_null() {
        // SAFETY: guaranteed by the caller; what Python has set is never released.
        unsafe {
            let result = python.call_ours(function, argument())?;
            (python.release)(result);
        }
    }
    Ok(())
}

/// Says that a phase has ended or begins.
#[inline]
unsafe fn notify_edge(python: &Python, edge: &'static CStr) -> Result<(), Raised> {
    // SAFETY: guaranteed by the caller.
    unsafe { notify(python, listener(Listener::Edge), || (python.new_text)(edge.as_ptr())) }
}

/// Searches for roots, if there may be new ones.
#[inline]
unsafe fn find_roots(python: &Python) -> Result<(), Raised> {
    if listener(Listener::Roots).is_null() {
        return Ok(());
    }
    let function = listeners::take(Listener::Roots);
    // SAFETY: guaranteed by the caller.
    unsafe { notify(python, function, null_mut) }
}

/// Notes what is of interest when a forward pass begins, if it has not been.
#[inline]
unsafe fn note_forward(python: &Python) -> Result<(), Raised> {
    if listener(Listener::Forward).is_null() {
        return Ok(());
    }
    let function = listeners::take(Listener::Forward);
    // SAFETY: guaranteed by the caller.
    unsafe { notify(python, function, null_mut) }
}

/// A module is called, or NULL: outside of all roots it may be one that is not known yet.
///
/// # Safety
/// As for [`Python::small`], but for NULL.
#[inline]
pub(crate) unsafe fn called(python: &Python, module: Object) -> Result<(), Raised> {
    let function = listener(Listener::Call);
    if function.is_null() || module.is_null() || roots::contains(module) || !training::is_between() {
        return Ok(());
    }
    // SAFETY: guaranteed by the caller; the reference is the argument's.
    unsafe {
        (python.keep)(module);
        notify(python, function, || module)
    }
}

/// Opens the session if the thread is the first that needs one, and its track; or says that its process is not seen.
#[inline]
unsafe fn open(python: &Python, needs: Needs) -> Result<(), Raised> {
    let code = match needs {
        Needs::Nothing => return Ok(()),
        Needs::Track => 0,
        Needs::Session => 1,
        Needs::Notice => 2,
    };
    // SAFETY: guaranteed by the caller.
    unsafe { notify(python, listener(Listener::Open), || (python.new_int)(code)) }
}

/// Work begins. Returns what its end is to be told, or `None` if it is not recorded.
///
/// # Safety
/// As for [`Python::small`].
#[inline]
pub(crate) unsafe fn begin(python: &Python, work: Work) -> Result<Option<i32>, Raised> {
    // SAFETY: guaranteed by the caller, here and below.
    unsafe {
        notify(python, listener(Listener::Work), null_mut)?;
        if work == Work::Forward && training::accepts(work) {
            note_forward(python)?;
        }
        if work == Work::Gradients && is_nested(python)? {
            return Ok(None);
        }
        match work {
            Work::ZeroGrad => find_roots(python)?,
            Work::Fetch if training::accepts(work) => find_roots(python)?,
            Work::Backward | Work::Gradients => {
                find_roots(python)?;
                open(python, training::train(work))?;
            }
            Work::Forward | Work::ForwardWithoutGradients
                if !listener(Listener::Edge).is_null() && training::accepts(work) =>
            {
                notify_edge(python, c"begin")?;
            }
            _ => {}
        }
    }
    let (token, ended) = training::begin(work);
    // SAFETY: guaranteed by the caller.
    let told = ended.map_or(Ok(()), |number| unsafe { step_ended(python, number) });
    if let (Err(Raised), Some(token)) = (&told, token) {
        training::end(work, token); // what raised is the program's, whose call is not made
    }
    told.map(|()| token)
}

/// Whether gradients that are computed now are a part of a function that is differentiated: then they are of its forward pass.
unsafe fn is_nested(python: &Python) -> Result<bool, Raised> {
    let is_nested = listener(Listener::IsNested);
    if is_nested.is_null() {
        return Ok(false);
    }
    // SAFETY: guaranteed by the caller; what Python has set is never released.
    unsafe { Ok(python.truth(python.call_ours(is_nested, null_mut())?)) }
}

/// A step has ended.
unsafe fn step_ended(python: &Python, number: i32) -> Result<(), Raised> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if session::is_requested() {
            notify(python, listener(Listener::Request), || (python.new_int)(c_long::from(number)))?;
        }
        notify_edge(python, c"step")
    }
}

/// Work other than a fetch has ended.
///
/// # Safety
/// As for [`Python::small`].
#[inline]
pub(crate) unsafe fn end(python: &Python, work: Work, token: i32, optimizer: OptimizerId) -> Result<(), Raised> {
    training::end(work, token);
    let edge = match work {
        Work::Forward | Work::ForwardWithoutGradients | Work::Evaluation => c"forward",
        Work::Backward | Work::Gradients => c"backward",
        Work::Optimizer | Work::Closure => c"optimizer",
        _ => return Ok(()),
    };
    // SAFETY: guaranteed by the caller.
    unsafe {
        notify_edge(python, edge)?;
        let Settled { step, is_inference } = training::settle(work, optimizer);
        if is_inference {
            open(python, training::before_infer())?;
            training::infer();
        }
        let Some(number) = step else { return Ok(()) };
        step_ended(python, number)
    }
}

/// A fetch has ended with this batch: NULL or None for none.
///
/// # Safety
/// As for [`Python::small`], but for NULL.
#[inline]
pub(crate) unsafe fn fetched(python: &Python, token: i32, batch: Object) -> Result<(), Raised> {
    training::end(Work::Fetch, token);
    let is_none = batch.is_null() || batch == python.none;
    // SAFETY: guaranteed by the caller.
    let shape = if is_none { None } else { Some(unsafe { batches::shape_of(python, batch) }?) };
    training::fetched(shape);
    Ok(())
}

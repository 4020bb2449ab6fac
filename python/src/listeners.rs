//! What Python sets with `listen`: functions that native code calls, and objects of torch's that it needs.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use crate::cpython::Object;

/// What Python sets: functions, and objects of torch's.
#[derive(Clone, Copy)]
pub(crate) enum Listener {
    /// Takes whether the session is to be opened, and opens the track of the thread.
    Open = 0,
    /// Searches for root modules; called once for each time that it is set.
    Roots = 1,
    /// Returns whether torch tells a `TorchFunctionMode` of what is done now.
    IsHeard = 2,
    /// Takes the name of a phase that has ended, "begin" before forward, or "step" at a step's end.
    Edge = 3,
    /// Takes the number of a step that has ended while a person asks for something.
    Request = 4,
    /// Returns whether gradients are computed.
    IsGradEnabled = 5,
    /// The type of tensors.
    Tensor = 6,
    /// The type of parameters.
    Parameter = 7,
    /// Returns a context in which torch tells no such mode.
    Unheard = 8,
    /// Called when the next forward pass begins; once for each time that it is set.
    Forward = 9,
    /// Takes a module that is no root and is called outside of all that are.
    Call = 10,
    /// Called when work begins, while a deep trace runs.
    Work = 11,
    /// Returns whether what is differentiated now is differentiated again, as by `torch.func.grad` of such a function.
    IsNested = 12,
    /// Takes an optimizer whose step begins, at most once a second.
    Gradients = 13,
}

static LISTENERS: [AtomicPtr<c_void>; 14] = [const { AtomicPtr::new(null_mut()) }; 14];

/// What Python has set, or NULL.
#[inline]
pub(crate) fn listener(which: Listener) -> Object {
    LISTENERS[which as usize].load(Acquire)
}

/// Sets a function or an object, or NULL for none; returns whether there is such a listener. It is never released.
pub(crate) fn listen(which: i32, object: Object) -> bool {
    let listener = usize::try_from(which).ok().and_then(|which| LISTENERS.get(which));
    if let Some(listener) = listener {
        listener.store(object, Release);
    }
    listener.is_some()
}

/// Takes what Python has set, or NULL: it is not set afterwards.
pub(crate) fn take(which: Listener) -> Object {
    LISTENERS[which as usize].swap(null_mut(), AcqRel)
}

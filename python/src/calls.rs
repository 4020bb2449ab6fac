//! Calls of ours in the middle of the program's: what it was about to raise is raised afterwards.

use std::ptr::null_mut;

use crate::cpython::{Object, Python, Raised};

impl Python {
    /// Does something while no exception is set; one that was is set again afterwards.
    ///
    /// # Safety
    /// As for [`small`](Self::small). `f` must leave none set.
    pub(crate) unsafe fn aside(&self, f: impl FnOnce()) {
        let (mut kind, mut value, mut trace) = (null_mut(), null_mut(), null_mut());
        // SAFETY: guaranteed by the caller; `restore` takes over what was fetched.
        unsafe {
            (self.fetch)(&raw mut kind, &raw mut value, &raw mut trace);
            f();
            if !kind.is_null() {
                (self.restore)(kind, value, trace);
            }
        }
    }

    /// A tuple of these references, which it takes over.
    ///
    /// # Safety
    /// As for [`small`](Self::small).
    pub(crate) unsafe fn tuple<const N: usize>(&self, items: [Object; N]) -> Object {
        // SAFETY: guaranteed by the caller; the tuple is new, and has room for them.
        unsafe {
            let tuple = (self.new_tuple)(N as isize);
            for (at, item) in (0..).zip(items) {
                (self.set_item)(tuple, at, item);
            }
            tuple
        }
    }

    /// Calls a function of ours, which handles its own errors: what it raises is the program's. An exception that is set
    /// meanwhile is set again afterwards. `argument` is NULL, or a reference that is taken over.
    ///
    /// # Safety
    /// As for [`small`](Self::small).
    pub(crate) unsafe fn call_ours(&self, function: Object, argument: Object) -> Result<Object, Raised> {
        let (mut kind, mut value, mut trace) = (null_mut(), null_mut(), null_mut());
        // SAFETY: guaranteed by the caller. The tuple takes over the argument, and `restore` what was fetched.
        unsafe {
            (self.fetch)(&raw mut kind, &raw mut value, &raw mut trace);
            let arguments = if argument.is_null() { null_mut() } else { self.tuple([argument]) };
            let result = (self.call_object)(function, arguments);
            if !arguments.is_null() {
                (self.release)(arguments);
            }
            if result.is_null() {
                for object in [kind, value, trace].into_iter().filter(|object| !object.is_null()) {
                    (self.release)(object);
                }
                return Err(Raised);
            }
            if !kind.is_null() {
                (self.restore)(kind, value, trace);
            }
            Ok(result)
        }
    }
}

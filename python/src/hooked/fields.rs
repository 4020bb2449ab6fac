//! What an object that stands for a function has of its own, and where.

use std::ptr::null_mut;
use std::sync::OnceLock;

use crate::cpython::{Object, Python, VectorCall};

/// Where an object's fields begin: behind what Python has of each object, which differs in free-threaded builds.
pub(super) static FIELDS: OnceLock<usize> = OnceLock::new();

/// Fields of an object.
#[repr(C)]
pub(super) struct HookedFields {
    /// What to call.
    pub(super) real: Object,
    /// For what a module was compiled to: a weak reference to the module. For spans: what reads the arguments of a call. Else None.
    pub(super) module: Object,
    /// Weak references to this object, which are Python's.
    pub(super) references: Object,
    pub(super) vector_call: Option<VectorCall>,
    pub(super) work: i32,
    pub(super) removals: u32,
}

/// The fields of an object of this type. They are zero until it is initialized.
///
/// # Safety
/// `object` must be of this type.
pub(super) unsafe fn fields(object: Object) -> *mut HookedFields {
    let at = FIELDS.get().copied().unwrap_or_default();
    // SAFETY: the type has room for the fields there, and exists only if the place is known.
    unsafe { object.byte_add(at).cast() }
}

/// Raises that this was never initialized; returns NULL.
pub(super) unsafe fn refuse(python: &Python) -> Object {
    // SAFETY: guaranteed by the caller.
    unsafe { (python.raise)(*python.type_error, c"not initialized".as_ptr()) };
    null_mut()
}

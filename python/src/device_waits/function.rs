//! A built-in function of CPython's, and the table entry that says what it calls.

use std::ffi::{CStr, c_int};
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Release};

use crate::cpython::{Object, PyMethodDef, Python};

/// Words between what every object has and the pointer to the table entry: of a built-in function, and of a method of a type.
const IN_FUNCTION: usize = 0;
const IN_METHOD: usize = 3;
/// Words of either object beyond what every object has.
const WORDS: usize = 5;

/// A built-in function whose layout is known.
pub(super) struct Function {
    object: Object,
    /// Where it refers to its entry.
    place: *mut AtomicPtr<PyMethodDef>,
    /// The entry that it had.
    entry: *const PyMethodDef,
}

// SAFETY: the object and its entry live forever, and the place is only changed atomically.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl Function {
    /// The entry of this object; `None` if it is no built-in function, or laid out otherwise.
    ///
    /// # Safety
    /// As for [`Python::small`].
    pub(super) unsafe fn find(python: &Python, object: Object) -> Option<Self> {
        // SAFETY: guaranteed by the caller. The object is as long as the two kinds are in every CPython from 3.10 on, so that the
        // place is in it; what is there refers to an entry if the entry has the function's own name.
        unsafe {
            let kind = python.kind(object);
            let word = match kind {
                kind if kind == python.function_type => IN_FUNCTION,
                kind if kind == python.method_type => IN_METHOD,
                _ => return None,
            };
            let head = python.size_of(python.object_type)?;
            if python.size_of(kind)? != head + WORDS * size_of::<usize>() {
                return None;
            }
            let place: *mut AtomicPtr<PyMethodDef> = object.byte_add(head).cast::<AtomicPtr<PyMethodDef>>().add(word);
            let entry = (*place).load(Acquire);
            let found = Self { object, place, entry };
            let name = (python.attribute)(object, python.names.own_name);
            if name.is_null() {
                (python.clear)();
                return None;
            }
            let is_it = !entry.is_null() && python.is_text(name, CStr::from_ptr((*entry).name));
            (python.release)(name);
            is_it.then_some(found)
        }
    }

    /// Whether it is this object.
    pub(super) fn is_of(&self, object: Object) -> bool {
        self.object == object
    }

    pub(super) fn flags(&self) -> c_int {
        // SAFETY: the entry was read when it was found, and lives forever.
        unsafe { (*self.entry).flags }
    }

    pub(super) fn name(&self) -> &str {
        // SAFETY: as above.
        unsafe { CStr::from_ptr((*self.entry).name) }.to_str().unwrap_or_default()
    }

    /// What it calls by itself.
    pub(super) fn original(&self) -> *const () {
        // SAFETY: as above.
        unsafe { (*self.entry).call }
    }

    /// Makes it call this instead.
    ///
    /// # Safety
    /// The function must take what the original takes, by the same flags, and the object must live forever.
    pub(super) unsafe fn replace(&self, call: *const ()) {
        // SAFETY: as above.
        let PyMethodDef { name, flags, doc, .. } = unsafe { self.entry.read() };
        let entry = Box::leak(Box::new(PyMethodDef { name, call, flags, doc }));
        // SAFETY: the place is in the object, which lives forever.
        unsafe { (*self.place).store(entry, Release) };
    }

    /// Makes it call what it called before.
    pub(super) fn restore(&self) {
        // SAFETY: as above.
        unsafe { (*self.place).store(self.entry.cast_mut(), Release) };
    }
}

//! What a hooked function is asked apart from calls: its attributes, documentation, name in pickles, and representation are those of
//! the function that it stands for.

use std::ffi::{c_char, c_int, c_void};

use super::fields::{fields, refuse};
use crate::cpython::{METH_O, Object, PyMethodDef, Python, method, with_python};

/// CPython's `PyGetSetDef`.
#[repr(C)]
pub(super) struct PyGetSetDef {
    name: *const c_char,
    get: *const (),
    set: *const (),
    doc: *const c_char,
    closure: *const (),
}

// SAFETY: as for `PyMethodDef`.
unsafe impl Sync for PyGetSetDef {}

impl PyGetSetDef {
    /// An attribute that can only be read; without a name, the end of a list.
    const fn read_only(name: *const c_char, get: *const ()) -> Self {
        Self { name, get, set: std::ptr::null(), doc: std::ptr::null(), closure: std::ptr::null() }
    }
}

/// A function is pickled by its name.
pub(super) static METHODS: [PyMethodDef; 2] = [
    method(c"__reduce_ex__", name as *const (), METH_O),
    PyMethodDef { name: std::ptr::null(), call: std::ptr::null(), flags: 0, doc: std::ptr::null() },
];

/// `help()` asks the type for an object's documentation, and not the object.
pub(super) static ATTRIBUTES: [PyGetSetDef; 2] = [
    PyGetSetDef::read_only(c"__doc__".as_ptr(), documentation as *const ()),
    PyGetSetDef::read_only(std::ptr::null(), std::ptr::null()),
];

unsafe extern "C" fn name(this: Object, _: Object) -> Object {
    with_python(|python| {
        // SAFETY: Python calls this, with an object of this type.
        unsafe {
            let real = (*fields(this)).real;
            Some(if real.is_null() { refuse(python) } else { (python.attribute)(real, python.names.qualname) })
        }
    })
}

unsafe extern "C" fn documentation(this: Object, _: *mut c_void) -> Object {
    with_python(|python| {
        // SAFETY: Python calls this, with an object of this type.
        unsafe {
            let real = (*fields(this)).real;
            if real.is_null() {
                return Some(refuse(python));
            }
            let name = (python.new_text)(c"__doc__".as_ptr());
            let found = (python.attribute)(real, name);
            (python.release)(name);
            (!found.is_null()).then_some(found)
        }
    })
}

/// Attributes are the function's, but for how this is called, bound and pickled.
pub(super) unsafe extern "C" fn attribute(this: Object, name: Object) -> Object {
    with_python(|python| {
        // SAFETY: Python calls this, with an object of this type and a text.
        unsafe {
            let real = (*fields(this)).real;
            let own = [c"__call__", c"__get__", c"__reduce_ex__"];
            if real.is_null() || own.iter().any(|own| python.is_text(name, own)) {
                return Some((python.generic_attribute)(this, name));
            }
            Some((python.attribute)(real, name))
        }
    })
}

pub(super) unsafe extern "C" fn set_attribute(this: Object, name: Object, value: Object) -> c_int {
    // SAFETY: Python calls this, with an object of this type and a text.
    unsafe {
        let Some(python) = Python::get() else { return -1 };
        let real = (*fields(this)).real;
        if real.is_null() {
            refuse(python);
            return -1;
        }
        (python.set_attribute)(real, name, value)
    }
}

pub(super) unsafe extern "C" fn represent(this: Object) -> Object {
    // SAFETY: Python calls this, with an object of this type; NULL is represented, too.
    with_python(|python| Some(unsafe { (python.represent)((*fields(this)).real) }))
}

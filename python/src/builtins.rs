//! The calls that a training makes at every step, as built-in functions of the Python that loaded this library. One takes a
//! third of the time of a call through `ctypes`, which converts every argument and result.
//!
//! If a function that this takes is missing, as in PyPy, Python keeps calling through `ctypes`, and torch is not hooked. C
//! programs do not need this, so it is not in the header.

use std::ffi::{CStr, c_char, c_long, c_void};
use std::ptr::null_mut;

use crate::abi::{
    gnntop_asked, gnntop_begin, gnntop_end, gnntop_end_to, gnntop_now, gnntop_span_between, gnntop_stamp, gnntop_step,
};
use crate::cpython::{METH_FASTCALL, METH_NOARGS, METH_O, Object, PyMethodDef, Python, method, with_python};
use crate::{hooked, work_builtins};

static METHODS: [PyMethodDef; 10] = [
    method(c"asked", asked as *const (), METH_NOARGS),
    method(c"begin", begin as *const (), METH_O),
    method(c"end", end as *const (), METH_NOARGS),
    method(c"end_to", end_to as *const (), METH_O),
    method(c"stamp", stamp as *const (), METH_O),
    method(c"span_between", span_between as *const (), METH_FASTCALL),
    method(c"now", now as *const (), METH_NOARGS),
    method(c"step", step as *const (), METH_NOARGS),
    // Both methods of a `with` statement, for one name; their arguments are ignored.
    method(c"enter", enter as *const (), METH_FASTCALL),
    method(c"leave", leave as *const (), METH_FASTCALL),
];

/// Creates a built-in function. A `bound` above 0 is passed to each of its calls.
fn new_function(python: &Python, method: &'static PyMethodDef, bound: i32) -> Object {
    // SAFETY: the caller of `gnntop_builtin` holds the interpreter. The method lives forever, and its function takes the
    // arguments that its flags describe. The function object keeps its own reference to the bound number.
    unsafe {
        if bound <= 0 {
            return (python.new_function)(method, null_mut(), null_mut());
        }
        let number = (python.new_int)(c_long::from(bound));
        if number.is_null() {
            return null_mut();
        }
        let function = (python.new_function)(method, number, null_mut());
        (python.release)(number);
        function
    }
}

/// A built-in function with this name, bound to a number above 0 if it takes one, or the type `Hooked`; a new reference,
/// None if it is neither, or NULL without CPython. Python calls this while it loads the library, and holds the interpreter.
///
/// # Safety
/// `name` must be a C string. If the process has Python, the calling thread must hold its interpreter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gnntop_builtin(name: *const c_char, bound: i32) -> *mut c_void {
    // SAFETY: guaranteed by the caller.
    let name = unsafe { CStr::from_ptr(name) };
    // SAFETY: as above.
    let Some(python) = (unsafe { Python::get() }) else { return null_mut() };
    if name == c"Hooked" {
        return hooked::new_type(python);
    }
    // SAFETY: the names of the methods are constants.
    let is_meant = |method: &&PyMethodDef| unsafe { CStr::from_ptr(method.name) } == name;
    let found = METHODS.iter().chain(&work_builtins::METHODS).find(is_meant);
    // SAFETY: guaranteed by the caller. Not NULL, at which ctypes crashes.
    found.map_or_else(|| unsafe { python.nothing() }, |found| new_function(python, found, bound))
}

// Called by Python. Each returns a new reference, or NULL with an exception set; what they call does not unwind.

/// Calls `f` with a small int; returns None.
///
/// # Safety
/// As for [`Python::small`].
#[inline]
unsafe fn call_with_int(value: Object, f: impl FnOnce(i32)) -> Object {
    with_python(|python| {
        // SAFETY: guaranteed by the caller.
        unsafe {
            f(python.small(value)?);
            Some(python.nothing())
        }
    })
}

unsafe extern "C" fn begin(_: Object, name: Object) -> Object {
    with_python(|python| {
        // SAFETY: Python calls this, with one argument.
        unsafe { Some((python.new_int)(c_long::from(gnntop_begin(python.small(name)?)))) }
    })
}

unsafe extern "C" fn end(_: Object, _: Object) -> Object {
    gnntop_end();
    // SAFETY: Python calls this.
    with_python(|python| Some(unsafe { python.nothing() }))
}

unsafe extern "C" fn end_to(_: Object, depth: Object) -> Object {
    // SAFETY: Python calls this, with one argument.
    unsafe { call_with_int(depth, |depth| gnntop_end_to(depth)) }
}

unsafe extern "C" fn stamp(_: Object, slot: Object) -> Object {
    // SAFETY: Python calls this, with one argument.
    unsafe { call_with_int(slot, |slot| gnntop_stamp(slot)) }
}

unsafe extern "C" fn span_between(_: Object, arguments: *const Object, count: isize) -> Object {
    with_python(|python| {
        // SAFETY: Python calls this, with an array of as many arguments as `count` says.
        unsafe {
            if count != 3 {
                (python.raise)(*python.type_error, c"span_between() takes 3 arguments".as_ptr());
                return None;
            }
            let [name, begin, end] = [0, 1, 2].map(|at| python.small(*arguments.add(at)));
            gnntop_span_between(name?, begin?, end?);
            Some(python.nothing())
        }
    })
}

unsafe extern "C" fn now(_: Object, _: Object) -> Object {
    // SAFETY: Python calls this.
    with_python(|python| Some(unsafe { (python.new_unsigned)(gnntop_now()) }))
}

unsafe extern "C" fn step(_: Object, _: Object) -> Object {
    // SAFETY: Python calls this.
    with_python(|python| Some(unsafe { (python.new_int)(c_long::from(gnntop_step())) }))
}

unsafe extern "C" fn asked(_: Object, _: Object) -> Object {
    // SAFETY: Python calls this.
    with_python(|python| Some(unsafe { (python.new_int)(c_long::from(gnntop_asked())) }))
}

unsafe extern "C" fn enter(name: Object, _: *const Object, _: isize) -> Object {
    // SAFETY: Python calls this; the function was bound to a number.
    unsafe {
        call_with_int(name, |name| {
            gnntop_begin(name);
        })
    }
}

unsafe extern "C" fn leave(_: Object, _: *const Object, _: isize) -> Object {
    gnntop_end();
    // SAFETY: Python calls this.
    with_python(|python| Some(unsafe { python.nothing() }))
}

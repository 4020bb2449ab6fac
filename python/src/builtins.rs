//! The calls that a training makes at every step, as built-in functions of the Python that loaded this library. One takes a
//! third of the time of a call through `ctypes`, which converts every argument and result.
//!
//! Nothing is linked against Python. The few functions needed belong to CPython's stable interface and are looked up in the
//! process. If one is missing, as in PyPy, Python keeps calling through `ctypes`. This code depends on no object's layout,
//! so it also works for free-threaded builds. C programs do not need it, so it is not in the header.

use std::ffi::{CStr, c_char, c_int, c_long, c_ulonglong, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;

use crate::abi::{
    gnntop_asked, gnntop_begin, gnntop_end, gnntop_end_to, gnntop_now, gnntop_span_between, gnntop_stamp, gnntop_step,
};

/// A reference to a Python object.
type Object = *mut c_void;

/// How arguments are passed: an array and its length, none, or one.
const METH_FASTCALL: c_int = 0x80;
const METH_NOARGS: c_int = 0x04;
const METH_O: c_int = 0x08;

/// CPython's `PyMethodDef`.
#[repr(C)]
struct PyMethodDef {
    name: *const c_char,
    call: *const (),
    flags: c_int,
    doc: *const c_char,
}

// SAFETY: the pointers refer to constants and functions, which no thread changes.
unsafe impl Sync for PyMethodDef {}

const fn method(name: &'static CStr, call: *const (), flags: c_int) -> PyMethodDef {
    PyMethodDef { name: name.as_ptr(), call, flags, doc: std::ptr::null() }
}

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

/// The functions used of CPython's stable interface.
struct Python {
    new_function: unsafe extern "C" fn(*const PyMethodDef, Object, Object) -> Object,
    new_int: unsafe extern "C" fn(c_long) -> Object,
    new_unsigned: unsafe extern "C" fn(c_ulonglong) -> Object,
    int: unsafe extern "C" fn(Object) -> c_long,
    exception: unsafe extern "C" fn() -> Object,
    raise: unsafe extern "C" fn(Object, *const c_char),
    keep: unsafe extern "C" fn(Object),
    release: unsafe extern "C" fn(Object),
    none: Object,
    type_error: *const Object,
}

// SAFETY: None and the exception's type live as long as the process, and functions belong to no thread.
unsafe impl Send for Python {}
// SAFETY: as above; only threads that hold the interpreter call the functions.
unsafe impl Sync for Python {}

static PYTHON: OnceLock<Option<Python>> = OnceLock::new();

impl Python {
    /// Looks the functions up in the process; `None` if any is missing.
    fn find() -> Option<Self> {
        // SAFETY: each symbol is a function of the stable interface with this type, in every CPython from 3.2 on.
        unsafe {
            Some(Self {
                new_function: function(c"PyCFunction_NewEx")?,
                new_int: function(c"PyLong_FromLong")?,
                new_unsigned: function(c"PyLong_FromUnsignedLongLong")?,
                int: function(c"PyLong_AsLong")?,
                exception: function(c"PyErr_Occurred")?,
                raise: function(c"PyErr_SetString")?,
                keep: function(c"Py_IncRef")?,
                release: function(c"Py_DecRef")?,
                none: symbol(c"_Py_NoneStruct")?,
                type_error: symbol(c"PyExc_TypeError")?.cast(),
            })
        }
    }

    /// Creates a built-in function. A `bound` above 0 is passed to each of its calls.
    fn function(&self, method: &'static PyMethodDef, bound: i32) -> Object {
        // SAFETY: the caller of `gnntop_builtin` holds the interpreter. The method lives forever, and its function takes
        // the arguments that its flags describe. The function object keeps its own reference to the bound number.
        unsafe {
            if bound <= 0 {
                return (self.new_function)(method, null_mut(), null_mut());
            }
            let number = (self.new_int)(c_long::from(bound));
            if number.is_null() {
                return null_mut();
            }
            let function = (self.new_function)(method, number, null_mut());
            (self.release)(number);
            function
        }
    }

    /// A small int; `None` for anything else, with an exception set.
    ///
    /// # Safety
    /// The thread must hold the interpreter, and `object` must be one of its objects.
    #[inline]
    unsafe fn small(&self, object: Object) -> Option<i32> {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let value = (self.int)(object);
            if value == -1 && !(self.exception)().is_null() {
                return None;
            }
            let small = i32::try_from(value).ok();
            if small.is_none() {
                (self.raise)(*self.type_error, c"expected an int of at most 31 bits".as_ptr());
            }
            small
        }
    }

    /// A new reference to None.
    ///
    /// # Safety
    /// The thread must hold the interpreter.
    #[inline]
    unsafe fn nothing(&self) -> Object {
        // SAFETY: guaranteed by the caller; None always lives.
        unsafe { (self.keep)(self.none) };
        self.none
    }
}

fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the name ends with a NUL; looking it up changes nothing.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// A function of the process.
///
/// # Safety
/// `F` must be the function pointer type of the function with this name.
unsafe fn function<F: Copy>(name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    let found = symbol(name)?;
    // SAFETY: a symbol's address has the size of a function pointer, and the caller guarantees its type.
    Some(unsafe { std::mem::transmute_copy(&found) })
}

/// Runs `f` with Python. NULL, which Python takes for an exception, cannot occur: functions exist only if Python was found.
#[inline]
fn with_python(f: impl FnOnce(&Python) -> Option<Object>) -> Object {
    PYTHON.get().and_then(Option::as_ref).and_then(f).unwrap_or(null_mut())
}

/// A built-in function with this name, bound to a number above 0 if it takes one; a new reference, or NULL if there is
/// none. Python calls this while it loads the library, and holds the interpreter.
///
/// # Safety
/// `name` must be a C string. If the process has Python, the calling thread must hold its interpreter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gnntop_builtin(name: *const c_char, bound: i32) -> *mut c_void {
    // SAFETY: guaranteed by the caller.
    let name = unsafe { CStr::from_ptr(name) };
    // SAFETY: the names of the methods are constants.
    let is_meant = |method: &&PyMethodDef| unsafe { CStr::from_ptr(method.name) } == name;
    let (Some(python), Some(method)) = (PYTHON.get_or_init(Python::find), METHODS.iter().find(is_meant)) else {
        return null_mut();
    };
    python.function(method, bound)
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

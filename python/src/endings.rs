//! `os._exit`, `os.execv` and `os.execve` as what they are, built-in functions, which first tell Python that the process ends. A
//! function of Python's would become a method where a program has it as an attribute of a class.

use std::ffi::{CStr, c_void};
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Release};

use crate::cpython::{METH_KEYWORDS, METH_VARARGS, Object, PyMethodDef, Python, with_python};

/// The three functions. What `help` and `inspect` say of them is what CPython says.
static METHODS: [PyMethodDef; 3] = [
    ending(c"_exit", end::<EXIT> as *const (), c"_exit($module, /, status)\n--\n\nExit to the system with specified status, without normal exit processing."),
    ending(c"execv", end::<1> as *const (), c"execv($module, path, argv, /)\n--\n\nExecute an executable path with arguments, replacing current process.\n\n  path\n    Path of executable file.\n  argv\n    Tuple or list of strings."),
    ending(c"execve", end::<2> as *const (), c"execve($module, /, path, argv, env)\n--\n\nExecute an executable path with arguments, replacing current process.\n\n  path\n    Path of executable file.\n  argv\n    Tuple or list of strings.\n  env\n    Dictionary of strings mapping to strings."),
];
/// Of these, `os._exit`.
const EXIT: usize = 0;

/// What is called before each, and each itself.
static CALLED: [[AtomicPtr<c_void>; 2]; 3] = [const { [const { AtomicPtr::new(null_mut()) }; 2] }; 3];

const fn ending(name: &'static CStr, call: *const (), doc: &'static CStr) -> PyMethodDef {
    PyMethodDef { name: name.as_ptr(), call, flags: METH_VARARGS | METH_KEYWORDS, doc: doc.as_ptr() }
}

/// A built-in function like `function`, which is the first, second or third of the above and a function of `module`, that calls
/// `before` with the same arguments; a new reference, or NULL if there is no such function or no CPython.
///
/// # Safety
/// As for `Python::get`; the others are objects of Python's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gnntop_ending(which: i32, module: Object, before: Object, function: Object) -> Object {
    // SAFETY: guaranteed by the caller. Both functions are kept for as long as the process lives.
    unsafe {
        let Some(python) = Python::get() else { return null_mut() };
        let found = usize::try_from(which).ok().and_then(|which| Some((METHODS.get(which)?, CALLED.get(which)?)));
        let Some((method, called)) = found else { return null_mut() };
        for (place, object) in called.iter().zip([before, function]) {
            (python.keep)(object);
            place.store(object, Release);
        }
        (python.new_function)(method, module, (python.new_text)(c"posix".as_ptr()))
    }
}

unsafe extern "C" fn end<const WHICH: usize>(_: Object, arguments: Object, named: Object) -> Object {
    let [before, function] = CALLED[WHICH].each_ref().map(|called| called.load(Acquire));
    with_python(|python| {
        // SAFETY: Python calls this, with a tuple of arguments, and a dictionary of others or NULL. The functions were set before it
        // could.
        unsafe {
            let told = (python.call)(before, arguments, named);
            if !told.is_null() {
                (python.release)(told);
            } else if WHICH == EXIT {
                (python.clear)(); // nothing keeps the process from ending
            } else {
                return None; // what a handler of the program's has raised
            }
            let result = (python.call)(function, arguments, named);
            (!result.is_null()).then_some(result)
        }
    })
}

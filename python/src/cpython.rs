//! The few functions of CPython that this library calls. Nothing is linked against Python: they are looked up in the process.
//!
//! All belong to CPython's stable interface, but for `PyObject_Vectorcall` before 3.12, and no object's layout is assumed, so this
//! also works for free-threaded builds.

use std::ffi::{CStr, c_char, c_int, c_long, c_longlong, c_uint, c_ulonglong, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;

/// A reference to a Python object.
pub(crate) type Object = *mut c_void;

/// A Python exception is set, and is to be raised.
#[derive(Debug)]
pub(crate) struct Raised;

/// CPython's `PyMethodDef`.
#[repr(C)]
pub(crate) struct PyMethodDef {
    pub(crate) name: *const c_char,
    pub(crate) call: *const (),
    pub(crate) flags: c_int,
    pub(crate) doc: *const c_char,
}

// SAFETY: the pointers refer to constants and functions, which no thread changes.
unsafe impl Sync for PyMethodDef {}

/// How arguments are passed: an array and its length, none, or one; a tuple, and a dictionary of those with names.
pub(crate) const METH_FASTCALL: c_int = 0x80;
pub(crate) const METH_NOARGS: c_int = 0x04;
pub(crate) const METH_O: c_int = 0x08;
pub(crate) const METH_VARARGS: c_int = 0x01;
pub(crate) const METH_KEYWORDS: c_int = 0x02;

/// Arguments of a call.
///
/// # Safety
/// `arguments` must be an array of this length.
pub(crate) unsafe fn given<'a>(arguments: *const Object, count: isize) -> &'a [Object] {
    match usize::try_from(count) {
        // SAFETY: guaranteed by the caller.
        Ok(count) if count > 0 => unsafe { std::slice::from_raw_parts(arguments, count) },
        _ => &[],
    }
}

pub(crate) const fn method(name: &'static CStr, call: *const (), flags: c_int) -> PyMethodDef {
    PyMethodDef { name: name.as_ptr(), call, flags, doc: std::ptr::null() }
}

/// CPython's `PyMemberDef`.
#[repr(C)]
pub(crate) struct PyMemberDef {
    pub(crate) name: *const c_char,
    pub(crate) kind: c_int,
    pub(crate) offset: isize,
    pub(crate) flags: c_int,
    pub(crate) doc: *const c_char,
}

/// A function that is called with an array of arguments, their count with a flag in the highest bit, and a tuple of names for the
/// last of them, or NULL.
pub(crate) type VectorCall = unsafe extern "C" fn(Object, *const Object, usize, Object) -> Object;

/// The flag in the count of a [`VectorCall`].
pub(crate) const ARGUMENTS_OFFSET: usize = 1 << (usize::BITS - 1);

/// CPython's `PyType_Slot`.
#[repr(C)]
pub(crate) struct PyTypeSlot {
    pub(crate) slot: c_int,
    pub(crate) function: *const (),
}

/// CPython's `PyType_Spec`.
#[repr(C)]
pub(crate) struct PyTypeSpec {
    pub(crate) name: *const c_char,
    pub(crate) basicsize: c_int,
    pub(crate) itemsize: c_int,
    pub(crate) flags: c_uint,
    pub(crate) slots: *const PyTypeSlot,
}

/// The functions and objects used.
pub(crate) struct Python {
    pub(crate) new_function: unsafe extern "C" fn(*const PyMethodDef, Object, Object) -> Object,
    pub(crate) new_method: unsafe extern "C" fn(Object, Object) -> Object,
    pub(crate) new_type: unsafe extern "C" fn(*const PyTypeSpec) -> Object,
    pub(crate) new_int: unsafe extern "C" fn(c_long) -> Object,
    pub(crate) new_unsigned: unsafe extern "C" fn(c_ulonglong) -> Object,
    pub(crate) new_text: unsafe extern "C" fn(*const c_char) -> Object,
    pub(crate) new_tuple: unsafe extern "C" fn(isize) -> Object,
    pub(crate) set_item: unsafe extern "C" fn(Object, isize, Object) -> c_int,
    int: unsafe extern "C" fn(Object) -> c_long,
    pub(crate) long: unsafe extern "C" fn(Object) -> c_longlong,
    is_true: unsafe extern "C" fn(Object) -> c_int,
    pub(crate) tuple_len: unsafe extern "C" fn(Object) -> isize,
    pub(crate) tuple_item: unsafe extern "C" fn(Object, isize) -> Object,
    pub(crate) list_len: unsafe extern "C" fn(Object) -> isize,
    pub(crate) list_item: unsafe extern "C" fn(Object, isize) -> Object,
    pub(crate) dict_len: unsafe extern "C" fn(Object) -> isize,
    pub(crate) dict_item: unsafe extern "C" fn(Object, Object) -> Object,
    pub(crate) set_dict_item: unsafe extern "C" fn(Object, Object, Object) -> c_int,
    pub(crate) dict_next: unsafe extern "C" fn(Object, *mut isize, *mut Object, *mut Object) -> c_int,
    pub(crate) compare_text: unsafe extern "C" fn(Object, *const c_char) -> c_int,
    pub(crate) is_subtype: unsafe extern "C" fn(Object, Object) -> c_int,
    pub(crate) type_of: unsafe extern "C" fn(Object) -> Object,
    pub(crate) attribute: unsafe extern "C" fn(Object, Object) -> Object,
    pub(crate) set_attribute: unsafe extern "C" fn(Object, Object, Object) -> c_int,
    /// Without what the type does itself.
    pub(crate) generic_attribute: unsafe extern "C" fn(Object, Object) -> Object,
    pub(crate) own_dict: unsafe extern "C" fn(Object, *mut c_void) -> Object,
    pub(crate) represent: unsafe extern "C" fn(Object) -> Object,
    pub(crate) call: unsafe extern "C" fn(Object, Object, Object) -> Object,
    pub(crate) call_object: unsafe extern "C" fn(Object, Object) -> Object,
    /// Python 3.10 has none.
    pub(crate) vector_call: Option<VectorCall>,
    new_reference: unsafe extern "C" fn(Object, Object) -> Object,
    pub(crate) clear_references: unsafe extern "C" fn(Object),
    pub(crate) exception: unsafe extern "C" fn() -> Object,
    pub(crate) raise: unsafe extern "C" fn(Object, *const c_char),
    pub(crate) clear: unsafe extern "C" fn(),
    pub(crate) fetch: unsafe extern "C" fn(*mut Object, *mut Object, *mut Object),
    pub(crate) restore: unsafe extern "C" fn(Object, Object, Object),
    pub(crate) keep: unsafe extern "C" fn(Object),
    pub(crate) release: unsafe extern "C" fn(Object),
    pub(crate) untrack: unsafe extern "C" fn(Object),
    pub(crate) free: unsafe extern "C" fn(Object),
    pub(crate) none: Object,
    pub(crate) true_object: Object,
    pub(crate) type_error: *const Object,
    pub(crate) object_type: Object,
    pub(crate) dict_type: Object,
    pub(crate) list_type: Object,
    pub(crate) tuple_type: Object,
    pub(crate) text_type: Object,
    /// Built-in functions, and methods of built-in types.
    pub(crate) function_type: Object,
    pub(crate) method_type: Object,
    pub(crate) names: Names,
}

/// Texts of which one is made and kept.
pub(crate) struct Names {
    pub(crate) closure: Object,
    pub(crate) name: Object,
    pub(crate) qualname: Object,
    pub(crate) shape: Object,
    pub(crate) training: Object,
    pub(crate) collate_fn: Object,
    pub(crate) is_cpu: Object,
    pub(crate) dtype: Object,
    pub(crate) is_floating_point: Object,
    pub(crate) is_complex: Object,
    pub(crate) is_signed: Object,
    pub(crate) own_name: Object,
    size: Object,
}

impl Names {
    /// Makes the texts; `None` without memory for one.
    ///
    /// # Safety
    /// The thread must hold the interpreter, whose `PyUnicode_InternFromString` this is.
    unsafe fn new(intern: unsafe extern "C" fn(*const c_char) -> Object) -> Option<Self> {
        // SAFETY: guaranteed by the caller; each text ends with a zero byte.
        let text = |text: &CStr| Some(unsafe { intern(text.as_ptr()) }).filter(|text| !text.is_null());
        Some(Self {
            closure: text(c"closure")?,
            name: text(c"name")?,
            qualname: text(c"__qualname__")?,
            shape: text(c"shape")?,
            training: text(c"training")?,
            collate_fn: text(c"collate_fn")?,
            is_cpu: text(c"is_cpu")?,
            dtype: text(c"dtype")?,
            is_floating_point: text(c"is_floating_point")?,
            is_complex: text(c"is_complex")?,
            is_signed: text(c"is_signed")?,
            own_name: text(c"__name__")?,
            size: text(c"__basicsize__")?,
        })
    }
}

// SAFETY: None and the types live as long as the process, and functions belong to no thread.
unsafe impl Send for Python {}
// SAFETY: as above; only threads that hold the interpreter call the functions.
unsafe impl Sync for Python {}

static PYTHON: OnceLock<Option<Python>> = OnceLock::new();

impl Python {
    /// Looks the functions up in the process; `None` if any is missing.
    ///
    /// # Safety
    /// If the process has Python, the thread must hold the interpreter.
    unsafe fn find() -> Option<Self> {
        // SAFETY: each symbol is a function of this type in every CPython from 3.10 on.
        unsafe {
            let new_text: unsafe extern "C" fn(*const c_char) -> Object = function(c"PyUnicode_InternFromString")?;
            Some(Self {
                new_function: function(c"PyCFunction_NewEx")?,
                new_method: function(c"PyMethod_New")?,
                new_type: function(c"PyType_FromSpec")?,
                new_int: function(c"PyLong_FromLong")?,
                new_unsigned: function(c"PyLong_FromUnsignedLongLong")?,
                new_text,
                new_tuple: function(c"PyTuple_New")?,
                set_item: function(c"PyTuple_SetItem")?,
                int: function(c"PyLong_AsLong")?,
                long: function(c"PyLong_AsLongLong")?,
                is_true: function(c"PyObject_IsTrue")?,
                tuple_len: function(c"PyTuple_Size")?,
                tuple_item: function(c"PyTuple_GetItem")?,
                list_len: function(c"PyList_Size")?,
                list_item: function(c"PyList_GetItem")?,
                dict_len: function(c"PyDict_Size")?,
                dict_item: function(c"PyDict_GetItem")?,
                set_dict_item: function(c"PyDict_SetItem")?,
                dict_next: function(c"PyDict_Next")?,
                compare_text: function(c"PyUnicode_CompareWithASCIIString")?,
                is_subtype: function(c"PyType_IsSubtype")?,
                type_of: function(c"PyObject_Type")?,
                attribute: function(c"PyObject_GetAttr")?,
                set_attribute: function(c"PyObject_SetAttr")?,
                generic_attribute: function(c"PyObject_GenericGetAttr")?,
                own_dict: function(c"PyObject_GenericGetDict")?,
                represent: function(c"PyObject_Repr")?,
                call: function(c"PyObject_Call")?,
                call_object: function(c"PyObject_CallObject")?,
                vector_call: function(c"PyObject_Vectorcall"),
                new_reference: function(c"PyWeakref_NewRef")?,
                clear_references: function(c"PyObject_ClearWeakRefs")?,
                exception: function(c"PyErr_Occurred")?,
                raise: function(c"PyErr_SetString")?,
                clear: function(c"PyErr_Clear")?,
                fetch: function(c"PyErr_Fetch")?,
                restore: function(c"PyErr_Restore")?,
                keep: function(c"Py_IncRef")?,
                release: function(c"Py_DecRef")?,
                untrack: function(c"PyObject_GC_UnTrack")?,
                free: function(c"PyObject_GC_Del")?,
                none: symbol(c"_Py_NoneStruct")?,
                true_object: symbol(c"_Py_TrueStruct")?,
                type_error: symbol(c"PyExc_TypeError")?.cast(),
                object_type: symbol(c"PyBaseObject_Type")?,
                dict_type: symbol(c"PyDict_Type")?,
                list_type: symbol(c"PyList_Type")?,
                tuple_type: symbol(c"PyTuple_Type")?,
                text_type: symbol(c"PyUnicode_Type")?,
                function_type: symbol(c"PyCFunction_Type")?,
                method_type: symbol(c"PyMethodDescr_Type")?,
                names: Names::new(new_text)?,
            })
        }
    }

    /// Python, if the process has it.
    ///
    /// # Safety
    /// If the process has Python, the thread must hold the interpreter.
    pub(crate) unsafe fn get() -> Option<&'static Self> {
        // SAFETY: guaranteed by the caller.
        PYTHON.get_or_init(|| unsafe { Self::find() }).as_ref()
    }

    /// A small int; `None` for anything else, with an exception set.
    ///
    /// # Safety
    /// The thread must hold the interpreter, and `object` must be one of its objects. This holds for all that follows.
    #[inline]
    pub(crate) unsafe fn small(&self, object: Object) -> Option<i32> {
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

    /// How long objects of this type are at least, in bytes.
    ///
    /// # Safety
    /// As for [`small`](Self::small); `kind` must be a type.
    pub(crate) unsafe fn size_of(&self, kind: Object) -> Option<usize> {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let size = (self.attribute)(kind, self.names.size);
            if size.is_null() {
                (self.clear)();
                return None;
            }
            let bytes = self.small(size).and_then(|size| usize::try_from(size).ok());
            (self.release)(size);
            bytes
        }
    }

    /// A new reference to None.
    ///
    /// # Safety
    /// As for [`small`](Self::small).
    #[inline]
    pub(crate) unsafe fn nothing(&self) -> Object {
        // SAFETY: guaranteed by the caller; None always lives.
        unsafe { (self.keep)(self.none) };
        self.none
    }

    /// Whether what was returned is true; the reference is released, and an exception cleared: then it is not.
    ///
    /// # Safety
    /// As for [`small`](Self::small), or `returned` is NULL with an exception set.
    #[inline]
    pub(crate) unsafe fn truth(&self, returned: Object) -> bool {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let truth = if returned.is_null() { -1 } else { (self.is_true)(returned) };
            if truth < 0 {
                (self.clear)();
            }
            if !returned.is_null() {
                (self.release)(returned);
            }
            truth > 0
        }
    }

    /// Has `gone` called with this number, and a reference that it must release, when an object is gone. Returns whether it will be.
    ///
    /// # Safety
    /// As for [`small`](Self::small). `gone` must take one argument.
    pub(crate) unsafe fn when_gone(&self, object: Object, gone: &'static PyMethodDef, number: i32) -> bool {
        // SAFETY: guaranteed by the caller. The weak reference is kept, and has its own reference to the function.
        unsafe {
            let number = (self.new_int)(c_long::from(number));
            let function = (self.new_function)(gone, number, null_mut());
            let reference = (self.new_reference)(object, function);
            (self.release)(number);
            (self.release)(function);
            if reference.is_null() {
                (self.clear)(); // no objects of this type can be referred to so
            }
            !reference.is_null()
        }
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
pub(crate) unsafe fn function<F: Copy>(name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    let found = symbol(name)?;
    // SAFETY: a symbol's address has the size of a function pointer, and the caller guarantees its type.
    Some(unsafe { std::mem::transmute_copy(&found) })
}

/// Runs `f` with Python. NULL, which Python takes for an exception, cannot occur without one: functions exist only if Python
/// was found.
#[inline]
pub(crate) fn with_python(f: impl FnOnce(&Python) -> Option<Object>) -> Object {
    PYTHON.get().and_then(Option::as_ref).and_then(f).unwrap_or(null_mut())
}

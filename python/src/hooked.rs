//! The type `Hooked`: a function of a library, called as before, with the training loop told before and after. To the program it is
//! that function: it has its class, its attributes and its place in pickles, adds no frame to tracebacks, and leaves as much room
//! for recursion.

mod attributes;
mod collate;
mod fields;

use std::cell::Cell;
use std::ffi::{c_int, c_uint, c_void};
use std::mem::offset_of;
use std::ptr::null_mut;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use crate::abi::{gnntop_begin, gnntop_end_to};
use crate::cpython::{ARGUMENTS_OFFSET, Object, PyMemberDef, PyTypeSlot, PyTypeSpec, Python, with_python};
use crate::events;
use crate::listeners::{Listener, listener};
use crate::roots;
use crate::steps::Work;
use fields::{FIELDS, HookedFields, fields, refuse};

/// Numbers of `typeslots.h` and `structmember.h`, and flags of `object.h`.
const TP_CALL: c_int = 50;
const TP_CLEAR: c_int = 51;
const TP_DEALLOC: c_int = 52;
const TP_DESCR_GET: c_int = 54;
const TP_GETATTRO: c_int = 58;
const TP_INIT: c_int = 60;
const TP_METHODS: c_int = 64;
const TP_REPR: c_int = 66;
const TP_SETATTRO: c_int = 69;
const TP_TRAVERSE: c_int = 71;
const TP_MEMBERS: c_int = 72;
const TP_GETSET: c_int = 73;
const SSIZE: c_int = 19;
const READ_ONLY: c_int = 1;
const HAVE_VECTORCALL: c_uint = 1 << 11;
const HAVE_GC: c_uint = 1 << 14;
const METHOD_DESCRIPTOR: c_uint = 1 << 17;

/// Instead of the number of work: calls of whichever module is the first argument, which are forward passes if it is a root.
/// Less than this by the number of a name: calls are spans of this name, on any thread.
const OF_ROOTS: i32 = -1;

thread_local! {
    /// Whether the arguments of a call that is running on this thread were read.
    static IS_READ: Cell<bool> = const { Cell::new(false) };
}

/// How often hooks were removed: those of before only call their function.
static REMOVALS: AtomicU32 = AtomicU32::new(0);
/// Hooks of before only call their function from now on.
pub(crate) fn switch_off() {
    REMOVALS.fetch_add(1, Relaxed);
}

/// Creates the type; NULL with an exception set if that fails.
pub(crate) fn new_type(python: &Python) -> Object {
    // SAFETY: the caller of `gnntop_builtin` holds the interpreter. The type copies the slots and members, and what it refers to
    // lives forever.
    unsafe {
        let Some(size) = python.size_of(python.object_type) else { return null_mut() };
        let size = *FIELDS.get_or_init(|| size.next_multiple_of(align_of::<HookedFields>()));
        let has_vector_call = python.vector_call.is_some();
        let member = |name: &'static std::ffi::CStr, at: usize| PyMemberDef {
            name: name.as_ptr(),
            kind: SSIZE,
            offset: (size + at) as isize,
            flags: READ_ONLY,
            doc: std::ptr::null(),
        };
        let end = || PyMemberDef { name: std::ptr::null(), ..member(c"", 0) };
        let members = [
            member(c"__weaklistoffset__", offset_of!(HookedFields, references)),
            if has_vector_call {
                member(c"__vectorcalloffset__", offset_of!(HookedFields, vector_call))
            } else {
                end()
            },
            end(),
        ];
        let slots = [
            (TP_CALL, call as *const ()),
            (TP_CLEAR, clear as *const ()),
            (TP_DEALLOC, dealloc as *const ()),
            (TP_DESCR_GET, bind as *const ()),
            (TP_GETATTRO, attributes::attribute as *const ()),
            (TP_INIT, init as *const ()),
            (TP_METHODS, attributes::METHODS.as_ptr().cast()),
            (TP_REPR, attributes::represent as *const ()),
            (TP_SETATTRO, attributes::set_attribute as *const ()),
            (TP_TRAVERSE, traverse as *const ()),
            (TP_MEMBERS, members.as_ptr().cast()),
            (TP_GETSET, attributes::ATTRIBUTES.as_ptr().cast()),
            (0, std::ptr::null()),
        ]
        .map(|(slot, function)| PyTypeSlot { slot, function });
        let spec = PyTypeSpec {
            name: c"gnntop.Hooked".as_ptr(),
            basicsize: (size + size_of::<HookedFields>()) as c_int,
            itemsize: 0,
            flags: HAVE_GC | METHOD_DESCRIPTOR | if has_vector_call { HAVE_VECTORCALL } else { 0 },
            slots: slots.as_ptr(),
        };
        (python.new_type)(&raw const spec)
    }
}

/// `Hooked(real, work, module)`.
unsafe extern "C" fn init(this: Object, args: Object, _: Object) -> c_int {
    // SAFETY: Python calls this, with an object of this type and a tuple.
    unsafe {
        let Some(python) = Python::get() else { return -1 };
        if (python.tuple_len)(args) != 3 {
            (python.raise)(*python.type_error, c"Hooked() takes 3 arguments".as_ptr());
            return -1;
        }
        let [real, number, module] = [0, 1, 2].map(|at| (python.tuple_item)(args, at));
        let Some(work) = python.small(number) else { return -1 };
        (python.keep)(real);
        (python.keep)(module);
        let fields = fields(this);
        let before = [(*fields).real, (*fields).module];
        (*fields).real = real;
        (*fields).module = module;
        (*fields).work = work;
        (*fields).removals = REMOVALS.load(Relaxed);
        (*fields).vector_call = Some(call_vector);
        forget(python, before);
        0
    }
}

unsafe fn forget(python: &Python, objects: [Object; 2]) {
    for object in objects.into_iter().filter(|object| !object.is_null()) {
        // SAFETY: the caller holds the interpreter and these references.
        unsafe { (python.release)(object) };
    }
}

// ---- calls -------------------------------------------------------------------------------------------------------------

/// A call with an array of arguments, as all are but from C, and in Python 3.10.
unsafe extern "C" fn call_vector(this: Object, arguments: *const Object, count: usize, names: Object) -> Object {
    with_python(|python| {
        let call = python.vector_call?;
        // SAFETY: Python calls this, with an object of this type, which it keeps meanwhile, and as many arguments as it says.
        let result = unsafe {
            let first = if count & !ARGUMENTS_OFFSET > 0 { *arguments } else { null_mut() };
            call_around(python, this, first, |real| call(real, arguments, count, names))
        };
        (!result.is_null()).then_some(result)
    })
}

unsafe extern "C" fn call(this: Object, args: Object, kwargs: Object) -> Object {
    with_python(|python| {
        // SAFETY: Python calls this, with an object of this type, which it keeps meanwhile, and a tuple.
        let result = unsafe {
            let first = if (python.tuple_len)(args) > 0 { (python.tuple_item)(args, 0) } else { null_mut() };
            call_around(python, this, first, |real| (python.call)(real, args, kwargs))
        };
        (!result.is_null()).then_some(result)
    })
}

/// Calls what this stands for, as work; `first` is the first argument, or NULL. Returns NULL with an exception set if one is raised.
#[inline]
unsafe fn call_around(python: &Python, this: Object, first: Object, call: impl Fn(Object) -> Object) -> Object {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let HookedFields { real, module, work, removals, .. } = fields(this).read();
        if real.is_null() {
            return refuse(python);
        }
        if work < OF_ROOTS && removals == REMOVALS.load(Relaxed) {
            return as_span(python, OF_ROOTS - work, module, real, call);
        }
        if work == collate::OF_FETCHER && removals == REMOVALS.load(Relaxed) {
            let hooked = (python.type_of)(this);
            let result = collate::fetch(python, hooked, module, first, |name| OF_ROOTS - name, || call(real));
            (python.release)(hooked);
            return result;
        }
        let Some(work) = work_of(python, work, module, first).filter(|_| removals == REMOVALS.load(Relaxed)) else {
            return call(real);
        };
        let Ok(token) = events::begin(python, work) else { return null_mut() };
        let result = call(real);
        let Some(token) = token else { return result };
        let ended = match work {
            Work::Fetch => events::fetched(python, token, result),
            work => events::end(python, work, token, 0),
        };
        if ended.is_err() && !result.is_null() {
            (python.release)(result);
        }
        if ended.is_err() { null_mut() } else { result }
    }
}

/// Calls a function as a span of this name, after what reads its arguments, unless `reader` is None. A call inside another
/// whose arguments were read is not read: libraries log by one another. Returns NULL with an exception set if one is raised.
unsafe fn as_span(python: &Python, name: i32, reader: Object, real: Object, call: impl Fn(Object) -> Object) -> Object {
    let is_outermost = reader != python.none && !IS_READ.replace(true);
    if is_outermost {
        let answer = call(reader);
        if answer.is_null() {
            IS_READ.set(false);
            return answer;
        }
        // SAFETY: guaranteed by the caller.
        unsafe { (python.release)(answer) };
    }
    let depth = gnntop_begin(name);
    let result = call(real);
    gnntop_end_to(depth);
    IS_READ.set(IS_READ.get() && !is_outermost);
    result
}

/// What a call is, if it is to be reported.
#[inline]
unsafe fn work_of(python: &Python, work: i32, reference: Object, first: Object) -> Option<Work> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if work == OF_ROOTS {
            return roots::contains(first).then(|| forward(python, first));
        }
        if reference == python.none {
            return Work::from_number(work);
        }
        let module = (python.call_object)(reference, null_mut());
        if module.is_null() {
            (python.clear)();
            return None;
        }
        let work = if module == python.none { Work::Forward } else { forward(python, module) };
        (python.release)(module);
        Some(work)
    }
}

/// What a call of this module is.
unsafe fn forward(python: &Python, module: Object) -> Work {
    // SAFETY: guaranteed by the caller. What is borrowed of the module's own attributes is only looked at.
    unsafe {
        if roots::is_frozen(module) {
            return Work::Frozen;
        }
        let is_grad_enabled = listener(Listener::IsGradEnabled);
        if is_grad_enabled.is_null() || python.truth((python.call_object)(is_grad_enabled, null_mut())) {
            return Work::Forward;
        }
        let fields = python.fields(module);
        if fields.is_null() {
            return Work::Evaluation;
        }
        let training = (python.dict_item)(fields, python.names.training);
        let is_training = training == python.true_object;
        (python.release)(fields);
        if is_training { Work::ForwardWithoutGradients } else { Work::Evaluation }
    }
}

/// As a function does: a class's attribute becomes a method of the object that it is looked up in. What is called of a module that
/// is no root, and what is looked up in its class, is the function itself, by which torch.compile knows it.
unsafe extern "C" fn bind(this: Object, object: Object, _: Object) -> Object {
    with_python(|python| {
        // SAFETY: Python calls this, with an object of this type.
        unsafe {
            let HookedFields { real, work, .. } = fields(this).read();
            let is_free = object.is_null() || object == python.none;
            if work == OF_ROOTS && !is_free {
                // A module looks it up to be called.
                events::called(python, object).ok()?;
            }
            let meant = if work == OF_ROOTS && !roots::contains(object) && !real.is_null() { real } else { this };
            if is_free {
                (python.keep)(meant);
                return Some(meant);
            }
            Some((python.new_method)(meant, object))
        }
    })
}

// ---- what Python's collector asks ---------------------------------------------------------------------------------------

unsafe extern "C" fn traverse(
    this: Object,
    visit: unsafe extern "C" fn(Object, *mut c_void) -> c_int,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: Python's collector calls this, with an object of this type. The type itself is never collected.
    unsafe {
        let HookedFields { real, module, .. } = fields(this).read();
        let visited = [real, module].into_iter().filter(|object| !object.is_null());
        visited.map(|object| visit(object, argument)).find(|result| *result != 0).unwrap_or(0)
    }
}

unsafe extern "C" fn clear(this: Object) -> c_int {
    // SAFETY: Python's collector calls this, with an object of this type.
    unsafe {
        if let Some(python) = Python::get() {
            let fields = fields(this);
            let before = [(*fields).real, (*fields).module];
            (*fields).real = null_mut();
            (*fields).module = null_mut();
            forget(python, before);
        }
    }
    0
}

unsafe extern "C" fn dealloc(this: Object) {
    // SAFETY: Python calls this, with an object of this type to which there are no references. It holds one of its type, and
    // `type_of` adds another.
    unsafe {
        let Some(python) = Python::get() else { return };
        (python.untrack)(this);
        if !(*fields(this)).references.is_null() {
            (python.clear_references)(this);
        }
        clear(this);
        let kind = (python.type_of)(this);
        (python.free)(this);
        (python.release)(kind);
        (python.release)(kind);
    }
}

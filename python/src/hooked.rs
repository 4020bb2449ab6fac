//! The type `Hooked`: a function of a library, called as before, with the training loop told before and after. Python derives
//! its own from it, which looks like the function.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use crate::cpython::{Object, PyTypeSlot, PyTypeSpec, Python, Raised, with_python};
use crate::events::{self, Listener, listener};
use crate::steps::Work;

/// Numbers of `typeslots.h`, and flags of `object.h`.
const TP_CALL: c_int = 50;
const TP_CLEAR: c_int = 51;
const TP_DEALLOC: c_int = 52;
const TP_DESCR_GET: c_int = 54;
const TP_INIT: c_int = 60;
const TP_TRAVERSE: c_int = 71;
const BASE_TYPE: c_uint = 1 << 10;
const HAVE_GC: c_uint = 1 << 14;

/// How often hooks were removed: those of before only call their function.
static REMOVALS: AtomicU32 = AtomicU32::new(0);
/// Where an object's fields begin: behind what Python has of each object, which differs in free-threaded builds.
static FIELDS: OnceLock<usize> = OnceLock::new();

/// Fields of an object.
#[repr(C)]
struct HookedFields {
    /// What to call; None for a module's own `_call_impl`.
    real: Object,
    /// For a module: a weak reference to it, else None.
    module: Object,
    work: i32,
    removals: u32,
}

/// Hooks of before only call their function from now on.
pub(crate) fn switch_off() {
    REMOVALS.fetch_add(1, Relaxed);
}

/// Creates the type; NULL with an exception set if that fails.
pub(crate) fn new_type(python: &Python) -> Object {
    // SAFETY: the caller of `gnntop_builtin` holds the interpreter. The type copies the slots, and its name lives forever.
    unsafe {
        let name = (python.new_text)(c"__basicsize__".as_ptr());
        let size = (python.attribute)(python.object_type, name);
        (python.release)(name);
        let Some(size) = python.small(size).and_then(|size| usize::try_from(size).ok()) else { return null_mut() };
        let size = *FIELDS.get_or_init(|| size.next_multiple_of(align_of::<HookedFields>()));
        let slots = [
            (TP_CALL, call as *const ()),
            (TP_CLEAR, clear as *const ()),
            (TP_DEALLOC, dealloc as *const ()),
            (TP_DESCR_GET, bind as *const ()),
            (TP_INIT, init as *const ()),
            (TP_TRAVERSE, traverse as *const ()),
            (0, std::ptr::null()),
        ]
        .map(|(slot, function)| PyTypeSlot { slot, function });
        let spec = PyTypeSpec {
            name: c"gnntop.Hooked".as_ptr(),
            basicsize: (size + size_of::<HookedFields>()) as c_int,
            itemsize: 0,
            flags: BASE_TYPE | HAVE_GC,
            slots: slots.as_ptr(),
        };
        (python.new_type)(&raw const spec)
    }
}

/// The fields of an object of this type. They are zero until it is initialized.
///
/// # Safety
/// `object` must be of this type, or of one derived from it.
unsafe fn fields(object: Object) -> *mut HookedFields {
    let at = FIELDS.get().copied().unwrap_or_default();
    // SAFETY: the type has room for the fields there, and exists only if the place is known.
    unsafe { object.byte_add(at).cast() }
}

/// `Hooked(real, work, module)`.
unsafe extern "C" fn init(this: Object, args: Object, _: Object) -> c_int {
    let Some(python) = Python::get() else { return -1 };
    // SAFETY: Python calls this, with an object of this type and a tuple.
    unsafe {
        if (python.tuple_len)(args) != 3 {
            (python.raise)(*python.type_error, c"Hooked() takes 3 arguments".as_ptr());
            return -1;
        }
        let [real, number, module] = [0, 1, 2].map(|at| (python.tuple_item)(args, at));
        let Some(work) = python.small(number) else { return -1 };
        (python.keep)(real);
        (python.keep)(module);
        let before = fields(this).replace(HookedFields { real, module, work, removals: REMOVALS.load(Relaxed) });
        forget(python, &before);
        0
    }
}

unsafe fn forget(python: &Python, fields: &HookedFields) {
    for object in [fields.real, fields.module].into_iter().filter(|object| !object.is_null()) {
        // SAFETY: the caller holds the interpreter and these references.
        unsafe { (python.release)(object) };
    }
}

unsafe extern "C" fn call(this: Object, args: Object, kwargs: Object) -> Object {
    with_python(|python| {
        // SAFETY: Python calls this, with an object of this type, which it keeps meanwhile.
        let result = unsafe {
            let HookedFields { real, module, work, removals } = fields(this).read();
            let work = Work::from_number(work).filter(|_| removals == REMOVALS.load(Relaxed));
            if real.is_null() {
                (python.raise)(*python.type_error, c"not initialized".as_ptr());
                return None;
            }
            if module == python.none {
                call_around(python, work, real, args, kwargs)
            } else {
                call_module(python, work, real, module, args, kwargs)
            }
        };
        result.ok()
    })
}

/// Calls `real` as work.
#[inline]
unsafe fn call_around(
    python: &Python,
    work: Option<Work>,
    real: Object,
    args: Object,
    kwargs: Object,
) -> Result<Object, Raised> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let token = match work {
            Some(work) => events::begin(python, work)?,
            None => None,
        };
        let result = (python.call)(real, args, kwargs);
        if let (Some(work), Some(token)) = (work, token) {
            let ended = match work {
                Work::Fetch => events::fetched(python, token, result),
                work => events::end(python, work, token, 0),
            };
            if ended.is_err() && !result.is_null() {
                (python.release)(result);
            }
            ended?;
        }
        if result.is_null() { Err(Raised) } else { Ok(result) }
    }
}

/// Calls a module: by its own function, or by `real`, which it was compiled to.
unsafe fn call_module(
    python: &Python,
    work: Option<Work>,
    real: Object,
    reference: Object,
    args: Object,
    kwargs: Object,
) -> Result<Object, Raised> {
    // SAFETY: guaranteed by the caller. The module lives, as it is what calls this.
    unsafe {
        let module = (python.call_object)(reference, null_mut());
        if module.is_null() {
            return Err(Raised);
        }
        let work = work.map(|_| forward(python, module));
        let call = if real == python.none { attribute(python, module, c"_call_impl") } else { real };
        (python.release)(module);
        if call.is_null() {
            return Err(Raised);
        }
        let result = call_around(python, work, call, args, kwargs);
        if call != real {
            (python.release)(call);
        }
        result
    }
}

/// What a call of this module is.
unsafe fn forward(python: &Python, module: Object) -> Work {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let is_grad_enabled = listener(Listener::IsGradEnabled);
        if is_grad_enabled.is_null() || python.truth((python.call_object)(is_grad_enabled, null_mut())) {
            Work::Forward
        } else if python.truth(attribute(python, module, c"training")) {
            Work::ForwardWithoutGradients
        } else {
            Work::Evaluation
        }
    }
}

unsafe fn attribute(python: &Python, object: Object, name: &'static std::ffi::CStr) -> Object {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let name = (python.new_text)(name.as_ptr());
        let found = (python.attribute)(object, name);
        (python.release)(name);
        found
    }
}

/// As a function does: a class's attribute becomes a method of the object that it is looked up in.
unsafe extern "C" fn bind(this: Object, object: Object, _: Object) -> Object {
    with_python(|python| {
        // SAFETY: Python calls this.
        unsafe {
            if object.is_null() || object == python.none {
                (python.keep)(this);
                return Some(this);
            }
            Some((python.new_method)(this, object))
        }
    })
}

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
    if let Some(python) = Python::get() {
        // SAFETY: Python's collector calls this, with an object of this type.
        unsafe {
            let nothing = HookedFields { real: null_mut(), module: null_mut(), work: -1, removals: 0 };
            forget(python, &fields(this).replace(nothing));
        }
    }
    0
}

unsafe extern "C" fn dealloc(this: Object) {
    let Some(python) = Python::get() else { return };
    // SAFETY: Python calls this, with an object of this type to which there are no references. It holds one of its type, and
    // `type_of` adds another.
    unsafe {
        (python.untrack)(this);
        clear(this);
        let kind = (python.type_of)(this);
        (python.free)(this);
        (python.release)(kind);
        (python.release)(kind);
    }
}

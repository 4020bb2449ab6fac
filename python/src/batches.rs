//! The size of a batch, read only from shapes. None of the program's code runs, whatever classes its batches are of, nothing is
//! computed, and no device is waited for.

use std::ffi::{CStr, c_void};
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Release};

use crate::cpython::{Names, Object, Python, Raised};
use crate::listeners::{Listener, listener};
use crate::objects::Container;
use crate::steps::Shape;

/// How deep a batch's first tensor may be in lists, tuples and dictionaries.
const DEEPEST: u32 = 4;
/// Most values of a dictionary that are looked at.
const MOST_VALUES: u32 = 64;

/// A type of a library's batches, and a function of ours that takes one and returns its five sizes, or an empty tuple. It runs none
/// of the program's code either.
struct Reader {
    kind: AtomicPtr<c_void>,
    read: AtomicPtr<c_void>,
}

static READERS: [Reader; 8] =
    [const { Reader { kind: AtomicPtr::new(null_mut()), read: AtomicPtr::new(null_mut()) } }; 8];

/// Makes `read` read batches of this type and of types derived from it; neither is ever released. Returns whether there is room.
pub(crate) fn read_with(kind: Object, read: Object) -> bool {
    let place = READERS.iter().find(|reader| [null_mut(), kind].contains(&reader.kind.load(Acquire)));
    if let Some(reader) = place {
        reader.read.store(read, Release);
        reader.kind.store(kind, Release);
    }
    place.is_some()
}

/// The size of a batch, as far as known.
///
/// # Safety
/// As for [`Python::small`].
pub(crate) unsafe fn shape_of(python: &Python, batch: Object) -> Result<Option<Shape>, Raised> {
    // SAFETY: guaranteed by the caller.
    unsafe { shape_within(python, batch, DEEPEST) }
}

/// The size of what is in a batch: of the first thing in a list or tuple, or of the first in a dictionary whose size is known.
unsafe fn shape_within(python: &Python, batch: Object, deepest: u32) -> Result<Option<Shape>, Raised> {
    // SAFETY: guaranteed by the caller. What is borrowed is kept while it is read: a reader is Python's code.
    unsafe {
        let kind = python.kind(batch);
        if is_tensor(kind) {
            return Ok(rows(python, batch));
        }
        let Some(container) = python.container(kind).filter(|_| deepest > 0) else {
            return read(python, kind, batch);
        };
        let mut next = 0;
        for _ in 0..MOST_VALUES {
            let value = item(python, &container, batch, &mut next);
            if value.is_null() {
                break;
            }
            (python.keep)(value);
            let shape = shape_within(python, value, deepest - 1);
            (python.release)(value);
            if !matches!(container, Container::Dict) || !matches!(shape, Ok(None)) {
                return shape;
            }
        }
        Ok(None)
    }
}

/// The next value of a dictionary, or the first of the others, borrowed; NULL if there is none.
unsafe fn item(python: &Python, container: &Container, batch: Object, next: &mut isize) -> Object {
    // SAFETY: guaranteed by the caller; these functions take any object of such a type, and call nothing of it.
    unsafe {
        match container {
            Container::List if (python.list_len)(batch) > 0 => (python.list_item)(batch, 0),
            Container::Tuple if (python.tuple_len)(batch) > 0 => (python.tuple_item)(batch, 0),
            Container::Dict => {
                let (mut key, mut value) = (null_mut(), null_mut());
                let is_there = (python.dict_next)(batch, next, &raw mut key, &raw mut value) != 0;
                if is_there { value } else { null_mut() }
            }
            _ => null_mut(),
        }
    }
}

/// Reads a batch of one of the libraries that are known.
unsafe fn read(python: &Python, kind: Object, batch: Object) -> Result<Option<Shape>, Raised> {
    let known = READERS.iter().map(|reader| (reader.kind.load(Acquire), reader.read.load(Acquire)));
    // SAFETY: guaranteed by the caller; the readers' types are never released.
    unsafe {
        let is_meant = |base: Object| !base.is_null() && python.is_derived(kind, base);
        let Some((_, read)) = known.into_iter().find(|(base, _)| is_meant(*base)) else { return Ok(None) };
        (python.keep)(batch);
        let sizes = python.call_ours(read, batch)?;
        let shape = five(python, sizes);
        (python.release)(sizes);
        Ok(shape)
    }
}

/// Runs `f` so that torch tells none of the program's `TorchFunctionMode`s of it.
#[inline]
unsafe fn unheard<T>(python: &Python, f: impl FnOnce() -> T) -> T {
    let is_heard = listener(Listener::IsHeard);
    // SAFETY: guaranteed by the caller. Both are torch's own, and not written in Python.
    unsafe {
        if is_heard.is_null() || !python.truth((python.call_object)(is_heard, null_mut())) {
            return f();
        }
        let quiet = (python.call_object)(listener(Listener::Unheard), null_mut());
        call_named(python, quiet, c"__enter__");
        let result = f();
        call_named(python, quiet, c"__exit__");
        if !quiet.is_null() {
            (python.release)(quiet);
        }
        result
    }
}

/// Calls a method without arguments, if there is an object.
unsafe fn call_named(python: &Python, object: Object, name: &CStr) {
    if object.is_null() {
        return;
    }
    // SAFETY: guaranteed by the caller. `truth` takes what was returned, and clears an exception.
    unsafe {
        let name = (python.new_text)(name.as_ptr());
        let method = (python.attribute)(object, name);
        (python.release)(name);
        if method.is_null() {
            return (python.clear)();
        }
        python.truth((python.call_object)(method, null_mut()));
        (python.release)(method);
    }
}

/// Whether this is torch's own type of tensors or of parameters: those derived from them may be the program's.
fn is_tensor(kind: Object) -> bool {
    kind == listener(Listener::Tensor) || kind == listener(Listener::Parameter)
}

/// The shape of a tensor, a new reference; NULL if it has none, or is none.
///
/// # Safety
/// As for [`Python::small`].
pub(crate) unsafe fn tensor_shape(python: &Python, tensor: Object) -> Object {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if !is_tensor(python.kind(tensor)) {
            return null_mut();
        }
        let shape = unheard(python, || (python.attribute)(tensor, python.names.shape));
        if shape.is_null() {
            (python.clear)();
        }
        shape
    }
}

/// Whether a tensor is on the CPU; `None` if it is none of torch's own types, or cannot say.
///
/// # Safety
/// As for [`Python::small`].
#[inline]
pub(crate) unsafe fn is_on_cpu(python: &Python, tensor: Object) -> Option<bool> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if !is_tensor(python.kind(tensor)) {
            return None;
        }
        let is_cpu = unheard(python, || (python.attribute)(tensor, python.names.is_cpu));
        if is_cpu.is_null() {
            (python.clear)();
            return None;
        }
        Some(python.truth(is_cpu))
    }
}

/// The first dimension of a tensor, and its tokens where it is a table of whole numbers: texts, each as long as the longest.
unsafe fn rows(python: &Python, tensor: Object) -> Option<Shape> {
    // SAFETY: guaranteed by the caller. A tensor's shape is a tuple of ints.
    unsafe {
        let shape = tensor_shape(python, tensor);
        if shape.is_null() {
            return None;
        }
        let len = (python.tuple_len)(shape);
        let size = |at: isize| if len > at { (python.long)((python.tuple_item)(shape, at)) } else { -1 };
        let (samples, length) = (size(0), size(1));
        (python.release)(shape);
        if samples < 0 || len < 0 {
            (python.clear)();
            return None;
        }
        let is_text = len == 2 && length > 1 && is_of_whole_numbers(python, tensor);
        Some([-1, -1, -1, -1, samples, if is_text { samples.saturating_mul(length) } else { -1 }])
    }
}

/// Whether a tensor's type is one of whole numbers that may be negative, which those of pictures and of masks are not.
unsafe fn is_of_whole_numbers(python: &Python, tensor: Object) -> bool {
    // SAFETY: guaranteed by the caller. `truth` takes what was returned, and clears an exception.
    unsafe {
        let kind = unheard(python, || (python.attribute)(tensor, python.names.dtype));
        if kind.is_null() {
            (python.clear)();
            return false;
        }
        let is = |name: Object| python.truth((python.attribute)(kind, name));
        let Names { is_floating_point, is_complex, is_signed, .. } = python.names;
        let is_whole = is(is_signed) && !is(is_floating_point) && !is(is_complex);
        (python.release)(kind);
        is_whole
    }
}

/// The sizes that Python has read; tokens it reads none.
unsafe fn five(python: &Python, sizes: Object) -> Option<Shape> {
    // SAFETY: guaranteed by the caller. What is no tuple of ints leaves an exception, which is cleared.
    unsafe {
        let is_known = (python.tuple_len)(sizes) == 5;
        let size = |at: usize| if at < 5 { (python.long)((python.tuple_item)(sizes, at as isize)) } else { -1 };
        let shape = is_known.then(|| std::array::from_fn(size));
        if !(python.exception)().is_null() {
            (python.clear)();
            return None;
        }
        shape
    }
}

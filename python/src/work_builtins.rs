//! What hooks written in Python report of a training loop, as built-in functions.

use std::ffi::{CStr, c_long, c_ulonglong};
use std::ptr::null_mut;

use crate::cpython::{METH_FASTCALL, METH_NOARGS, METH_O, Object, PyMethodDef, Python, method, with_python};
use crate::steps::{OptimizerId, Work};
use crate::{events, hooked, training};

pub(crate) static METHODS: [PyMethodDef; 12] = [
    method(c"listen", listen as *const (), METH_FASTCALL),
    method(c"work_begin", work_begin as *const (), METH_O),
    method(c"work_end", work_end as *const (), METH_FASTCALL),
    method(c"fetch_end", fetch_end as *const (), METH_FASTCALL),
    method(c"optimizer_before", optimizer_before as *const (), METH_FASTCALL),
    method(c"optimizer_after", optimizer_after as *const (), METH_FASTCALL),
    method(c"optimizer_steps", optimizer_steps as *const (), METH_NOARGS),
    method(c"expect", expect as *const (), METH_FASTCALL),
    method(c"is_here", is_here as *const (), METH_NOARGS),
    method(c"is_elsewhere", is_elsewhere as *const (), METH_NOARGS),
    method(c"reducing", reducing as *const (), METH_NOARGS),
    method(c"switch", switch as *const (), METH_FASTCALL),
];

/// Arguments of a call.
///
/// # Safety
/// `arguments` must be an array of this length.
unsafe fn given<'a>(arguments: *const Object, count: isize) -> &'a [Object] {
    match usize::try_from(count) {
        // SAFETY: guaranteed by the caller.
        Ok(count) if count > 0 => unsafe { std::slice::from_raw_parts(arguments, count) },
        _ => &[],
    }
}

/// Raises, and returns nothing.
unsafe fn refuse(python: &Python, text: &'static CStr) -> Option<Object> {
    // SAFETY: guaranteed by the caller.
    unsafe { (python.raise)(*python.type_error, text.as_ptr()) };
    None
}

/// Calls `f` with the arguments; returns None.
///
/// # Safety
/// Python calls this, with an array of as many arguments as `count` says.
unsafe fn with_given(
    arguments: *const Object,
    count: isize,
    f: impl FnOnce(&Python, &[Object]) -> Option<()>,
) -> Object {
    with_python(|python| {
        // SAFETY: guaranteed by the caller.
        unsafe {
            f(python, given(arguments, count))?;
            Some(python.nothing())
        }
    })
}

/// `listen(which, object)`: sets a function or an object; None for none. It is never released.
unsafe extern "C" fn listen(_: Object, arguments: *const Object, count: isize) -> Object {
    let set = |python: &Python, given: &[Object]| {
        // SAFETY: Python calls this.
        unsafe {
            let &[which, object] = given else { return refuse(python, c"listen() takes 2 arguments").map(|_| ()) };
            let which = python.small(which)?;
            (python.keep)(object);
            if events::listen(which, if object == python.none { null_mut() } else { object }) {
                return Some(());
            }
            refuse(python, c"no such listener").map(|_| ())
        }
    };
    // SAFETY: Python calls this.
    unsafe { with_given(arguments, count, set) }
}

/// The work with this number.
unsafe fn work(python: &Python, number: Object) -> Option<Work> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let work = Work::from_number(python.small(number)?);
        if work.is_none() {
            refuse(python, c"no such work");
        }
        work
    }
}

/// `work_begin(work)`: what `work_end` is to be told, or None if it is not to be called.
unsafe extern "C" fn work_begin(_: Object, number: Object) -> Object {
    with_python(|python| {
        // SAFETY: Python calls this, with one argument.
        unsafe {
            match events::begin(python, work(python, number)?).ok()? {
                Some(token) => Some((python.new_int)(c_long::from(token))),
                None => Some(python.nothing()),
            }
        }
    })
}

/// `work_end(work, token, optimizer=0)`.
unsafe extern "C" fn work_end(_: Object, arguments: *const Object, count: isize) -> Object {
    let ended = |python: &Python, given: &[Object]| {
        // SAFETY: Python calls this.
        unsafe {
            let (&[number, token], optimizer) = (match given {
                [first @ .., optimizer] if first.len() == 2 => (first, (python.long)(*optimizer)),
                both => (both, 0),
            }) else {
                return refuse(python, c"work_end() takes 2 or 3 arguments").map(|_| ());
            };
            if optimizer == -1 && !(python.exception)().is_null() {
                return None;
            }
            events::end(python, work(python, number)?, python.small(token)?, optimizer as OptimizerId).ok()
        }
    };
    // SAFETY: Python calls this.
    unsafe { with_given(arguments, count, ended) }
}

/// `fetch_end(token, batch)`: ends a fetch with what it returned, or None.
unsafe extern "C" fn fetch_end(_: Object, arguments: *const Object, count: isize) -> Object {
    let ended = |python: &Python, given: &[Object]| {
        // SAFETY: Python calls this.
        unsafe {
            let &[token, batch] = given else { return refuse(python, c"fetch_end() takes 2 arguments").map(|_| ()) };
            events::fetched(python, python.small(token)?, batch).ok()
        }
    };
    // SAFETY: Python calls this.
    unsafe { with_given(arguments, count, ended) }
}

/// torch's hook before an optimizer's step: `optimizer_before(optimizer, args, kwargs)`.
unsafe extern "C" fn optimizer_before(_: Object, arguments: *const Object, count: isize) -> Object {
    let before = |python: &Python, given: &[Object]| {
        if let &[optimizer, args, kwargs] = given {
            // SAFETY: Python calls this; torch passes a tuple and a dictionary. Anything else counts as no closure.
            let has_closure = unsafe { has_closure(python, args, kwargs) };
            training::optimizer_begin(optimizer as OptimizerId, has_closure);
        }
        Some(())
    };
    // SAFETY: Python calls this.
    unsafe { with_given(arguments, count, before) }
}

/// Whether the step was given a closure, after the optimizer itself or by its name.
unsafe fn has_closure(python: &Python, args: Object, kwargs: Object) -> bool {
    // SAFETY: guaranteed by the caller. What is borrowed is only compared.
    unsafe {
        let is_given = |closure: Object| !closure.is_null() && closure != python.none;
        if (python.tuple_len)(args) > 1 {
            return is_given((python.tuple_item)(args, 1));
        }
        let has_names = kwargs != python.none && (python.dict_len)(kwargs) > 0;
        if !(python.exception)().is_null() {
            (python.clear)();
            return false;
        }
        if !has_names {
            return false;
        }
        let name = (python.new_text)(c"closure".as_ptr());
        let closure = (python.dict_item)(kwargs, name);
        (python.release)(name);
        is_given(closure)
    }
}

/// torch's hook after an optimizer's step: `optimizer_after(optimizer, args, kwargs)`.
unsafe extern "C" fn optimizer_after(_: Object, arguments: *const Object, count: isize) -> Object {
    let after = |python: &Python, given: &[Object]| {
        let optimizer = *given.first()? as OptimizerId;
        match training::optimizer_end(optimizer) {
            // SAFETY: Python calls this.
            Some((work, token)) => unsafe { events::end(python, work, token, optimizer) }.ok(),
            None => Some(()),
        }
    };
    // SAFETY: Python calls this.
    unsafe { with_given(arguments, count, after) }
}

/// `optimizer_steps()`: how many steps of optimizers this thread has begun.
unsafe extern "C" fn optimizer_steps(_: Object, _: Object) -> Object {
    // SAFETY: Python calls this.
    with_python(|python| Some(unsafe { (python.new_unsigned)(training::optimizer_steps() as c_ulonglong) }))
}

/// `expect(id, ...)`: these optimizers exist.
unsafe extern "C" fn expect(_: Object, arguments: *const Object, count: isize) -> Object {
    let expected = |python: &Python, given: &[Object]| {
        // SAFETY: Python calls this.
        let optimizers = given.iter().map(|id| unsafe { (python.long)(*id) } as OptimizerId).collect();
        // SAFETY: as above.
        if unsafe { (python.exception)() }.is_null() {
            training::expect(optimizers);
            return Some(());
        }
        None
    };
    // SAFETY: Python calls this.
    unsafe { with_given(arguments, count, expected) }
}

/// `is_here()`: whether this is the training thread.
unsafe extern "C" fn is_here(_: Object, _: Object) -> Object {
    // SAFETY: Python calls this.
    with_python(|python| Some(unsafe { (python.new_int)(c_long::from(training::is_here())) }))
}

/// `is_elsewhere()`: whether this process does not train.
unsafe extern "C" fn is_elsewhere(_: Object, _: Object) -> Object {
    // SAFETY: Python calls this.
    with_python(|python| Some(unsafe { (python.new_int)(c_long::from(training::is_elsewhere())) }))
}

/// `reducing()`: this thread sends gradients to other ranks.
unsafe extern "C" fn reducing(_: Object, _: Object) -> Object {
    training::reducing();
    // SAFETY: Python calls this.
    with_python(|python| Some(unsafe { python.nothing() }))
}

/// `switch(what, value)`: 0 the rule ends steps, 1 there are other ranks, 2 this process does not train, 3 hooks were removed.
unsafe extern "C" fn switch(_: Object, arguments: *const Object, count: isize) -> Object {
    let set = |python: &Python, given: &[Object]| {
        // SAFETY: Python calls this.
        unsafe {
            let &[what, value] = given else { return refuse(python, c"switch() takes 2 arguments").map(|_| ()) };
            let value = python.small(value)? != 0;
            match python.small(what)? {
                0 => training::set_automatic(value),
                1 => training::set_peers(value),
                2 => training::set_elsewhere(),
                _ => {
                    hooked::switch_off();
                    training::close();
                }
            }
            Some(())
        }
    };
    // SAFETY: Python calls this.
    unsafe { with_given(arguments, count, set) }
}

//! What hooks written in Python report of a training loop, as built-in functions.

use std::ffi::{CStr, c_long, c_ulonglong};
use std::ptr::null_mut;

use crate::cpython::{METH_FASTCALL, METH_NOARGS, METH_O, Object, PyMethodDef, Python, given, method, with_python};
use crate::steps::{OptimizerId, Work};
use crate::{batches, collector, device_waits, events, gradients, hooked, listeners, roots, training, worker};

pub(crate) static METHODS: [PyMethodDef; 23] = [
    method(c"listen", listen as *const (), METH_FASTCALL),
    method(c"work_begin", work_begin as *const (), METH_O),
    method(c"work_end", work_end as *const (), METH_FASTCALL),
    method(c"fetch_end", fetch_end as *const (), METH_FASTCALL),
    method(c"optimizer_before", optimizer_before as *const (), METH_FASTCALL),
    method(c"optimizer_after", optimizer_after as *const (), METH_FASTCALL),
    method(c"optimizer_steps", optimizer_steps as *const (), METH_NOARGS),
    method(c"expect", expect as *const (), METH_FASTCALL),
    method(c"made", made as *const (), METH_O),
    method(c"is_here", is_here as *const (), METH_NOARGS),
    method(c"is_elsewhere", is_elsewhere as *const (), METH_NOARGS),
    method(c"sending", sending as *const (), METH_O),
    method(c"switch", switch as *const (), METH_FASTCALL),
    method(c"add_root", add_root as *const (), METH_FASTCALL),
    method(c"remove_root", remove_root as *const (), METH_O),
    method(c"fields", fields as *const (), METH_O),
    method(c"shape", shape as *const (), METH_O),
    method(c"read_with", read_with as *const (), METH_FASTCALL),
    method(c"close_ring_with", close_ring_with as *const (), METH_FASTCALL),
    method(c"watch_waits", watch_waits as *const (), METH_FASTCALL),
    method(c"collecting", collector::collecting as *const (), METH_FASTCALL),
    method(c"denormal_share", gradients::denormal_share as *const (), METH_FASTCALL),
    method(c"denormal_cost", gradients::denormal_cost as *const (), METH_NOARGS),
];

/// Called when what uses a worker's ring is gone.
static RING_GONE: PyMethodDef = method(c"ring_gone", ring_gone as *const (), METH_O);

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
            if listeners::listen(which, if object == python.none { null_mut() } else { object }) {
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
            // SAFETY: as above.
            unsafe { gradients::are_ready(python, optimizer) }.ok()?;
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
        is_given((python.dict_item)(kwargs, python.names.closure))
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

/// `made(optimizer)`: this thread has made it.
unsafe extern "C" fn made(_: Object, optimizer: Object) -> Object {
    training::made(optimizer as OptimizerId);
    // SAFETY: Python calls this.
    with_python(|python| Some(unsafe { python.nothing() }))
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

/// `sending(what)`: this thread communicates with other ranks, as a process group tells. An all-reduce sends gradients.
unsafe extern "C" fn sending(_: Object, what: Object) -> Object {
    with_python(|python| {
        // SAFETY: Python calls this, with one argument. An exception is cleared.
        unsafe {
            let kind = (python.attribute)(what, python.names.name);
            let name = if kind.is_null() { kind } else { (python.attribute)(kind, python.names.name) };
            if !name.is_null() && python.is_text(name, c"ALLREDUCE") {
                training::reducing();
            }
            [kind, name].into_iter().filter(|object| !object.is_null()).for_each(|object| (python.release)(object));
            (python.clear)();
            Some(python.nothing())
        }
    })
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
                    device_waits::switch_off();
                    training::close();
                }
            }
            Some(())
        }
    };
    // SAFETY: Python calls this.
    unsafe { with_given(arguments, count, set) }
}

/// `add_root(module, is_frozen)`: calls of this module are forward passes from now on; returns whether they were not before.
unsafe extern "C" fn add_root(_: Object, arguments: *const Object, count: isize) -> Object {
    with_python(|python| {
        // SAFETY: Python calls this, with an array of as many arguments as `count` says.
        unsafe {
            let &[module, is_frozen] = given(arguments, count) else {
                return refuse(python, c"add_root() takes 2 arguments");
            };
            let is_new = roots::add(python, module, is_frozen == python.true_object);
            Some((python.new_int)(c_long::from(is_new)))
        }
    })
}

/// `remove_root(module)`: calls of this module are none any more.
unsafe extern "C" fn remove_root(_: Object, module: Object) -> Object {
    roots::remove(module);
    // SAFETY: Python calls this.
    with_python(|python| Some(unsafe { python.nothing() }))
}

/// `fields(object)`: the dictionary of its own attributes, or None, without running any of its code.
unsafe extern "C" fn fields(_: Object, object: Object) -> Object {
    with_python(|python| {
        // SAFETY: Python calls this, with one argument.
        unsafe {
            let fields = python.fields(object);
            Some(if fields.is_null() { python.nothing() } else { fields })
        }
    })
}

/// `shape(tensor)`: its shape, or None if it is none of torch's own. None of the program's code runs.
unsafe extern "C" fn shape(_: Object, tensor: Object) -> Object {
    with_python(|python| {
        // SAFETY: Python calls this, with one argument.
        unsafe {
            let shape = batches::tensor_shape(python, tensor);
            Some(if shape.is_null() { python.nothing() } else { shape })
        }
    })
}

/// `read_with(type, function)`: the function returns the five sizes of batches of this type, or an empty tuple.
unsafe extern "C" fn read_with(_: Object, arguments: *const Object, count: isize) -> Object {
    let set = |python: &Python, given: &[Object]| {
        // SAFETY: Python calls this. What is set is kept.
        unsafe {
            let &[kind, read] = given else { return refuse(python, c"read_with() takes 2 arguments").map(|_| ()) };
            (python.keep)(kind);
            (python.keep)(read);
        }
        batches::read_with(given[0], given[1]);
        Some(())
    };
    // SAFETY: Python calls this.
    unsafe { with_given(arguments, count, set) }
}

/// `watch_waits(function, how)`: counts the function's waits for a device, and returns whether it can be watched.
unsafe extern "C" fn watch_waits(_: Object, arguments: *const Object, count: isize) -> Object {
    with_python(|python| {
        // SAFETY: Python calls this, with an array of as many arguments as `count` says.
        unsafe {
            let &[function, how] = given(arguments, count) else {
                return refuse(python, c"watch_waits() takes 2 arguments");
            };
            let is_watched = device_waits::watch(python, function, python.small(how)?);
            Some((python.new_int)(c_long::from(is_watched)))
        }
    })
}

/// `close_ring_with(object, ring)`: closes a worker's ring when the object is gone.
unsafe extern "C" fn close_ring_with(_: Object, arguments: *const Object, count: isize) -> Object {
    let set = |python: &Python, given: &[Object]| {
        // SAFETY: Python calls this.
        unsafe {
            let &[object, ring] = given else {
                return refuse(python, c"close_ring_with() takes 2 arguments").map(|_| ());
            };
            python.when_gone(object, &RING_GONE, python.small(ring)?);
        }
        Some(())
    };
    // SAFETY: Python calls this.
    unsafe { with_given(arguments, count, set) }
}

unsafe extern "C" fn ring_gone(ring: Object, reference: Object) -> Object {
    with_python(|python| {
        // SAFETY: Python calls this, with the number that it was made with, and the reference that was kept.
        unsafe {
            worker::close(python.small(ring)?);
            (python.release)(reference);
            Some(python.nothing())
        }
    })
}

//! What puts a batch together is a span, but only while its fetcher fetches: the fetcher's own function is there at all other times.

use std::ffi::c_long;
use std::ptr::null_mut;

use crate::cpython::{Object, Python};

/// Instead of the number of work: calls are those of a fetcher. The name of the span stands in place of the module.
pub(super) const OF_FETCHER: i32 = 1 << 16;

/// Calls a fetcher's `fetch`, with its `collate_fn` replaced meanwhile by an object of type `hooked`, whose calls are the work that
/// `span` makes of the number of a name.
///
/// # Safety
/// As for [`Python::small`], for all objects; `fetcher` may be NULL.
pub(super) unsafe fn fetch(
    python: &Python,
    hooked: Object,
    name: Object,
    fetcher: Object,
    span: fn(i32) -> i32,
    call: impl FnOnce() -> Object,
) -> Object {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let fields = if fetcher.is_null() { null_mut() } else { python.fields(fetcher) };
        if fields.is_null() {
            return call();
        }
        let key = python.names.collate_fn;
        let theirs = (python.dict_item)(fields, key);
        let ours = if theirs.is_null() { null_mut() } else { stand_in(python, hooked, name, span, theirs) };
        if !ours.is_null() {
            (python.keep)(theirs);
            (python.set_dict_item)(fields, key, ours);
        }
        let result = call();
        if !ours.is_null() {
            python.aside(|| {
                if (python.dict_item)(fields, key) == ours && (python.set_dict_item)(fields, key, theirs) != 0 {
                    (python.clear)();
                }
            });
            (python.release)(theirs);
            (python.release)(ours);
        }
        (python.release)(fields);
        result
    }
}

/// An object of type `hooked` for a function, whose calls are spans of this name; NULL without memory for one.
unsafe fn stand_in(python: &Python, hooked: Object, name: Object, span: fn(i32) -> i32, function: Object) -> Object {
    // SAFETY: guaranteed by the caller. The tuple takes over its items.
    unsafe {
        let Some(number) = python.small(name) else {
            (python.clear)();
            return null_mut();
        };
        (python.keep)(function);
        let made = python.tuple([function, (python.new_int)(c_long::from(span(number))), python.nothing()]);
        let ours = (python.call_object)(hooked, made);
        (python.release)(made);
        if ours.is_null() {
            (python.clear)();
        }
        ours
    }
}

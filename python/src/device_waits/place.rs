//! Where in the program a call is: the innermost frame outside libraries, as CPython's own functions say.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int};
use std::sync::OnceLock;

use gnntop_probe::{NameKind, Reported};

use crate::cpython::{Object, Python, function};
use crate::names;
use crate::stacks::{Frame, format_frame, is_own};

/// Frames that are looked at, from the innermost on.
const MOST_FRAMES: usize = 32;
/// Places whose names a thread remembers; the code of each is kept.
const REMEMBERED: usize = 64;

/// What says where a thread is. Not all of it belongs to the stable interface.
struct Frames {
    current: unsafe extern "C" fn() -> Object,
    back: unsafe extern "C" fn(Object) -> Object,
    code: unsafe extern "C" fn(Object) -> Object,
    line: unsafe extern "C" fn(Object) -> c_int,
    utf8: unsafe extern "C" fn(Object) -> *const c_char,
}

impl Frames {
    /// Looks the functions up in the process; `None` if any is missing.
    ///
    /// # Safety
    /// If the process has Python, the thread must hold the interpreter.
    unsafe fn find() -> Option<Self> {
        // SAFETY: each symbol is a function of this type in every CPython from 3.10 on.
        unsafe {
            Some(Self {
                current: function(c"PyEval_GetFrame")?,
                back: function(c"PyFrame_GetBack")?,
                code: function(c"PyFrame_GetCode")?,
                line: function(c"PyFrame_GetLineNumber")?,
                utf8: function(c"PyUnicode_AsUTF8")?,
            })
        }
    }
}

static FRAMES: OnceLock<Option<Frames>> = OnceLock::new();

/// A line of code, and what calls there are called.
struct NamedCall {
    code: Object,
    line: i32,
    call: String,
    name: i32,
}

thread_local! {
    static NAMED: RefCell<Vec<NamedCall>> = const { RefCell::new(Vec::new()) };
}

/// The number of the name of a wait in this call: `wait for the device: item in train (train.py:4)`.
///
/// # Safety
/// As for [`Python::small`].
pub(super) unsafe fn name(python: &Python, call: &str) -> i32 {
    let text = |place: &str| format!("{}{call}{place}", Reported::DeviceWait.text());
    let register = |text: &str| names::register(NameKind::Reported(Reported::DeviceWait), text);
    // SAFETY: guaranteed by the caller.
    let Some((code, line, frame)) = (unsafe { own_frame(python) }) else { return register(&text("")) };
    NAMED.with_borrow_mut(|known| {
        let is_it = |known: &&NamedCall| known.code == code && known.line == line && known.call == call;
        if let Some(found) = known.iter().find(is_it) {
            // SAFETY: the reference is ours.
            unsafe { (python.release)(code) };
            return found.name;
        }
        let name = register(&text(&format!(" in {}", format_frame(&frame))));
        if known.len() == REMEMBERED {
            // SAFETY: as above.
            known.drain(..).for_each(|one| unsafe { (python.release)(one.code) });
        }
        known.push(NamedCall { code, line, call: call.to_owned(), name });
        name
    })
}

/// The innermost frame that is the program's own, else the innermost: a new reference to its code, and its line.
unsafe fn own_frame(python: &Python) -> Option<(Object, i32, Frame)> {
    // SAFETY: guaranteed by the caller.
    let frames = FRAMES.get_or_init(|| unsafe { Frames::find() }).as_ref()?;
    // SAFETY: guaranteed by the caller. Each reference that is not returned is released.
    unsafe {
        let mut frame = (frames.current)();
        if frame.is_null() {
            return None;
        }
        (python.keep)(frame);
        let mut found: Option<(Object, i32, Frame)> = None;
        for _ in 0..MOST_FRAMES {
            let here = read(python, frames, frame);
            let is_found = here.as_ref().is_some_and(|(.., here)| is_own(here));
            if is_found || found.is_none() {
                if let Some((code, ..)) = found.take() {
                    (python.release)(code);
                }
                found = here;
            } else if let Some((code, ..)) = here {
                (python.release)(code);
            }
            let back = if is_found { std::ptr::null_mut() } else { (frames.back)(frame) };
            (python.release)(frame);
            frame = back;
            if frame.is_null() {
                return found;
            }
        }
        (python.release)(frame);
        found
    }
}

/// The code of a frame, a new reference, its line, and both as text.
unsafe fn read(python: &Python, frames: &Frames, frame: Object) -> Option<(Object, i32, Frame)> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let code = (frames.code)(frame);
        let line = (frames.line)(frame);
        let name = text(python, frames, code, c"co_qualname").or_else(|| text(python, frames, code, c"co_name"));
        let file = text(python, frames, code, c"co_filename");
        match name.zip(file) {
            Some((name, file)) => Some((code, line, Frame { name, file, line })),
            None => {
                (python.release)(code);
                None
            }
        }
    }
}

/// A text of a code object's.
unsafe fn text(python: &Python, frames: &Frames, code: Object, name: &CStr) -> Option<String> {
    // SAFETY: guaranteed by the caller. A code object's attributes are its own, and none of the program's code.
    unsafe {
        let name = (python.new_text)(name.as_ptr());
        let value = (python.attribute)(code, name);
        (python.release)(name);
        let bytes = if value.is_null() { std::ptr::null() } else { (frames.utf8)(value) };
        let found = (!bytes.is_null()).then(|| CStr::from_ptr(bytes).to_string_lossy().into_owned());
        if found.is_none() {
            (python.clear)();
        }
        if !value.is_null() {
            (python.release)(value);
        }
        found
    }
}

//! NCCL's functions, looked up in its library when they are first needed.
//!
//! cudarc has them too, but looks for `libnccl.so`, which only NCCL's development package installs; that of the run
//! time and PyTorch's wheels have `libnccl.so.2`. If it finds none it ends the program, and it needs one to link with.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use libloading::Library;

use crate::parallel::CollectiveError;

/// Names of the library, the one that every installation has first.
const NAMES: [&str; 2] = ["libnccl.so.2", "libnccl.so"];

/// A communicator of NCCL's.
pub(super) type Handle = *mut c_void;

/// NCCL's `ncclResult_t`.
pub(super) type Status = c_int;
/// `ncclSuccess`
pub(super) const SUCCESS: Status = 0;
/// `ncclInProgress`: poll again.
pub(super) const IN_PROGRESS: Status = 7;
/// `ncclFloat32`
pub(super) const FLOAT32: c_int = 7;
/// `ncclAvg`
pub(super) const MEAN: c_int = 4;

/// The id by which ranks find each other: `ncclUniqueId`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(super) struct UniqueId(pub(super) [u8; 128]);

/// `ncclConfig_t` as NCCL 2.14 has it. Later versions add fields, and take those as not given for one of this version.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Config {
    size: usize,
    magic: c_uint,
    version: c_uint,
    blocking: c_int,
}

impl Config {
    /// Calls return at once and are polled, so that a communicator can be aborted while one is in progress.
    pub(super) const NOT_BLOCKING: Self =
        Self { size: size_of::<Self>(), magic: 0xcafe_beef, version: 21_400, blocking: 0 };
}

macro_rules! functions {
    ($($field:ident = $name:literal ($($argument:ty),*) -> $result:ty;)*) => {
        /// The functions of NCCL that are used.
        #[derive(Debug)]
        pub(crate) struct Functions {
            $(pub(super) $field: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Functions {
            fn new(library: Library) -> Result<Self, CollectiveError> {
                let missing = |name| failed(format!("it has no {name}: install NCCL 2.14 or newer"));
                let functions = Self {
                    $($field: {
                        type Function = unsafe extern "C" fn($($argument),*) -> $result;
                        // SAFETY: nccl.h declares the function of this name with these types, in version 2.14 and, since
                        // the name of the library has its version, in all that follow.
                        *unsafe { library.get::<Function>($name) }.map_err(|_| missing($name))?
                    },)*
                };
                // Never unloaded, so that the functions stay.
                std::mem::forget(library);
                Ok(functions)
            }
        }
    };
}

functions! {
    get_unique_id = "ncclGetUniqueId" (*mut UniqueId) -> Status;
    comm_init = "ncclCommInitRankConfig" (*mut Handle, c_int, UniqueId, c_int, *mut Config) -> Status;
    comm_state = "ncclCommGetAsyncError" (Handle, *mut Status) -> Status;
    comm_finalize = "ncclCommFinalize" (Handle) -> Status;
    comm_destroy = "ncclCommDestroy" (Handle) -> Status;
    comm_abort = "ncclCommAbort" (Handle) -> Status;
    all_reduce = "ncclAllReduce" (*const c_void, *mut c_void, usize, c_int, c_int, Handle, *mut c_void) -> Status;
    broadcast = "ncclBroadcast" (*const c_void, *mut c_void, usize, c_int, c_int, Handle, *mut c_void) -> Status;
    error_string = "ncclGetErrorString" (Status) -> *const c_char;
    last_error = "ncclGetLastError" (Handle) -> *const c_char;
}

impl Functions {
    /// The functions of the installed NCCL.
    ///
    /// # Errors
    /// NCCL is not installed, or is older than 2.14.
    pub(crate) fn installed() -> Result<Self, CollectiveError> {
        Self::new(load(&NAMES)?)
    }

    /// Of the library in this file.
    #[cfg(test)]
    pub(super) fn in_file(file: &str) -> Result<Self, CollectiveError> {
        Self::new(load(&[file])?)
    }

    /// A status in words, with NCCL's last error message.
    pub(super) fn words(&self, status: Status) -> String {
        // SAFETY: both functions may be called at any time, and give text that ends with a zero byte and stays, or nothing.
        // The second takes no communicator: it is documented as unused.
        let (what, last) =
            unsafe { (text((self.error_string)(status)), text((self.last_error)(std::ptr::null_mut()))) };
        match last.split_whitespace().collect::<Vec<_>>().join(" ") {
            last if last.is_empty() => what,
            last => format!("{what}: {last}"),
        }
    }
}

/// A copy of C's text; empty where there is none.
///
/// # Safety
/// `text` is null or points to bytes that end with a zero and do not change meanwhile.
unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// The first of these libraries that can be loaded. It stays loaded, since its functions are kept.
fn load(names: &[&str]) -> Result<Library, CollectiveError> {
    let mut reason = None;
    for name in names {
        // SAFETY: NCCL's initialisers may run on any thread and at any time.
        match unsafe { Library::new(*name) } {
            Ok(library) => return Ok(library),
            Err(error) => reason = reason.or(Some(error)),
        }
    }
    // The loader's message is the cause; the error itself only names the call that failed.
    let reason = reason.as_ref().and_then(std::error::Error::source);
    let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    Err(failed(format!(
        "it cannot be loaded{reason}: install NCCL 2.14 or newer (libnccl2, or Python's nvidia-nccl-cu13), or add its \
         folder to LD_LIBRARY_PATH"
    )))
}

/// An error of NCCL, or of its absence.
pub(super) fn failed(message: String) -> CollectiveError {
    CollectiveError::Engine { engine: "NCCL", message }
}

//! Files in which a Python tells `gnntop run` of itself. They are opened here and not by Python, whose audit hooks are the program's:
//! one may end it for whatever is opened for writing.

use std::ffi::{CStr, OsStr, c_char};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;

use crate::warning::catch_panic;

/// Numbers from here on are not what a program gets that closes all descriptors.
const HIGH: i32 = 1000;

/// # Safety
/// Both are NULL or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gnntop_append(path: *const c_char, text: *const c_char) -> i32 {
    catch_panic(0, || {
        // SAFETY: as the caller promises.
        let (path, text) = unsafe { (bytes(path), bytes(text)) };
        i32::from(open(path).and_then(|mut file| file.write_all(text)).is_ok())
    })
}

/// # Safety
/// `path` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gnntop_open_high(path: *const c_char) -> i32 {
    catch_panic(-1, || {
        // SAFETY: as the caller promises.
        let Ok(file) = open(unsafe { bytes(path) }) else { return -1 };
        // SAFETY: only makes another descriptor of this file.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, HIGH) }
    })
}

fn open(path: &[u8]) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(OsStr::from_bytes(path))
}

/// # Safety
/// `text` is NULL or a C string that does not change.
unsafe fn bytes<'a>(text: *const c_char) -> &'a [u8] {
    if text.is_null() {
        return b"";
    }
    // SAFETY: guaranteed by the caller.
    unsafe { CStr::from_ptr(text) }.to_bytes()
}

//! The calls of the C interface with which a loader worker's process writes into a ring of its parent. Nothing unwinds out of here.
#![allow(missing_docs, reason = "the header says it, where those who call it look")]

use std::ffi::c_char;

use gnntop_probe::TrackRole;

use crate::abi::{copy_out, text};
use crate::warning::catch_panic;
use crate::{session, stacks, thread, warning, worker};

/// # Safety
/// `name` is NULL or a C string; `address` is NULL or has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gnntop_worker_ring(name: *const c_char, address: *mut c_char, size: i32) -> i32 {
    catch_panic(-1, || {
        // SAFETY: as the caller promises.
        let name = unsafe { text(name) };
        let Some((handle, found)) = worker::create(&name, TrackRole::Loader) else { return -1 };
        // SAFETY: as the caller promises.
        if unsafe { copy_out(&found, address, size) } >= size {
            worker::close(handle);
            return -1;
        }
        handle
    })
}

/// # Safety
/// `address` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gnntop_worker_attach(address: *const c_char) -> i32 {
    catch_panic(0, || {
        warning::set_panic_hook();
        // SAFETY: as the caller promises.
        let address = unsafe { text(address) };
        i32::from(!session::is_off() && thread::with(false, |thread| thread.attach(&address, stacks::thread_state())))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn gnntop_worker_close(handle: i32) {
    catch_panic((), || worker::close(handle));
}

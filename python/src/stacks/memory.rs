//! Reads of this process's memory that fail where an address leads nowhere. The kernel copies, so that no thread has to hold
//! still and none can crash.

use std::mem::MaybeUninit;

/// Longest text that is read, in bytes.
const MAX_LEN: usize = 1 << 16;

/// An address in this process, which may lead nowhere.
pub(super) type Address = usize;

/// Fills `buffer` from `address`; whether all of it could be read.
fn copy(address: Address, buffer: &mut [MaybeUninit<u8>]) -> bool {
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: buffer.len() };
    // SAFETY: the kernel writes at most `buffer.len()` bytes into `buffer`, which is ours, and gives an error for a remote
    // address that is not mapped. To a process of its own the call needs no right.
    let read = unsafe { libc::process_vm_readv(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0) };
    usize::try_from(read) == Ok(buffer.len())
}

fn array<const N: usize>(address: Address) -> Option<[u8; N]> {
    let mut bytes = [MaybeUninit::new(0); N];
    // SAFETY: every byte was initialised, with zeros at least.
    copy(address, &mut bytes).then(|| bytes.map(|byte| unsafe { byte.assume_init() }))
}

/// A pointer, or another number of its size.
pub(super) fn word(address: Address) -> Option<usize> {
    array(address).map(usize::from_ne_bytes)
}

/// A C `int`.
pub(super) fn int(address: Address) -> Option<i32> {
    array(address).map(i32::from_ne_bytes)
}

pub(super) fn byte(address: Address) -> Option<u8> {
    array::<1>(address).map(|[byte]| byte)
}

/// So many bytes; `None` also for more than anything here has.
pub(super) fn bytes(address: Address, len: usize) -> Option<Vec<u8>> {
    if len > MAX_LEN {
        return None;
    }
    let mut bytes = vec![MaybeUninit::new(0); len];
    // SAFETY: every byte was initialised, with zeros at least.
    copy(address, &mut bytes).then(|| bytes.into_iter().map(|byte| unsafe { byte.assume_init() }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_read_and_what_is_not_is_none() {
        let value = 0x1234_5678_9ABC_DEF0_usize;
        assert_eq!(word(&raw const value as usize), Some(value));
        assert_eq!(bytes(b"abc".as_ptr() as usize, 3).as_deref(), Some(&b"abc"[..]));
        for nowhere in [0, 1, 4096, usize::MAX - 7, 0xDEAD_BEEF_0000] {
            assert_eq!((word(nowhere), byte(nowhere)), (None, None), "{nowhere:x}");
        }
        assert_eq!(bytes(&raw const value as usize, usize::MAX), None);
    }
}

//! Reads this process's memory, failing for invalid addresses. The kernel copies, so no thread has to stop and none can crash.

use std::mem::MaybeUninit;

/// Longest text read, in bytes.
const MAX_LEN: usize = 1 << 16;

/// An address in this process, which may be invalid.
pub(super) type Address = usize;

/// Fills `buffer` from `address`; returns whether all of it could be read.
fn copy(address: Address, buffer: &mut [MaybeUninit<u8>]) -> bool {
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: buffer.len() };
    // SAFETY: the kernel writes at most `buffer.len()` bytes into `buffer`, which is ours, and returns an error for a
    // remote address that is not mapped. A process needs no permission to read itself.
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

/// A copy of memory, read at once so that its parts are consistent.
pub(super) struct Copied {
    from: Address,
    bytes: Vec<u8>,
}

impl Copied {
    /// An empty copy.
    pub(super) const EMPTY: Self = Self { from: 0, bytes: Vec::new() };

    /// Copies `len` bytes from an address on, and all before them in the same page, which is mapped as a whole.
    pub(super) fn page(address: Address, len: usize) -> Option<Self> {
        let from = address & !(PAGE - 1);
        Some(Self { from, bytes: bytes(from, address.checked_sub(from)?.checked_add(len)?)? })
    }

    /// The structure with this length at the address.
    pub(super) fn at(&self, address: Address, len: usize) -> Option<Structure<'_>> {
        let at = address.checked_sub(self.from)?;
        self.bytes.get(at..at.checked_add(len)?).map(Structure)
    }
}

/// Bytes of a page of memory; the machine's own may be a multiple.
const PAGE: usize = 4096;

/// A structure in a copy of memory.
pub(super) struct Structure<'a>(&'a [u8]);

impl Structure<'_> {
    fn array<const M: usize>(&self, at: usize) -> Option<[u8; M]> {
        self.0.get(at..at.checked_add(M)?)?.try_into().ok()
    }

    /// A pointer, or another number of its size.
    pub(super) fn word(&self, at: usize) -> Option<usize> {
        self.array(at).map(usize::from_ne_bytes)
    }

    /// A C `int`.
    pub(super) fn int(&self, at: usize) -> Option<i32> {
        self.array(at).map(i32::from_ne_bytes)
    }

    pub(super) fn byte(&self, at: usize) -> Option<u8> {
        self.array::<1>(at).map(|[byte]| byte)
    }
}

/// Reads structures of the same length, all at once, and converts each with `read`; `None` if one cannot be read.
pub(super) fn structures<T>(
    addresses: &[Address],
    len: usize,
    read: impl Fn(&Structure<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let mut bytes = vec![0_u8; addresses.len().checked_mul(len)?];
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let remote = |address: &Address| libc::iovec { iov_base: *address as *mut libc::c_void, iov_len: len };
    let remote: Vec<libc::iovec> = addresses.iter().map(remote).collect();
    let count = u32::try_from(remote.len()).ok()?;
    // SAFETY: the kernel writes at most `bytes.len()` bytes into `bytes`, which is ours, reads `count` entries of `remote`,
    // and returns an error for unmapped memory and for too many entries.
    let read_len =
        unsafe { libc::process_vm_readv(libc::getpid(), &raw const local, 1, remote.as_ptr(), count.into(), 0) };
    (usize::try_from(read_len) == Ok(bytes.len())).then_some(())?;
    bytes.chunks_exact(len.max(1)).map(|one| read(&Structure(one))).collect()
}

/// Copies `len` bytes; `None` also if that is more than anything here has.
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
            assert_eq!((word(nowhere), Copied::page(nowhere, 8).is_none()), (None, true), "{nowhere:x}");
        }
        assert_eq!(bytes(&raw const value as usize, usize::MAX), None);
    }

    #[test]
    fn several_are_read_at_once_or_not_at_all() {
        let values = [7_usize, 8, 9];
        let at = |place: usize| &raw const values[place] as usize;
        let words = |addresses: &[Address]| structures(addresses, 8, |one| one.word(0));
        assert_eq!(words(&[at(2), at(0)]), Some(vec![9, 7]));
        assert_eq!((words(&[]), words(&[at(0), 4096])), (Some(Vec::new()), None));
        let page = Copied::page(at(1), 8).unwrap();
        assert_eq!(page.at(at(1), 8).unwrap().word(0), Some(8));
        assert!(page.at(at(2), 8).is_none(), "what lies behind was not copied");
    }
}

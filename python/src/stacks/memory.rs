//! Reads a process's memory, failing for invalid addresses. The kernel copies, so no thread has to stop and none can crash.

use std::mem::MaybeUninit;

/// Longest piece read, in bytes: the table of lines of a file with some hundred thousand lines.
const MAX_LEN: usize = 1 << 22;

/// An address in a process, which may be invalid.
pub(super) type Address = usize;

/// A process whose memory is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Process(libc::pid_t);

impl Process {
    /// This process, which needs no permission to read itself.
    pub(super) fn own() -> Self {
        Self(rustix::process::getpid().as_raw_pid())
    }

    /// A child, or a child of one: the system lets processes read their descendants of the same user, unless it is set up
    /// otherwise.
    pub(super) fn descendant(id: u32) -> Option<Self> {
        libc::pid_t::try_from(id).ok().filter(|id| *id > 0).map(Self)
    }

    /// Its process id.
    pub(super) fn id(self) -> libc::pid_t {
        self.0
    }

    /// Fills `buffer` from `address`; returns whether all of it could be read.
    fn copy(self, address: Address, buffer: &mut [MaybeUninit<u8>]) -> bool {
        let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: buffer.len() };
        // SAFETY: the kernel writes at most `buffer.len()` bytes into `buffer`, which is ours, and returns an error for a
        // remote address that is not mapped, and for a process that may not be read.
        let read = unsafe { libc::process_vm_readv(self.0, &raw const local, 1, &raw const remote, 1, 0) };
        usize::try_from(read) == Ok(buffer.len())
    }

    fn array<const N: usize>(self, address: Address) -> Option<[u8; N]> {
        let mut bytes = [MaybeUninit::new(0); N];
        // SAFETY: every byte was initialised, with zeros at least.
        self.copy(address, &mut bytes).then(|| bytes.map(|byte| unsafe { byte.assume_init() }))
    }

    /// A pointer, or another number of its size.
    pub(super) fn word(self, address: Address) -> Option<usize> {
        self.array(address).map(usize::from_ne_bytes)
    }

    /// Copies `len` bytes; `None` also if that is more than anything here has.
    pub(super) fn bytes(self, address: Address, len: usize) -> Option<Vec<u8>> {
        if len > MAX_LEN {
            return None;
        }
        let mut bytes = vec![MaybeUninit::new(0); len];
        // SAFETY: every byte was initialised, with zeros at least.
        self.copy(address, &mut bytes).then(|| bytes.into_iter().map(|byte| unsafe { byte.assume_init() }).collect())
    }

    /// Copies `len` bytes from an address on, and all before them in the same page, which is mapped as a whole.
    pub(super) fn page(self, address: Address, len: usize) -> Option<MemoryCopy> {
        let from = address & !(PAGE - 1);
        Some(MemoryCopy { from, bytes: self.bytes(from, address.checked_sub(from)?.checked_add(len)?)? })
    }

    /// Reads structures of the same length, all at once, and converts each with `read`; `None` if one cannot be read.
    pub(super) fn structures<T>(
        self,
        addresses: &[Address],
        len: usize,
        read: impl Fn(&Structure<'_>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let mut bytes = vec![0_u8; addresses.len().checked_mul(len)?];
        let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        let remote = |address: &Address| libc::iovec { iov_base: *address as *mut libc::c_void, iov_len: len };
        let remote: Vec<libc::iovec> = addresses.iter().map(remote).collect();
        let count = u32::try_from(remote.len()).ok()?;
        // SAFETY: the kernel writes at most `bytes.len()` bytes into `bytes`, which is ours, reads `count` entries of
        // `remote`, and returns an error for unmapped memory, for too many entries and for a process that may not be read.
        let read_len = unsafe { libc::process_vm_readv(self.0, &raw const local, 1, remote.as_ptr(), count.into(), 0) };
        (usize::try_from(read_len) == Ok(bytes.len())).then_some(())?;
        bytes.chunks_exact(len.max(1)).map(|one| read(&Structure(one))).collect()
    }
}

/// A copy of memory, read at once so that its parts are consistent.
pub(super) struct MemoryCopy {
    from: Address,
    bytes: Vec<u8>,
}

impl MemoryCopy {
    /// An empty copy.
    pub(super) const EMPTY: Self = Self { from: 0, bytes: Vec::new() };

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_address_is_read_and_invalid_address_is_none() {
        let own = Process::own();
        let value = 0x1234_5678_9ABC_DEF0_usize;
        assert_eq!(own.word(&raw const value as usize), Some(value));
        assert_eq!(own.bytes(b"abc".as_ptr() as usize, 3).as_deref(), Some(&b"abc"[..]));
        for nowhere in [0, 1, 4096, usize::MAX - 7, 0xDEAD_BEEF_0000] {
            assert_eq!((own.word(nowhere), own.page(nowhere, 8).is_none()), (None, true), "{nowhere:x}");
        }
        assert_eq!(own.bytes(&raw const value as usize, usize::MAX), None);
    }

    #[test]
    fn structures_are_read_all_or_none() {
        let own = Process::own();
        let values = [7_usize, 8, 9];
        let at = |place: usize| &raw const values[place] as usize;
        let words = |addresses: &[Address]| own.structures(addresses, 8, |one| one.word(0));
        assert_eq!(words(&[at(2), at(0)]), Some(vec![9, 7]));
        assert_eq!((words(&[]), words(&[at(0), 4096])), (Some(Vec::new()), None));
        let page = own.page(at(1), 8).unwrap();
        assert_eq!(page.at(at(1), 8).unwrap().word(0), Some(8));
        assert!(page.at(at(2), 8).is_none(), "what lies behind was not copied");
    }

    #[test]
    fn memory_of_child_is_read_and_of_missing_process_is_not() {
        let value = [0x0123_4567_89AB_CDEF_usize];
        let address = value.as_ptr() as usize;
        let mut pipe = [0; 2];
        // SAFETY: the array has room for both descriptors. The child only calls what may be called after a fork: it waits
        // until its parent closes the pipe, and leaves.
        let child = unsafe {
            assert_eq!(libc::pipe(pipe.as_mut_ptr()), 0);
            let child = libc::fork();
            if child == 0 {
                libc::close(pipe[1]);
                libc::read(pipe[0], [0_u8].as_mut_ptr().cast(), 1);
                libc::_exit(0);
            }
            child
        };
        let found = Process::descendant(child as u32).and_then(|child| child.word(address));
        // SAFETY: both descriptors are ours, and so is the child.
        unsafe {
            libc::close(pipe[0]);
            libc::close(pipe[1]);
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
        assert_eq!(found, Some(value[0]));
        assert_eq!(Process::descendant(child as u32).and_then(|child| child.word(address)), None, "it has ended");
        assert!(Process::descendant(0).is_none() && Process::descendant(u32::MAX).is_none());
    }
}

//! Reads a process's memory, failing for invalid addresses. The kernel copies, so no thread has to stop and none can crash.
//!
//! Few programs call `process_vm_readv`, so a filter of system calls (seccomp) may end the program for it. Where there is one, the
//! memory is read as a file.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use gnntop_sensors::has_syscall_filter;
use gnntop_sessions::HeldFile;

/// Longest piece read, in bytes: the table of lines of a file with some hundred thousand lines.
const MAX_LEN: usize = 1 << 22;

/// An address in a process, which may be invalid.
pub(crate) type Address = usize;

/// A process whose memory is read.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    id: libc::pid_t,
    /// Its memory as a file, where the program's system calls are filtered.
    file: Option<Arc<HeldFile>>,
}

/// Why memory cannot be read under a filter.
const FILTERED: &str = "the program's system calls are filtered (seccomp), and /proc/PID/mem cannot be opened";

impl Process {
    /// This process, which needs no permission to read itself.
    ///
    /// # Errors
    /// Why it must not be read.
    pub(crate) fn own() -> Result<Self, &'static str> {
        Self::prepared(rustix::process::getpid().as_raw_pid())
    }

    /// A child, or a child of one: the system lets processes read their descendants of the same user, unless it is set up
    /// otherwise.
    pub(crate) fn descendant(id: u32) -> Option<Self> {
        libc::pid_t::try_from(id).ok().filter(|id| *id > 0).and_then(|id| Self::prepared(id).ok())
    }

    fn prepared(id: libc::pid_t) -> Result<Self, &'static str> {
        let mut process = Self { id, file: None };
        process.prepare().map(|()| process)
    }

    /// Its process id.
    pub(crate) fn id(&self) -> libc::pid_t {
        self.id
    }

    /// Decides how it is read, before each stack: a program may restrict itself at any time.
    ///
    /// # Errors
    /// Why it must not be read.
    pub(crate) fn prepare(&mut self) -> Result<(), &'static str> {
        if self.file.as_ref().is_some_and(|file| file.get().is_some()) || !has_syscall_filter() {
            return Ok(());
        }
        let file = File::open(format!("/proc/{}/mem", self.id)).and_then(HeldFile::new).map_err(|_| FILTERED)?;
        self.file = Some(Arc::new(file));
        Ok(())
    }

    /// Fills `buffer` with what is at the addresses, as much of each as its share; returns whether all of it could be read.
    fn copy(&self, addresses: &[Address], buffer: &mut [u8]) -> bool {
        let len = buffer.len() / addresses.len().max(1);
        if let Some(held) = &self.file {
            let mut parts = addresses.iter().zip(buffer.chunks_exact_mut(len.max(1)));
            return parts.all(|(at, part)| held.get().is_some_and(|file| file.read_exact_at(part, *at as u64).is_ok()));
        }
        let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        let remote = |address: &Address| libc::iovec { iov_base: *address as *mut libc::c_void, iov_len: len };
        let remote: Vec<libc::iovec> = addresses.iter().map(remote).collect();
        // SAFETY: the kernel writes at most `buffer.len()` bytes into `buffer`, which is ours, reads `remote.len()` entries of
        // `remote`, and returns an error for unmapped memory, for too many entries and for a process that may not be read.
        let read = unsafe {
            libc::process_vm_readv(self.id, &raw const local, 1, remote.as_ptr(), remote.len() as libc::c_ulong, 0)
        };
        usize::try_from(read) == Ok(buffer.len())
    }

    /// A pointer, or another number of its size.
    pub(crate) fn word(&self, address: Address) -> Option<usize> {
        let mut bytes = [0; size_of::<usize>()];
        self.copy(&[address], &mut bytes).then(|| usize::from_ne_bytes(bytes))
    }

    /// Copies `len` bytes; `None` also if that is more than anything here has.
    pub(crate) fn bytes(&self, address: Address, len: usize) -> Option<Vec<u8>> {
        if len > MAX_LEN {
            return None;
        }
        let mut bytes = vec![0; len];
        self.copy(&[address], &mut bytes).then_some(bytes)
    }

    /// Copies `len` bytes from an address on, and all before them in the same page, which is mapped as a whole.
    pub(crate) fn page(&self, address: Address, len: usize) -> Option<MemoryCopy> {
        let from = address & !(PAGE - 1);
        Some(MemoryCopy { from, bytes: self.bytes(from, address.checked_sub(from)?.checked_add(len)?)? })
    }

    /// Reads structures of the same length, all at once, and converts each with `read`; `None` if one cannot be read.
    pub(crate) fn structures<T>(
        &self,
        addresses: &[Address],
        len: usize,
        read: impl Fn(&Structure<'_>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let mut bytes = vec![0_u8; addresses.len().checked_mul(len)?];
        self.copy(addresses, &mut bytes).then_some(())?;
        bytes.chunks_exact(len.max(1)).map(|one| read(&Structure(one))).collect()
    }
}

/// A copy of memory, read at once so that its parts are consistent.
pub(crate) struct MemoryCopy {
    from: Address,
    bytes: Vec<u8>,
}

impl MemoryCopy {
    /// An empty copy.
    pub(crate) const EMPTY: Self = Self { from: 0, bytes: Vec::new() };

    /// The structure with this length at the address.
    pub(crate) fn at(&self, address: Address, len: usize) -> Option<Structure<'_>> {
        let at = address.checked_sub(self.from)?;
        self.bytes.get(at..at.checked_add(len)?).map(Structure)
    }
}

/// Bytes of a page of memory; the machine's own may be a multiple.
const PAGE: usize = 4096;

/// A structure in a copy of memory.
pub(crate) struct Structure<'a>(&'a [u8]);

impl Structure<'_> {
    fn array<const M: usize>(&self, at: usize) -> Option<[u8; M]> {
        self.0.get(at..at.checked_add(M)?)?.try_into().ok()
    }

    /// A pointer, or another number of its size.
    pub(crate) fn word(&self, at: usize) -> Option<usize> {
        self.array(at).map(usize::from_ne_bytes)
    }

    /// A C `int`.
    pub(crate) fn int(&self, at: usize) -> Option<i32> {
        self.array(at).map(i32::from_ne_bytes)
    }

    /// All of it.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.0
    }

    pub(crate) fn byte(&self, at: usize) -> Option<u8> {
        self.array::<1>(at).map(|[byte]| byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_address_is_read_and_invalid_address_is_none() {
        let own = Process::own().unwrap();
        let value = 0x1234_5678_9ABC_DEF0_usize;
        assert_eq!(own.word(&raw const value as usize), Some(value));
        assert_eq!(own.bytes(b"abc".as_ptr() as usize, 3).as_deref(), Some(&b"abc"[..]));
        for nowhere in [0, 1, 4096, usize::MAX - 7, 0xDEAD_BEEF_0000] {
            assert_eq!((own.word(nowhere), own.page(nowhere, 8).is_none()), (None, true), "{nowhere:x}");
        }
        assert_eq!(own.bytes(&raw const value as usize, usize::MAX), None);
    }

    /// Ends the whole process if the calling thread, or one that it starts, calls `process_vm_readv`.
    fn forbid_process_vm_readv() {
        let load = |from| libc::sock_filter { code: 0x20, jt: 0, jf: 0, k: from };
        let decide = |action| libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: action };
        let skip_unless =
            |call: libc::c_long| libc::sock_filter { code: 0x15, jt: 0, jf: 1, k: u32::try_from(call).unwrap() };
        let mut filter = [
            load(0),
            skip_unless(libc::SYS_process_vm_readv),
            decide(libc::SECCOMP_RET_KILL_PROCESS),
            decide(libc::SECCOMP_RET_ALLOW),
        ];
        let program = libc::sock_fprog { len: 4, filter: filter.as_mut_ptr() };
        // SAFETY: the filter outlives the calls, which read it, and concerns the calling thread alone.
        unsafe {
            assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
            assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program), 0);
        }
    }

    #[test]
    fn prepare_reads_otherwise_where_a_filter_would_end_the_program() {
        let values = [7_usize, 8, 9];
        let addresses = [&raw const values[2] as usize, &raw const values[0] as usize];
        let read = move || {
            let mut own = Process::own().unwrap();
            forbid_process_vm_readv();
            own.prepare().unwrap();
            let words = own.structures(&addresses, 8, |one| one.word(0));
            (own.word(addresses[0]), words, own.word(4096), own.word(usize::MAX - 7))
        };
        let found = std::thread::spawn(read).join().unwrap();
        assert_eq!(found, (Some(9), Some(vec![9, 7]), None, None));
    }

    #[test]
    fn structures_are_read_all_or_none() {
        let own = Process::own().unwrap();
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

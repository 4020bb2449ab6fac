//! Limits of this process, asked of the C library: a filter of system calls may refuse to say them, which rustix takes for impossible.

use std::mem::MaybeUninit;

/// What is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Files that may be open.
    OpenFiles,
    /// Bytes of address space.
    AddressSpace,
    /// Bytes of the main thread's stack.
    Stack,
}

impl Limit {
    /// How much this process may have (`ulimit -S`); `None` without a limit, or if the system does not say.
    pub fn current(self) -> Option<u64> {
        let which = match self {
            Self::OpenFiles => libc::RLIMIT_NOFILE,
            Self::AddressSpace => libc::RLIMIT_AS,
            Self::Stack => libc::RLIMIT_STACK,
        };
        let mut found = MaybeUninit::<libc::rlimit>::uninit();
        // SAFETY: the call writes to `found` and nowhere else, and it is read only after that has succeeded.
        let found = unsafe { (libc::getrlimit(which, found.as_mut_ptr()) == 0).then(|| found.assume_init()) };
        found.map(|found| found.rlim_cur).filter(|limit| *limit != libc::RLIM_INFINITY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_files_are_limited() {
        assert!(Limit::OpenFiles.current().is_none_or(|limit| limit > 0));
    }
}

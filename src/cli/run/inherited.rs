//! Files that the process which started us has left open: they are for the program, and none of our processes may keep them open.
//! A lock would stay held, and a pipe would not end.

use std::fs;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::io::FdFlags;

/// The descriptors that we were started with, but for the three standard ones.
pub(super) struct Inherited(Vec<RawFd>);

impl Inherited {
    /// Finds them. Called before this process opens anything that `exec` does not close. Elsewhere than on Linux, none is found.
    pub(super) fn find() -> Self {
        let entries = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
        let numbers: Vec<RawFd> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        Self(numbers.into_iter().filter(|number| *number > 2 && is_handed_on(*number)).collect())
    }

    /// Closes them. A process that we have started before has them.
    pub(super) fn close(self) {
        for number in self.0 {
            // SAFETY: nothing in this process has opened it, so nothing uses or closes it.
            drop(unsafe { OwnedFd::from_raw_fd(number) });
        }
    }
}

/// Whether this is open, and stays open when another program is executed.
fn is_handed_on(number: RawFd) -> bool {
    // SAFETY: it is not used after this call, which finds out whether it is open.
    let file = unsafe { BorrowedFd::borrow_raw(number) };
    rustix::io::fcntl_getfd(file).is_ok_and(|flags| !flags.contains(FdFlags::CLOEXEC))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn own_files_are_not_inherited() {
        let (own, handed_on) = (File::open("/dev/null").unwrap(), File::open("/dev/null").unwrap());
        rustix::io::fcntl_setfd(&handed_on, FdFlags::empty()).unwrap();
        let found = Inherited::find();
        assert!(found.0.contains(&handed_on.as_raw_fd()) && !found.0.contains(&own.as_raw_fd()), "{:?}", found.0);
        assert!(found.0.iter().all(|number| *number > 2));
    }
}

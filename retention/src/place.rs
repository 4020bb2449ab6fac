//! Opens directories and files without following links or blocking, and only if they are this user's.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::doubt::Doubt;

/// Opens a directory that is not a link.
pub(crate) fn open_dir(inside: BorrowedFd<'_>, name: impl rustix::path::Arg) -> Result<OwnedFd, Doubt> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(inside, name, flags, Mode::empty())?)
}

/// Opens a regular file of this user. A link or a pipe instead is refused, and cannot make the call wait.
pub(crate) fn open_file(dir: &OwnedFd, name: &str) -> Result<OwnedFd, Doubt> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let no_file = || Doubt::NoFile(name.to_owned());
    let file = rustix::fs::openat(dir, name, flags, Mode::empty());
    let file = file.map_err(|error| if error == Errno::LOOP { no_file() } else { error.into() })?;
    let found = rustix::fs::fstat(&file)?;
    ours(&found)?;
    if is_file(&found) { Ok(file) } else { Err(no_file()) }
}

pub(crate) fn is_file(found: &Stat) -> bool {
    FileType::from_raw_mode(found.st_mode) == FileType::RegularFile
}

pub(crate) fn ours(found: &Stat) -> Result<(), Doubt> {
    if found.st_uid == rustix::process::geteuid().as_raw() { Ok(()) } else { Err(Doubt::Theirs) }
}

/// Whether this machine's current boot has this boot id.
pub(crate) fn is_this_boot(boot_id: &str) -> bool {
    let this = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    !boot_id.is_empty() && this.trim() == boot_id
}

/// Whether the file is on a file system that no other machine writes to, so that every lock on it is seen here.
#[cfg(target_os = "linux")]
pub(crate) fn is_local(file: &OwnedFd) -> bool {
    /// From `linux/magic.h`, and ZFS's own: ext2 to ext4, xfs, btrfs, tmpfs, ramfs, overlayfs, f2fs, zfs.
    const LOCAL: [u64; 8] =
        [0xEF53, 0x5846_5342, 0x9123_683E, 0x0102_1994, 0x8584_58F6, 0x794C_7630, 0xF2F5_2010, 0x2FC1_2FC1];
    // The kernel's numbers have 32 bits; how they are widened differs between systems.
    rustix::fs::fstatfs(file.as_fd()).is_ok_and(|found| LOCAL.contains(&(found.f_type as u64 & 0xFFFF_FFFF)))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn is_local(_file: &OwnedFd) -> bool {
    false
}

//! Directories and files as the system has them: the one place in this crate that differs between systems. What may be used of
//! them, the rest of the crate decides.

mod entry;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

pub(crate) use entry::{Access, Entry, Kind};
#[cfg(unix)]
pub(crate) use unix::{Directory, device_and_inode, for_this_user, is_local, without_waiting};
#[cfg(windows)]
pub(crate) use windows::{Directory, for_this_user, is_local, without_waiting};

#[cfg(unix)]
pub use unix::user_id;
#[cfg(windows)]
pub use windows::user_id;

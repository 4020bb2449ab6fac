//! The folder of the copies, in the temporary directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::locked_dir::{self, LockedDir};

/// What the names of the folders begin with.
const PREFIX: &str = "gnntop-far-";

/// A folder for copies, which goes with this.
#[derive(Debug)]
pub(super) struct CopiesDir(LockedDir);

impl CopiesDir {
    /// Makes one, after those that killed processes have left there have been removed.
    ///
    /// # Errors
    /// If it cannot be made.
    pub(super) fn create() -> io::Result<Self> {
        let folder = std::env::temp_dir();
        abandoned(&folder).for_each(|path| _ = fs::remove_dir_all(path));
        LockedDir::create(&folder, PREFIX).map(Self)
    }

    /// Where the sessions are.
    pub(super) fn sessions(&self) -> PathBuf {
        self.0.path().join("sessions")
    }
}

/// This user's folders of copies here whose processes are gone.
pub(in super::super) fn abandoned(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    locked_dir::abandoned(folder, PREFIX)
}

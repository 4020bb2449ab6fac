//! Data sets, and reference vectors beyond the small ones: too large for the repository, they are in `../shared` beside
//! it or in `GNNTOP_SHARED`. `build.rs` checks whether they exist; if not, the tests that need them are ignored.

use std::path::{Path, PathBuf};

/// The file or folder of this name among them.
pub fn shared(name: &str) -> PathBuf {
    let beside = || {
        let mut above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|folder| folder.join("shared"));
        above.find(|shared| shared.is_dir()).expect("a folder shared beside the repository")
    };
    let path = std::env::var_os("GNNTOP_SHARED").map_or_else(beside, PathBuf::from).join(name);
    assert!(path.exists(), "{} is missing", path.display());
    path
}

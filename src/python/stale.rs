//! Removes packages of other builds of gnntop that were not used for a month, so that the cache does not grow with
//! every update.
//!
//! What is removed must provably be such a package of this user: it has the name of one, it and everything in it belong
//! to this user, all of that is what a package consists of, and no process holds the lock that marks it as in use.
//! Whatever falls short of that stays.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use gnntop_sessions::{Error, PrivateDir};

/// Packages that were used later than this stay.
const KEEP: Duration = Duration::from_secs(30 * 24 * 3600);
/// How the name of a package begins, and of one that is unfinished or being removed.
pub(super) const PREFIX: &str = "python-";
pub(super) const HIDDEN_PREFIX: &str = ".python-";
/// What keeps Python from caching bytecode in a folder of ours: nobody could check that at a start. In its place is a file.
pub(super) const NO_BYTECODE: &str = "__pycache__";
/// Digits of a package's number.
const DIGITS: usize = 16;
/// Ends of the files in it.
const ENDS: [&str; 6] = ["py", "pyc", "pyi", "so", "dylib", "typed"];
/// Folders in it are not deeper.
const DEEPEST: usize = 6;

/// Takes note that the package in this folder is used now, and keeps it from being removed until what this gives is dropped.
///
/// # Errors
/// When the folder cannot be opened.
pub(super) fn mark_in_use(package: &Path) -> io::Result<File> {
    let folder = File::open(package)?;
    // A process that cannot lock or date it uses it anyway.
    let _ = folder.try_lock_shared();
    let _ = folder.set_modified(SystemTime::now());
    Ok(folder)
}

/// Removes the packages in `dir` that were not used for long, except the one named `own`. A package that cannot be removed stays.
pub(super) fn remove(dir: &Path, own: &str, now: SystemTime) {
    let Ok(cache) = PrivateDir::open(dir) else { return };
    for name in cache.names().unwrap_or_default() {
        if let Some(name) = name.to_str().filter(|name| *name != own && is_name(name)) {
            let _ = remove_one(&cache, name, now);
        }
    }
}

fn is_name(name: &str) -> bool {
    let is_package =
        |hash: &str| hash.len() == DIGITS && hash.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    name.strip_prefix(PREFIX).is_some_and(is_package) || name.starts_with(HIDDEN_PREFIX)
}

fn remove_one(cache: &PrivateDir, name: &str, now: SystemTime) -> Result<(), Error> {
    let package = cache.dir(name)?;
    if !consists_of_ours(&package, DEEPEST)? {
        return Ok(());
    }
    let folder = File::open(package.path())?;
    let is_old = now.duration_since(folder.metadata()?.modified()?).is_ok_and(|age| age > KEEP);
    if !is_old || folder.try_lock().is_err() {
        return Ok(());
    }
    // In one move, so that no process finds half of it.
    let hidden = tempfile::Builder::new().prefix(HIDDEN_PREFIX).tempdir_in(cache.path())?;
    if let Some(hidden) = hidden.path().file_name().and_then(OsStr::to_str) {
        cache.rename(name, hidden)?;
    }
    Ok(hidden.close()?)
}

/// Whether a folder contains only what a package has, and all of it belongs to this user.
fn consists_of_ours(folder: &PrivateDir, deepest: usize) -> Result<bool, Error> {
    for name in folder.names()? {
        let Some(name) = name.to_str() else { return Ok(false) };
        let is_known = match folder.dir(name) {
            Ok(inside) => deepest > 0 && consists_of_ours(&inside, deepest - 1)?,
            Err(Error::NotADirectory) => is_file_of_ours(folder, name),
            Err(_) => false,
        };
        if !is_known {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_file_of_ours(folder: &PrivateDir, name: &str) -> bool {
    let end = Path::new(name).extension().and_then(OsStr::to_str);
    let found = folder.read(name).and_then(|file| Ok(file.metadata()?));
    let is_known = name == NO_BYTECODE || end.is_some_and(|end| ENDS.contains(&end));
    is_known && found.is_ok_and(|found| found.mode() & 0o022 == 0)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

    use super::*;

    const OWN: &str = "python-00000000000000ff";
    const OTHER: &str = "python-0123456789abcdef";

    /// A package that was last used this many days ago.
    fn package(dir: &Path, name: &str, days: u64) -> PathBuf {
        let package = dir.join(name);
        let inside = package.join("gnntop/hooks");
        fs::create_dir_all(&inside).unwrap();
        for file in [
            package.join("join.py"),
            package.join("gnntop").join(NO_BYTECODE),
            package.join("gnntop/libgnntop.so"),
            inside.join("torch.py"),
        ] {
            fs::write(file, "").unwrap();
        }
        for folder in [&package, &package.join("gnntop"), &inside] {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).unwrap();
        }
        let used = SystemTime::now() - Duration::from_secs(days * 24 * 3600);
        File::open(&package).unwrap().set_modified(used).unwrap();
        package
    }

    fn is_removed(dir: &Path, package: &Path) -> bool {
        remove(dir, OWN, SystemTime::now());
        !package.exists()
    }

    #[test]
    fn packages_unused_for_a_month_are_removed() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path();
        let stay =
            [package(dir, OWN, 90), package(dir, "python-aaaaaaaaaaaaaaaa", 29), package(dir, "python-3.11", 90)];
        let go = [package(dir, OTHER, 31), package(dir, ".python-x1Y2z3", 31)];
        remove(dir, OWN, SystemTime::now());
        assert!(stay.iter().all(|package| package.exists()));
        assert!(go.iter().all(|package| !package.exists()));
        assert_eq!(fs::read_dir(dir).unwrap().count(), stay.len(), "nothing is left of them");
    }

    #[test]
    fn used_package_stays_and_is_touched() {
        let temp = tempfile::tempdir().unwrap();
        let old = package(temp.path(), OTHER, 90);
        let used = File::open(&old).unwrap();
        used.lock_shared().unwrap();
        assert!(!is_removed(temp.path(), &old), "a training of three months");
        drop(used);
        drop(mark_in_use(&old).unwrap());
        assert!(!is_removed(temp.path(), &old), "used a moment ago");
    }

    #[test]
    fn packages_with_foreign_files_are_not_removed() {
        for spoil in [
            |package: &Path| fs::write(package.join("gnntop/notes.txt"), "").unwrap(),
            |package: &Path| symlink("/etc/passwd", package.join("gnntop/link.py")).unwrap(),
            |package: &Path| {
                fs::set_permissions(package.join("gnntop"), fs::Permissions::from_mode(0o777)).unwrap();
            },
        ] {
            let temp = tempfile::tempdir().unwrap();
            let old = package(temp.path(), OTHER, 90);
            spoil(&old);
            File::open(&old).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
            assert!(!is_removed(temp.path(), &old));
        }
        let temp = tempfile::tempdir().unwrap();
        let link = temp.path().join(OTHER);
        let elsewhere = package(temp.path(), "mine", 90);
        symlink(&elsewhere, &link).unwrap();
        remove(temp.path(), OWN, SystemTime::now());
        assert!(elsewhere.join("join.py").exists());
    }
}

//! The files that commands write. Only this user can read them. Nothing is overwritten unless requested, and then the
//! old file stays until the new one is complete: the new one is written beside it and renamed at the end.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use tempfile::NamedTempFile;

use super::patience::within;
use crate::platform::files;

/// Suffix of a file that will replace another.
const UNFINISHED: &str = ".unfinished";
/// Suffix of a shorter copy of a recording, whose events are also in the longer one.
const SHORTER: &str = ".shorter.unfinished";
/// A younger copy may be about to be locked.
const SETTLED: Duration = Duration::from_secs(60);
/// How long abandoned copies are looked for before a recording begins.
const LOOK: Duration = Duration::from_secs(1);

/// A file that is being written.
#[derive(Debug)]
pub(super) struct NewFile {
    path: PathBuf,
    mode: WriteMode,
}

#[derive(Debug)]
enum WriteMode {
    /// No file had this name.
    Fresh(File),
    /// Beside the file that it will replace.
    Beside(NamedTempFile),
    /// A device or a pipe, which holds nothing to lose.
    Through(File),
}

impl NewFile {
    /// Begins a file at `path`. With `force` it replaces an existing one when it is finished.
    ///
    /// # Errors
    /// If it exists and may not be overwritten, is one of the `inputs`, or cannot be created.
    pub(super) fn create(path: &Path, force: bool, inputs: &[&Path]) -> anyhow::Result<Self> {
        let failed = || format!("cannot write {}", path.display());
        let created = files::for_this_user(OpenOptions::new().write(true).create_new(true)).open(path);
        let error = match created {
            Ok(file) => return Ok(Self { path: path.to_owned(), mode: WriteMode::Fresh(file) }),
            Err(error) => error,
        };
        if error.kind() != io::ErrorKind::AlreadyExists {
            return Err(error).with_context(failed);
        }
        // A link stays a link: its target is replaced.
        let path = fs::canonicalize(path).with_context(failed)?;
        let found = fs::metadata(&path).with_context(failed)?;
        if found.is_dir() {
            bail!("{} is a directory: name a file", path.display());
        }
        if files::goes_through(found.file_type()) {
            let mode = WriteMode::Through(OpenOptions::new().write(true).open(&path).with_context(failed)?);
            return Ok(Self { path, mode });
        }
        if let Some(input) = inputs.iter().find(|input| is_same(input, &path) || is_inside(&path, input)) {
            bail!("{} is also the input: write to another file", input.display());
        }
        if !force {
            bail!("{} already exists: use --force to overwrite it", path.display());
        }
        let beside = create_beside(&path, &found, UNFINISHED)
            .with_context(|| format!("cannot write beside {}", path.display()))?;
        Ok(Self { path, mode: WriteMode::Beside(beside) })
    }

    /// The open file.
    pub(super) fn file(&self) -> &File {
        match &self.mode {
            WriteMode::Fresh(file) | WriteMode::Through(file) => file,
            WriteMode::Beside(file) => file.as_file(),
        }
    }

    /// Where the unfinished file is; `None` for a device or a pipe.
    pub(super) fn path(&self) -> Option<&Path> {
        match &self.mode {
            WriteMode::Fresh(_) => Some(&self.path),
            WriteMode::Beside(file) => Some(file.path()),
            WriteMode::Through(_) => None,
        }
    }

    /// Whether there is a file that this will replace.
    pub(super) fn replaces(&self) -> bool {
        matches!(self.mode, WriteMode::Beside(_))
    }

    /// A new file beside this one, to [`replace`](Self::replace) it; it is removed if that does not happen, after a kill by
    /// [`remove_abandoned`].
    ///
    /// # Errors
    /// When it cannot be made.
    pub(super) fn draft(&self) -> io::Result<NamedTempFile> {
        let draft = create_beside(&self.path, &self.file().metadata()?, SHORTER)?;
        // Where files cannot be locked, a copy that a kill has left stays.
        let _ = draft.as_file().try_lock();
        Ok(draft)
    }

    /// Replaces what was written with a draft, atomically for readers.
    ///
    /// # Errors
    /// If that is not possible: then the file is unchanged.
    pub(super) fn replace(&mut self, draft: NamedTempFile) -> io::Result<()> {
        draft.as_file().sync_all()?;
        match &mut self.mode {
            WriteMode::Fresh(file) => *file = draft.persist(&self.path)?,
            WriteMode::Beside(file) => {
                // It takes the other's name, because nobody removes what has that.
                let path = file.path().to_owned();
                let (draft, draft_path) = draft.into_parts();
                fs::rename(&draft_path, &path)?;
                let _ = draft_path.keep();
                *file.as_file_mut() = draft;
            }
            WriteMode::Through(_) => return Err(io::ErrorKind::Unsupported.into()),
        }
        Ok(())
    }

    /// Gives the file its name, if another file still has that.
    ///
    /// # Errors
    /// If that is not possible: then the old file is unchanged, and the error names the new one beside it.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        let file = match self.mode {
            WriteMode::Beside(file) => file,
            WriteMode::Fresh(file) if !files::leads_to(&self.path, &file) => {
                bail!("{} was removed, renamed or replaced while it was written", self.path.display())
            }
            WriteMode::Fresh(_) | WriteMode::Through(_) => return Ok(()),
        };
        // Without this, a power failure now could lose both files.
        let (file, error) = match file.as_file().sync_all() {
            Ok(()) => match file.persist(&self.path) {
                Ok(_) => return Ok(()),
                Err(failed) => (failed.file, failed.error),
            },
            Err(error) => (file, error),
        };
        let kept = file.keep().map(|(_, path)| format!("; the new file is {}", path.display()));
        bail!("cannot replace {}: {error}{}", self.path.display(), kept.unwrap_or_default())
    }

    /// Removes the file: nothing in it is worth keeping.
    pub(super) fn discard(self) {
        if let WriteMode::Fresh(file) = self.mode
            && files::leads_to(&self.path, &file)
        {
            // If it cannot be removed, it is empty and does no harm.
            let _ = fs::remove_file(&self.path);
        }
    }

    /// Keeps what was written before a failure, and also an older file. Returns its path.
    pub(super) fn keep_partial(self) -> PathBuf {
        match self.mode {
            WriteMode::Beside(file) => file.keep().map_or(self.path, |(_, path)| path),
            WriteMode::Fresh(_) | WriteMode::Through(_) => self.path,
        }
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file().flush()
    }
}

/// Writes a whole file, as [`NewFile`] does.
///
/// # Errors
/// As [`NewFile::create`] and [`NewFile::finish`], and if there is no room.
pub(super) fn write(path: &Path, text: &str, force: bool, inputs: &[&Path]) -> anyhow::Result<()> {
    let mut file = NewFile::create(path, force, inputs)?;
    if let Err(error) = file.write_all(text.as_bytes()) {
        file.discard();
        return Err(error).with_context(|| format!("cannot write {}", path.display()));
    }
    file.finish()
}

/// Removes this user's shorter copies of recordings in a folder that a killed process has left there, and is waited for only
/// briefly: the folder may have any number of files. One that cannot be removed stays.
pub(super) fn remove_abandoned(folder: &Path) {
    let folder = folder.to_owned();
    within(LOOK, move || abandoned(&folder).for_each(|path| _ = fs::remove_file(path)));
}

/// This user's shorter copies of recordings in a folder that a killed process has left there.
pub(super) fn abandoned(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let paths = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    paths.filter(|path| path.to_string_lossy().ends_with(SHORTER) && is_abandoned(path))
}

/// Whether this is a file of this user that nobody has locked, and not a new one.
fn is_abandoned(path: &Path) -> bool {
    let is_own = |found: &fs::Metadata| found.is_file() && files::is_own(found);
    let age = |found: &fs::Metadata| found.modified().ok().and_then(|time| time.elapsed().ok());
    let is_old = fs::symlink_metadata(path).is_ok_and(|found| is_own(&found) && age(&found) > Some(SETTLED));
    is_old && File::open(path).is_ok_and(|file| file.try_lock().is_ok())
}

/// A new file beside `path` with the old one's permissions.
fn create_beside(path: &Path, old: &fs::Metadata, suffix: &str) -> io::Result<NamedTempFile> {
    let (dir, name) = (path.parent().unwrap_or(Path::new("/")), path.file_name().unwrap_or_default());
    let mut prefix = name.to_owned();
    prefix.push(".");
    // Until then it is for this user alone.
    let file = tempfile::Builder::new().prefix(&prefix).suffix(suffix).tempfile_in(dir)?;
    files::take_over_permissions(file.as_file(), old)?;
    Ok(file)
}

/// Whether an input is this file. `-` is the file behind standard input.
fn is_same(input: &Path, path: &Path) -> bool {
    if input == Path::new("-") { files::is_input(path) } else { files::is_same(input, path) }
}

/// Whether a file is in a session's directory that is an input.
fn is_inside(path: &Path, input: &Path) -> bool {
    input.is_dir() && fs::canonicalize(input).is_ok_and(|dir| path.parent() == Some(&dir))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    fn refusal(path: &Path, force: bool, inputs: &[&Path]) -> String {
        format!("{:#}", NewFile::create(path, force, inputs).unwrap_err())
    }

    #[test]
    fn a_file_is_private_and_not_written_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.gnntop");
        write(&path, "one", false, &[]).unwrap();
        assert_eq!(mode(&path), 0o600);
        assert!(refusal(&path, false, &[]).ends_with("use --force to overwrite it"));
        assert_eq!(fs::read(&path).unwrap(), b"one");
        assert!(NewFile::create(&dir.path().join("no/a.gnntop"), false, &[]).is_err());
    }

    #[test]
    fn with_force_the_old_file_stays_until_the_new_one_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let mut given_up = NewFile::create(&path, true, &[]).unwrap();
        given_up.write_all(b"half").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        drop(given_up);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing unfinished is left");

        let mut new = NewFile::create(&path, true, &[]).unwrap();
        new.write_all(b"new").unwrap();
        new.finish().unwrap();
        assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"new".to_vec(), 0o640));
    }

    #[test]
    fn file_that_has_lost_its_name_is_no_success_and_another_one_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let lost = || {
            let file = NewFile::create(&path, false, &[]).unwrap();
            fs::rename(&path, dir.path().join("b")).unwrap();
            file
        };
        assert!(lost().finish().is_err());
        let replaced = lost();
        fs::write(&path, "another").unwrap();
        replaced.discard();
        assert_eq!(fs::read(&path).unwrap(), b"another");
    }

    #[test]
    fn unfinished_file_can_be_kept_beside_the_old_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.gnntop");
        fs::write(&path, "old").unwrap();
        let mut new = NewFile::create(&path, true, &[]).unwrap();
        new.write_all(b"half").unwrap();
        let apart = new.keep_partial();
        assert_eq!((fs::read(&path).unwrap(), fs::read(&apart).unwrap()), (b"old".to_vec(), b"half".to_vec()));
        let name = apart.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with("a.gnntop.") && name.ends_with(UNFINISHED), "{name}");
    }

    #[test]
    fn a_draft_replaces_what_was_written() {
        let dir = tempfile::tempdir().unwrap();
        for force in [false, true] {
            let path = dir.path().join("a.gnntop");
            let mut file = NewFile::create(&path, force, &[]).unwrap();
            file.write_all(b"long").unwrap();
            drop(file.draft().unwrap());
            let mut draft = file.draft().unwrap();
            draft.write_all(b"short").unwrap();
            file.replace(draft).unwrap();
            assert_eq!(fs::read(file.path().unwrap()).unwrap(), b"short");
            file.write_all(b"er").unwrap();
            file.finish().unwrap();
            assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"shorter".to_vec(), 0o600));
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        }
        assert!(NewFile::create(Path::new("/dev/null"), false, &[]).unwrap().path().is_none());
    }

    #[test]
    fn a_copy_that_nobody_writes_any_more_goes_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let file = NewFile::create(&dir.path().join("a.gnntop"), false, &[]).unwrap();
        let long_ago = std::time::SystemTime::UNIX_EPOCH;
        let used = file.draft().unwrap();
        used.as_file().set_modified(long_ago).unwrap();
        let names = ["b.gnntop.x.shorter.unfinished", "new.gnntop.x.shorter.unfinished", "b.gnntop.y.unfinished", "b"];
        names.iter().for_each(|name| fs::write(dir.path().join(name), "").unwrap());
        for name in [names[0], names[2], names[3]] {
            let old = OpenOptions::new().write(true).open(dir.path().join(name)).unwrap();
            old.set_modified(long_ago).unwrap();
        }
        remove_abandoned(dir.path());
        let left = names.map(|name| dir.path().join(name).exists());
        assert_eq!((left, used.path().exists()), ([false, true, true, true], true));
    }

    #[test]
    fn discarded_file_leaves_the_old_one() {
        let dir = tempfile::tempdir().unwrap();
        let (fresh, old) = (dir.path().join("fresh"), dir.path().join("old"));
        fs::write(&old, "old").unwrap();
        NewFile::create(&fresh, false, &[]).unwrap().discard();
        NewFile::create(&old, true, &[]).unwrap().discard();
        assert!(!fresh.exists());
        assert_eq!(fs::read(&old).unwrap(), b"old");
    }

    #[test]
    fn an_input_is_never_its_own_output() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("a"), dir.path().join("link"));
        fs::write(&path, "old").unwrap();
        symlink(&path, &link).unwrap();
        for (output, input) in [(&path, path.as_path()), (&link, path.as_path()), (&path, dir.path())] {
            assert!(refusal(output, true, &[input]).ends_with("is also the input: write to another file"));
        }
        assert_eq!(fs::read(&path).unwrap(), b"old");
    }

    #[test]
    fn symlink_is_kept_and_device_is_written_through() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("a"), dir.path().join("link"));
        fs::write(&path, "old").unwrap();
        symlink(&path, &link).unwrap();
        write(&link, "new", true, &[]).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&path).unwrap(), b"new");
        write(Path::new("/dev/null"), "gone", false, &[]).unwrap();
        assert!(refusal(dir.path(), true, &[]).ends_with("is a directory: name a file"));
    }
}

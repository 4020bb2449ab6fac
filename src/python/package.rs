//! The Python package and the native library that the binary carries, written into a folder of this user, and the environment of a
//! program in which every Python finds them: the program itself, what a script or a launcher starts, and their children.
//!
//! The folder is named after its contents and completed under another name first: programs that run use it, also long after
//! this binary was replaced. What lies in it is compared with what is carried at each start. A file that differs, as after
//! a power failure, is replaced by a new one, so that programs that have mapped the old one keep it.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::SystemTime;

use super::answers::Answers;
use flate2::read::DeflateDecoder;
use gnntop_sessions::layout::{self, LAUNCH};
use gnntop_sessions::{Error, PrivateDir, user_id};
use tempfile::TempDir;

use super::stale;

include!(concat!(env!("OUT_DIR"), "/carried.rs"));

/// Path of the library in the package.
const LIBRARY: &str = "gnntop/libgnntop.so";
/// What is in the file that keeps Python from caching bytecode.
const NO_BYTECODE_TEXT: &[u8] =
    b"A file, so that Python keeps no bytecode here: gnntop could not tell whether that is damaged.\n";
/// Cargo's name of the library, if it is not carried.
const BUILT: &str = if cfg!(target_os = "macos") { "libgnntop_python.dylib" } else { "libgnntop_python.so" };

/// Why Python programs cannot be watched from within.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// This binary was built without its sources, or in development without the library.
    #[error(
        "this gnntop was built without the Python package; install it with `pip install gnntop`, or build it with `cargo build --release`"
    )]
    Missing,
    /// The folder cannot be made or trusted.
    #[error("cannot write the Python package: {path} {error}", path = path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        error: Error,
    },
}

/// The package in its folder, which stays there for as long as this lives.
#[derive(Debug)]
pub struct Package {
    folder: PathBuf,
    _in_use: Option<File>,
}

impl Package {
    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// The package, laid down if need be. Those of other builds that were not used for long are removed.
///
/// # Errors
/// This binary carries none, or nowhere is a folder of this user's that it could be laid into.
pub fn package() -> Result<Package, PackageError> {
    let library = library().filter(|_| !FILES.is_empty()).ok_or(PackageError::Missing)?;
    let name = format!("{}{:016x}", stale::PREFIX, hash(&library));
    let mut first = None;
    for dir in cache_dirs() {
        match install(&dir, &name, &library) {
            Ok(folder) => {
                let in_use = stale::mark_in_use(&folder).ok();
                stale::remove(&dir, &name, SystemTime::now());
                return Ok(Package { folder, _in_use: in_use });
            }
            Err(error) => {
                first.get_or_insert(PackageError::Folder { path: dir, error });
            }
        }
    }
    Err(first.unwrap_or(PackageError::Missing))
}

/// Whether this binary has all of it. Lays nothing down.
pub fn is_embedded() -> bool {
    !FILES.is_empty() && (NATIVE.is_some() || library().is_some())
}

/// The folder in the package that goes into `PYTHONPATH`.
pub fn bootstrap(package: &Path) -> PathBuf {
    package.join("gnntop/bootstrap")
}

/// The native part in the package.
pub fn native(package: &Path) -> PathBuf {
    package.join(LIBRARY)
}

/// The native part: carried, or beside the program in a development build.
fn library() -> Option<Vec<u8>> {
    if let Some(carried) = NATIVE {
        return Some(unpacked(carried));
    }
    let own = std::env::current_exe().ok()?;
    let dir = own.parent()?;
    // An example or a test is one folder deeper.
    let places = [dir.join(BUILT), dir.join("deps").join(BUILT), dir.join("..").join(BUILT)];
    // Builds of the workspace and of one member leave it in different places: the newest is meant.
    let found = places.into_iter().filter_map(|path| Some((fs::metadata(&path).ok()?.modified().ok()?, path)));
    fs::read(found.max()?.1).ok()
}

/// The files of the package: path in its folder, and bytes.
fn files() -> &'static [(&'static str, Vec<u8>)] {
    static UNPACKED: LazyLock<Vec<(&str, Vec<u8>)>> =
        LazyLock::new(|| FILES.iter().map(|(name, packed)| (*name, unpacked(packed))).collect());
    &UNPACKED
}

/// The bytes of a file that `build.rs` has packed.
fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    // From memory into memory, and whole: there is nothing that could fail.
    let _ = DeflateDecoder::new(packed).read_to_end(&mut bytes);
    bytes
}

/// Distinguishes contents; not meant to withstand an attack, which is the job of the folder's permissions.
fn hash(library: &[u8]) -> u64 {
    // FNV-1a.
    let add = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let pieces = FILES.iter().flat_map(|(name, bytes)| [name.as_bytes(), *bytes]).chain([library]);
    pieces.fold(0xcbf2_9ce4_8422_2325, |hash, piece| add(piece.iter().fold(hash, add), &0xFF))
}

/// Where the folder may be, the best first.
fn cache_dirs() -> Vec<PathBuf> {
    let set = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    let user = format!("gnntop-cache-{}", user_id());
    let dirs = home.map(|cache| cache.join("gnntop")).into_iter().chain([layout::temporary_dir().join(user)]);
    dirs.filter(|dir| can_be_searched(dir)).collect()
}

/// Whether `PYTHONPATH` can have this folder: it cannot have a colon in a name.
fn can_be_searched(dir: &Path) -> bool {
    std::env::join_paths([dir]).is_ok()
}

/// Lays everything into `dir`/`name`, unless it is there.
fn install(dir: &Path, name: &str, library: &[u8]) -> Result<PathBuf, Error> {
    let cache = PrivateDir::create(dir)?;
    let folder = dir.join(name);
    match cache.dir(name) {
        Ok(_) if repair(&folder, library).is_ok() => return Ok(folder),
        Ok(_) => set_aside(dir, &folder)?,
        Err(error) if error.is_not_found() => (),
        Err(error) => return Err(error),
    }
    let unfinished = hidden_folder(dir)?;
    for (file, bytes) in contents(library) {
        write(&unfinished.path().join(file), bytes)?;
    }
    sync_folders(unfinished.path())?;
    match fs::rename(unfinished.path(), &folder) {
        Ok(()) => {
            // It is not there any more under the name that it would be removed by.
            let _ = unfinished.keep();
            sync_folder(dir)?;
        }
        // Another gnntop was faster, with the same content.
        Err(_) if folder.is_dir() => drop(cache.dir(name)?),
        Err(error) => return Err(error.into()),
    }
    Ok(folder)
}

/// All files of the package: path in its folder, and bytes.
fn contents(library: &[u8]) -> impl Iterator<Item = (PathBuf, &[u8])> {
    let files = files().iter().map(|(name, bytes)| (PathBuf::from(name), bytes.as_slice()));
    let folders: BTreeSet<&Path> = FILES.iter().filter_map(|(name, _)| Path::new(name).parent()).collect();
    let placeholders = folders.into_iter().map(|folder| (folder.join(stale::NO_BYTECODE), NO_BYTECODE_TEXT));
    files.chain(placeholders).chain([(PathBuf::from(LIBRARY), library)])
}

/// Replaces the files of a package that are not as they were written.
fn repair(folder: &Path, library: &[u8]) -> io::Result<()> {
    for (file, bytes) in contents(library) {
        let path = folder.join(file);
        if !is_whole(&path, bytes) {
            replace(&path, bytes)?;
        }
    }
    Ok(())
}

/// Whether a file of this user has these bytes.
fn is_whole(path: &Path, bytes: &[u8]) -> bool {
    let read = || {
        let (dir, name) = place(path)?;
        let mut file = dir.read(name)?;
        let about = file.metadata()?;
        let mut found = Vec::new();
        let is_like = about.len() == bytes.len() as u64 && about.mode() & 0o022 == 0;
        Ok::<_, Error>(is_like && file.read_to_end(&mut found).is_ok() && found == bytes)
    };
    read().unwrap_or(false)
}

/// The folder of a file and its name. The folder is created if it is missing.
fn place(path: &Path) -> Result<(PrivateDir, &str), Error> {
    match (path.parent(), path.file_name().and_then(OsStr::to_str)) {
        (Some(dir), Some(name)) => Ok((PrivateDir::create(dir)?, name)),
        _ => Err(Error::NotAFile),
    }
}

/// Gives a file these bytes in one move. Who has it open or mapped keeps the old one.
///
/// # Errors
/// When it cannot be written.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (dir, _) = place(path)?;
    let mut unfinished = tempfile::Builder::new().suffix(".so").tempfile_in(dir.path())?;
    unfinished.write_all(bytes)?;
    unfinished.as_file().sync_all()?;
    unfinished.persist(path).map_err(|error| error.error)?;
    sync_folder(dir.path())
}

/// Renames a package that cannot be repaired; it goes with the others that are old.
fn set_aside(dir: &Path, folder: &Path) -> io::Result<()> {
    let hidden = hidden_folder(dir)?;
    fs::rename(folder, hidden.path())?;
    let _ = hidden.keep();
    Ok(())
}

fn hidden_folder(dir: &Path) -> io::Result<TempDir> {
    let private = fs::Permissions::from_mode(0o700);
    tempfile::Builder::new().prefix(stale::HIDDEN_PREFIX).permissions(private).tempdir_in(dir)
}

/// Writes the entries of a folder and of those below it to the disk.
fn sync_folders(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_folders(&entry.path())?;
        }
    }
    sync_folder(folder)
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let (dir, name) = place(path)?;
    let mut file = dir.create_file(name)?;
    file.write_all(bytes)?;
    // Before the rename: after a power failure there is either no folder of that name, or a whole one.
    Ok(file.sync_all()?)
}

/// Where NCCL looks for a profiler, and the longest path that it reads there.
const NCCL_PLUGIN: &str = "NCCL_PROFILER_PLUGIN";
const NCCL_LONGEST: usize = 254;

/// Variables for a program that `gnntop run` starts, its name and value each: those of [`worker_environment`], `GNNTOP_LAUNCH`, an id
/// that all ranks of a run have in common, and `GNNTOP_ANSWERS`, where a Python says that it was reached.
pub fn environment(package: &Path, run: &str, answers: &Answers) -> Vec<(&'static str, OsString)> {
    let mut environment = worker_environment(package);
    environment.push((LAUNCH, run.into()));
    environment.push(("GNNTOP_ANSWERS", answers.dir().as_os_str().to_owned()));
    environment
}

/// Variables for a Python that publishes without `gnntop run`.
///
/// `PYTHONPATH` has our folder in front of what it had, and `GNNTOP_PROGRAM` is this program, which makes reports.
/// `NCCL_PROFILER_PLUGIN` is our library, unless it is set: a profiler of the user's own stays, and `none` turns ours off.
pub fn worker_environment(package: &Path) -> Vec<(&'static str, OsString)> {
    let bootstrap = bootstrap(package).into_os_string();
    let mut environment = vec![("PYTHONPATH", prepend_path(bootstrap, std::env::var_os("PYTHONPATH")))];
    environment.extend(nccl_plugin(package, std::env::var_os(NCCL_PLUGIN)));
    if let Ok(own) = std::env::current_exe() {
        environment.push(("GNNTOP_PROGRAM", own.into_os_string()));
    }
    environment
}

/// Makes NCCL load our plugin, unless another one is set.
fn nccl_plugin(package: &Path, set: Option<OsString>) -> Option<(&'static str, OsString)> {
    let library = native(package).into_os_string();
    (set.is_none() && library.len() <= NCCL_LONGEST).then_some((NCCL_PLUGIN, library))
}

/// Whether a person has turned everything off.
pub fn is_off() -> bool {
    std::env::var_os("GNNTOP").is_some_and(|value| value == "0")
}

/// A search path with `first` in front, once. It ends with a slash where there was no path: what a script then puts beside it
/// would alone stand beside an empty entry, which Python takes for the current folder (see `bootstrap/sitecustomize.py`).
fn prepend_path(mut first: OsString, path: Option<OsString>) -> OsString {
    let rest = path.unwrap_or_default();
    let entries = std::env::split_paths(&rest).filter(|_| !rest.is_empty());
    let (own, others): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|entry| entry == Path::new(&first));
    if rest.is_empty() || own.iter().any(|entry| entry.as_os_str().as_encoded_bytes().ends_with(b"/")) {
        first.push("/");
    }
    // An entry of ours has no colon in it (see `cache_dirs`), and the others had none either.
    std::env::join_paths(std::iter::once(first.clone().into()).chain(others)).unwrap_or(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embedded_files_have_package_and_bootstrap() {
        let names: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
        for file in ["gnntop/__init__.py", "gnntop/_native.py", "gnntop/bootstrap/sitecustomize.py", "gnntop/py.typed"]
        {
            assert!(names.contains(&file), "{file} is not in {names:?}");
        }
        assert_ne!(hash(b"one"), hash(b"other"));
    }

    #[test]
    fn unpacked_files_are_those_of_the_sources() {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("python");
        for (name, bytes) in files() {
            assert!(fs::read(sources.join(name)).unwrap() == *bytes, "{name}");
        }
    }

    #[test]
    fn folder_with_a_colon_is_not_searched_and_the_programs_own_path_stays() {
        assert!(
            !can_be_searched(Path::new("/home/a:b/.cache/gnntop")) && can_be_searched(Path::new("/home/a b/.cache"))
        );
        assert_eq!(prepend_path("/ours".into(), Some("own::/x".into())), "/ours:own::/x");
    }

    #[test]
    fn package_is_installed_once_and_privately() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("a/gnntop");
        let folder = install(&dir, "python-1", b"library").unwrap();
        assert_eq!(fs::read(folder.join(LIBRARY)).unwrap(), b"library");
        assert!(bootstrap(&folder).join("sitecustomize.py").is_file());
        assert_eq!(fs::metadata(&dir).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(install(&dir, "python-1", b"library").unwrap(), folder);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "nothing unfinished is left");
    }

    #[test]
    fn damaged_file_is_replaced_under_its_users() {
        let temp = tempfile::tempdir().unwrap();
        let folder = install(temp.path(), "python-1", b"library").unwrap();
        let library = folder.join(LIBRARY);
        let in_use = File::open(&library).unwrap();
        let module = folder.join("gnntop/_native.py");
        let damages: [&dyn Fn(&Path); 6] = [
            &|path| fs::OpenOptions::new().write(true).open(path).unwrap().set_len(3).unwrap(),
            &|path| fs::write(path, vec![0; fs::read(path).unwrap().len()]).unwrap(),
            &|path| fs::write(path, [fs::read(path).unwrap(), b"more".to_vec()].concat()).unwrap(),
            &|path| fs::remove_file(path).unwrap(),
            &|path| {
                fs::remove_file(path).unwrap();
                std::os::unix::fs::symlink("/dev/zero", path).unwrap();
            },
            &|path| fs::set_permissions(path, fs::Permissions::from_mode(0o666)).unwrap(),
        ];
        for (at, damage) in damages.iter().enumerate() {
            for path in [&library, &module] {
                damage(path);
                assert_eq!(install(temp.path(), "python-1", b"library").unwrap(), folder);
                for (file, bytes) in contents(b"library") {
                    assert!(is_whole(&folder.join(&file), bytes), "{} after damage {at}", file.display());
                }
            }
        }
        assert_ne!(in_use.metadata().unwrap().ino(), fs::metadata(&library).unwrap().ino(), "not changed in place");
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn a_package_beyond_repair_is_set_aside() {
        let temp = tempfile::tempdir().unwrap();
        let folder = install(temp.path(), "python-1", b"library").unwrap();
        fs::remove_file(folder.join(LIBRARY)).unwrap();
        fs::create_dir_all(folder.join(LIBRARY).join("full")).unwrap();
        assert_eq!(install(temp.path(), "python-1", b"library").unwrap(), folder);
        assert!(is_whole(&folder.join(LIBRARY), b"library"));
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 2, "the old one has another name");
    }

    #[test]
    fn folder_writable_by_others_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        fs::set_permissions(temp.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let error = install(temp.path(), "python-1", b"").unwrap_err();
        assert!(error.to_string().contains("other users"), "{error}");
        let file = temp.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(install(&file, "python-1", b"").is_err());
    }

    #[test]
    fn nccl_plugin_is_set_unless_another_is() {
        let package = Path::new("/cache/python-1");
        let ours = Some((NCCL_PLUGIN, OsString::from("/cache/python-1/gnntop/libgnntop.so")));
        assert_eq!(nccl_plugin(package, None), ours);
        for set in ["", "none", "/other.so"] {
            assert_eq!(nccl_plugin(package, Some(set.into())), None);
        }
        assert_eq!(nccl_plugin(Path::new(&"/long".repeat(60)), None), None, "NCCL would cut it");
    }

    #[test]
    fn prepended_path_is_first_and_once() {
        let path = |first: &str, rest: Option<&str>| prepend_path(first.into(), rest.map(OsString::from));
        assert_eq!(path("/o", None), "/o/");
        assert_eq!(path("/o", Some("")), "/o/");
        assert_eq!(path("/o", Some("/a:/b")), "/o:/a:/b");
        assert_eq!(path("/o", Some("/a:/o:/b")), "/o:/a:/b", "a second gnntop around it");
        assert_eq!(path("/o", Some("/o/")), "/o/", "a second one, and nothing else");
        assert_eq!(path("/o", Some("/o/:/b")), "/o/:/b");
        assert_eq!(path("/o", Some("/a:")), "/o:/a:", "an empty entry is the current directory");
    }
}

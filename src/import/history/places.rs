//! Where trackers keep their runs: the files of a folder, and the run that is meant.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::import::outcome::ImportError;

/// Why a file or folder gives no history.
pub(super) fn useless(path: &Path, reason: impl Into<String>) -> ImportError {
    ImportError::Nothing { path: path.display().to_string(), reason: reason.into() }
}

/// What the system said of a file.
pub(super) fn failed(path: &Path, error: io::Error) -> ImportError {
    ImportError::Io { path: path.display().to_string(), error }
}

/// The entries of a folder in the order of their names.
pub(super) fn entries(folder: &Path) -> Result<Vec<PathBuf>, ImportError> {
    let read = || fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>();
    let mut paths = read().map_err(|error| failed(folder, error))?;
    paths.sort();
    Ok(paths)
}

/// A path's last part.
pub(super) fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The one that is asked for by its name or id, or else the only one.
pub(super) fn select<T>(
    path: &Path,
    all: Vec<T>,
    names: impl Fn(&T) -> [String; 2],
    asked: Option<&str>,
) -> Result<T, ImportError> {
    let listed = |all: &[T]| {
        let listed: Vec<String> = all.iter().take(20).map(|one| names(one).join(" ").trim().to_owned()).collect();
        listed.join(", ")
    };
    if all.is_empty() {
        return Err(useless(path, "has no run"));
    }
    let is_asked = |one: &T| asked.is_none_or(|asked| names(one).iter().any(|name| name == asked));
    let (mut found, others): (Vec<T>, Vec<T>) = all.into_iter().partition(is_asked);
    match (found.len(), asked) {
        (1, _) => Ok(found.swap_remove(0)),
        (0, Some(asked)) => Err(useless(path, format!("has no run {asked}; it has {}", listed(&others)))),
        (several, _) => {
            let listed = listed(&found);
            Err(useless(path, format!("has {several} runs: name one with --only, by its name or id: {listed}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_is_not_there_is_refused_with_those_that_are() {
        let select = |asked| {
            let runs = ["night a1", "night b2", "day c3"].map(|run| run.split_once(' ').unwrap());
            let names = |(name, id): &(&str, &str)| [(*name).to_owned(), (*id).to_owned()];
            super::select(Path::new("x"), runs.to_vec(), names, asked).map_err(|error| error.to_string())
        };
        assert_eq!(select(Some("b2")), Ok(("night", "b2")));
        assert_eq!(select(Some("dawn")), Err("x: has no run dawn; it has night a1, night b2, day c3".to_owned()));
        assert!(select(Some("night")).unwrap_err().ends_with("by its name or id: night a1, night b2"));
    }
}

//! What the Python programs of a run say of themselves: a file each, in a folder that is made for the run.
//!
//! This is how `gnntop run` knows which Pythons it did not reach, and why one that it did reach shows nothing.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use gnntop_analysis::source::process::Process;
use gnntop_sessions::PrivateDir;
use tempfile::TempDir;

/// Longest answer that is read.
const MAX_LEN: u64 = 16 * 1024;

/// Prefix of the folders' names, followed by the process that made each.
const PREFIX: &str = "gnntop-answers-";

/// What follows the process in the name of the file that says where it ended.
const ENDING: &str = ".end";

/// The folder of a run's answers.
#[derive(Debug)]
pub struct Answers {
    dir: PathBuf,
    /// The folder goes with this, where this made it.
    _own: Option<TempDir>,
}

/// What one process says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The version of Python, such as `3.11.7`.
    pub python: String,
    /// Whether torch was imported and is hooked.
    pub has_torch: bool,
    /// Why something does not work.
    pub problems: Vec<String>,
}

impl Answers {
    /// A new folder in the first of these `places` where one can be made; it goes with this. Those of processes that were killed go too.
    ///
    /// # Errors
    /// It can be made in none.
    pub fn create(places: &[&Path]) -> io::Result<Self> {
        let mut made = Err(io::ErrorKind::NotFound.into());
        for place in places {
            made = made.or_else(|_| create_in(place));
        }
        let own = made?;
        Ok(Self { dir: own.path().to_owned(), _own: Some(own) })
    }

    /// A folder that another process has made, and removes.
    pub fn open(dir: PathBuf) -> Self {
        Self { dir, _own: None }
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where this process crashed or ended itself, as Python's fault handler writes it; empty where it did neither.
    pub fn crash_report(&self, pid: u32) -> Vec<String> {
        let text = PrivateDir::open(&self.dir).ok().and_then(|dir| text(&dir, &format!("{pid}{ENDING}")));
        text.unwrap_or_default().lines().map(sanitize).collect()
    }

    /// Adds why a process that has answered cannot be watched, where it cannot say so itself.
    ///
    /// # Errors
    /// Its answer cannot be written.
    pub fn add_problem(&self, pid: u32, problem: &str) -> io::Result<()> {
        let mut file = PrivateDir::open(&self.dir)?.append(&pid.to_string())?;
        writeln!(file, "problem {problem}")
    }

    /// The answers so far, by process. Unreadable files are left out.
    pub fn read(&self) -> BTreeMap<u32, Answer> {
        let Ok(dir) = PrivateDir::open(&self.dir) else { return BTreeMap::new() };
        let names = dir.names().unwrap_or_default();
        let names = names.iter().filter_map(|name| name.to_str());
        names.filter_map(|name| Some((name.parse().ok()?, Answer::parse(&text(&dir, name)?)))).collect()
    }
}

fn create_in(folder: &Path) -> io::Result<TempDir> {
    remove_abandoned(folder);
    tempfile::Builder::new().prefix(&format!("{PREFIX}{}-", std::process::id())).tempdir_in(folder)
}

/// Removes this user's folders whose makers are gone. Folders that cannot be read or removed stay.
fn remove_abandoned(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split_once('-')?.0.parse().ok());
        if maker.is_some_and(|pid| Process::find(pid).is_none())
            && let Ok(dir) = PrivateDir::open(&entry.path())
        {
            let of_a_process = |name: &&str| name.trim_end_matches(ENDING).parse::<u32>().is_ok();
            let answers = dir.names().unwrap_or_default();
            let answers = answers.iter().filter_map(|name| name.to_str()).filter(of_a_process);
            answers.for_each(|answer| _ = dir.remove(answer));
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn text(dir: &PrivateDir, name: &str) -> Option<String> {
    let mut text = Vec::new();
    dir.read(name).ok()?.take(MAX_LEN).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

impl Answer {
    fn parse(text: &str) -> Self {
        let mut answer = Self::default();
        for line in text.lines() {
            match line.split_once(' ').unwrap_or((line, "")) {
                ("python", version) => answer.python = sanitize(version),
                ("torch", _) => answer.has_torch = true,
                ("problem", problem) => answer.problems.push(sanitize(problem)),
                _ => {}
            }
        }
        answer
    }
}

/// Without what would move the cursor of a terminal.
fn sanitize(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_no_temporary_folder_can_be_made_answers_go_into_the_other_one() {
        let dir = tempfile::tempdir().unwrap();
        let answers = Answers::create(&[&dir.path().join("none"), dir.path()]).unwrap();
        assert_eq!(answers.dir().parent(), Some(dir.path()));
    }

    #[test]
    fn answers_are_parsed_by_process_without_invalid_ones() {
        let answers = Answers::create(&[&std::env::temp_dir()]).unwrap();
        let write = |name: &str, text: &[u8]| fs::write(answers.dir().join(name), text).unwrap();
        write("17", b"python 3.11.7\ntorch\nproblem no \x1b[2Jlibrary\nnews of later\n");
        write("18", b"\xFF\n");
        write("nobody", b"python 3.9\n");
        let read = answers.read();
        let expected =
            Answer { python: "3.11.7".to_owned(), has_torch: true, problems: vec!["no [2Jlibrary".to_owned()] };
        assert_eq!(read, BTreeMap::from([(17, expected), (18, Answer::default())]));
        write("17.end", b"os._exit\n  File \"/w/a.py\", line 3 in f\x1b\n");
        assert_eq!(answers.crash_report(17), ["os._exit", "  File \"/w/a.py\", line 3 in f"]);
        assert_eq!((answers.crash_report(18).len(), answers.read().len()), (0, 2), "an ending is no answer");
        let dir = answers.dir().to_owned();
        drop(Answers::open(dir.clone()));
        assert!(dir.exists());
        drop(answers);
        assert!(!dir.exists());
    }

    #[test]
    fn abandoned_folders_are_removed() {
        let temporary = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let dir = temporary.path().join(name);
            fs::create_dir(&dir).unwrap();
            fs::write(dir.join("17"), "").unwrap();
            fs::write(dir.join("17.end"), "").unwrap();
            dir
        };
        let own = make(&format!("gnntop-answers-{}-a", std::process::id()));
        let (gone, other) = (make("gnntop-answers-900000001-b"), make("gnntop-900000001-c"));
        let full = make("gnntop-answers-900000001-d");
        fs::write(full.join("a person's"), "").unwrap();
        remove_abandoned(temporary.path());
        assert!(own.exists() && !gone.exists() && other.exists() && full.join("a person's").exists());
    }
}

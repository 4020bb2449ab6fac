//! What the Python programs of a run say of themselves: a file each, in a folder that is made for the run.
//!
//! This is how `gnntop run` knows which Pythons it did not reach, and why one that it did reach shows nothing.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

use tempfile::TempDir;

/// Longest answer that is read.
const MAX_LEN: u64 = 16 * 1024;

/// The folder of a run's answers; it goes with this.
#[derive(Debug)]
pub struct Answers {
    dir: TempDir,
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
    /// A new folder.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn create() -> io::Result<Self> {
        Ok(Self { dir: tempfile::Builder::new().prefix("gnntop-answers-").tempdir()? })
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The answers so far, by process. What cannot be read is left out.
    pub fn read(&self) -> BTreeMap<u32, Answer> {
        let entries = fs::read_dir(self.dir.path()).into_iter().flatten().flatten();
        entries.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, read(&entry.path())?))).collect()
    }
}

fn read(path: &Path) -> Option<Answer> {
    let mut text = Vec::new();
    fs::File::open(path).ok()?.take(MAX_LEN).read_to_end(&mut text).ok()?;
    Some(Answer::of(&String::from_utf8_lossy(&text)))
}

impl Answer {
    fn of(text: &str) -> Self {
        let mut answer = Self::default();
        for line in text.lines() {
            match line.split_once(' ').unwrap_or((line, "")) {
                ("python", version) => answer.python = plain(version),
                ("torch", _) => answer.has_torch = true,
                ("problem", problem) => answer.problems.push(plain(problem)),
                _ => {}
            }
        }
        answer
    }
}

/// Without what would move the cursor of a terminal.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_by_process_and_nonsense_is_left_out() {
        let answers = Answers::create().unwrap();
        let write = |name: &str, text: &[u8]| fs::write(answers.dir().join(name), text).unwrap();
        write("17", b"python 3.11.7\ntorch\nproblem no \x1b[2Jlibrary\nnews of later\n");
        write("18", b"\xFF\n");
        write("nobody", b"python 3.9\n");
        let read = answers.read();
        let expected =
            Answer { python: "3.11.7".to_owned(), has_torch: true, problems: vec!["no [2Jlibrary".to_owned()] };
        assert_eq!(read, BTreeMap::from([(17, expected), (18, Answer::default())]));
        let dir = answers.dir().to_owned();
        drop(answers);
        assert!(!dir.exists());
    }
}

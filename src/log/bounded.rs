//! A log of bounded size: what no longer fits goes from its beginning, and bytes that cannot be written are counted, so that
//! neither a talkative program nor a full disk does any harm.
//!
//! The newest output is in one file. When it is half as large as the log may be, it takes the place of an older one and a
//! new file is begun, so that at least half of the bound is always there.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;

use super::tail::older;
use gnntop_sessions::{Error, PrivateDir};

/// What both files take together.
const MAX_BYTES: u64 = 64 << 20;

/// The log of one program's output.
#[derive(Debug)]
pub struct BoundedLog {
    file: File,
    dir: PrivateDir,
    name: String,
    len: u64,
    /// Bytes from which on a file is full.
    half: u64,
    /// Bytes that were in files which are gone.
    forgotten: u64,
    /// Bytes that could not be written since the last that could.
    lost: u64,
}

impl BoundedLog {
    /// Continues the log of this name in `dir`, or begins it again if somebody has removed it.
    ///
    /// # Errors
    /// When it is not this user's, or cannot be made.
    pub fn open(dir: PrivateDir, name: &str) -> Result<Self, Error> {
        Self::with_bound(dir, name, MAX_BYTES)
    }

    fn with_bound(dir: PrivateDir, name: &str, max_bytes: u64) -> Result<Self, Error> {
        let file = match dir.append(name) {
            Err(error) if error.is_not_found() => dir.create_log(name)?,
            opened => opened?,
        };
        let len = file.metadata()?.len();
        Ok(Self { file, dir, name: name.to_owned(), len, half: max_bytes / 2, forgotten: 0, lost: 0 })
    }

    /// Appends output. Output that cannot be written is counted, and a later line says how much it was.
    pub fn write(&mut self, mut bytes: &[u8]) {
        self.restore();
        let mut may_continue = true;
        while !bytes.is_empty() {
            if self.len >= self.half {
                self.rotate();
            }
            let room = usize::try_from(self.half.saturating_sub(self.len)).unwrap_or(usize::MAX);
            let now = &bytes[..bytes.len().min(room.max(1))];
            if self.lost > 0 {
                self.write_lost_note();
            }
            let written = if self.lost > 0 { 0 } else { self.append(now) };
            // Where a limit on the size of files was met, the next file takes the rest.
            let continues = written < now.len() && self.len >= self.half && (written > 0 || may_continue);
            may_continue = written > 0;
            let done = if continues { written } else { now.len() };
            self.lost += (done - written) as u64;
            bytes = &bytes[done..];
        }
    }

    /// Counts output that never came this far.
    pub fn lose(&mut self, bytes: u64) {
        self.lost += bytes;
        if self.lost > 0 {
            self.write_lost_note();
        }
    }

    /// Whether output is lost that no line in the log reports: there is no room for that either.
    pub fn has_untold_losses(&self) -> bool {
        self.lost > 0
    }

    /// Begins a new file if somebody has removed the log. If that fails, what is written goes into the removed one.
    fn restore(&mut self) {
        if self.file.metadata().is_ok_and(|found| found.nlink() > 0) {
            return;
        }
        let created = PrivateDir::create(self.dir.path()).and_then(|dir| Ok((dir.create_log(&self.name)?, dir)));
        let Ok((file, dir)) = created else { return };
        let line = format!("[gnntop: this log was removed, with {} bytes of output]\n", self.len);
        (self.file, self.dir, self.len) = (file, dir, 0);
        self.append(line.as_bytes());
    }

    /// How many of these bytes could be written.
    fn append(&mut self, bytes: &[u8]) -> usize {
        let mut written = 0;
        while written < bytes.len() {
            match self.file.write(&bytes[written..]) {
                Ok(0) => break,
                Ok(len) => written += len,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                Err(error) => {
                    // A limit on the size of files does not limit their number.
                    if error.kind() == io::ErrorKind::FileTooLarge {
                        self.len = self.half;
                    }
                    break;
                }
            }
        }
        self.len += written as u64;
        written
    }

    fn write_lost_note(&mut self) {
        let line = format!("[gnntop: {} bytes of output are lost here: they could not be written]\n", self.lost);
        if self.append(line.as_bytes()) == line.len() {
            self.lost = 0;
        }
    }

    /// Begins a new file. If that fails, the current one continues, and is full.
    fn rotate(&mut self) {
        let older = older(&self.name);
        let before = self.dir.read(&older).and_then(|file| Ok(file.metadata()?.len())).unwrap_or(0);
        // It fails if the file was removed, and then there is nothing to keep.
        let _ = self.dir.rename(&self.name, &older);
        let Ok(file) = self.dir.create_log(&self.name) else { return };
        (self.file, self.len) = (file, 0);
        self.forgotten += before;
        if self.forgotten > 0 {
            let line =
                format!("[gnntop: this log keeps the newest output; {} bytes before it are gone]\n", self.forgotten);
            self.append(line.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::path::Path;
    use std::process::Command;

    use super::*;

    fn log(dir: &Path, max_bytes: u64) -> BoundedLog {
        let dir = PrivateDir::open(dir).unwrap();
        dir.create_log("a.log").unwrap();
        BoundedLog::with_bound(dir, "a.log", max_bytes).unwrap()
    }

    fn text(dir: &tempfile::TempDir) -> String {
        fs::read_to_string(dir.path().join("a.log")).unwrap()
    }

    #[test]
    fn newest_output_is_kept_and_lost_bytes_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = log(dir.path(), 2000);
        for line in 0..1000 {
            log.write(format!("line {line:4}\n").as_bytes());
        }
        let (newer, before) = (text(&dir), fs::read_to_string(dir.path().join("a.older.log")).unwrap());
        assert!(newer.len() <= 1100 && before.len() <= 1100, "{} and {}", newer.len(), before.len());
        assert!(newer.ends_with("line  999\n") && newer.starts_with("[gnntop: this log keeps the newest"), "{newer}");
        let kept = [before, newer].concat();
        assert!(kept.lines().filter(|line| line.starts_with("line")).count() >= 100, "half of the bound, at least");
    }

    #[test]
    fn output_longer_than_a_file_continues_in_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = log(dir.path(), 200);
        let output: Vec<u8> = (0..150).map(|at| b'a' + at % 26).collect();
        log.write(&output);
        let before = fs::read(dir.path().join("a.older.log")).unwrap();
        assert_eq!([before, fs::read(dir.path().join("a.log")).unwrap()].concat(), output);
    }

    /// Writes 2,500 bytes at once, of which a file takes at most 1,024.
    #[test]
    #[ignore = "run by another test, as a program of its own under a limit"]
    fn child_writes_under_a_limit() {
        let mut log = log(Path::new(&std::env::var_os("LOG_DIR").unwrap()), 4000);
        log.write(&[b'x'; 2500]);
        log.write(b"end\n");
    }

    #[test]
    fn output_beyond_a_limit_on_files_continues_in_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let mut child = Command::new("sh");
        child.args(["-c", "trap '' XFSZ; ulimit -f 2; exec \"$0\" --ignored --exact \"$1\""]);
        child.arg(std::env::current_exe().unwrap()).arg("log::bounded::tests::child_writes_under_a_limit");
        let ran = child.env("LOG_DIR", dir.path()).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
        // Two files keep the newest; what was in the first is counted.
        let (newer, before) = (text(&dir), fs::read_to_string(dir.path().join("a.older.log")).unwrap());
        assert_eq!(before.matches('x').count() + newer.matches('x').count(), 2500 - 1024, "{before}{newer}");
        assert!(newer.ends_with("xend\n") && newer.contains("1024 bytes before it are gone"), "{newer}");
    }

    #[test]
    fn removed_log_is_created_again() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("sessions");
        fs::create_dir(&dir).unwrap();
        let mut log = log(&dir, 2000);
        let removes: [&dyn Fn(); 2] =
            [&|| fs::remove_file(dir.join("a.log")).unwrap(), &|| fs::remove_dir_all(&dir).unwrap()];
        for (remove, before) in removes.iter().zip(["some\n", "more\n"]) {
            log.write(before.as_bytes());
            remove();
            log.write(b"new\n");
            let text = fs::read_to_string(dir.join("a.log")).unwrap();
            assert!(text.starts_with("[gnntop: this log was removed, with ") && text.ends_with("]\nnew\n"), "{text}");
        }
    }

    #[test]
    fn log_that_was_removed_before_it_was_opened_is_created_again() {
        let dir = tempfile::tempdir().unwrap();
        BoundedLog::open(PrivateDir::open(dir.path()).unwrap(), "a.log").unwrap().write(b"new\n");
        assert_eq!(text(&dir), "new\n");
    }

    #[test]
    fn failed_writes_are_counted_and_noted_later() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = log(dir.path(), 2000);
        let file = std::mem::replace(&mut log.file, OpenOptions::new().write(true).open("/dev/full").unwrap());
        log.write(b"nobody hears this\n");
        log.file = file;
        log.write(b"but this\n");
        assert_eq!(text(&dir), "[gnntop: 18 bytes of output are lost here: they could not be written]\nbut this\n");
    }

    #[test]
    fn a_link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        std::os::unix::fs::symlink("/dev/null", &path).unwrap();
        assert!(BoundedLog::open(PrivateDir::open(dir.path()).unwrap(), "a.log").is_err());
    }
}

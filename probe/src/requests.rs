//! What a person asks of the running program through `gnntop`: a text in a file of the session's directory, which the drain
//! thread looks for. It is passed on once, and an empty text when it is withdrawn.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gnntop_wire::layout;
use rustix::fs::{Mode, OFlags};

/// How often to look.
const INTERVAL: Duration = Duration::from_millis(250);
/// Longest text.
const MAX_LEN: u64 = 4096;

/// Called with each request, on the drain thread.
pub(crate) type OnRequest = Box<dyn FnMut(&str) + Send>;

/// Looks for requests.
pub(crate) struct Requests {
    path: PathBuf,
    pass_on: OnRequest,
    last: String,
    looked: Instant,
}

impl Requests {
    /// Of the session in this directory.
    pub(crate) fn of(dir: &Path, pass_on: OnRequest) -> Self {
        Self { path: dir.join(layout::REQUEST_FILE), pass_on, last: String::new(), looked: Instant::now() }
    }

    /// Looks for a request, if it is time, and passes on one that is new.
    pub(crate) fn look(&mut self) {
        if self.looked.elapsed() < INTERVAL {
            return;
        }
        self.looked = Instant::now();
        let text = read(&self.path).unwrap_or_default();
        if text != self.last {
            (self.pass_on)(&text);
            self.last = text;
        }
    }
}

/// The text of a request; `None` if there is none, or if the file is not a plain one of this user.
fn read(path: &Path) -> Option<String> {
    // A pipe would keep this thread waiting without NONBLOCK.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let found = rustix::fs::fstat(&file).ok()?;
    let is_file = rustix::fs::FileType::from_raw_mode(found.st_mode) == rustix::fs::FileType::RegularFile;
    if !is_file || found.st_uid != rustix::process::geteuid().as_raw() {
        return None;
    }
    let mut text = String::new();
    file.take(MAX_LEN).read_to_string(&mut text).ok()?;
    Some(text).filter(|text| text.ends_with('\n'))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn each_request_is_passed_on_once() {
        let dir = tempfile::tempdir().unwrap();
        let (sender, received) = mpsc::channel();
        let mut requests = Requests::of(dir.path(), Box::new(move |text| sender.send(text.to_owned()).unwrap()));
        let look = |requests: &mut Requests| {
            requests.looked -= INTERVAL;
            requests.look();
            received.try_iter().collect::<Vec<String>>()
        };
        assert!(look(&mut requests).is_empty());
        let path = dir.path().join(layout::REQUEST_FILE);
        std::fs::write(&path, "trace 1 5\n").unwrap();
        requests.look();
        assert_eq!(look(&mut requests), ["trace 1 5\n"]);
        assert!(look(&mut requests).is_empty());
        std::fs::write(&path, "trace 2 5\n").unwrap();
        assert_eq!(look(&mut requests), ["trace 2 5\n"]);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(look(&mut requests), [""]);
    }

    #[test]
    fn what_is_no_plain_whole_file_is_no_request() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("request");
        assert_eq!(read(&path), None);
        std::fs::write(&path, "trace 1").unwrap();
        assert_eq!(read(&path), None);
        std::fs::write(&path, [0xff, 0xfe, b'\n']).unwrap();
        assert_eq!(read(&path), None);
        std::fs::write(dir.path().join("elsewhere"), "trace 1 5\n").unwrap();
        std::fs::remove_file(&path).unwrap();
        symlink(dir.path().join("elsewhere"), &path).unwrap();
        assert_eq!(read(&path), None);
        std::fs::remove_file(&path).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
        assert_eq!(read(&path), None);
        assert_eq!(read(dir.path()), None);
    }
}

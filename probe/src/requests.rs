//! What a person asks of the running program through `gnntop`: a text in a file of the session's directory, which the drain
//! thread looks for. It is passed on once, and an empty text when it is withdrawn or the asker is gone.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gnntop_sessions::request;

/// How often to look.
const INTERVAL: Duration = Duration::from_millis(250);

/// Called with each request, on the drain thread.
pub(crate) type OnRequest = Box<dyn FnMut(&str) + Send>;

/// Looks for requests.
pub(crate) struct Requests {
    dir: PathBuf,
    pass_on: OnRequest,
    last: String,
    last_poll: Instant,
}

impl Requests {
    /// Of the session in this directory.
    pub(crate) fn new(dir: &Path, pass_on: OnRequest) -> Self {
        Self { dir: dir.to_owned(), pass_on, last: String::new(), last_poll: Instant::now() }
    }

    /// Looks for a request, if it is time, and passes on one that is new.
    pub(crate) fn poll(&mut self) {
        if self.last_poll.elapsed() < INTERVAL {
            return;
        }
        self.last_poll = Instant::now();
        let text = request::read(&self.dir).unwrap_or_default();
        if text != self.last {
            (self.pass_on)(&text);
            self.last = text;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn poll_reports_each_request_once() {
        let dir = tempfile::tempdir().unwrap();
        let (sender, received) = mpsc::channel();
        let mut requests = Requests::new(dir.path(), Box::new(move |text| sender.send(text.to_owned()).unwrap()));
        let look = |requests: &mut Requests| {
            requests.last_poll -= INTERVAL;
            requests.poll();
            received.try_iter().collect::<Vec<String>>()
        };
        assert!(look(&mut requests).is_empty());
        let path = dir.path().join(gnntop_sessions::layout::REQUEST_FILE);
        let ask = |text: &str| {
            let mut file = std::fs::File::create(&path).unwrap();
            file.lock().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            file
        };
        let asker = ask("trace 1 5\n");
        requests.poll();
        assert_eq!(look(&mut requests), ["trace 1 5\n"]);
        assert!(look(&mut requests).is_empty());
        drop(asker);
        assert_eq!(look(&mut requests), [""], "it was killed");
        let _asker = ask("trace 2 5\n");
        assert_eq!(look(&mut requests), ["trace 2 5\n"]);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(look(&mut requests), [""]);
    }
}

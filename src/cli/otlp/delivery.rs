//! One request until a collector has it, or its time is over. The same request is sent again only where the specification says so:
//! after 429, 502, 503 and 504 and where there is no answer, after growing waits or the one that is asked for.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::thread;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::settings::OtlpSettings;
use super::{encrypted, post};
use post::Request;

/// The first wait between two tries, and the longest.
const SHORTEST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// A request that a collector has.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Delivered {
    /// What the collector says of it, in words.
    pub(super) said: Option<String>,
    /// Whether it has rejected a part.
    pub(super) is_partial: bool,
}

/// How requests reach a collector.
pub(super) struct Delivery {
    settings: OtlpSettings,
    /// The collector has asked for silence until then.
    not_before: Option<Instant>,
}

impl Delivery {
    pub(super) fn new(settings: OtlpSettings) -> Self {
        Self { settings, not_before: None }
    }

    /// Sends a request. Where nobody answers, the last request of
    /// a run is not repeated: somebody waits for the run's end.
    ///
    /// # Errors
    /// In words, why it was not delivered until `deadline`.
    pub(super) fn send(&mut self, body: &[u8], deadline: Instant, is_last: bool) -> Result<Delivered, String> {
        if self.not_before.is_some_and(|until| until > Instant::now()) {
            return Err("the collector has asked to wait".to_owned());
        }
        let body =
            if self.settings.is_compressed { gzip(body).map_err(|error| error.to_string())? } else { body.to_vec() };
        let mut wait = SHORTEST_WAIT;
        loop {
            let (why, asked) = match self.post(&body, deadline) {
                Ok(answer) if answer.is_success() => {
                    return Ok(Delivered { said: answer.message(), is_partial: answer.has_rejected() });
                }
                Ok(answer) => {
                    let said = answer.message().map_or_else(String::new, |said| format!(": {said}"));
                    let why = format!("it answers with status {}{said}", answer.status);
                    if !answer.is_retryable() {
                        return Err(why);
                    }
                    (why, answer.retry_after)
                }
                Err(error) if is_last => return Err(error.to_string()),
                Err(error) => (error.to_string(), None),
            };
            // One that asks for no wait at all gets the usual ones: it is busy.
            let pause = asked.unwrap_or_default().max(with_jitter(wait));
            let next = Instant::now().checked_add(pause);
            if next.is_none_or(|next| next >= deadline) {
                self.not_before = asked.filter(|asked| *asked >= pause).and(next);
                return Err(why);
            }
            thread::sleep(pause);
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    fn post(&self, body: &[u8], deadline: Instant) -> io::Result<super::answer::Answer> {
        let OtlpSettings { endpoint, headers, is_compressed, tls, .. } = &self.settings;
        let request = Request { endpoint, headers, body, is_compressed: *is_compressed };
        let answer = if endpoint.is_encrypted {
            encrypted::post(&request, tls, deadline)
        } else {
            post::post(&request, deadline)
        };
        answer.map_err(|error| {
            // The system has a time of its own, of which it says another kind of error.
            let is_ours = matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock)
                && error.raw_os_error() != Some(libc::ETIMEDOUT);
            let text = || format!("the collector did not answer within {} s", self.settings.timeout.as_secs_f64());
            if is_ours { io::Error::new(io::ErrorKind::TimedOut, text()) } else { error }
        })
    }
}

/// Between half of a wait and all of it, so that those who wait for the same collector do not come back together.
fn with_jitter(wait: Duration) -> Duration {
    let random = RandomState::new().build_hasher().finish();
    wait.mul_f64(0.5 + 0.5 * (random as f64 / u64::MAX as f64))
}

fn gzip(body: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(body)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use super::*;

    /// Long enough for the slowest machine.
    const LONG: Duration = Duration::from_secs(600);

    /// A collector that gives these answers, one a connection, and returns what it was sent.
    fn collector(answers: &'static [&'static str]) -> (OtlpSettings, thread::JoinHandle<Vec<Vec<u8>>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let settings = OtlpSettings::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let serve = move || {
            let answer_one = |answer: &&str| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut sent = Vec::new();
                let mut chunk = [0; 1024];
                while !sent.ends_with(b"END") && !sent.windows(6).any(|part| part == b"gzip\r\n") {
                    let len = stream.read(&mut chunk).unwrap();
                    sent.extend_from_slice(&chunk[..len]);
                }
                stream.write_all(answer.as_bytes()).unwrap();
                sent
            };
            answers.iter().map(answer_one).collect()
        };
        (settings, thread::spawn(serve))
    }

    fn send(settings: OtlpSettings, is_last: bool) -> Result<Delivered, String> {
        Delivery::new(settings).send(b"figures END", Instant::now() + LONG, is_last)
    }

    #[test]
    fn busy_collector_gets_the_same_request_again() {
        let (settings, collector) = collector(&[
            "HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 429 X\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n",
            "",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        ]);
        assert_eq!(send(settings, false), Ok(Delivered::default()));
        let sent = collector.join().unwrap();
        assert!(sent.windows(2).all(|two| two[0] == two[1]));
        let text = String::from_utf8_lossy(&sent[0]);
        assert!(text.starts_with("POST /v1/metrics HTTP/1.1\r\nHost: 127.0.0.1:"), "{text}");
        assert!(
            text.contains("\r\nContent-Type: application/json\r\n") && text.contains("\r\n\r\nfigures END"),
            "{text}"
        );
    }

    #[test]
    fn busy_collector_that_asks_for_no_wait_gets_the_usual_ones() {
        // Three waits of at least 0.25, 0.5 and 1 s do not fit into its time, and three of none would.
        const BUSY: &str = "HTTP/1.1 429 X\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n";
        let (settings, _) = collector(&[BUSY, BUSY, BUSY, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"]);
        let deadline = Instant::now() + Duration::from_millis(1500);
        let mut delivery = Delivery::new(settings);
        assert!(delivery.send(b"figures END", deadline, false).is_err());
        let later = delivery.send(b"figures END", Instant::now() + LONG, false);
        assert_eq!(later, Ok(Delivered::default()), "it has not asked to wait");
    }

    #[test]
    fn refused_request_is_not_repeated() {
        let (settings, collector) = collector(&["HTTP/1.1 400 Bad\r\n\r\n{\"message\":\"no metrics here\"}"]);
        assert_eq!(send(settings, false), Err("it answers with status 400: no metrics here".to_owned()));
        assert_eq!(collector.join().unwrap().len(), 1);
    }

    #[test]
    fn last_request_is_not_repeated_where_nobody_listens() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let settings = OtlpSettings::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        drop(listener);
        assert!(send(settings, true).unwrap_err().contains("refused"));
    }

    #[test]
    fn longer_wait_than_there_is_time_holds_for_later_requests() {
        let (settings, collector) = collector(&["HTTP/1.1 503 X\r\nRetry-After: 86400\r\nContent-Length: 0\r\n\r\n"]);
        let mut delivery = Delivery::new(settings);
        let mut send = || delivery.send(b"figures END", Instant::now() + LONG, false).unwrap_err();
        assert_eq!([send(), send()], ["it answers with status 503", "the collector has asked to wait"]);
        assert_eq!(collector.join().unwrap().len(), 1);
    }

    #[test]
    fn silent_collector_takes_no_more_than_the_time() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let settings = OtlpSettings::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let mut delivery = Delivery::new(settings);
        let sent = delivery.send(b"END", Instant::now() + Duration::from_millis(50), true);
        assert_eq!(sent, Err("the collector did not answer within 10 s".to_owned()));
    }

    #[test]
    fn compressed_body_says_so_and_is_gzip() {
        let (mut settings, collector) = collector(&["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"]);
        settings.is_compressed = true;
        assert_eq!(send(settings, false), Ok(Delivered::default()));
        assert!(String::from_utf8_lossy(&collector.join().unwrap()[0]).contains("Content-Encoding: gzip\r\n"));
        let mut text = String::new();
        flate2::read::GzDecoder::new(gzip(b"figures").unwrap().as_slice()).read_to_string(&mut text).unwrap();
        assert_eq!(text, "figures");
    }

    #[test]
    fn waits_differ_and_stay_below_their_length() {
        let waits: Vec<Duration> = (0..50).map(|_| with_jitter(SHORTEST_WAIT)).collect();
        assert!(waits.iter().all(|wait| *wait >= SHORTEST_WAIT / 2 && *wait <= SHORTEST_WAIT));
        assert!(waits.windows(2).any(|two| two[0] != two[1]));
    }
}

//! The near end of the lines to other machines: keeps a copy of their sessions, and connects again where a line is cut.

use std::io::{self, BufRead, BufReader, Read};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use gnntop_sensors::monotonic_ns;
use gnntop_wire::ClockOffset;
use gnntop_wire::text::clean;

use super::carrier::Carrier;
use super::copied::{CopiedSessions, Copies};
use super::message::{FromFar, PROTOCOL, ToFar, read, read_bytes, read_hello, write};
use super::process::FarProcess;

/// Clocks are compared so often; the quickest answer counts.
const PINGS: usize = 8;
/// Time until a line that was cut is tried again, doubled each time up to the second.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// A machine whose line was cut more often than this, or that was cut and has sent nothing new for so long, may never send all
/// that it has.
const MAX_CUTS: usize = 10;
const MAX_STUCK: Duration = Duration::from_secs(60);
/// A machine that has sent nothing for this long is not waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// The same for one that has sent something, but not what gnntop says first.
const HELLO_PATIENCE: Duration = Duration::from_secs(60);
/// A process whose line has ended does so too, and says why.
const GRACE: Duration = Duration::from_secs(1);
/// Longest reason that is shown.
const MAX_REASON: usize = 200;
/// How a shell ends that finds no program of a name.
const NOT_FOUND: i32 = 127;

/// What is known of a line.
#[derive(Debug)]
struct LineState {
    /// Whether all that the machine had was received.
    is_synced: bool,
    /// Why nothing comes, as words to follow the machine's name.
    problem: Option<String>,
    /// When it was opened first, and when the last byte came.
    opened: Instant,
    heard: Instant,
    /// Whether its gnntop has answered, ever and since this was last asked.
    has_begun: bool,
    has_answered: bool,
    /// When there was something new, and how often the line was cut since.
    advanced: Instant,
    cuts: usize,
}

impl LineState {
    fn new(now: Instant) -> Self {
        Self {
            is_synced: false,
            problem: None,
            opened: now,
            heard: now,
            has_begun: false,
            has_answered: false,
            advanced: now,
            cuts: 0,
        }
    }

    /// `None` while there may be more to wait for; else whether all is there, or why not. A wait in vain is a problem from then on.
    fn outcome(&mut self, now: Instant) -> Option<Result<(), String>> {
        let has_waited = |since: Instant, time| now.saturating_duration_since(since) >= time;
        if !self.is_synced && self.problem.is_none() {
            if has_waited(self.heard, PATIENCE) {
                self.problem = Some(format!("does not answer: it has sent nothing for {} s", PATIENCE.as_secs()));
            } else if !self.has_begun && has_waited(self.opened, HELLO_PATIENCE) {
                let seconds = HELLO_PATIENCE.as_secs();
                self.problem = Some(format!("does not answer: no gnntop has spoken there for {seconds} s"));
            }
        }
        match (&self.problem, self.is_synced) {
            (Some(why), _) => Some(Err(why.clone())),
            (None, true) => Some(Ok(())),
            (None, false) => None,
        }
    }

    /// The line has ended. One that has answered will do so again, but not forever without anything new.
    fn note_end(&mut self, end: &LineEnd, now: Instant) -> bool {
        let has_answered = std::mem::take(&mut self.has_answered);
        let (LineEnd::Cut(why), true) = (end, has_answered) else {
            self.problem = Some(end.why().to_owned());
            return false;
        };
        self.cuts += 1;
        if self.cuts > MAX_CUTS || now.saturating_duration_since(self.advanced) >= MAX_STUCK {
            self.problem = Some(why.clone());
        }
        true
    }

    fn note_news(&mut self, now: Instant) {
        (self.advanced, self.cuts) = (now, 0);
    }
}

/// The line to one machine.
pub(super) struct Line {
    carrier: Carrier,
    run: Option<String>,
    state: Mutex<LineState>,
    is_closed: Arc<AtomicBool>,
}

impl Line {
    /// Keeps copies of the sessions of this machine until it is closed.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub(super) fn open(
        carrier: Carrier,
        run: Option<String>,
        copies: Arc<Copies>,
    ) -> io::Result<(Arc<Self>, JoinHandle<()>)> {
        let name = format!("gnntop {}", carrier.host);
        let copied = CopiedSessions::new(carrier.host.clone(), copies);
        let state = Mutex::new(LineState::new(Instant::now()));
        let line = Arc::new(Self { carrier, run, state, is_closed: Arc::default() });
        let followed = Arc::clone(&line);
        let thread = thread::Builder::new().name(name).spawn(move || followed.follow(copied))?;
        Ok((line, thread))
    }

    /// The machine.
    pub(super) fn host(&self) -> &str {
        &self.carrier.host
    }

    /// `None` while there may be more to wait for; else whether all is there, or why not, as words to follow the machine's name.
    pub(super) fn outcome(&self) -> Option<Result<(), String>> {
        lock(&self.state).outcome(Instant::now())
    }

    /// Ends it, within a moment.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    fn follow(&self, mut copied: CopiedSessions) {
        let mut pause = RETRY.0;
        while !self.is_closed() {
            let end = self.connect(&mut copied).unwrap_or_else(|error| LineEnd::Refused(error.to_string()));
            copied.note_trouble(end.why());
            if lock(&self.state).note_end(&end, Instant::now()) {
                pause = RETRY.0;
            }
            let mut left = pause;
            while !left.is_zero() && !self.is_closed() {
                let nap = left.min(Duration::from_millis(100));
                thread::sleep(nap);
                left -= nap;
            }
            pause = (pause * 2).min(RETRY.1);
        }
    }

    /// Reads from the machine for as long as the line holds. Returns why it does not any more.
    fn connect(&self, copied: &mut CopiedSessions) -> io::Result<LineEnd> {
        let job = self.carrier.job.as_ref().map(|job| format!("--job={job}"));
        let run = self.run.iter().flat_map(|run| ["--", run]);
        let words: Vec<&str> = ["send"].into_iter().chain(job.as_deref()).chain(run).collect();
        let mut command = self.carrier.command(&words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = FarProcess::start(command)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let errors = process.errors(&is_over);
        let said = errors
            .map(|errors| thread::Builder::new().name("gnntop far errors".to_owned()).spawn(move || last_line(errors)));
        let said = said.transpose()?;
        // What is sent there ends with this: it hears of the end before it is ended.
        let result = match (process.input(&self.is_closed), process.output(&self.is_closed)) {
            (Some(to), Some(from)) => self.receive(to, &mut BufReader::new(NotingReader { from, line: self }), copied),
            _ => Ok(None),
        };
        let status = process.end(if self.is_closed() { Duration::ZERO } else { GRACE });
        let said = said.map(|said| joined(said, &is_over)).unwrap_or_default();
        Ok(match result {
            Ok(None) => LineEnd::Cut(reason(status, &said)),
            Ok(Some(why)) => LineEnd::Refused(why),
            Err(error) if matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe) => {
                LineEnd::Cut(reason(status, &said))
            }
            Err(error) => LineEnd::Refused(format!("is not read further: {error}")),
        })
    }

    /// Takes what the far end sends; `None` at its end.
    fn receive(
        &self,
        mut to: impl io::Write,
        from: &mut impl BufRead,
        copied: &mut CopiedSessions,
    ) -> io::Result<Option<String>> {
        match read_hello(from)? {
            None => return Ok(None),
            Some((PROTOCOL, _)) => (),
            Some((_, version)) => {
                let own = env!("CARGO_PKG_VERSION");
                return Ok(Some(format!(
                    "has gnntop {version}, which does not talk to {own}: install the same version"
                )));
            }
        }
        copied.clock = compare_clocks(&mut to, from)?;
        {
            let mut state = lock(&self.state);
            (state.has_begun, state.has_answered) = (true, true);
        }
        write(&mut to, &ToFar::Have { sessions: copied.have() }, b"")?;
        lock(&self.state).problem = None;
        let mut bytes = Vec::new();
        while let Some(message) = read::<FromFar>(from)? {
            read_bytes(from, message.len(), &mut bytes)?;
            let is_new = matches!(message, FromFar::Append { .. });
            match message {
                FromFar::Synced => lock(&self.state).is_synced = true,
                FromFar::Problem { text } => {
                    let mut state = lock(&self.state);
                    (state.problem, state.is_synced) = (Some(shortened(&text)), true);
                }
                other => {
                    let is_session = matches!(other, FromFar::Session { .. });
                    copied.take(other, &bytes)?;
                    lock(&self.state).problem.take_if(|_| is_session);
                }
            }
            if is_new {
                lock(&self.state).note_news(Instant::now());
            }
        }
        Ok(None)
    }
}

/// Notes when the machine says anything.
struct NotingReader<'l, R> {
    from: R,
    line: &'l Line,
}

impl<R: Read> Read for NotingReader<'_, R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let len = self.from.read(bytes)?;
        if len > 0 {
            lock(&self.line.state).heard = Instant::now();
        }
        Ok(len)
    }
}

/// Why a line has ended.
enum LineEnd {
    /// Nothing more comes through it.
    Cut(String),
    /// What comes cannot be used.
    Refused(String),
}

impl LineEnd {
    fn why(&self) -> &str {
        match self {
            Self::Cut(why) | Self::Refused(why) => why,
        }
    }
}

/// The offset from the far clock to this one, by the quickest of several answers (RFC 5905, section 8).
fn compare_clocks(to: &mut impl io::Write, from: &mut impl BufRead) -> io::Result<Option<ClockOffset>> {
    let mut best: Option<ClockOffset> = None;
    for _ in 0..PINGS {
        let before = monotonic_ns();
        write(to, &ToFar::Ping, b"")?;
        to.flush()?;
        let Some(FromFar::Pong { monotonic_ns: theirs }) = read(from)? else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let took = monotonic_ns().saturating_sub(before);
        let middle = i128::from(before) + i128::from(took / 2) - i128::from(theirs);
        let found = ClockOffset { offset_ns: i64::try_from(middle).unwrap_or(0), error_ns: took.div_ceil(2) };
        best = Some(best.filter(|best| best.error_ns <= found.error_ns).unwrap_or(found));
    }
    Ok(best)
}

/// Why a line has ended, as words to follow the machine's name.
fn reason(status: Option<ExitStatus>, said: &str) -> String {
    match status.and_then(|status| status.code()) {
        Some(NOT_FOUND) => "has no gnntop in its PATH: install it there".to_owned(),
        _ if said.is_empty() => "is cut off".to_owned(),
        _ => format!("is not reached: {}", shortened(said)),
    }
}

/// What was said last, once the process is gone: what that has left behind is waited for only briefly.
fn joined(said: JoinHandle<String>, is_over: &AtomicBool) -> String {
    let until = Instant::now() + GRACE;
    while !said.is_finished() && Instant::now() < until {
        thread::sleep(Duration::from_millis(10));
    }
    is_over.store(true, Ordering::Relaxed);
    said.join().unwrap_or_default()
}

/// The last line that is not empty.
fn last_line(errors: impl Read) -> String {
    let mut last = String::new();
    let mut lines = BufReader::new(errors);
    let mut line = Vec::new();
    while lines.by_ref().take(64 << 10).read_until(b'\n', &mut line).is_ok_and(|len| len > 0) {
        let text = clean(line.trim_ascii());
        if !text.is_empty() {
            last = text;
        }
        line.clear();
    }
    last
}

fn shortened(text: &str) -> String {
    clean(text.as_bytes()).chars().take(MAX_REASON).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_clock_that_is_ahead_is_moved_back() {
        const AHEAD_NS: u64 = 5_000_000_000;
        let (near, far) = UnixStream::pair().unwrap();
        let answer = thread::spawn(move || {
            let (mut from, mut to) = (BufReader::new(far.try_clone().unwrap()), far);
            for _ in 0..PINGS {
                super::super::message::read_near(&mut from).unwrap();
                write(&mut to, &FromFar::Pong { monotonic_ns: monotonic_ns() + AHEAD_NS }, b"").unwrap();
            }
        });
        let mut to = near.try_clone().unwrap();
        let clock = compare_clocks(&mut to, &mut BufReader::new(near)).unwrap().unwrap();
        answer.join().unwrap();
        let off = clock.offset_ns.saturating_add_unsigned(AHEAD_NS).unsigned_abs();
        assert!(off <= clock.error_ns && clock.error_ns < AHEAD_NS, "{clock:?}");
    }

    #[test]
    fn a_machine_that_hangs_up_has_no_clock() {
        let (near, far) = UnixStream::pair().unwrap();
        drop(far);
        assert!(compare_clocks(&mut near.try_clone().unwrap(), &mut BufReader::new(near)).is_err());
    }

    #[test]
    fn a_machine_is_waited_for_only_so_long() {
        let now = Instant::now();
        let later = |seconds| now + Duration::from_secs(seconds);
        let problem = |state: &mut LineState, at| state.outcome(at).map(|outcome| outcome.unwrap_err());
        let mut silent = LineState::new(now);
        assert_eq!(problem(&mut silent, later(29)), None);
        assert!(problem(&mut silent, later(30)).unwrap().contains("has sent nothing for 30 s"));
        let mut mute = LineState { heard: later(59), ..LineState::new(now) };
        assert_eq!(problem(&mut mute, later(59)), None);
        assert!(problem(&mut mute, later(60)).unwrap().contains("no gnntop has spoken there"));
        // Cut again and again, with nothing new in between.
        let cut = LineEnd::Cut("is cut off".to_owned());
        let mut stuck = LineState { has_begun: true, ..LineState::new(now) };
        for cuts in 0..=MAX_CUTS {
            assert_eq!(problem(&mut stuck, now), None, "{cuts}");
            stuck.has_answered = true;
            assert!(stuck.note_end(&cut, now));
        }
        assert!(problem(&mut stuck, now).is_some());
        let mut slow = LineState { has_begun: true, has_answered: true, ..LineState::new(now) };
        slow.note_news(later(20));
        assert!(slow.note_end(&cut, later(79)) && slow.problem.is_none());
        slow.has_answered = true;
        assert!(slow.note_end(&cut, later(80)) && slow.problem.is_some());
    }

    #[test]
    fn an_end_is_said_with_what_to_do() {
        use std::os::unix::process::ExitStatusExt;
        let status = |code: i32| Some(ExitStatus::from_raw(code << 8));
        assert_eq!(
            reason(status(127), "sh: 1: exec: gnntop: not found"),
            "has no gnntop in its PATH: install it there"
        );
        assert_eq!(reason(status(255), "No route to host"), "is not reached: No route to host");
        assert_eq!(reason(None, ""), "is cut off");
    }
}

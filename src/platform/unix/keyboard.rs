//! Input from the terminal: bytes, which the parser of termina turns into events.
//!
//! crossterm's own reader waits for the rest of a sequence forever, so that the next key is taken for a part of it, and
//! does not report that the terminal is gone. Here a sequence whose rest does not arrive within a moment is what it is:
//! the Escape key, or noise.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use termina::event::{KeyCode, KeyEvent, Modifiers};
use termina::{Event, Parser};

/// A sequence arrives in one piece, or its rest within this time.
const SEQUENCE: Duration = Duration::from_millis(40);
/// The rest of an answer of the terminal itself, which may come over a slow line.
const ANSWER: Duration = Duration::from_millis(500);
/// A longer sequence is noise.
const LONGEST: usize = 4096;
/// How a terminal's answer about colours begins: a command's number follows, where a typed Alt-] is alone.
const ANSWER_START: &[u8] = b"\x1b]1";
/// Ctrl-C, which is part of no sequence.
const CTRL_C: u8 = 0x03;

/// The terminal that keys come from: standard input, or the controlling terminal where input is a pipe.
pub struct Keyboard {
    terminal: File,
    incoming: InputDecoder,
    is_gone: bool,
}

impl Keyboard {
    /// The keyboard of this process.
    ///
    /// # Errors
    /// If there is no terminal to read keys from.
    pub fn open() -> io::Result<Self> {
        let stdin = io::stdin();
        let terminal =
            if stdin.is_terminal() { File::from(stdin.as_fd().try_clone_to_owned()?) } else { File::open("/dev/tty")? };
        Ok(Self { terminal, incoming: InputDecoder::default(), is_gone: false })
    }

    /// Waits for input for at most `wait`, and takes all there is. A signal ends the wait.
    ///
    /// # Errors
    /// When the terminal cannot be read, other than because it is gone.
    pub fn read(&mut self, wait: Duration) -> io::Result<Vec<Event>> {
        let mut wait = self.incoming.rest_within(Instant::now()).map_or(wait, |rest| rest.min(wait));
        let mut bytes = [0; 1024];
        while !self.is_gone && self.is_ready(wait)? {
            match self.terminal.read(&mut bytes) {
                Ok(0) => self.is_gone = true,
                Ok(len) => self.incoming.take(&bytes[..len], Instant::now()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                // What a terminal returns whose other end was closed.
                Err(error) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => self.is_gone = true,
                Err(error) => return Err(error),
            }
            wait = Duration::ZERO;
        }
        self.incoming.give_up(Instant::now());
        Ok(self.incoming.events())
    }

    /// Whether the terminal was closed when it was last read.
    pub fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// Whether the terminal is closed at this moment.
    pub fn is_closed_by_now(&mut self) -> bool {
        self.is_ready(Duration::ZERO).is_err() || self.is_gone
    }

    /// Whether there is something to read within `wait`.
    fn is_ready(&mut self, wait: Duration) -> io::Result<bool> {
        let mut watched = [PollFd::new(&self.terminal, PollFlags::IN)];
        let timeout = Timespec { tv_sec: wait.as_secs().min(60) as i64, tv_nsec: wait.subsec_nanos().into() };
        match poll(&mut watched, Some(&timeout)) {
            Ok(_) => (),
            Err(Errno::INTR) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        let seen = watched[0].revents();
        self.is_gone |= seen.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL);
        Ok(seen.contains(PollFlags::IN))
    }
}

/// Bytes that have arrived, and what they mean.
#[derive(Default)]
struct InputDecoder {
    parser: Parser,
    events: Vec<Event>,
    /// The beginning of a sequence whose rest has not arrived.
    begun: Vec<u8>,
    /// When its last byte arrived.
    since: Option<Instant>,
}

impl InputDecoder {
    fn take(&mut self, bytes: &[u8], now: Instant) {
        for byte in bytes {
            // Whatever has begun, the key that leaves the viewer is not part of it.
            if *byte == CTRL_C {
                self.forget();
            }
            self.begun.push(*byte);
            self.parser.parse(&[*byte], true);
            if self.drain() || self.begun.len() > LONGEST {
                self.forget();
            }
        }
        self.since = (!self.begun.is_empty()).then_some(now);
    }

    /// How long the rest of a sequence is still waited for; `None` if none has begun.
    fn rest_within(&self, now: Instant) -> Option<Duration> {
        let patience = if self.begun.starts_with(ANSWER_START) { ANSWER } else { SEQUENCE };
        self.since.map(|since| patience.saturating_sub(now.saturating_duration_since(since)))
    }

    /// Takes what has begun for the whole if its rest has not arrived.
    fn give_up(&mut self, now: Instant) {
        if self.rest_within(now) == Some(Duration::ZERO) {
            self.parser.parse(&[], false);
            self.drain();
            self.forget();
        }
    }

    /// Takes events from the parser; whether there were any.
    fn drain(&mut self) -> bool {
        let before = self.events.len();
        while let Some(event) = self.parser.pop() {
            self.push(event);
        }
        self.events.len() > before
    }

    /// Notes an event. A character with Alt is, byte for byte, Escape and the character right after it; Alt means nothing
    /// here, while quick fingers do.
    fn push(&mut self, event: Event) {
        match event {
            Event::Key(KeyEvent { code: code @ KeyCode::Char(_), modifiers, .. })
                if modifiers.contains(Modifiers::ALT) =>
            {
                let alone = |code, modifiers| Event::Key(KeyEvent::new(code, modifiers));
                self.events.extend([
                    alone(KeyCode::Escape, Modifiers::NONE),
                    alone(code, modifiers.difference(Modifiers::ALT)),
                ]);
            }
            event => self.events.push(event),
        }
    }

    fn forget(&mut self) {
        self.parser = Parser::default();
        self.begun.clear();
        self.since = None;
    }

    fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(code: KeyCode) -> Event {
        Event::Key(KeyEvent::new(code, Modifiers::NONE))
    }

    /// The events after these bytes and this much silence.
    fn decode(incoming: &mut InputDecoder, bytes: &[u8], silence: Duration) -> Vec<Event> {
        let now = Instant::now();
        incoming.take(bytes, now);
        incoming.give_up(now + silence);
        incoming.events()
    }

    #[test]
    fn incomplete_sequence_swallows_no_key() {
        let mut incoming = InputDecoder::default();
        for begun in ["\u{1b}[", "\u{1b}[1;", "\u{1b}O", "\u{1b}[<0;1", "\u{1b}P"] {
            assert_eq!(decode(&mut incoming, begun.as_bytes(), SEQUENCE), [], "{begun:?}");
            assert_eq!(decode(&mut incoming, b"q", Duration::ZERO), [key(KeyCode::Char('q'))], "{begun:?}");
        }
        assert_eq!(decode(&mut incoming, b"\xc3", SEQUENCE), [], "half a character");
        assert_eq!(decode(&mut incoming, b"q", Duration::ZERO), [key(KeyCode::Char('q'))]);
    }

    #[test]
    fn lone_escape_is_a_key_and_prefix_is_not() {
        let mut incoming = InputDecoder::default();
        assert_eq!(decode(&mut incoming, b"\x1b", Duration::ZERO), []);
        assert_eq!(decode(&mut incoming, b"[A", Duration::ZERO), [key(KeyCode::Up)], "in two pieces");
        assert_eq!(decode(&mut incoming, b"\x1b", SEQUENCE), [key(KeyCode::Escape)]);
        assert_eq!(decode(&mut incoming, b"\x1bq", Duration::ZERO), [key(KeyCode::Escape), key(KeyCode::Char('q'))]);
        assert_eq!(decode(&mut incoming, b"\x1b[Dq", Duration::ZERO), [key(KeyCode::Left), key(KeyCode::Char('q'))]);
    }

    #[test]
    fn terminal_answer_has_a_longer_timeout() {
        let mut incoming = InputDecoder::default();
        assert_eq!(decode(&mut incoming, b"\x1b]11;rgb:ff", SEQUENCE), []);
        let answer = decode(&mut incoming, b"ff/ffff/ffff\x1b\\", Duration::ZERO);
        assert!(matches!(answer[..], [Event::Osc(_)]), "{answer:?}");
        assert_eq!(decode(&mut incoming, b"\x1b]11;rgb:ff", ANSWER), []);
        assert_eq!(decode(&mut incoming, b"q", Duration::ZERO), [key(KeyCode::Char('q'))]);
    }

    #[test]
    fn control_c_works_in_an_incomplete_sequence() {
        let ctrl_c = [Event::Key(KeyEvent::new(KeyCode::Char('c'), Modifiers::CONTROL))];
        let mut incoming = InputDecoder::default();
        for begun in ["\u{1b}]", "\u{1b}]11;rgb:ff", "\u{1b}[", "\u{1b}[<0;1", "\u{1b}O", "\u{1b}P", "\u{1b}"] {
            assert_eq!(decode(&mut incoming, begun.as_bytes(), Duration::ZERO), [], "{begun:?}");
            assert_eq!(decode(&mut incoming, b"\x03", Duration::ZERO), ctrl_c, "{begun:?}");
        }
        assert_eq!(decode(&mut incoming, b"\xc3\x03", Duration::ZERO), ctrl_c, "half a character");
        assert_eq!(decode(&mut incoming, b"\x1b]", SEQUENCE), [], "Alt-] is no answer that is waited for");
        assert_eq!(decode(&mut incoming, b"q", Duration::ZERO), [key(KeyCode::Char('q'))]);
    }

    #[test]
    fn endless_noise_uses_bounded_memory() {
        let mut incoming = InputDecoder::default();
        incoming.take(b"\x1b]", Instant::now());
        incoming.take(&[b'x'; 100_000], Instant::now());
        assert!(incoming.begun.len() <= LONGEST);
        incoming.forget();
        incoming.events();
        assert_eq!(decode(&mut incoming, b"q", Duration::ZERO), [key(KeyCode::Char('q'))]);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_decode_without_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            let mut incoming = InputDecoder::default();
            decode(&mut incoming, &bytes, ANSWER);
            proptest::prop_assert_eq!(decode(&mut incoming, b"q", Duration::ZERO), [key(KeyCode::Char('q'))]);
        }
    }
}

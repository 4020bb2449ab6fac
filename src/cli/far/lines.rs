//! What a command says that runs on another machine, or that asks Slurm, line by line: without control characters, and not more
//! than a person can read.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use gnntop_wire::text::clean;

use super::super::output;
use super::super::signals::Interruption;
use super::process::FarProcess;

/// Longest line; what is behind it is left out.
const MAX_LINE: usize = 64 << 10;
/// Most bytes of each of the two outputs.
pub(super) const MAX_TOTAL: usize = 1 << 20;
/// Lines that wait to be taken.
const WAITING: usize = 16;
/// Time between two looks at what is awaited.
const TURN: Duration = Duration::from_millis(50);
/// After this time, it is said what is awaited.
const SILENCE: Duration = Duration::from_secs(3);
/// A process whose outputs have ended does so too.
const GRACE: Duration = Duration::from_secs(1);

/// A line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SaidLine {
    pub(super) text: String,
    /// Whether it comes from standard error.
    pub(super) is_error: bool,
    /// Whether its end was left out.
    pub(super) is_cut: bool,
}

/// How a command has ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CommandEnd {
    /// By itself; `None` if the system does not say how.
    Exit(Option<ExitStatus>),
    /// It says more than is taken.
    TooMuch,
    /// It says nothing for too long.
    TooLong,
    /// This process was asked to end.
    Interrupted(i32),
}

/// Says once what is awaited when it is silent, and gives it up after this time.
pub(super) fn waiting_for(what: &str, patience: Duration) -> impl FnMut(Duration) -> bool {
    let mut is_said = false;
    move |silent| {
        if silent >= SILENCE && !std::mem::replace(&mut is_said, true) {
            output::print_note(&format!("waiting for {what} ..."));
        }
        silent >= patience
    }
}

/// Runs a command until it ends, and passes on what it says. `silent` hears for how long nothing was said, and may give it up.
///
/// # Errors
/// If it cannot be started, or if `take` fails.
pub(super) fn run(
    mut command: Command,
    interruption: &Interruption,
    take: &mut dyn FnMut(SaidLine) -> anyhow::Result<()>,
    silent: &mut dyn FnMut(Duration) -> bool,
) -> anyhow::Result<CommandEnd> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = FarProcess::start(command)?;
    let is_over = Over::default();
    let (send, said) = mpsc::sync_channel(WAITING);
    // They end when nobody takes what they read, or it is over; nobody waits for them.
    if let Some(output) = process.output(&is_over.0) {
        read_on_thread(output, false, send.clone())?;
    }
    if let Some(errors) = process.errors(&is_over.0) {
        read_on_thread(errors, true, send)?;
    }
    let mut heard = Instant::now();
    loop {
        match said.recv_timeout(TURN) {
            Ok(Some(line)) => {
                take(line)?;
                heard = Instant::now();
            }
            Ok(None) => return Ok(CommandEnd::TooMuch),
            Err(RecvTimeoutError::Timeout) if silent(heard.elapsed()) => return Ok(CommandEnd::TooLong),
            Err(RecvTimeoutError::Timeout) => (),
            Err(RecvTimeoutError::Disconnected) => return Ok(CommandEnd::Exit(process.end(GRACE))),
        }
        if let Some(signal) = interruption.take() {
            return Ok(CommandEnd::Interrupted(signal));
        }
    }
}

/// Ends the readers with the command.
#[derive(Default)]
struct Over(Arc<AtomicBool>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Sends each line; `None` where there are too many.
fn read_on_thread(
    from: impl Read + Send + 'static,
    is_error: bool,
    send: SyncSender<Option<SaidLine>>,
) -> std::io::Result<()> {
    let read = move || {
        let mut lines = Lines { from: BufReader::new(from), is_error, left: MAX_TOTAL };
        while let Some(line) = lines.next() {
            if send.send(Some(line)).is_err() {
                return;
            }
        }
        if lines.left == 0 {
            let _ = send.send(None);
        }
    };
    thread::Builder::new().name("gnntop far output".to_owned()).spawn(read).map(|_| ())
}

/// The lines of an output, until there were too many bytes.
struct Lines<R> {
    from: BufReader<R>,
    is_error: bool,
    left: usize,
}

impl<R: Read> Lines<R> {
    fn next(&mut self) -> Option<SaidLine> {
        let mut line = Vec::new();
        self.read(&mut line, MAX_LINE);
        if line.is_empty() {
            return None;
        }
        let mut is_cut = !line.ends_with(b"\n") && line.len() == MAX_LINE;
        if is_cut {
            let mut rest = vec![];
            self.read(&mut rest, usize::MAX);
            is_cut = !matches!(rest.as_slice(), [] | [b'\n']);
        }
        let text = clean(line.strip_suffix(b"\n").unwrap_or(&line).trim_ascii_end());
        Some(SaidLine { text, is_error: self.is_error, is_cut })
    }

    fn read(&mut self, line: &mut Vec<u8>, most: usize) {
        let most = most.min(self.left);
        // An output with an error has ended.
        let _ = self.from.by_ref().take(most as u64).read_until(b'\n', line);
        self.left -= line.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8]) -> (Vec<SaidLine>, usize) {
        let mut lines = Lines { from: BufReader::new(bytes), is_error: false, left: MAX_TOTAL };
        let all = std::iter::from_fn(|| lines.next()).collect();
        (all, lines.left)
    }

    #[test]
    fn lines_have_no_control_characters_and_an_end() {
        let long = [vec![b'x'; MAX_LINE + 7], b"\nlast".to_vec()].concat();
        let (said, left) = lines(&[b"a\x1b]0;b\x07\xff\r\n\n", long.as_slice()].concat());
        let texts: Vec<(&str, bool)> = said.iter().map(|line| (line.text.as_str(), line.is_cut)).collect();
        let long = "x".repeat(MAX_LINE);
        assert_eq!(texts, [("a\u{fffd}]0;b\u{fffd}\u{fffd}", false), ("", false), (&long, true), ("last", false)]);
        assert!(left > 0);
    }

    #[test]
    fn there_is_an_end_to_what_is_taken() {
        let (said, left) = lines(&b"x\n".repeat(MAX_TOTAL));
        assert_eq!((said.len(), left), (MAX_TOTAL / 2, 0));
        let (said, left) = lines(&vec![0; 2 * MAX_TOTAL]);
        assert_eq!((said.len(), said[0].is_cut, left), (1, true, 0));
    }

    fn shell(script: &str) -> (Vec<SaidLine>, CommandEnd) {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]);
        let mut said = Vec::new();
        let mut take = |line| {
            said.push(line);
            Ok(())
        };
        let interruption = Interruption::catch().unwrap();
        let end = run(shell, &interruption, &mut take, &mut |time| time >= Duration::from_secs(1)).unwrap();
        (said, end)
    }

    #[test]
    fn a_command_ends_by_itself_or_is_ended() {
        use std::os::unix::process::ExitStatusExt;
        let (said, end) = shell("echo a; exit 7");
        assert_eq!((said[0].text.as_str(), end), ("a", CommandEnd::Exit(Some(ExitStatus::from_raw(7 << 8)))));
        assert_eq!(shell("echo a; sleep 600; true").1, CommandEnd::TooLong);
        assert_eq!(shell("exec yes").1, CommandEnd::TooMuch);
    }
}

//! Commands that get their input through a pipe, such as `curl` with an address that holds a token: `ps` shows arguments to
//! everybody.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// Time between two looks whether a command has ended.
const INTERVAL: Duration = Duration::from_millis(20);

/// Runs a command with this input, and waits for it. One that has not ended after `limit` is ended.
///
/// # Errors
/// If it cannot be started, or is ended.
pub(super) fn run_with_input(mut command: Command, input: &[u8], limit: Duration) -> io::Result<ExitStatus> {
    let mut child = command.stdin(Stdio::piped()).process_group(0).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        let input = input.to_owned();
        // One that does not read holds up only this thread, until it is ended. It may also have closed its input.
        let _ = thread::Builder::new().spawn(move || drop(stdin.write_all(&input)));
    }
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if begin.elapsed() >= limit {
            // With what it has started.
            kill_process_group(Pid::from_child(&child), Signal::KILL)?;
            child.wait()?;
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("it has not ended after {} s", limit.as_secs()),
            ));
        }
        thread::sleep(INTERVAL);
    }
}

/// A line of the file that `curl --config` reads.
pub(super) fn curl_option(name: &str, value: &str) -> String {
    format!("{name} = \"{}\"\n", value.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_gets_its_input_and_its_failure_is_known() {
        let shell = |script: &str| {
            let mut shell = Command::new("sh");
            shell.args(["-c", script]);
            run_with_input(shell, b"input\n", Duration::from_secs(600)).unwrap()
        };
        assert!(shell("test \"$(cat)\" = input").success());
        assert_eq!(shell("exit 7").code(), Some(7), "and it need not read");
    }

    #[test]
    fn command_that_does_not_end_is_ended_with_what_it_has_started() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut sleep = Command::new("sh");
        sleep.args(["-c", "sleep 600 & sleep 600"]).stdout(writer);
        // More than a pipe takes, of which nothing is read.
        let error = run_with_input(sleep, &[b'x'; 1 << 20], Duration::ZERO).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(io::Read::read(&mut reader, &mut [0]).unwrap(), 0, "nothing is left that could write");
    }
}

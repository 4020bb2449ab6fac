//! Everything that the command line writes, in one place: lines to standard output and standard error, without the
//! control characters that could drive a terminal.

use std::io::{self, IsTerminal, Write};

use gnntop_wire::text;

/// Writes a line, or several, to standard output.
///
/// # Errors
/// If standard output cannot be written, or its pipe is closed; see [`is_broken_pipe`].
pub(super) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", sanitize(text))?;
    out.flush()
}

/// Writes bytes unchanged to standard output: only for text that we generate, such as a script for a shell.
///
/// # Errors
/// As [`print`].
pub(super) fn print_bytes(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// Writes a line to standard error. If that fails, there is nowhere left to report it.
pub(super) fn print_note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", sanitize(text));
}

/// Writes a line that says what went wrong to standard error.
pub(super) fn print_error(text: &str) {
    print_note(&format!("gnntop: {text}"));
}

/// Shows a line on standard error instead of the one shown before; an empty one only clears it. Nothing is written if
/// standard error is not a terminal.
pub(super) fn show_progress(text: &str) {
    let mut err = io::stderr().lock();
    if err.is_terminal() {
        let _ = write!(err, "\r\x1b[K{}", sanitize(text));
        let _ = err.flush();
    }
}

/// Prints clap's message, and returns its exit code.
pub(super) fn print_usage(error: &clap::Error) -> u8 {
    // Help may be piped into `head`; nothing is lost if it is cut.
    let text = error.render().to_string();
    let _ = if text.chars().all(|c| c == '\n' || !text::is_harmful(c)) {
        error.print()
    } else if error.use_stderr() {
        write!(io::stderr().lock(), "{}", sanitize(&text))
    } else {
        write!(io::stdout().lock(), "{}", sanitize(&text))
    };
    u8::try_from(error.exit_code()).unwrap_or(2)
}

/// Whether the error is that the reader of our output has closed it.
pub(super) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let of_io = |cause: &io::Error| cause.kind() == io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(of_io))
}

/// The text without control characters other than the ends of its lines, and without marks that change its direction.
fn sanitize(text: &str) -> String {
    text.chars().map(|c| if text::is_harmful(c) && c != '\n' { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_do_not_reach_the_terminal() {
        assert_eq!(sanitize("a\x1b[2Jb\x07\nc\u{9b}1m"), "a\u{fffd}[2Jb\u{fffd}\nc\u{fffd}1m");
        assert_eq!(sanitize("a\u{202e}b\u{2066}c"), "a\u{fffd}b\u{fffd}c");
    }

    #[test]
    fn a_closed_pipe_is_found_in_the_chain() {
        let closed = anyhow::Error::new(io::Error::from(io::ErrorKind::BrokenPipe)).context("cannot write");
        assert!(is_broken_pipe(&closed));
        assert!(!is_broken_pipe(&anyhow::anyhow!("broken pipe")));
    }
}

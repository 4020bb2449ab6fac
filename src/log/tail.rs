//! The end of the program's log, harmless to a terminal: its escape sequences and control characters are taken out, and of
//! a line that was written over and over (a progress bar) only the last state is left.

use std::ffi::OsStr;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use gnntop_sessions::{Error, PrivateDir};
use gnntop_wire::text;

/// Bytes read from the end of the log.
const TAIL_BYTES: u64 = 256 << 10;
/// Columns kept of a line, so that a megabyte on one line does no harm.
const LINE_CHARS: usize = 1000;

/// The name of the file with the output before that in the file `name`.
pub(super) fn older(name: &str) -> String {
    format!("{}.older.log", name.strip_suffix(".log").unwrap_or(name))
}

/// Why a log cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{} {error}", path.display())]
pub struct Unreadable {
    path: PathBuf,
    error: Error,
}

/// The last lines of the log at `path`.
///
/// # Errors
/// When the log cannot be read.
pub fn read(path: &Path) -> Result<Vec<String>, Unreadable> {
    let read = read_end(path).map(|(bytes, cut)| lines(&bytes, cut));
    read.map_err(|error| Unreadable { path: path.to_owned(), error })
}

/// The end of a file, and whether something was left out before it.
fn read_end(path: &Path) -> Result<(Vec<u8>, bool), Error> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name().and_then(OsStr::to_str)) else {
        return Err(Error::NotAFile);
    };
    let dir = PrivateDir::open(dir)?;
    let (newest, is_cut) = last_bytes(&dir, name, TAIL_BYTES)?;
    let room = TAIL_BYTES.saturating_sub(newest.len() as u64);
    if is_cut || room == 0 {
        return Ok((newest, is_cut));
    }
    // The newest file may have been begun a moment ago.
    let (before, is_cut) = last_bytes(&dir, &older(name), room).unwrap_or_default();
    Ok(([before, newest].concat(), is_cut))
}

/// The last bytes of a file, at most this many, and whether there are more before them.
fn last_bytes(dir: &PrivateDir, name: &str, most: u64) -> Result<(Vec<u8>, bool), Error> {
    let mut file = dir.read(name)?;
    let len = file.metadata()?.len();
    let start = len.saturating_sub(most);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok((bytes, start > 0))
}

fn lines(bytes: &[u8], cut: bool) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    // The first line of a cut text is a part of one.
    text.lines().skip(usize::from(cut)).map(clean).collect()
}

/// What a terminal would show of a line.
fn clean(line: &str) -> String {
    let shown = line.trim_end_matches('\r').rsplit('\r').next().unwrap_or(line);
    let mut chars = shown.chars();
    let mut out = String::new();
    let mut kept = 0;
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => skip_sequence(&mut chars),
            '\t' => out.push_str("    "),
            c if text::is_harmful(c) => (),
            c => out.push(c),
        }
        kept += 1;
        if kept == LINE_CHARS {
            break;
        }
    }
    out
}

/// Skips the rest of an escape sequence: `[…letter` (CSI), `]…BEL or ESC` (OSC), or one character.
fn skip_sequence(chars: &mut std::str::Chars<'_>) {
    match chars.next() {
        Some('[') => {
            chars.find(|c| ('\u{40}'..='\u{7e}').contains(c));
        }
        Some(']' | 'P' | '_' | '^') => {
            let end = chars.find(|c| matches!(c, '\u{7}' | '\u{1b}' | '\u{9c}'));
            if end == Some('\u{1b}') {
                chars.next();
            }
        }
        _ => (),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_are_taken_out() {
        assert_eq!(clean("\u{1b}[1;31mred\u{1b}[0m end"), "red end");
        assert_eq!(clean("\u{1b}]0;title\u{7}a\u{1b}]8;;x\u{1b}\\b\u{1b}c"), "ab");
        assert_eq!(clean("a\u{8}\u{7f}\u{9b}31mb\tc"), "a31mb    c");
        assert_eq!(clean("\u{1b}["), "");
        assert_eq!(clean("x\u{202e}y"), "xy");
    }

    #[test]
    fn progress_line_keeps_its_last_state() {
        assert_eq!(lines(b"step 1\rstep 2\rstep 3\nnext\r\n", false), ["step 3", "next"]);
    }

    #[test]
    fn a_cut_log_begins_with_a_whole_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let line = "0123456789abcde\n";
        std::fs::write(&path, line.repeat(20_000)).unwrap();
        let lines = read(&path).unwrap();
        assert_eq!(lines.len(), TAIL_BYTES as usize / 16 - 1);
        assert!(lines.iter().all(|l| l == line.trim_end()));
        assert!(read(&dir.path().join("none")).is_err());
    }

    #[test]
    fn older_file_is_read_too() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        std::fs::write(dir.path().join(older("a.log")), "one\ntw").unwrap();
        std::fs::write(&path, "o\nthree\n").unwrap();
        assert_eq!(read(&path).unwrap(), ["one", "two", "three"]);
    }

    #[test]
    fn binary_and_endless_lines_do_no_harm() {
        let lines = lines(&[0xff; 5000], false);
        assert_eq!(lines[0].chars().count(), LINE_CHARS);
    }
}

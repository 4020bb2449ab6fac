//! What a person meant by a command line that is not understood: the command with a similar name, or a program of their own
//! that needs `gnntop run --` before it.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Adds to an error about an unknown command what was meant, if that can be guessed.
pub(super) fn amend(error: &mut clap::Error, words: &[OsString], commands: &[&str]) {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return;
    }
    let unknown = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(name)) => name.clone(),
        _ => return,
    };
    let at = words.iter().position(|word| *word == *unknown).unwrap_or(words.len());
    if let Some(command) = own_program(&words[at..]) {
        error.remove(ContextKind::SuggestedSubcommand);
        let tip = format!("to start a program of your own: {command}").into();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    } else if let Some(name) = nearest(&unknown, commands) {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![name.to_owned()]));
    }
}

/// The command that starts these words as a program, if that is what they are: a Python script, a file, or a program of the path.
pub(super) fn own_program(words: &[OsString]) -> Option<String> {
    let first = words.first()?;
    let path = Path::new(first);
    let interpreter = if path.extension() == Some(OsStr::new("py")) {
        "python "
    } else if path.extension() == Some(OsStr::new("sh")) {
        "sh "
    } else if path.components().count() > 1 && path.is_file() || is_on_path(first) {
        ""
    } else {
        return None;
    };
    let words: Vec<String> = words.iter().map(|word| quoted(&word.to_string_lossy())).collect();
    Some(format!("gnntop run -- {interpreter}{}", words.join(" ")))
}

fn is_on_path(name: &OsStr) -> bool {
    let folders = env::var_os("PATH").unwrap_or_default();
    Path::new(name).components().count() == 1 && env::split_paths(&folders).any(|folder| folder.join(name).is_file())
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=,:+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// The name that one change makes of the word: a letter more, less, another one, or two in turn.
fn nearest<'a>(word: &str, names: &[&'a str]) -> Option<&'a str> {
    let word: Vec<char> = word.chars().collect();
    names.iter().copied().find(|name| is_one_change(&word, &name.chars().collect::<Vec<_>>()))
}

fn is_one_change(a: &[char], b: &[char]) -> bool {
    let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[same..], &b[same..]);
    match (a, b) {
        ([], [_]) | ([_], []) => true,
        ([first, second, rest @ ..], [other, another, more @ ..]) if (first, second) == (another, other) => {
            rest == more
        }
        ([_, rest @ ..], [_, more @ ..]) => rest == more || rest == b || a == more,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_one_change_away_is_found() {
        let names = ["run", "train", "attach", "list"];
        for (word, name) in [
            ("rn", Some("run")),
            ("rnu", Some("run")),
            ("attahc", Some("attach")),
            ("lists", Some("list")),
            ("xyz", None),
        ] {
            assert_eq!(nearest(word, &names), name, "{word}");
        }
    }

    #[test]
    fn program_is_told_from_a_training() {
        let command = |line: &str| own_program(&line.split('|').map(OsString::from).collect::<Vec<_>>());
        assert_eq!(command("train.py|--lr|0.1").as_deref(), Some("gnntop run -- python train.py --lr 0.1"));
        assert_eq!(command("train.py|a b").as_deref(), Some("gnntop run -- python train.py 'a b'"));
        assert_eq!(command("sh|-c|echo $x").as_deref(), Some("gnntop run -- sh -c 'echo $x'"));
        assert_eq!(command("pna|--steps|9"), None);
    }
}

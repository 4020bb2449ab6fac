//! Options of `gnntop run` after the name of a built-in training, among the training's own.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use super::super::usage::UsageError;

/// Takes an option without a value out of these words; whether it was there.
pub(super) fn take_flag(words: &mut Vec<OsString>, flag: &str) -> bool {
    let at = words.iter().position(|word| word == flag);
    at.map(|at| words.remove(at)).is_some()
}

/// Takes an option and its value out of these words. `needs` says what the value is.
pub(super) fn take_value(words: &mut Vec<OsString>, option: &str, needs: &str) -> anyhow::Result<Option<OsString>> {
    let value_of = |word: &OsString| {
        let rest = word.as_bytes().strip_prefix(option.as_bytes())?;
        (rest.is_empty() || rest[0] == b'=')
            .then(|| rest.strip_prefix(b"=").map(|value| OsStr::from_bytes(value).to_owned()))
    };
    let mut found = None;
    while let Some((at, value)) = words.iter().enumerate().find_map(|(at, word)| Some((at, value_of(word)?))) {
        words.remove(at);
        let value = match value {
            Some(value) => value,
            None if at < words.len() => words.remove(at),
            None => return Err(UsageError::with_message(format!("{option} needs {needs}"))),
        };
        if found.replace(value).is_some() {
            return Err(given_twice(option));
        }
    }
    Ok(found)
}

/// An option that may be given once was given again.
pub(super) fn given_twice(option: &str) -> anyhow::Error {
    UsageError::with_message(format!("{option} is given twice: give it once"))
}

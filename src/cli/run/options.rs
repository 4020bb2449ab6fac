//! Options of `gnntop run`: stacks of Python programs and the trackers that get their results, as variables in the program's environment, and options that stand after the
//! name of a built-in training, among the training's own.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use crate::cli::exit::UsageError;
use crate::cli::quantities;

/// How many stacks a second the program's Pythons take over the whole run.
const STACKS: &str = "GNNTOP_STACKS";
/// How long a phase lasts before its stack is taken, in milliseconds.
const STALL_MS: &str = "GNNTOP_STALL_MS";
const MOST_STACKS: i64 = gnntop_wire::Sampling::MAX_PER_SECOND as i64;

/// The trackers whose runs get results.
const TO: &str = "GNNTOP_TO";
/// Those that Python programs can write to; `python/gnntop/hooks/results.py` has the same.
const TRACKERS: [&str; 4] = ["wandb", "mlflow", "tensorboard", "trackio"];

/// Where results of Python programs go.
#[derive(Debug, clap::Args)]
pub(super) struct ResultArguments {
    /// When the program ends its run of these trackers, write figures, findings and the report there [default: GNNTOP_TO, else
    /// none]
    #[arg(long, value_name = "TRACKER,...", value_delimiter = ',', value_parser = TRACKERS)]
    to: Vec<String>,
}

impl ResultArguments {
    /// Variables for the program's Pythons.
    ///
    /// # Errors
    /// Results are asked for of a built-in training, which has no tracker.
    pub(super) fn variables(&self, is_built_in: bool) -> anyhow::Result<Option<(&'static str, OsString)>> {
        if is_built_in && !self.to.is_empty() {
            let why = "--to needs a Python program that has such a run: gnntop run --to wandb -- python train.py";
            return Err(UsageError::with_message(why));
        }
        Ok((!self.to.is_empty()).then(|| (TO, self.to.join(",").into())))
    }
}

/// Stacks of Python programs.
#[derive(Debug, clap::Args)]
pub(super) struct StackArguments {
    /// Sample N Python stacks a second over the whole run, to see where the time goes [0: off]
    #[arg(
        long, value_name = "N", default_value_t = 0, hide_default_value = true,
        value_parser = clap::value_parser!(u32).range(..=MOST_STACKS)
    )]
    stacks: u32,
    /// Take the Python stack of a phase that takes twice its p99, but at least TIME [default: 50ms; 0: never]
    #[arg(long, value_name = "TIME", value_parser = quantities::parse_duration)]
    stall: Option<Duration>,
}

impl StackArguments {
    /// Variables for the program's Pythons.
    ///
    /// # Errors
    /// Stacks are asked for of a built-in training, which has none.
    pub(super) fn variables(&self, is_built_in: bool) -> anyhow::Result<Vec<(&'static str, OsString)>> {
        let stacks = (self.stacks > 0).then(|| (STACKS, self.stacks.to_string().into()));
        let stall = self.stall.map(|least| (STALL_MS, least.as_millis().to_string().into()));
        let name = if stacks.is_some() { "--stacks" } else { "--stall" };
        let variables: Vec<_> = stacks.into_iter().chain(stall).collect();
        if is_built_in && !variables.is_empty() {
            let why = format!("{name} needs a Python program: gnntop run {name} ... -- python train.py");
            return Err(UsageError::with_message(why));
        }
        Ok(variables)
    }
}

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

/// Takes an option out of these words, and the word after it where that is its value; empty where it has none.
pub(super) fn take_optional_value(
    words: &mut Vec<OsString>,
    option: &str,
    is_value: impl Fn(&OsStr) -> bool,
) -> Option<OsString> {
    let at = words.iter().position(|word| word.as_bytes().strip_prefix(option.as_bytes()).is_some_and(ends_name))?;
    let word = words.remove(at);
    if let Some(value) = word.as_bytes()[option.len()..].strip_prefix(b"=") {
        return Some(OsStr::from_bytes(value).to_owned());
    }
    let has_value = words.get(at).is_some_and(|next| is_value(next));
    Some(if has_value { words.remove(at) } else { OsString::new() })
}

fn ends_name(rest: &[u8]) -> bool {
    rest.is_empty() || rest[0] == b'='
}

/// Whether a word is the address of something on the network.
pub(super) fn is_address(word: &OsStr) -> bool {
    word.as_bytes().starts_with(b"http://") || word.as_bytes().starts_with(b"https://")
}

/// An option that may be given once was given again.
pub(super) fn given_twice(option: &str) -> anyhow::Error {
    UsageError::with_message(format!("{option} is given twice: give it once"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_value_is_taken_only_where_it_is_one() {
        let take = |words: &[&str]| {
            let mut words: Vec<OsString> = words.iter().map(OsString::from).collect();
            (take_optional_value(&mut words, "--otlp", is_address), words.len())
        };
        assert_eq!(take(&["pna", "--otlp", "http://a"]), (Some("http://a".into()), 1));
        assert_eq!(take(&["pna", "--otlp=http://a", "b"]), (Some("http://a".into()), 2));
        assert_eq!(take(&["pna", "--otlp", "--steps"]), (Some("".into()), 2));
        assert_eq!(take(&["pna", "--otlp"]), (Some("".into()), 1));
        assert_eq!(take(&["pna", "--otlpx", "http://a"]), (None, 3));
    }

    #[test]
    fn stack_options_become_environment_variables() {
        let asked = StackArguments { stacks: 0, stall: Some(Duration::from_secs(1)) };
        assert_eq!(asked.variables(false).unwrap(), [(STALL_MS, "1000".into())]);
        assert!(asked.variables(true).unwrap_err().to_string().starts_with("--stall needs a Python program"));
    }
}

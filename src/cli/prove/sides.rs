//! The two commands that are compared.

use super::super::exit::UsageError;
use super::arguments::ProveArguments;

/// Their names, in sentences and of files.
pub(super) const NAMES: [&str; 2] = ["baseline", "candidate"];

/// What is run on each side, the baseline first.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sides {
    /// Program and arguments.
    pub words: [Vec<String>; 2],
    /// What it is called in the result.
    pub titles: [String; 2],
}

impl Sides {
    pub(super) fn new(arguments: &ProveArguments) -> anyhow::Result<Self> {
        if let (Some(baseline), Some(candidate)) = (&arguments.baseline, &arguments.candidate) {
            let commands = [baseline, candidate];
            let shell = |command: &String| vec!["sh".to_owned(), "-c".to_owned(), command.clone()];
            return Ok(Self { words: commands.map(shell), titles: commands.map(Clone::clone) });
        }
        let set = arguments.set.as_deref().unwrap_or_default();
        let (name, values) = parse_set(set)?;
        Ok(Self {
            words: values.map(|value| with_setting(&arguments.program, name, value)),
            titles: values.map(|value| format!("{name}={value}")),
        })
    }
}

/// The name and both values of `NAME=A,B`.
fn parse_set(text: &str) -> anyhow::Result<(&str, [&str; 2])> {
    let parts = text.split_once('=').and_then(|(name, values)| Some((name, values.split_once(',')?)));
    match parts {
        Some((name, (a, b))) if !name.is_empty() && !b.contains(',') => Ok((name.trim_start_matches('-'), [a, b])),
        _ => Err(UsageError::with_message(format!(
            "--set takes a name and two values, such as num-workers=0,4, not `{text}`; for more values see gnntop study"
        ))),
    }
}

/// The program with an environment variable, if the name is in capitals, or else with an option: in its place if the
/// program has it already.
fn with_setting(program: &[String], name: &str, value: &str) -> Vec<String> {
    let is_variable = name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    if is_variable {
        return ["env".to_owned(), format!("{name}={value}")].iter().chain(program).cloned().collect();
    }
    let option = format!("--{name}");
    let mut words = program.to_vec();
    let together = format!("{option}=");
    if let Some(word) = words.iter_mut().find(|word| word.starts_with(&together)) {
        *word = format!("{together}{value}");
    } else if let Some(at) = words.iter().position(|word| *word == option).filter(|at| at + 1 < words.len()) {
        value.clone_into(&mut words[at + 1]);
    } else {
        words.extend([option, value.to_owned()]);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn with_setting_replaces_or_appends_an_option() {
        let with = |text: &str| with_setting(&words(text), "num-workers", "4").join(" ");
        assert_eq!(with("python t.py"), "python t.py --num-workers 4");
        assert_eq!(with("python t.py --num-workers 0 --epochs 1"), "python t.py --num-workers 4 --epochs 1");
        assert_eq!(with("python t.py --num-workers=0"), "python t.py --num-workers=4");
    }

    #[test]
    fn with_setting_in_capitals_is_an_environment_variable() {
        assert_eq!(
            with_setting(&words("python t.py"), "OMP_NUM_THREADS", "2").join(" "),
            "env OMP_NUM_THREADS=2 python t.py"
        );
    }

    #[test]
    fn parse_set_takes_two_values() {
        assert_eq!(parse_set("--num-workers=0,4").unwrap(), ("num-workers", ["0", "4"]));
        for text in ["", "a", "a=1", "=1,2", "a=1,2,3"] {
            assert!(parse_set(text).is_err(), "{text}");
        }
    }
}

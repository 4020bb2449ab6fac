//! Facts about a session. What readers know is a kind with fields; everything else is the program's own, whatever it is
//! called.

use std::fmt;

use crate::goal::{Goal, GoalUnit};

/// A fact about a session. Of several about the same ([`Fact::key`]), the newest counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// The program's own. It is shown and means nothing, whatever it is called.
    Other {
        /// What it is about.
        key: String,
        /// What it says.
        text: String,
    },
    /// What the program is built on.
    Framework(Framework),
    /// A phase is not measured directly but inferred.
    Inferred {
        /// The phase.
        phase: String,
        /// How, for people.
        how: String,
    },
    /// The program resumes from a checkpoint.
    Resumed {
        /// Steps of the run before the checkpoint.
        steps: u64,
    },
    /// Something is not in the session.
    NotRecorded {
        /// What, for people.
        what: String,
        /// How much of it, for people.
        amount: String,
    },
    /// Why the program died. Its keeper adds that.
    Died {
        /// The cause as a keyword, such as `out-of-memory`.
        cause: String,
        /// The cause in one paragraph.
        text: String,
    },
    /// Stacks could not be read.
    NoStacks {
        /// Why, for people.
        why: String,
    },
    /// What the program does with its model.
    Mode(Mode),
    /// Threads that it computes with.
    ComputeThreads(u64),
    /// Workers of each of its loaders; with none, the thread that asks for a batch makes it.
    LoaderWorkers(u64),
    /// What the model's parameters are.
    Parameters {
        /// The type of most of them, such as `float32`.
        number_type: String,
        /// The share of them, in percent, that is in embeddings whose gradients have a row for each of theirs.
        dense_embeddings: u64,
    },
    /// Times are means of this many steps in a row: what one of them took alone is not known.
    MeanOfSteps(u64),
    /// How far the run is meant to go.
    Goal {
        /// How far.
        goal: Goal,
        /// Who says so, for people: `--goal`, or the part of the program.
        by: String,
    },
    /// What gnntop notes for people.
    Note {
        /// What it is about.
        key: String,
        /// What it says.
        text: String,
    },
}

/// What a goal in steps is in the stream.
const GOAL_IN_STEPS: u8 = 12;

/// What a fact is about, in the order in which facts are shown.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FactKey {
    title: String,
    kind: u8,
}

impl FactKey {
    /// What the fact is about, for people: `framework`, `inferred forward`, or the key of a fact of the program's own, which
    /// may be the same.
    pub fn title(&self) -> &str {
        &self.title
    }
}

impl Fact {
    /// [`NotRecorded`](Self::NotRecorded) of a session that could not be written at first: its amount is their number.
    pub const FIRST_STEPS: &str = "steps before anything could be written";

    /// What it is about.
    pub fn key(&self) -> FactKey {
        let title = match self {
            Self::Other { key, .. } | Self::Note { key, .. } => key.clone(),
            Self::Framework(_) => "framework".to_owned(),
            Self::Inferred { phase, .. } => format!("inferred {phase}"),
            Self::Resumed { .. } => "resumed after steps".to_owned(),
            Self::NotRecorded { what, .. } => format!("not recorded: {what}"),
            Self::Died { .. } => "died".to_owned(),
            Self::NoStacks { .. } => "stacks".to_owned(),
            Self::Mode(_) => "mode".to_owned(),
            Self::ComputeThreads(_) => "compute threads".to_owned(),
            Self::LoaderWorkers(_) => "loader workers".to_owned(),
            Self::MeanOfSteps(_) => "steps with one mean time".to_owned(),
            Self::Parameters { .. } => "model parameters".to_owned(),
            Self::Goal { .. } => "goal".to_owned(),
        };
        // One goal replaces the other, whatever it counts.
        let kind = if matches!(self, Self::Goal { .. }) { GOAL_IN_STEPS } else { self.fields().kind };
        FactKey { title, kind }
    }

    /// What it says, for people.
    pub fn text(&self) -> String {
        match self {
            Self::Framework(framework) => framework.to_string(),
            Self::Resumed { steps: number }
            | Self::ComputeThreads(number)
            | Self::LoaderWorkers(number)
            | Self::MeanOfSteps(number) => number.to_string(),
            Self::Mode(mode) => mode.as_str().to_owned(),
            Self::Parameters { number_type, dense_embeddings } if *dense_embeddings > 0 => {
                format!("{number_type}, {dense_embeddings} % of them in dense embeddings")
            }
            Self::Goal { goal, by } if by.is_empty() => goal.to_string(),
            Self::Goal { goal, by } => format!("{goal} ({by})"),
            _ => self.fields().text.to_owned(),
        }
    }

    /// Its fields in the stream.
    pub(crate) fn fields(&self) -> FactFields<&str> {
        let (kind, about, text, number) = match self {
            Self::Other { key, text } => (0, key.as_str(), text.as_str(), 0),
            Self::Framework(Framework { name, version }) => (1, name.as_str(), version.as_str(), name.code()),
            Self::Inferred { phase, how } => (2, phase.as_str(), how.as_str(), 0),
            Self::Resumed { steps } => (3, "", "", *steps),
            Self::NotRecorded { what, amount } => (4, what.as_str(), amount.as_str(), 0),
            Self::Died { cause, text } => (5, cause.as_str(), text.as_str(), 0),
            Self::NoStacks { why } => (6, "", why.as_str(), 0),
            Self::Note { key, text } => (7, key.as_str(), text.as_str(), 0),
            Self::Mode(mode) => (8, "", "", *mode as u64),
            Self::ComputeThreads(threads) => (9, "", "", *threads),
            Self::LoaderWorkers(workers) => (10, "", "", *workers),
            Self::MeanOfSteps(steps) => (11, "", "", *steps),
            Self::Goal { goal: Goal { unit: GoalUnit::Steps, number }, by } => {
                (GOAL_IN_STEPS, "", by.as_str(), *number)
            }
            Self::Goal { goal: Goal { unit: GoalUnit::Epochs, number }, by } => (13, "", by.as_str(), *number),
            Self::Parameters { number_type, dense_embeddings } => (14, "", number_type.as_str(), *dense_embeddings),
        };
        FactFields { kind, about, text, number }
    }
}

/// What a fact is in the stream.
pub(crate) struct FactFields<T> {
    pub(crate) kind: u8,
    pub(crate) about: T,
    pub(crate) text: T,
    pub(crate) number: u64,
}

impl From<FactFields<String>> for Fact {
    /// The fact with these fields. A kind of a newer version is taken for one of the program's own.
    fn from(FactFields { kind, about, text, number }: FactFields<String>) -> Self {
        match kind {
            1 => Self::Framework(Framework { name: FrameworkName::from_code(number, about), version: text }),
            2 => Self::Inferred { phase: about, how: text },
            3 => Self::Resumed { steps: number },
            4 => Self::NotRecorded { what: about, amount: text },
            5 => Self::Died { cause: about, text },
            6 => Self::NoStacks { why: text },
            7 => Self::Note { key: about, text },
            8 => Self::Mode(if number == Mode::Inference as u64 { Mode::Inference } else { Mode::Training }),
            9 => Self::ComputeThreads(number),
            10 => Self::LoaderWorkers(number),
            11 => Self::MeanOfSteps(number),
            GOAL_IN_STEPS => Self::Goal { goal: Goal { unit: GoalUnit::Steps, number }, by: text },
            13 => Self::Goal { goal: Goal { unit: GoalUnit::Epochs, number }, by: text },
            14 => Self::Parameters { number_type: text, dense_embeddings: number },
            _ => Self::Other { key: about, text },
        }
    }
}

/// What a program does with its model. It trains it unless a fact says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It trains it.
    Training = 0,
    /// It only runs it: its steps are batches, or calls.
    Inference = 1,
}

impl Mode {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Training => "training",
            Self::Inference => "inference",
        }
    }
}

/// What a program is built on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Framework {
    /// Its name.
    pub name: FrameworkName,
    /// Its version, empty where unknown.
    pub version: String,
}

impl From<&str> for Framework {
    /// What a launcher or hook calls so, such as `PyTorch 2.9.1`: what follows the last space is a version if it begins with a
    /// digit.
    fn from(text: &str) -> Self {
        let is_version = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
        let (name, version) = text.rsplit_once(' ').filter(|(_, last)| is_version(last)).unwrap_or((text, ""));
        let known = [FrameworkName::Torch, FrameworkName::Python].into_iter().find(|known| known.as_str() == name);
        let name = known.unwrap_or_else(|| FrameworkName::Other(name.to_owned()));
        Self { name, version: version.to_owned() }
    }
}

impl fmt::Display for Framework {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let space = if self.version.is_empty() { "" } else { " " };
        write!(f, "{}{space}{}", self.name.as_str(), self.version)
    }
}

/// The name of what a program is built on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameworkName {
    /// PyTorch.
    Torch,
    /// Python. A framework may be loaded later.
    Python,
    /// Anything else, by its name.
    Other(String),
}

impl FrameworkName {
    fn as_str(&self) -> &str {
        match self {
            Self::Torch => "PyTorch",
            Self::Python => "Python",
            Self::Other(name) => name,
        }
    }

    fn code(&self) -> u64 {
        match self {
            Self::Other(_) => 0,
            Self::Torch => 1,
            Self::Python => 2,
        }
    }

    /// The name with this number; the text for numbers of newer versions.
    fn from_code(code: u64, name: String) -> Self {
        match code {
            1 => Self::Torch,
            2 => Self::Python,
            _ => Self::Other(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn framework_is_parsed_with_version() {
        let texts =
            ["PyTorch 2.9.1+cu126", "Python 3.14.0", "candle 0.9", "none", "my own", "PyTorch", "pytorch 2", ""];
        let framework = |name, version: &str| Framework { name, version: version.to_owned() };
        let other = |name: &str| FrameworkName::Other(name.to_owned());
        let expected = [
            framework(FrameworkName::Torch, "2.9.1+cu126"),
            framework(FrameworkName::Python, "3.14.0"),
            framework(other("candle"), "0.9"),
            framework(other("none"), ""),
            framework(other("my own"), ""),
            framework(FrameworkName::Torch, ""),
            framework(other("pytorch"), "2"),
            framework(other(""), ""),
        ];
        for (text, expected) in texts.into_iter().zip(expected) {
            assert_eq!(Framework::from(text), expected);
            assert_eq!(expected.to_string(), text);
        }
    }

    #[test]
    fn program_fact_is_never_about_the_same_as_another_kind() {
        let of_kind = |kind, number| Fact::from(FactFields { kind, about: "a".into(), text: "b".into(), number });
        let own = |key: &FactKey| Fact::Other { key: key.title().to_owned(), text: "b".into() };
        for kind in 1..=14 {
            let key = of_kind(kind, 1).key();
            assert!(key != own(&key).key() && key.title() == own(&key).key().title(), "{key:?}");
        }
        let unknown = [0, 15, 255].map(|kind| of_kind(kind, 1));
        assert_eq!(unknown, [0; 3].map(|_| Fact::Other { key: "a".into(), text: "b".into() }));
        assert_eq!(of_kind(1, 3).text(), "a b", "a newer framework keeps its name");
        assert_eq!((of_kind(12, 9).key(), of_kind(12, 9).text()), (of_kind(13, 1).key(), "9 steps (b)".to_owned()));
        assert_eq!(of_kind(1, 1).key(), of_kind(1, 2).key(), "a program has one framework");
    }
}

//! How far a run is meant to go.

use std::fmt;
use std::str::FromStr;

/// How far a run is meant to go, counted from its beginning, with what was done before a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Goal {
    /// What is counted.
    pub unit: GoalUnit,
    /// How many.
    pub number: u64,
}

/// What a goal counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoalUnit {
    /// Steps.
    Steps,
    /// Epochs.
    Epochs,
}

impl GoalUnit {
    /// Its name, in the plural.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::Epochs => "epochs",
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.number, self.unit.as_str())
    }
}

impl FromStr for Goal {
    type Err = &'static str;

    /// Reads `20000`, `20000 steps` or `10ep`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORMS: &str = "give steps, such as 20000, or epochs, such as 10ep";
        let text = text.trim();
        let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
        let unit = match unit.trim() {
            "" | "step" | "steps" => GoalUnit::Steps,
            "ep" | "epoch" | "epochs" => GoalUnit::Epochs,
            _ => return Err(FORMS),
        };
        let number = digits.parse().ok().filter(|number| *number > 0).ok_or(FORMS)?;
        Ok(Self { unit, number })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_epochs_are_read() {
        let goal = |unit, number| Ok(Goal { unit, number });
        assert_eq!("20000".parse(), goal(GoalUnit::Steps, 20_000));
        assert_eq!(" 7 steps ".parse(), goal(GoalUnit::Steps, 7));
        assert_eq!("10ep".parse(), goal(GoalUnit::Epochs, 10));
        assert_eq!("1 epoch".parse(), goal(GoalUnit::Epochs, 1));
        for wrong in ["", "0", "ep", "10 hours", "-3", "1e6", "99999999999999999999"] {
            assert!(wrong.parse::<Goal>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn goal_reads_as_it_is_written() {
        for text in ["20000 steps", "10 epochs"] {
            assert_eq!(text.parse::<Goal>().unwrap().to_string(), text);
        }
    }
}

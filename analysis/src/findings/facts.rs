//! The numbers of a finding: sentences write them from here, so that a sentence and its number cannot differ.

use std::fmt;

use serde::Serialize;

use crate::figures::Unit;

/// A number that a finding states.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fact {
    /// What it is: the name of a figure where the catalogue has it, else a word of the finding's own, such as `usual`.
    pub name: &'static str,
    /// The number.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.unit.format(self.value))
    }
}

/// The numbers of a finding, each noted as a sentence takes it up.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts(Vec<Fact>);

impl Facts {
    /// Notes a duration in nanoseconds, and gives it for a sentence.
    pub fn time(&mut self, name: &'static str, ns: f64) -> Fact {
        self.note(name, ns.max(0.0), Unit::Time)
    }

    /// The same of a share from 0 to 1.
    pub fn share(&mut self, name: &'static str, share: f64) -> Fact {
        self.note(name, share, Unit::Share)
    }

    /// The same of a number of things.
    pub fn count(&mut self, name: &'static str, count: u64) -> Fact {
        self.note(name, count as f64, Unit::Count)
    }

    /// Notes how many times something is something else, and gives it as a number, whose digits the sentence chooses.
    pub fn ratio(&mut self, name: &'static str, ratio: f64) -> f64 {
        self.note(name, ratio, Unit::Number).value
    }

    fn note(&mut self, name: &'static str, value: f64, unit: Unit) -> Fact {
        let fact = Fact { name, value, unit };
        self.0.push(fact.clone());
        fact
    }
}

impl From<Facts> for Vec<Fact> {
    fn from(facts: Facts) -> Self {
        facts.0
    }
}

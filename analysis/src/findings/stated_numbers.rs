//! The numbers of a finding: sentences write them from here, so that a sentence and its number cannot differ.

use std::fmt;

use serde::Serialize;

use super::number::Number;
use crate::figures::FigureUnit;

/// A number that a finding states.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StatedNumber {
    /// What it is.
    pub name: Number,
    /// What it is of, where a finding states it of several: a phase, a span, a process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// The number.
    pub value: f64,
    /// Its unit.
    pub unit: FigureUnit,
}

impl fmt::Display for StatedNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.unit.format(self.value))
    }
}

/// The numbers of a finding, each noted as a sentence takes it up.
#[derive(Clone, Debug, Default)]
pub(super) struct StatedNumbers {
    all: Vec<StatedNumber>,
    of: Option<String>,
}

impl StatedNumbers {
    /// Notes a duration in nanoseconds, and gives it for a sentence.
    pub fn time(&mut self, name: Number, ns: f64) -> StatedNumber {
        self.note(name, ns.max(0.0), FigureUnit::Time)
    }

    /// The same of a share from 0 to 1.
    pub fn share(&mut self, name: Number, share: f64) -> StatedNumber {
        self.note(name, share, FigureUnit::Share)
    }

    /// The same of a number of things.
    pub fn count(&mut self, name: Number, count: u64) -> StatedNumber {
        self.note(name, count as f64, FigureUnit::Count)
    }

    /// The same of memory.
    pub fn bytes(&mut self, name: Number, bytes: f64) -> StatedNumber {
        self.note(name, bytes, FigureUnit::Bytes)
    }

    /// Notes a number without a unit, such as a ratio, and gives it as a number, whose digits the sentence chooses.
    pub fn number(&mut self, name: Number, value: f64) -> f64 {
        self.note(name, value, FigureUnit::Number).value
    }

    /// Notes a number in this unit.
    pub fn note(&mut self, name: Number, value: f64, unit: FigureUnit) -> StatedNumber {
        let fact = StatedNumber { name, of: self.of.clone(), value, unit };
        if !self.all.contains(&fact) {
            self.all.push(fact.clone());
        }
        fact
    }

    /// A part of a sentence whose numbers are of this.
    pub fn about<T>(&mut self, of: &str, part: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.of.replace(of.to_owned());
        let part = part(self);
        self.of = outer;
        part
    }
}

impl From<StatedNumbers> for Vec<StatedNumber> {
    fn from(facts: StatedNumbers) -> Self {
        facts.all
    }
}

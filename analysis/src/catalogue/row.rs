//! What a row of the catalogue is: a subject with its statistics, and how they are computed.

use std::cmp::Ordering;
use std::fmt;

use crate::figures::FigureUnit;

use super::context::Catalogue;
use super::measured::FigureResult;
use super::names::slug;
use super::statistic::Statistic;

/// A subject, or all subjects that differ in a name.
pub(super) struct Row {
    /// The subject's text. A word in capitals stands for a name: `step`, `counter.COUNTER`, `PHASE`; so do two with a point
    /// between them.
    pub subject: &'static str,
    /// What it is, for people.
    pub about: &'static str,
    /// Which names there are.
    pub names: Names,
    /// The statistics that a subject of this name has, in the order in which they are listed. Where one is a percentile,
    /// so is every other one.
    pub statistics: fn(name: &str) -> Vec<(Statistic, FigureUnit)>,
    /// Computes one of them.
    pub get: fn(context: &Catalogue<'_>, name: &str, statistic: Statistic) -> FigureResult,
}

/// The names that a word in capitals may stand for.
pub(super) enum Names {
    /// There is no such word.
    None,
    /// gnntop's own names: one for the documentation, and those of this run.
    Own(&'static str, fn(&Catalogue<'_>) -> Vec<String>),
    /// Names that the program gives; those of this run.
    Program(fn(&Catalogue<'_>) -> Vec<String>),
}

impl Row {
    /// The text before the name and the text after it; `None` of a subject without a name.
    pub fn name_affixes(&self) -> Option<(&'static str, &'static str)> {
        let from = self.subject.find(|c: char| c.is_ascii_uppercase())?;
        let to = self.subject.rfind(|c: char| c.is_ascii_uppercase())? + 1;
        Some((&self.subject[..from], &self.subject[to..]))
    }

    /// Whether the subject has no name in it.
    pub fn is_fixed(&self) -> bool {
        matches!(self.names, Names::None)
    }

    /// The subject with this name.
    pub fn text(&self, name: &str) -> String {
        match self.name_affixes() {
            Some((before, after)) => format!("{before}{name}{after}"),
            None => self.subject.to_owned(),
        }
    }

    /// The name in a text, if that is one of this row's subjects; gnntop's own names with `-` for `_` and in any case.
    pub fn parse_name(&self, text: &str) -> Option<String> {
        let own = |text: &str| text.replace(['-', ' '], "_").to_lowercase();
        let Some((before, after)) = self.name_affixes() else {
            return (own(text) == self.subject).then(String::new);
        };
        let name = text.strip_prefix(before)?.strip_suffix(after).filter(|name| !name.is_empty())?;
        let quoted = name.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).filter(|name| !name.is_empty());
        match &self.names {
            Names::Program(_) => Some(slug(quoted.unwrap_or(name))),
            _ if quoted.is_some() => None,
            _ => Some(own(name)).filter(|name| !(self.statistics)(name).is_empty()),
        }
    }

    /// The unit of a statistic of the subject with this name; `None` if it has no such statistic.
    pub fn unit(&self, name: &str, statistic: Statistic) -> Option<FigureUnit> {
        let is_like = |of: Statistic| of == statistic || of.quantile().is_some() && statistic.quantile().is_some();
        (self.statistics)(name).into_iter().find(|(of, _)| is_like(*of)).map(|(_, unit)| unit)
    }

    /// The names of the subject in this run; one empty name where it has none.
    pub fn list_names(&self, context: &Catalogue<'_>) -> Vec<String> {
        match self.names {
            Names::None => vec![String::new()],
            Names::Own(_, list) | Names::Program(list) => list(context).into_iter().map(|name| slug(&name)).collect(),
        }
    }
}

impl PartialEq for Row {
    fn eq(&self, other: &Self) -> bool {
        self.subject == other.subject
    }
}

impl Eq for Row {}

impl PartialOrd for Row {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Row {
    fn cmp(&self, other: &Self) -> Ordering {
        self.subject.cmp(other.subject)
    }
}

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.subject)
    }
}

/// Statistics as a list of words.
pub(super) fn listed(statistics: &[(Statistic, FigureUnit)]) -> String {
    statistics.iter().map(|(statistic, _)| statistic.to_string()).collect::<Vec<String>>().join(", ")
}

/// Percentiles, moments and extremes of durations.
pub(super) fn durations() -> Vec<(Statistic, FigureUnit)> {
    let percentiles = [50.0, 90.0, 99.0].map(|percentage| (Statistic::percentile(percentage), FigureUnit::Time));
    let rest = [Statistic::Mean, Statistic::Sd, Statistic::Min, Statistic::Max, Statistic::Total];
    percentiles
        .into_iter()
        .chain(rest.map(|of| (of, FigureUnit::Time)))
        .chain([(Statistic::Count, FigureUnit::Count)])
        .collect()
}

/// The same with a share.
pub(super) fn shared_durations() -> Vec<(Statistic, FigureUnit)> {
    durations().into_iter().chain([(Statistic::Share, FigureUnit::Share)]).collect()
}

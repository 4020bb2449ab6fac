//! The name of a figure: its subject and its statistic, as one text both ways.

use std::cmp::Reverse;
use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::figures::Unit;

use super::row::{Names, Row, slug};
use super::rows::all;
use super::statistic::Statistic;

/// The name of a figure, such as `forward.p99`, `process.rss.peak` or `counter.accuracy.last`.
///
/// A program's own name stands in it with `_` for each space. Where such a name reads like one of gnntop's, it is in
/// quotes: `"step".p99` is a phase or span that a program calls "step".
///
/// ```
/// use gnntop_analysis::catalogue::FigureId;
///
/// let id: FigureId = "data wait.p99".parse().unwrap();
/// assert_eq!(id.to_string(), "data_wait.p99");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FigureId {
    /// What it is about.
    pub(super) subject: Subject,
    /// Which number of that.
    pub(super) statistic: Statistic,
}

/// What a figure is about: a row of the catalogue, and the name in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Subject {
    /// The row's place in the catalogue.
    row: usize,
    /// What stands for the word in capitals; empty where there is none.
    name: String,
}

/// A text that is no figure's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FigureError {
    /// It has no statistic.
    #[error("give NAME.STATISTIC, such as forward.p99")]
    NoStatistic,
    /// Its statistic is unknown.
    #[error("unknown statistic: use p50 (any percentile), {}", super::statistic::words())]
    UnknownStatistic,
    /// There is such a subject, without this statistic.
    #[error("there is no figure {text}{}", nearest.as_ref().map(|near| format!("; did you mean {near}?")).unwrap_or_default())]
    Unknown {
        /// The text.
        text: String,
        /// The figure that is written most alike.
        nearest: Option<String>,
    },
}

impl FigureId {
    /// A statistic of a phase, or of the spans with this name.
    pub fn of_phase(name: &str, statistic: Statistic) -> Self {
        let row = all().position(|row| row.subject == "NAME").unwrap_or_default();
        Self { subject: Subject { row, name: slug(name) }, statistic }
    }

    /// The unit of its value, the same in every run.
    pub fn unit(&self) -> Unit {
        // A figure is only made where its row has the statistic.
        self.subject.row().unit(&self.subject.name, self.statistic).unwrap_or(Unit::Number)
    }

    /// Its statistic.
    pub fn statistic(&self) -> Statistic {
        self.statistic
    }

    /// What it is about, as text: `forward` of `forward.p99`.
    pub fn subject(&self) -> String {
        self.subject.text(&self.subject.name)
    }

    /// The name in it that a program gives, as in `counter.COUNTER`; `None` if gnntop named all of it.
    pub fn program_name(&self) -> Option<&str> {
        matches!(self.subject.row().names, Names::Program(_)).then_some(self.subject.name.as_str())
    }

    /// The figure of this row with this name; `None` if there is none.
    pub(super) fn new(row: usize, name: &str, statistic: Statistic) -> Option<Self> {
        all().nth(row)?.unit(name, statistic)?;
        Some(Self { subject: Subject { row, name: name.to_owned() }, statistic })
    }

    /// The same of another name.
    pub(super) fn with_name(&self, name: &str) -> Option<Self> {
        Self::new(self.subject.row, name, self.statistic)
    }

    pub(super) fn row(&self) -> &'static Row {
        self.subject.row()
    }

    pub(super) fn name(&self) -> &str {
        &self.subject.name
    }

    /// The figure that a subject and a statistic name: one without a name first, then the closest row.
    fn find(subject: &str, statistic: Statistic) -> Option<Self> {
        let fixed = all().position(|row| row.around_the_name().is_none() && is_same(row.subject, subject));
        if let Some(id) = fixed.and_then(|row| Self::new(row, "", statistic)) {
            return Some(id);
        }
        // `device.memory.PHASE` before `device.PHASE`; last of all phases and spans, which may have any name.
        let named = all().enumerate().filter_map(|(at, row)| Some((at, row, row.around_the_name()?)));
        let mut named: Vec<_> = named.collect();
        named.sort_by_key(|(_, row, (before, after))| {
            (Reverse(before.len() + after.len()), matches!(row.names, Names::Program(_)))
        });
        named.into_iter().find_map(|(at, row, (before, after))| {
            let name = subject.strip_prefix(before)?.strip_suffix(after).filter(|name| !name.is_empty())?;
            let quoted = name.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).filter(|name| !name.is_empty());
            match (quoted, &row.names) {
                (Some(quoted), Names::Program(_)) => Self::new(at, &slug(quoted), statistic),
                (Some(_), _) => None,
                (None, Names::Own(..)) => Self::new(at, &name.replace(['-', ' '], "_").to_lowercase(), statistic),
                (None, _) => Self::new(at, &slug(name), statistic),
            }
        })
    }
}

impl Subject {
    fn row(&self) -> &'static Row {
        // Only rows of the catalogue are ever subjects.
        all().nth(self.row).unwrap_or(&super::rows::SECTIONS[0].rows[0])
    }

    fn text(&self, name: &str) -> String {
        match self.row().around_the_name() {
            Some((before, after)) => format!("{before}{name}{after}"),
            None => self.row().subject.to_owned(),
        }
    }
}

/// Whether a subject without a name is written so, with `-` for `_` and in any case.
fn is_same(subject: &str, text: &str) -> bool {
    text.replace(['-', ' '], "_").to_lowercase() == subject
}

/// Subject and statistic; the point in `p99.9` does not separate them.
fn split(text: &str) -> Option<(&str, &str)> {
    let (subject, statistic) = text.rsplit_once('.')?;
    if !statistic.is_empty() && statistic.bytes().all(|byte| byte.is_ascii_digit()) {
        let at = subject.to_ascii_lowercase().rfind(".p")?;
        return Some((&text[..at], &text[at + 1..]));
    }
    Some((subject, statistic))
}

impl FromStr for FigureId {
    type Err = FigureError;

    fn from_str(text: &str) -> Result<Self, FigureError> {
        let (subject, statistic) = split(text.trim()).ok_or(FigureError::NoStatistic)?;
        let statistic = statistic.parse().map_err(|()| FigureError::UnknownStatistic)?;
        Self::find(subject, statistic).ok_or_else(|| {
            let subject = all().position(|row| is_same(row.subject, subject));
            let nearest = subject.and_then(|at| {
                let (statistic, _) = (all().nth(at)?.statistics)("").into_iter().next()?;
                Self::new(at, "", statistic)
            });
            FigureError::Unknown { text: text.to_owned(), nearest: nearest.map(|id| id.to_string()) }
        })
    }
}

impl fmt::Display for FigureId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{}", self.subject(), self.statistic);
        if text.parse().as_ref() == Ok(self) {
            return f.write_str(&text);
        }
        write!(f, "{}.{}", self.subject.text(&format!("\"{}\"", self.subject.name)), self.statistic)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_figure_is_parsed_from_its_text(at in 0..all().count(), pick: prop::sample::Index, name in ".{1,12}") {
            let row = all().nth(at).unwrap();
            let name = match row.names {
                Names::None => String::new(),
                Names::Own(..) => return Ok(()),
                Names::Program(_) => slug(&name),
            };
            let statistics = (row.statistics)(&name);
            let id = FigureId::new(at, &name, pick.get(&statistics).0).unwrap();
            prop_assert_eq!(id.to_string().parse(), Ok(id));
        }

        #[test]
        fn a_name_of_gnntops_own_can_be_a_programs(at in 0..all().count(), p in 0..100_000u32) {
            let row = all().nth(at).unwrap();
            let id = FigureId::of_phase(row.subject, Statistic::Percentile(p));
            prop_assert_eq!(id.to_string().parse(), Ok(id));
        }
    }

    #[test]
    fn gnntops_own_names_are_parsed_however_they_are_written() {
        let written = |text: &str| text.parse::<FigureId>().map(|id| id.to_string());
        for (text, canonical) in [
            ("Step.P99.9", "step.p99.9"),
            ("energy.per-step", "energy.per_step"),
            ("data wait.p50", "data_wait.p50"),
            ("process.rss.peak", "process.rss.peak"),
            ("process.rss.peak.last", "process.rss.peak.last"),
            ("gpu.0.util.mean", "gpu.0.util.mean"),
            ("rank.3.own.p50", "rank.3.own.p50"),
            ("finding.partial-batch.count", "finding.partial_batch.count"),
            ("\"step\".p99", "\"step\".p99"),
            ("\"forward\".p99", "forward.p99"),
        ] {
            assert_eq!(written(text), Ok(canonical.to_owned()));
        }
        assert_eq!(written("forward"), Err(FigureError::NoStatistic));
        assert_eq!(written("forward.p999"), Err(FigureError::UnknownStatistic));
        let hint = |text: &str| written(text).unwrap_err().to_string();
        assert_eq!(hint("heap.per_s"), "there is no figure heap.per_s; did you mean heap.peak?");
    }
}

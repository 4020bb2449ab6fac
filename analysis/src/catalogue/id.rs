//! The name of a figure: its subject and its statistic, as one text both ways.

use std::cmp::Reverse;
use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::figures::FigureUnit;

use super::names::slug;
use super::row::{Names, Row, listed};
use super::rows::{NAMED, all};
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
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FigureId {
    /// What it is about: a row of the catalogue...
    row: &'static Row,
    /// ...and what stands for the word in capitals; empty where there is none.
    name: String,
    /// Which number of that.
    statistic: Statistic,
    /// The same in every run.
    unit: FigureUnit,
}

/// A text that is no figure's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FigureError {
    /// It is no subject and statistic.
    #[error("{0:?} is no figure: give NAME.STATISTIC, such as forward.p99")]
    Incomplete(String),
    /// Its subject does not have the statistic.
    #[error("{subject} has no {statistic}: use {known}{}", nearest.map(|near| format!("; or {near}.{statistic}")).unwrap_or_default())]
    NoSuchStatistic {
        /// The subject.
        subject: String,
        /// The statistic, as it is written.
        statistic: String,
        /// Those that the subject has.
        known: String,
        /// A subject of almost the same name that has it.
        nearest: Option<&'static str>,
    },
}

impl FigureId {
    /// A statistic of a phase, or of the spans with this name; `None` if these have no such statistic.
    pub fn for_phase(name: &str, statistic: Statistic) -> Option<Self> {
        Self::new(&NAMED, &slug(name), statistic)
    }

    /// The unit of its value, the same in every run.
    pub fn unit(&self) -> FigureUnit {
        self.unit
    }

    /// Its statistic.
    pub fn statistic(&self) -> Statistic {
        self.statistic
    }

    /// What it is about, as text: `forward` of `forward.p99`.
    pub fn subject(&self) -> String {
        self.row.text(&self.name)
    }

    /// The figure of this row with this name; `None` if there is none.
    pub(super) fn new(row: &'static Row, name: &str, statistic: Statistic) -> Option<Self> {
        let unit = row.unit(name, statistic)?;
        Some(Self { row, name: name.to_owned(), statistic, unit })
    }

    pub(super) fn row(&self) -> &'static Row {
        self.row
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

/// The subject that a text names: where several rows match, the one that leaves the least of it to a name, and of phases
/// and spans, which may have any name, last.
fn subject(text: &str) -> Option<(&'static Row, String)> {
    let named = all().filter_map(|row| Some((row, row.parse_name(text)?)));
    named.min_by_key(|(row, name)| (name.len(), Reverse(matches!(row.names, Names::Own(..)))))
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

/// The text that is most like `wanted`, if it is almost the same.
pub(super) fn nearest<T: AsRef<str>>(wanted: &str, texts: impl IntoIterator<Item = T>) -> Option<T> {
    let edits = |text: T| (strsim::damerau_levenshtein(&loose(text.as_ref()), &loose(wanted)), text);
    let nearest = texts.into_iter().map(edits).min_by_key(|(edits, _)| *edits);
    nearest.filter(|(edits, text)| *edits <= (text.as_ref().chars().count() / 3).max(1)).map(|(_, text)| text)
}

/// A name with its variants of spelling unified.
pub(super) fn loose(name: &str) -> String {
    name.replace(['_', '-', ' '], "").to_lowercase()
}

impl FromStr for FigureId {
    type Err = FigureError;

    fn from_str(text: &str) -> Result<Self, FigureError> {
        let incomplete = || FigureError::Incomplete(text.to_owned());
        let (written, word) = split(text.trim()).ok_or_else(incomplete)?;
        let (row, name) = subject(written).ok_or_else(incomplete)?;
        let statistic = word.parse().ok();
        statistic.and_then(|statistic| Self::new(row, &name, statistic)).ok_or_else(|| {
            let has_it = |row: &&Row| statistic.is_some_and(|statistic| row.unit("", statistic).is_some());
            let others = all().filter(|row| row.is_fixed()).filter(has_it).map(|row| row.subject);
            FigureError::NoSuchStatistic {
                subject: row.text(&name),
                statistic: word.to_owned(),
                known: listed(&(row.statistics)(&name)).replacen("p50, p90, p99", "p50 (any percentile)", 1),
                nearest: nearest(written, others),
            }
        })
    }
}

impl fmt::Display for FigureId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{}", self.subject(), self.statistic);
        if text.parse().as_ref() == Ok(self) {
            return f.write_str(&text);
        }
        write!(f, "{}.{}", self.row.text(&format!("\"{}\"", self.name)), self.statistic)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows() -> impl Strategy<Value = &'static Row> {
        prop::sample::select(all().collect::<Vec<&Row>>())
    }

    proptest! {
        #[test]
        fn every_figure_is_parsed_from_its_text(row in rows(), pick: prop::sample::Index, name in ".{1,12}") {
            let name = match row.names {
                Names::None => String::new(),
                Names::Own(example, _) => example.to_owned(),
                Names::Program(_) => slug(&name),
            };
            let statistics = (row.statistics)(&name);
            let id = FigureId::new(row, &name, pick.get(&statistics).0).unwrap();
            prop_assert_eq!(id.to_string().parse(), Ok(id));
        }

        #[test]
        fn figure_text_round_trip_with_own_name_as_phase(row in rows(), p in 0..100_000u32) {
            let id = FigureId::for_phase(row.subject, Statistic::Percentile(p)).unwrap();
            prop_assert_eq!(id.to_string().parse(), Ok(id));
        }
    }

    #[test]
    fn own_names_are_parsed_in_any_spelling() {
        let written = |text: &str| text.parse::<FigureId>().map(|id| id.to_string());
        for (text, canonical) in [
            ("Step.P99.9", "step.p99.9"),
            ("energy.per-step", "energy.per_step"),
            ("data wait.p50", "data_wait.p50"),
            ("process.rss.peak", "process.rss.peak"),
            ("process.rss.peak.last", "process.rss.peak.last"),
            ("gpu.0.util.mean", "gpu.0.util.mean"),
            ("rank.3.own.p50", "rank.3.own.p50"),
            ("rank.3.all-reduce.share", "rank.3.all-reduce.share"),
            ("energy.epoch.2.total", "energy.epoch.2.total"),
            ("finding.partial-batch.count", "finding.partial_batch.count"),
            ("\"step\".p99", "\"step\".p99"),
            ("\"forward\".p99", "forward.p99"),
        ] {
            assert_eq!(written(text), Ok(canonical.to_owned()));
        }
        assert_eq!(written("forward"), Err(FigureError::Incomplete("forward".to_owned())));
    }

    #[test]
    fn wrong_statistic_error_lists_valid_ones() {
        let refused = |text: &str| text.parse::<FigureId>().unwrap_err().to_string();
        assert_eq!(refused("heap.max"), "heap has no max: use peak, last");
        assert_eq!(refused("process.rss.max"), "process.rss has no max: use mean, peak, min, last");
        assert_eq!(refused("device.memory.mean"), "device.memory has no mean: use peak, last");
        assert_eq!(refused("gpu.0.util.p99"), "gpu.0.util has no p99: use mean, max, min, last");
        assert_eq!(refused("counter.accuracy.p50"), "counter.accuracy has no p50: use last, mean, min, max, count");
        let of_a_phase = "p50 (any percentile), mean, sd, min, max, total, count, share";
        assert_eq!(refused("forward.p999"), format!("forward has no p999: use {of_a_phase}"));
        assert_eq!(refused("step.per_s"), format!("step has no per_s: use {of_a_phase}; or steps.per_s"));
        // What a program calls so has quotes.
        assert_eq!("\"heap\".max".parse::<FigureId>().unwrap().to_string(), "\"heap\".max");
    }
}

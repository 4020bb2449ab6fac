//! Figures by name: one, those of a subject, and all that a run has.

use std::collections::BTreeSet;

use gnntop_wire::phase::STANDARD;
use thiserror::Error;

use super::context::Catalogue;
use super::id::{FigureId, loose, nearest};
use super::measured::{AbsentFigure, Measured};
use super::row::{Names, Row};
use super::rows::{all, energy};
use super::statistic::Statistic;

/// A name that the run does not have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the recording has no {subject:?}; {hint}")]
pub struct UnknownName {
    /// The subject with the name.
    pub subject: String,
    /// The one that is written most alike, or those that the program gives.
    pub hint: String,
}

impl<'a> Catalogue<'a> {
    /// A figure.
    ///
    /// # Errors
    /// If the run does not have it, why.
    pub fn get(&self, id: &FigureId) -> Result<Measured, AbsentFigure> {
        if self.chosen_rows.is_some() && energy::ROWS.contains(id.row()) {
            return AbsentFigure::because("energy is known of the whole recording, not of these steps alone");
        }
        let found = (id.row().get)(self, id.name(), id.statistic())?;
        let (value, interval, population) = (found.value, found.interval, found.population);
        Ok(Measured { value, unit: id.unit(), interval, population })
    }

    /// The value of the figure with this text; `None` if there is none, or the run does not have it.
    pub fn value(&self, text: &str) -> Option<f64> {
        self.get(&text.parse().ok()?).ok().map(|measured| measured.value)
    }

    /// The figures of one subject, which is written as in the documentation, such as `heap.PHASE`. `name` stands for its
    /// word in capitals, exactly as the program gives it.
    pub fn subject<'c>(&'c self, subject: &str, name: &'c str) -> Subject<'c, 'a> {
        Subject { catalogue: self, row: all().find(|row| row.subject == subject), name }
    }

    /// Every figure that this run has, in the catalogue's order.
    pub fn list(&self) -> Vec<(FigureId, Measured)> {
        let mut known: Vec<FigureId> = Vec::new();
        for row in all() {
            for name in row.list_names(self) {
                let all: Vec<Statistic> = (row.statistics)(&name).into_iter().map(|(statistic, _)| statistic).collect();
                let others = all.iter().filter(|statistic| statistic.quantile().is_none());
                let percentiles = self.percentiles.iter().filter(|_| all.iter().any(|of| of.quantile().is_some()));
                known.extend(percentiles.chain(others).filter_map(|statistic| FigureId::new(row, &name, *statistic)));
            }
        }
        // Two names of a program may differ only in spaces; the first one is meant.
        let mut seen = BTreeSet::new();
        known.retain(|id| seen.insert(id.clone()));
        known.into_iter().filter_map(|id| self.get(&id).ok().map(|measured| (id, measured))).collect()
    }

    /// The figure as this run names it: a program's name exactly, or with case, `_`, `-` and spaces treated alike.
    ///
    /// # Errors
    /// If the run has no such name and gnntop knows none.
    pub fn resolve(&self, id: &FigureId) -> Result<FigureId, UnknownName> {
        let Names::Program(_) = id.row().names else { return Ok(id.clone()) };
        let known = id.row().list_names(self);
        let is_alike = |name: &&String| loose(name) == loose(id.name());
        let found = known.iter().find(|name| *name == id.name()).or_else(|| known.iter().find(is_alike));
        if let Some(renamed) = found.and_then(|name| FigureId::new(id.row(), name, id.statistic())) {
            return Ok(renamed);
        }
        let is_standard = STANDARD.iter().any(|phase| loose(phase) == loose(id.name()));
        if is_standard { Ok(id.clone()) } else { Err(self.unknown(id, &known)) }
    }

    fn unknown(&self, id: &FigureId, known: &[String]) -> UnknownName {
        let programs: Vec<String> = known.iter().map(|name| id.row().text(name)).collect();
        let others = all().filter(|row| !matches!(row.names, Names::Program(_)));
        let own = others.flat_map(|row| self.subjects(row, id)).collect::<Vec<String>>();
        let hint = match nearest(&id.subject(), programs.iter().chain(&own)) {
            Some(near) => format!("did you mean {near}?"),
            None if programs.is_empty() => "it has no such names".to_owned(),
            None => format!("there are {}", programs.join(", ")),
        };
        UnknownName { subject: id.subject(), hint }
    }

    /// The subjects of a row that have the statistic of this figure.
    fn subjects(&self, row: &Row, id: &FigureId) -> Vec<String> {
        let names = row.list_names(self).into_iter().filter(|name| row.unit(name, id.statistic()).is_some());
        names.map(|name| row.text(&name)).collect()
    }
}

/// The figures of one subject.
#[derive(Clone, Copy)]
pub struct Subject<'c, 'a> {
    catalogue: &'c Catalogue<'a>,
    row: Option<&'static Row>,
    name: &'c str,
}

impl Subject<'_, '_> {
    /// One of them.
    ///
    /// # Errors
    /// If the run does not have it, or no run does, why.
    pub fn get(&self, statistic: Statistic) -> Result<Measured, AbsentFigure> {
        let id = self.row.and_then(|row| FigureId::new(row, self.name, statistic));
        self.catalogue.get(&id.ok_or_else(|| AbsentFigure("there is no such figure".to_owned()))?)
    }

    /// The value of one of them; `None` where it is absent.
    pub fn value(&self, statistic: Statistic) -> Option<f64> {
        self.get(statistic).ok().map(|measured| measured.value)
    }

    /// The same as a whole number of nanoseconds, bytes or things.
    pub fn whole(&self, statistic: Statistic) -> Option<u64> {
        self.value(statistic).map(|value| value as u64)
    }
}

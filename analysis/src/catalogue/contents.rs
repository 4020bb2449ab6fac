//! The figures of one session or run, by name.

use std::collections::BTreeSet;

use gnntop_wire::phase::STANDARD;
use thiserror::Error;

use crate::energy::Assumptions;
use crate::findings::Findings;
use crate::ranks::Run;
use crate::store::Store;

use super::context::Context;
use super::id::{FigureId, loose, nearest};
use super::measured::{AbsentFigure, Measured};
use super::row::{Names, Row};
use super::rows::all;
use super::statistic::Statistic;

/// The figures of one session or run. Each is computed when it is asked for, and what several need only once.
pub struct Catalogue<'a> {
    context: Context<'a>,
    /// Those that are listed.
    percentiles: Vec<Statistic>,
}

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
    /// The figures of a session.
    pub fn new(store: &'a Store) -> Self {
        Self { context: Context::new(store), percentiles: [50.0, 90.0, 99.0].map(Statistic::percentile).to_vec() }
    }

    /// The figures of a run: those of the selected rank, and those over all ranks.
    pub fn with_run(run: &'a Run) -> Self {
        let mut of_run = Self::new(run.store());
        of_run.context.run = Some(run);
        of_run
    }

    /// Leaves this many steps at the start out.
    #[must_use]
    pub fn with_skipped_steps(mut self, skip: u64) -> Self {
        self.context.skip = skip;
        self
    }

    /// Lists these percentiles, from 0 to 100.
    #[must_use]
    pub fn with_percentiles(mut self, percentages: &[f64]) -> Self {
        self.percentiles = percentages.iter().map(|percentage| Statistic::percentile(*percentage)).collect();
        self
    }

    /// Computes energy and carbon under these assumptions.
    #[must_use]
    pub fn with_assumptions(mut self, assumptions: Assumptions) -> Self {
        self.context.assumptions = assumptions;
        self
    }

    /// Takes these for what was found in the run without the skipped steps, instead of looking again.
    #[must_use]
    pub fn with_findings(mut self, findings: Findings) -> Self {
        self.context.findings = findings.into();
        self
    }

    /// Compares a run with what one rank alone gets through in a second, in graphs or seeds.
    #[must_use]
    pub fn with_one_rank_per_s(mut self, one_rank_per_s: Option<f64>) -> Self {
        self.context.one_rank_per_s = one_rank_per_s;
        self
    }

    /// A figure.
    ///
    /// # Errors
    /// If the run does not have it, why.
    pub fn get(&self, id: &FigureId) -> Result<Measured, AbsentFigure> {
        let found = (id.row().get)(&self.context, id.name(), id.statistic())?;
        let (value, interval, population) = (found.value, found.interval, found.population);
        Ok(Measured { value, unit: id.unit(), interval, population })
    }

    /// Every figure that this run has, in the catalogue's order.
    pub fn list(&self) -> Vec<(FigureId, Measured)> {
        let mut known: Vec<FigureId> = Vec::new();
        for row in all() {
            for name in row.list_names(&self.context) {
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
        let known = id.row().list_names(&self.context);
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
        let names = row.list_names(&self.context).into_iter().filter(|name| row.unit(name, id.statistic()).is_some());
        names.map(|name| row.text(&name)).collect()
    }
}

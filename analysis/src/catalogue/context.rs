//! The figures of one session or run: what they are computed from, and what several of them need, computed at most once.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashSet;

use crate::energy::{Assumptions, EnergyBook, EnergyFigure, EnergyScope, Intensity, IntensityError, PhaseFigure};
use crate::findings::{Class, Judgement, classes, rank_findings};
use crate::ranks::{MAX_COMMON_STEPS, Rank, Ranks, Run, RunWork};
use crate::store::{
    BatchTotals, CounterSeries, Distribution, MarkTotals, SpanStatistics, StepRow, StepStatistics, Store,
};

use super::names::ByName;
use super::statistic::Statistic;
use super::work::{EpochTimes, StepsWork};

/// The periods of some steps, and what is in their batches.
pub(super) type Batches = (Distribution, BatchTotals);

/// The figures of one session or run. Each is computed when it is asked for, and what several need only once.
pub struct Catalogue<'a> {
    pub(super) store: &'a Store,
    run: Option<&'a Run>,
    /// Steps at the start that are left out.
    pub(super) skip: u64,
    /// The only steps that step figures are over, if these were chosen one by one.
    pub(super) chosen_rows: Option<Vec<StepRow<'a>>>,
    /// Those that are listed.
    pub(super) percentiles: Vec<Statistic>,
    assumptions: Assumptions,
    /// Graphs or seeds a second of one rank alone.
    pub(super) one_rank_per_s: Option<f64>,
    computed: Computed<'a>,
}

/// What several figures need, once it was asked for.
#[derive(Default)]
struct Computed<'a> {
    statistics: OnceCell<Cow<'a, StepStatistics>>,
    device: OnceCell<Option<StepStatistics>>,
    work: OnceCell<StepsWork>,
    epochs: OnceCell<EpochTimes>,
    classes: OnceCell<[Batches; 3]>,
    marks: OnceCell<Vec<(&'a str, MarkTotals)>>,
    marks_by_name: OnceCell<ByName<'a, MarkTotals>>,
    spans_by_name: OnceCell<[ByName<'a, &'a SpanStatistics>; 2]>,
    counters_by_name: OnceCell<ByName<'a, &'a CounterSeries>>,
    epochs_energy: OnceCell<Vec<(u64, bool, EnergyFigure)>>,
    energy: OnceCell<EnergyBook>,
    energy_scope: OnceCell<EnergyScope>,
    phases_energy: OnceCell<Vec<Vec<(&'a str, PhaseFigure)>>>,
    judgement: OnceCell<Judgement>,
    ranks: OnceCell<RunRanks<'a>>,
    ranks_work: OnceCell<RunWork>,
}

/// The ranks of a run.
pub(super) struct RunRanks<'a> {
    pub all: Ranks<'a>,
    pub running: Ranks<'a>,
    /// Of each of all ranks, without the steps that are left out.
    statistics: Vec<Cow<'a, StepStatistics>>,
}

impl<'a> RunRanks<'a> {
    fn new(run: &'a Run, skip: u64) -> Self {
        let all = run.ranks();
        let statistics = all.all().iter().map(|rank| rank.store.statistics_from(skip)).collect();
        Self { running: all.running(), all, statistics }
    }

    /// A rank by its number, and figures over its steps.
    pub fn get(&self, number: u32) -> Option<(&Rank<'a>, &StepStatistics)> {
        let at = self.all.all().iter().position(|rank| rank.place.rank == number)?;
        Some((&self.all.all()[at], &self.statistics[at]))
    }
}

impl<'a> Catalogue<'a> {
    /// The figures of a session.
    pub fn new(store: &'a Store) -> Self {
        Self {
            store,
            run: None,
            skip: 0,
            chosen_rows: None,
            percentiles: [50.0, 90.0, 99.0].map(Statistic::percentile).to_vec(),
            assumptions: Assumptions::default(),
            one_rank_per_s: None,
            computed: Computed::default(),
        }
    }

    /// The figures of a run: those of the selected rank, and those over all ranks.
    pub fn with_run(run: &'a Run) -> Self {
        let mut of_run = Self::new(run.store());
        of_run.run = Some(run);
        of_run
    }

    /// Leaves this many steps at the start out.
    #[must_use]
    pub fn with_skipped_steps(mut self, skip: u64) -> Self {
        self.skip = skip;
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
        self.assumptions = assumptions;
        self
    }

    /// Takes this for what was found, instead of looking again.
    #[must_use]
    pub fn with_judgement(mut self, judgement: Judgement) -> Self {
        self.computed.judgement = judgement.into();
        self
    }

    /// Computes figures on steps from these alone. Those on energy are absent then, since they are of a time.
    #[must_use]
    pub fn with_steps(mut self, rows: Vec<StepRow<'a>>) -> Self {
        self.chosen_rows = Some(rows);
        self
    }

    /// Compares a run with what one rank alone gets through in a second, in graphs or seeds.
    #[must_use]
    pub fn with_one_rank_per_s(mut self, one_rank_per_s: Option<f64>) -> Self {
        self.one_rank_per_s = one_rank_per_s;
        self
    }

    /// The session that figures are of.
    pub fn store(&self) -> &'a Store {
        self.store
    }

    /// The run that it belongs to, if that was given.
    pub fn run(&self) -> Option<&'a Run> {
        self.run
    }

    /// The assumptions on energy and carbon.
    pub fn assumptions(&self) -> &Assumptions {
        &self.assumptions
    }

    /// Figures over the steps, without those that are left out.
    pub fn statistics(&self) -> &StepStatistics {
        self.computed.statistics.get_or_init(|| match self.chosen_rows {
            Some(_) => Cow::Owned(StepStatistics::from_rows(self.rows())),
            None => self.store.statistics_from(self.skip),
        })
    }

    /// The same by the clock of the device; `None` without one.
    pub fn device_statistics(&self) -> Option<&StepStatistics> {
        let device = self.store.device()?;
        let kept = || {
            let first = (self.skip > 0).then(|| self.rows().next().map(|row| row.step()))?;
            let rows = first.into_iter().flat_map(|first| device.rows(first, gnntop_wire::StepId(u64::MAX)));
            Some(StepStatistics::from_rows(rows))
        };
        Some(self.computed.device.get_or_init(kept).as_ref().unwrap_or(device.statistics()))
    }

    /// The kept steps that are not left out, and that no profiler has slowed down.
    pub(super) fn rows(&self) -> impl DoubleEndedIterator<Item = StepRow<'a>> {
        let chosen = self.chosen_rows.iter().flatten().copied();
        let from = if self.chosen_rows.is_some() { u64::MAX } else { self.skip };
        chosen.chain(self.store.steps().rows(from..u64::MAX)).filter(|row| !row.is_traced())
    }

    /// The steps without getting their batches.
    pub(super) fn work(&self) -> &StepsWork {
        self.computed.work.get_or_init(|| StepsWork::new(self.store, self.rows()))
    }

    /// The epochs.
    pub(super) fn epochs(&self) -> &EpochTimes {
        self.computed
            .epochs
            .get_or_init(|| EpochTimes::new(self.store, self.store.steps().rows(self.skip..u64::MAX).next()))
    }

    /// The steps of a class.
    pub(super) fn class(&self, class: Class) -> &Batches {
        let all = self.computed.classes.get_or_init(|| {
            let mut all: [Batches; 3] = Default::default();
            let chosen: Option<HashSet<u64>> =
                self.chosen_rows.as_ref().map(|rows| rows.iter().map(StepRow::ordinal).collect());
            let is_chosen = |row: &StepRow<'_>| chosen.as_ref().is_none_or(|chosen| chosen.contains(&row.ordinal()));
            let all_classes = classes(self.store, self.skip..u64::MAX);
            for (row, of) in all_classes.into_iter().filter(|(row, _)| is_chosen(row)) {
                let (periods, totals) = &mut all[of as usize];
                periods.record(row.period_ns());
                totals.add(&row.batch(), row.period_ns());
            }
            all
        });
        &all[class as usize]
    }

    /// The marks by their text.
    pub fn marks(&self) -> &[(&'a str, MarkTotals)] {
        self.computed.marks.get_or_init(|| self.store.marks_by_text())
    }

    /// The marks with this text.
    pub(super) fn mark(&self, name: &str) -> Option<&MarkTotals> {
        self.computed
            .marks_by_name
            .get_or_init(|| self.marks().iter().map(|(text, marks)| (*text, marks.clone())).collect())
            .get(name)
    }

    /// The spans of this name; those of a phase where no others have it, since outside of all steps a phase is measured
    /// by its spans alone.
    pub(super) fn span(&self, name: &str) -> Option<&'a SpanStatistics> {
        let spans = |is_phase| self.store.spans().iter().filter(move |span| span.is_phase == is_phase);
        let by_name = |is_phase| spans(is_phase).map(|span| (self.store.name(span.name), span)).collect();
        let all = self.computed.spans_by_name.get_or_init(|| [false, true].map(by_name));
        all.iter().find_map(|by_name| by_name.get(name)).copied()
    }

    /// The counter of this name.
    pub(super) fn counter(&self, name: &str) -> Option<&'a CounterSeries> {
        let named = || self.store.counters().iter().map(|counter| (self.store.name(counter.name), counter)).collect();
        self.computed.counters_by_name.get_or_init(named).get(name).copied()
    }

    /// The energy of the newest epochs: each with its number, and whether all of its steps are in it.
    pub fn epochs_energy(&self) -> &[(u64, bool, EnergyFigure)] {
        self.computed
            .epochs_energy
            .get_or_init(|| self.store.epochs_energy(self.energy(), self.energy_scope(), self.skip))
    }

    /// Verdict and findings.
    pub fn judgement(&self) -> &Judgement {
        self.computed.judgement.get_or_init(|| {
            let judgement = Judgement::for_steps(self.store, self.skip..u64::MAX);
            match self.run {
                Some(run) => judgement.with_rank_findings(rank_findings(&run.ranks())),
                None => judgement,
            }
        })
    }

    /// The energy of the session.
    pub fn energy(&self) -> &EnergyBook {
        self.computed.energy.get_or_init(|| self.store.energy(&self.assumptions))
    }

    /// Energy in the steps by phase, of each component in their order.
    pub fn phases_energy(&self) -> &[Vec<(&'a str, PhaseFigure)>] {
        let of_all =
            || self.energy().components.iter().map(|component| self.store.energy_by_phase(component)).collect();
        self.computed.phases_energy.get_or_init(of_all)
    }

    /// The energy of the session, for what outlives the figures.
    pub fn into_energy(self) -> EnergyBook {
        self.computed.energy.into_inner().unwrap_or_else(|| self.store.energy(&self.assumptions))
    }

    /// All known components together, and the names of the others.
    pub fn total_energy(&self, scope: EnergyScope) -> Option<(EnergyFigure, Vec<&str>)> {
        self.energy().total(scope, self.store.session_ns())
    }

    /// Energy of the mean step.
    pub fn step_energy(&self) -> Option<EnergyFigure> {
        self.store.mean_step_energy(self.energy(), self.energy_scope(), self.skip)
    }

    /// How much carbon a joule costs.
    ///
    /// # Errors
    /// If that is unknown, why.
    pub fn carbon_intensity(&self) -> Result<Intensity, IntensityError> {
        self.store.carbon_intensity(self.energy(), &self.assumptions, self.energy_scope(), self.store.session_ns())
    }

    /// The scope that figures on energy are of where they do not name one.
    pub fn energy_scope(&self) -> EnergyScope {
        *self.computed.energy_scope.get_or_init(|| self.energy().shown_scope(self.store.session_ns()))
    }

    /// The ranks; `None` of a session alone.
    pub(super) fn ranks(&self) -> Option<&RunRanks<'a>> {
        let run = self.run.filter(|run| run.is_parallel())?;
        Some(self.computed.ranks.get_or_init(|| RunRanks::new(run, self.skip)))
    }

    /// What each running rank did in the steps that all of these have; `None` of a session alone.
    pub(super) fn ranks_work(&self) -> Option<&RunWork> {
        let ranks = self.ranks()?;
        Some(self.computed.ranks_work.get_or_init(|| ranks.running.work(self.skip, MAX_COMMON_STEPS)))
    }
}

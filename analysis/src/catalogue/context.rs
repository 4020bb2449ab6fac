//! What figures are computed from: a session or a run, and what several figures need, computed at most once.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::ops::Range;

use crate::energy::{Assumptions, EnergyBook, EnergyFigure, EnergyScope};
use crate::findings::{Class, Findings, Judgement, classes, rank_findings};
use crate::ranks::{MAX_COMMON_STEPS, Run, RunWork};
use crate::store::{BatchTotals, Distribution, MarkTotals, StepRow, StepStatistics, Store};

use super::work::{EpochTimes, StepsWork};

/// The periods of some steps, and what is in their batches.
pub(super) type Batches = (Distribution, BatchTotals);

/// What figures are computed from.
pub(super) struct Context<'a> {
    pub store: &'a Store,
    pub run: Option<&'a Run>,
    /// Steps at the start that are left out.
    pub skip: u64,
    pub assumptions: Assumptions,
    /// Graphs or seeds a second of one rank alone.
    pub one_rank_per_s: Option<f64>,
    statistics: OnceCell<Cow<'a, StepStatistics>>,
    device: OnceCell<Option<StepStatistics>>,
    work: OnceCell<StepsWork>,
    epochs: OnceCell<EpochTimes>,
    classes: OnceCell<[Batches; 3]>,
    marks: OnceCell<Vec<(&'a str, MarkTotals)>>,
    epochs_energy: OnceCell<Vec<(u64, bool, EnergyFigure)>>,
    energy: OnceCell<EnergyBook>,
    pub findings: OnceCell<Findings>,
    ranks: OnceCell<RunWork>,
}

impl<'a> Context<'a> {
    pub fn new(store: &'a Store) -> Self {
        Self {
            store,
            run: None,
            skip: 0,
            assumptions: Assumptions::default(),
            one_rank_per_s: None,
            statistics: OnceCell::new(),
            device: OnceCell::new(),
            work: OnceCell::new(),
            epochs: OnceCell::new(),
            classes: OnceCell::new(),
            marks: OnceCell::new(),
            epochs_energy: OnceCell::new(),
            energy: OnceCell::new(),
            findings: OnceCell::new(),
            ranks: OnceCell::new(),
        }
    }

    /// Figures over the steps, without those that are left out.
    pub fn statistics(&self) -> &StepStatistics {
        self.statistics.get_or_init(|| self.store.statistics_from(self.skip))
    }

    /// The same by the clock of the device; `None` without one.
    pub fn device(&self) -> Option<&StepStatistics> {
        let device = self.store.device()?;
        let kept = || {
            let first = (self.skip > 0).then(|| self.rows().next().map(|row| row.step()))?;
            let rows = first.into_iter().flat_map(|first| device.rows(first, gnntop_wire::StepId(u64::MAX)));
            Some(StepStatistics::from_rows(rows))
        };
        Some(self.device.get_or_init(kept).as_ref().unwrap_or(device.statistics()))
    }

    /// The kept steps that are not left out, and that no profiler has slowed down.
    pub fn rows(&self) -> impl DoubleEndedIterator<Item = StepRow<'a>> {
        self.store.steps().rows(self.skip..u64::MAX).filter(|row| !row.is_traced())
    }

    /// The steps without getting their batches.
    pub fn work(&self) -> &StepsWork {
        self.work.get_or_init(|| StepsWork::new(self.store, self.rows()))
    }

    /// The epochs.
    pub fn epochs(&self) -> &EpochTimes {
        self.epochs.get_or_init(|| EpochTimes::new(self.store, self.store.steps().rows(self.skip..u64::MAX).next()))
    }

    /// The steps of a class.
    pub fn class(&self, class: Class) -> &Batches {
        let all = self.classes.get_or_init(|| {
            let mut all: [Batches; 3] = Default::default();
            for (row, of) in classes(self.store, self.skip..u64::MAX) {
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
        self.marks.get_or_init(|| self.store.marks_by_text())
    }

    /// The energy of the newest epochs: each with its number, and whether all of its steps are in it.
    pub fn epochs_energy(&self) -> &[(u64, bool, EnergyFigure)] {
        self.epochs_energy.get_or_init(|| self.store.epochs_energy(self.energy(), self.scope(), self.skip))
    }

    /// What was found.
    pub fn findings(&self) -> &Findings {
        self.findings.get_or_init(|| {
            let judgement = Judgement::for_steps(self.store, self.skip..u64::MAX);
            match self.run {
                Some(run) => judgement.with_rank_findings(rank_findings(&run.ranks())).findings,
                None => judgement.findings,
            }
        })
    }

    /// The energy of the session.
    pub fn energy(&self) -> &EnergyBook {
        self.energy.get_or_init(|| self.store.energy(&self.assumptions))
    }

    /// The time of the session.
    pub fn session_ns(&self) -> Range<u64> {
        self.store.first_ns().unwrap_or(0)..self.store.now_ns()
    }

    /// All components together in the scope that is shown.
    pub fn energy_in(&self, range: Range<u64>) -> Option<EnergyFigure> {
        let book = self.energy();
        book.total(book.shown_scope(self.session_ns()), range).map(|(figure, _)| figure)
    }

    /// The scope that is shown.
    pub fn scope(&self) -> EnergyScope {
        self.energy().shown_scope(self.session_ns())
    }

    /// What each rank did in the steps that all ranks have; `None` of a session alone.
    pub fn ranks(&self) -> Option<&RunWork> {
        let run = self.run.filter(|run| run.is_parallel())?;
        Some(self.ranks.get_or_init(|| run.ranks().running().work(self.skip, MAX_COMMON_STEPS)))
    }
}

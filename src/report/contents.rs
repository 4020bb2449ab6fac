//! What a report holds, and how it is gathered from the store.

use serde::Serialize;

use super::options::Options;
use super::sections::breakdown::Breakdown;
use super::sections::classes::{self, ClassLine};
use super::sections::counters::Counter;
use super::sections::curves::{self, Curve};
use super::sections::device::Device;
use super::sections::durations::{self, PhaseLine, SpanLine};
use super::sections::energy::Energy;
use super::sections::hardware::{self, Hardware};
use super::sections::marks::MarkLine;
use super::sections::memory::Memory;
use super::sections::noted::{self, NotedStep};
use super::sections::percentile_curve::PercentileCurve;
use super::sections::ranks::RunReport;
use super::sections::restarts::Restarts;
use super::sections::sampled::Sampled;
use super::sections::session::Session;
use super::sections::stacks::Stacks;
use super::sections::steps::Steps;
use super::sections::trace::{self, TracePoint};
use gnntop_analysis::findings::{self, Findings, Judgement};
use gnntop_analysis::ranks::Run;
use gnntop_analysis::store::{Losses, Phase, StepStatistics, Store, Throughput};

/// Version of the JSON form. It increases when a field changes its meaning or is removed, and not for new fields.
pub const SCHEMA_VERSION: u32 = 1;

/// A session in numbers.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Who published what, when.
    pub session: Session,
    /// The run of several ranks that the session is part of; `null` if it is a run by itself.
    pub run: Option<RunReport>,
    /// The starts of the run and what the time between them cost; `null` if it was started once.
    pub restarts: Option<Restarts>,
    /// What bounds the run and the most severe findings, in words; the line on the screen.
    pub verdict: String,
    /// Findings for the kept steps that the numbers are about.
    pub findings: Findings,
    /// Which steps the numbers are about.
    pub steps: Steps,
    /// The phases in display order, then `gap`, `period`, to which phases and gap add up, and `step`, from its own start.
    pub phases: Vec<PhaseLine>,
    /// What a device did, by its own clock; `null` if the program has no device timed. `phases` are the host's.
    pub device: Option<Device>,
    /// Steps by class, over the kept rows.
    pub classes: Vec<ClassLine>,
    /// Step times for a figure, oldest first.
    #[serde(skip)]
    pub trace: Vec<TracePoint>,
    /// The last steps one by one, for a figure.
    #[serde(skip)]
    pub breakdown: Breakdown,
    /// Hardware over the time of the steps, for a figure.
    #[serde(skip)]
    pub curves: Vec<Curve>,
    /// How long steps take by percentile, for a figure.
    #[serde(skip)]
    pub percentile_curve: PercentileCurve,
    /// Steps that the findings point to.
    #[serde(skip)]
    pub noted: Vec<NotedStep>,
    /// Spans with the largest totals that are not phases. Over the whole session, whichever steps are left out.
    pub spans: Vec<SpanLine>,
    /// Marks by their text, those that took longest first. Over the whole session, whichever steps are left out.
    pub marks: Vec<MarkLine>,
    /// Where the program was while a phase took too long, over the whole session; `null` if no stack was taken.
    pub stacks: Option<Stacks>,
    /// Where the program's time goes, from sampled stacks; `null` without `--stacks`.
    pub sampled_stacks: Option<Sampled>,
    /// Work per second of the steps' wall time.
    pub throughput: Throughput,
    /// The program's own counters over the whole session, whichever steps are left out.
    pub counters: Vec<Counter>,
    /// Memory, as reported by the program's allocator.
    pub memory: Memory,
    /// Means and extremes of the hardware readings over the whole session.
    pub hardware: Hardware,
    /// Energy by component, and carbon.
    pub energy: Energy,
    /// What was lost.
    pub losses: Losses,
    /// What was not measured, and why, one sentence each.
    pub not_measured: Vec<String>,
}

impl Report {
    /// The report on what the store holds.
    pub fn of(store: &Store, options: &Options) -> Self {
        Self::judged(store, options, Judgement::of(store, options.skip_steps..u64::MAX))
    }

    fn judged(store: &Store, options: &Options, judgement: Judgement) -> Self {
        let skipped = statistics_from(store, options.skip_steps);
        let statistics = skipped.as_ref().unwrap_or(store.statistics());
        let steps = Steps::of(store, statistics, options.skip_steps);
        let hardware = Hardware::of(store);
        let memory = Memory::of(store);
        Self {
            schema_version: SCHEMA_VERSION,
            session: Session::of(store),
            run: None,
            restarts: Restarts::of(store),
            verdict: judgement.to_string(),
            noted: noted::noted(store, &judgement.findings),
            findings: judgement.findings,
            device: Device::of(store, options),
            phases: durations::phase_lines(store, statistics, &options.percentiles),
            classes: classes::class_lines(store, options.skip_steps, &options.percentiles),
            trace: trace::trace(store, options.skip_steps),
            breakdown: Breakdown::of(store, options.skip_steps),
            curves: curves::curves(store, options.skip_steps),
            percentile_curve: PercentileCurve::of(statistics.period()),
            spans: durations::span_lines(store, options),
            marks: MarkLine::all(store),
            stacks: Stacks::of(store),
            sampled_stacks: Sampled::of(store),
            throughput: statistics.throughput(),
            counters: Counter::all(store),
            not_measured: not_measured(store, statistics, &memory),
            steps,
            memory,
            hardware,
            energy: Energy::of(store, options),
            losses: store.losses().clone(),
        }
    }

    /// The report on a run: the selected rank, with the findings over all ranks and, if there are several, a section on
    /// them.
    pub fn of_run(run: &Run, options: &Options) -> Self {
        let judgement = Judgement::of(run.store(), options.skip_steps..u64::MAX);
        let mut report = Self::judged(run.store(), options, judgement.and(findings::of_ranks(&run.ranks())));
        report.run = RunReport::of(run, options.one_rank_per_s);
        report
    }

    /// The report for machines, as one JSON object with a line feed at its end.
    ///
    /// # Errors
    /// None is known: every number is finite or `null`.
    pub fn to_json(&self) -> serde_json::Result<String> {
        let mut json = serde_json::to_string_pretty(self)?;
        json.push('\n');
        Ok(json)
    }
}

/// Figures without the first `skip` steps, over the kept rows; `None` if nothing is to be skipped.
fn statistics_from(store: &Store, skip: u64) -> Option<StepStatistics> {
    (skip > 0).then(|| StepStatistics::of(store.steps().rows(skip..u64::MAX)))
}

/// What a reader might miss, with the reason.
fn not_measured(store: &Store, statistics: &StepStatistics, memory: &Memory) -> Vec<String> {
    let mut all = Vec::new();
    let mut say = |is_missing: bool, text: &str| {
        if is_missing {
            all.push(text.to_owned());
        }
    };
    let has_steps = statistics.steps() > 0;
    say(!has_steps, "steps: none were published");
    say(has_steps && store.phases().iter().all(Phase::is_gap), "phases: the program has none");
    let batch = statistics.batch();
    let sizes = [batch.graphs, batch.nodes, batch.edges, batch.seeds];
    say(has_steps && sizes.iter().all(|total| total.period_ns == 0), "batch sizes: the program does not report them");
    say(has_steps && statistics.last_loss().is_none(), "loss: the program does not report it");
    say(memory.phases.is_empty(), "memory by phase: the program does not count its allocations");
    all.extend(hardware::not_measured(store));
    all
}

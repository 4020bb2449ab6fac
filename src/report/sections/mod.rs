//! A report and its sections, one a file: what each holds, how it is gathered from the store, and how it reads as a part of
//! a document. A new one is a module, a field, and a line in [`SECTIONS`].

pub(in crate::report) mod breakdown;
pub(in crate::report) mod classes;
pub(in crate::report) mod counters;
pub(in crate::report) mod curves;
pub(in crate::report) mod device;
pub(in crate::report) mod device_memory;
pub(in crate::report) mod durations;
pub mod energy;
pub(in crate::report) mod finding_steps;
pub(in crate::report) mod findings;
pub(in crate::report) mod hardware;
pub(in crate::report) mod logged;
pub(in crate::report) mod losses;
pub(in crate::report) mod marks;
pub(in crate::report) mod memory;
pub(in crate::report) mod percentile_curve;
pub(in crate::report) mod phases;
pub(in crate::report) mod ranks;
pub(in crate::report) mod restarts;
pub(in crate::report) mod sampled_stacks;
pub(in crate::report) mod session;
pub(in crate::report) mod spans;
pub(in crate::report) mod stacks;
pub(in crate::report) mod steps;
#[cfg(test)]
mod tests;
pub(in crate::report) mod trace;

use serde::Serialize;

use super::document::Block;
use super::options::Options;
use super::pictures::shares;
use breakdown::Breakdown;
use classes::ClassLine;
use counters::Counter;
use curves::Curve;
use device::Device;
use energy::Energy;
use finding_steps::FindingStep;
use findings::PictureSources;
use gnntop_analysis::catalogue::Catalogue;
use gnntop_analysis::findings::Findings;
use gnntop_analysis::store::{Losses, Throughput};
use hardware::{Hardware, Machine};
use logged::LoggedLine;
use marks::MarkLine;
use memory::Memory;
use percentile_curve::PercentileCurve;
use phases::PhaseLine;
use ranks::RunReport;
use restarts::Restarts;
use sampled_stacks::SampledStacks;
use session::SessionReport;
use spans::SpanLine;
use stacks::Stacks;
use steps::StepCounts;
use trace::TracePoint;

/// A report with the name of its recording.
pub(in crate::report) type Named<'r> = (&'r str, &'r Report);

/// The sections of a document on one recording, in its order; one without data is empty.
pub(in crate::report) const SECTIONS: [fn(Named<'_>) -> Vec<Block>; 21] = [
    |(_, r)| r.judged_blocks(),
    |(_, r)| [vec![Block::heading("Findings")], r.findings_blocks("")].concat(),
    |(_, r)| r.step_pictures(None),
    |(_, r)| finding_steps::blocks(&r.noted, &r.breakdown.phases, &r.phases, ""),
    |(_, r)| ranks::blocks(r.run.as_ref()),
    |(_, r)| restarts::blocks(r.restarts.as_ref()),
    |(_, r)| phases::blocks(&r.phases),
    |(_, r)| device::blocks(r.device.as_ref()),
    |(_, r)| classes::blocks(&r.classes),
    |(_, r)| spans::blocks(&r.spans),
    |(_, r)| sampled_stacks::blocks(r.sampled_stacks.as_ref(), r.phases.iter().map(|line| line.name.as_str())),
    |(_, r)| stacks::blocks(r.stacks.as_ref()),
    |(_, r)| marks::blocks(&r.marks),
    |(_, r)| logged::blocks(&r.logged),
    |(_, r)| counters::blocks(&r.counters),
    |(_, r)| hardware::blocks(&[("", r.machine())], &r.curves),
    |(_, r)| energy::blocks(&[("", &r.energy)]),
    |(_, r)| [memory::blocks(&r.memory), device_memory::blocks(r.memory.device.as_ref())].concat(),
    |(file, r)| session::blocks(&[(file, (&r.session, &r.steps))]),
    |(_, r)| losses::blocks(&r.losses, &r.session.facts),
    |(_, r)| losses::not_measured(&r.not_measured),
];

/// Those that have a column for each recording where there are several.
pub(in crate::report) const BESIDE: [OfSeveral; 3] = [
    |all| hardware::blocks(&each_part(all, Report::machine), &[]),
    |all| energy::blocks(&each_part(all, |r| &r.energy)),
    |all| session::blocks(&each_part(all, |r| (&r.session, &r.steps))),
];

/// A section on several recordings.
type OfSeveral = fn(&[Named<'_>]) -> Vec<Block>;

/// A part of each report, with the names of the recordings.
pub(in crate::report) fn each_part<'r, T>(all: &[Named<'r>], part: impl Fn(&'r Report) -> T) -> Vec<(&'r str, T)> {
    all.iter().map(|(name, report)| (*name, part(report))).collect()
}

/// Version of the JSON form. It increases when a field changes its meaning or is removed, and not for new fields.
pub const SCHEMA_VERSION: u32 = 1;

/// A session in numbers.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Who published what, when.
    pub session: SessionReport,
    /// The run of several ranks that the session is part of; `null` if it is a run by itself.
    pub run: Option<RunReport>,
    /// The starts of the run and what the time between them cost; `null` if it was started once.
    pub restarts: Option<Restarts>,
    /// What bounds the run and the most severe findings, in words; the line on the screen.
    pub verdict: String,
    /// Findings for the kept steps that the numbers are about.
    pub findings: Findings,
    /// Which steps the numbers are about.
    pub steps: StepCounts,
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
    pub noted: Vec<FindingStep>,
    /// Spans with the largest totals that are not phases. Over the whole session, whichever steps are left out.
    pub spans: Vec<SpanLine>,
    /// Marks by their text, those that took longest first. Over the whole session, whichever steps are left out.
    pub marks: Vec<MarkLine>,
    /// Where the program was while a phase took too long, over the whole session; `null` if no stack was taken.
    pub stacks: Option<Stacks>,
    /// Where the program's time goes, from sampled stacks; `null` without `--stacks`.
    pub sampled_stacks: Option<SampledStacks>,
    /// Work per second of the steps' wall time.
    pub throughput: Throughput,
    /// Losses, and other values of which some were not finite: how they went over the whole session.
    pub logged: Vec<LoggedLine>,
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
    /// The report on the session of these figures, which are under the same options, and on the run that it belongs to.
    pub fn new(figures: &Catalogue<'_>, options: &Options) -> Self {
        let (store, judgement, skip) = (figures.store(), figures.judgement(), options.skip_steps);
        let memory = Memory::new(figures);
        Self {
            schema_version: SCHEMA_VERSION,
            session: SessionReport::new(figures),
            run: RunReport::new(figures),
            restarts: Restarts::new(figures),
            verdict: judgement.to_string(),
            noted: finding_steps::finding_steps(store, &judgement.findings),
            findings: judgement.findings.clone(),
            steps: StepCounts::new(figures, skip),
            device: Device::new(figures, &options.percentiles),
            phases: phases::phase_lines(figures, figures.statistics(), phases::SUBJECTS, &options.percentiles),
            classes: classes::class_lines(figures, &options.percentiles),
            trace: trace::trace(store, skip),
            breakdown: Breakdown::new(store, skip),
            curves: curves::curves(store, skip),
            percentile_curve: PercentileCurve::new(figures.statistics().period()),
            spans: spans::span_lines(figures, options),
            marks: MarkLine::all(figures),
            stacks: Stacks::new(store),
            sampled_stacks: SampledStacks::new(figures),
            throughput: ranks::throughput(figures, ""),
            logged: LoggedLine::all(store),
            counters: Counter::all(figures),
            not_measured: losses::unmeasured(figures, &memory),
            memory,
            hardware: Hardware::new(figures),
            energy: Energy::new(figures),
            losses: store.losses().clone(),
        }
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

/// How it reads.
impl Report {
    /// The verdict and the shares of the phases.
    pub(in crate::report) fn judged_blocks(&self) -> Vec<Block> {
        vec![findings::verdict(&self.verdict), Block::picture(shares::phase_shares(&self.phases))]
    }

    /// The findings. `run` distinguishes the anchors of several recordings.
    pub(in crate::report) fn findings_blocks(&self, run: &str) -> Vec<Block> {
        let (phases, trace, curves, energy) = (&self.phases, &self.trace, &self.curves, &self.energy);
        let drawn = PictureSources { phases, trace, curves, energy, run: self.run.as_ref(), noted: &self.noted };
        findings::blocks(&self.findings, drawn, run)
    }

    /// The pictures of its steps; one without data is empty. The scale of step times ends at `top_ns`, if that is given.
    pub(in crate::report) fn step_pictures(&self, top_ns: Option<f64>) -> Vec<Block> {
        let times = trace::picture(&self.trace, &self.steps, &self.findings, top_ns);
        let by_percentile = percentile_curve::picture(&[("", &self.percentile_curve)]);
        [times, by_percentile, breakdown::picture(&self.breakdown)].map(Block::picture).into()
    }

    fn machine(&self) -> Machine<'_> {
        (&self.throughput, &self.memory, &self.hardware)
    }

    /// The title of a document on it.
    pub(in crate::report) fn title(&self, file: &str) -> String {
        self.session.title(file)
    }

    /// Lines below the title.
    pub(in crate::report) fn about(&self) -> Vec<String> {
        // A product's name, without the number of the one in this machine.
        let products = self.hardware.gpus.iter().map(|gpu| gpu.device.split(" (").next().unwrap_or_default());
        let gpus: Vec<&str> = products.collect();
        self.session.about(&self.steps, &gpus)
    }
}

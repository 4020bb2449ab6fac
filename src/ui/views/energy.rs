//! Energy of the run, its epochs and its steps, with its bounds and where it comes from; then power over time; then each
//! component, the whole device apart from what the job used of it. What is not measured is modelled and says so; what
//! is not known is a dash with the reason.
//!
//! ```text
//! ─energy of the job  7.90 s ───────────────────────────────────────────
//!  the run         45.1 J (14.2 to 144) modelled (0 % from counters)
//!  a step          0.28 J (0.09 to 0.90) modelled    mean of 160 steps
//!  carbon          — give the electricity's region with --region
//! ─power of the job  1 step a column, 3.60 s ───────────────────────────
//!  cpu             2.63 W                           modelled, 0.1 s old
//!  8 W    ⣤⣤⣤⣤⣴⣶⣿⣿⣶⣶⣤⣤⣤⣤⣤⣤⣤⣤⣤⣶⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣶⣶⣶⣶⣤⣤⣤⣤⣤⣤
//! ─cpu  model: TDP guessed at 4 W a thread, 2.0 of 2 threads ───────────
//!  the device      48.0 J (16.0 to 144) modelled
//!  the job         21.1 J (7.03 to 63.3) modelled
//! ```

use crate::app::View;
use crate::report::EnergySnapshot;
use crate::report::energy::{
    Component, Joules, PhaseEnergy, carbon_in_words, describe_joules, doubt_in_words, phase_in_words, title,
    total_in_words,
};
use crate::ui::chart::time_axis::TimeAxis;
use crate::ui::panel::strips::{self, ChartSource, Label, StripRow};
use crate::ui::scene::Scene;
use crate::ui::sheet::Sheet;
use gnntop_analysis::energy::{ComponentEnergy, EnergyFigure, EnergyScope, Label as Known};
use gnntop_analysis::figures::{count, duration, scaled};
use gnntop_analysis::ranks::RunEnergy;
use gnntop_analysis::store::StepRow;

/// Bodies with this many rows have charts of three.
const TALL: u16 = 30;
/// Power is averaged over this time.
const SECOND_NS: u64 = 1_000_000_000;
/// A reading this recent counts as current.
const NOW_NS: u64 = 100_000_000;

/// Draws the view.
pub fn draw(body: &mut Sheet<'_>, scene: &Scene<'_>) {
    let rows = if body.height() >= TALL { 3 } else { 2 };
    strips::draw(body, scene, scene.app.line(View::Energy), |axis| lines(scene, axis, rows));
}

/// Everything that the lines are made from.
struct EnergyLines<'s, 'a> {
    scene: &'s Scene<'a>,
    axis: &'s TimeAxis,
    energy: &'a EnergySnapshot,
    scope: EnergyScope,
    /// The selected step.
    step: Option<StepRow<'a>>,
}

fn lines<'a>(scene: &Scene<'a>, axis: &TimeAxis, rows: u16) -> Vec<StripRow<'a>> {
    let Some(told) = scene.app.energy() else {
        return vec![StripRow::heading("energy", ""), StripRow::fact("the run", Err("not known yet".to_owned()))];
    };
    let step = scene.app.window().cursor().and_then(|cursor| scene.store.steps().row(cursor));
    let telling = EnergyLines { scene, axis, energy: told, scope: told.figures.scope, step };
    let mut lines = vec![StripRow::heading(title(&told.figures), &duration(scene.store.elapsed_ns()))];
    lines.extend(telling.sums());
    let whose = if telling.scope == EnergyScope::Job { "power of the job" } else { "power of the devices" };
    lines.push(StripRow::heading(whose, &axis.note(scene)));
    lines.extend(told.book.components.iter().flat_map(|component| telling.power(component, rows)));
    let parts = told.book.components.iter().zip(&told.figures.components);
    lines.extend(parts.flat_map(|(component, figures)| telling.component(component, figures)));
    lines.push(StripRow::heading("not counted", ""));
    lines.push(StripRow::Text(format!("{} have no readable counter", told.figures.not_counted.join(", "))));
    lines
}

impl<'a> EnergyLines<'_, 'a> {
    /// The run, an epoch, a step, and carbon, in the selected scope; and the other scope.
    fn sums(&self) -> Vec<StripRow<'a>> {
        let figures = &self.energy.figures;
        let unknown = || Err("no component is known".to_owned());
        let mut lines =
            vec![StripRow::fact("the run", figures.in_scope().map(total_in_words).map_or_else(unknown, Ok))];
        let total = &figures.total;
        let missing = if self.scope == EnergyScope::Job { &total.without_job } else { &total.without_device };
        if !missing.is_empty() && figures.in_scope().is_some() {
            lines.push(StripRow::fact("not included", Ok(missing.join(", "))));
        }
        lines.extend(self.epoch());
        let steps = self.scene.store.statistics().steps();
        lines.extend(
            figures.step.as_ref().map(|step| energy_fact("a step", step, format!("mean of {} steps", count(steps)))),
        );
        lines.extend(self.step.as_ref().map(|row| self.selected_step(row)));
        if let Some(device) = total.device.as_ref().filter(|_| self.scope == EnergyScope::Job) {
            lines.push(StripRow::fact("whole devices", Ok(total_in_words(device))));
        }
        lines.extend(self.energy.ranks.iter().flat_map(ranks));
        lines.push(StripRow::fact("carbon", carbon_in_words(&figures.carbon)));
        lines
    }

    /// The newest whole epoch, else the part of the newest so far.
    fn epoch(&self) -> Option<StripRow<'a>> {
        let epochs = &self.energy.figures.epochs;
        let epoch = epochs.iter().rev().find(|epoch| epoch.is_whole).or(epochs.last())?;
        let part = if epoch.is_whole { "" } else { ", incomplete" };
        Some(energy_fact("an epoch", &epoch.energy, format!("epoch {}{part}", count(epoch.epoch))))
    }

    fn selected_step(&self, row: &StepRow<'_>) -> StripRow<'a> {
        let about = format!("step {}", count(row.step().0));
        match self.energy.book.total(self.scope, row.period_start_ns()..row.end_ns()) {
            Some((figure, _)) => energy_fact(&about, &figure.into(), "the selected step".to_owned()),
            None => StripRow::fact(&about, Err("not read yet at that step".to_owned())),
        }
    }

    /// Power of a component now, or at the selected step, and over time.
    fn power(&self, component: &'a ComponentEnergy, rows: u16) -> Vec<StripRow<'a>> {
        let book = &self.energy.book;
        let Some(end_ns) = book.read_until_ns(component, self.scope) else { return Vec::new() };
        let source = ChartSource::Power { book, component, scope: self.scope };
        let now = end_ns.saturating_sub(SECOND_NS)..end_ns;
        let (watts, time) = match self.axis.cursor_time() {
            Some(at) => (source.at_cursor(self.axis, self.scene.store.now_ns()), at),
            None => (book.watts(component, self.scope, now.clone()), now),
        };
        let limit = component.limit_watts;
        let of_limit = limit.map(|limit| format!(" of {limit:.0} W")).unwrap_or_default();
        let label = book.figure(component, self.scope, time).map(|figure| figure.label);
        let value = watts.map(|watts| format!("{}{of_limit}", scaled(watts, "W")));
        let mut lines = vec![StripRow::Fact {
            about: component.name.clone(),
            value: value.ok_or_else(|| "not read at that time".to_owned()),
            right: format!("{}, {}", label.map_or("", Known::as_str), self.age(end_ns)),
        }];
        // A constant power needs no chart.
        let is_constant = component.device.as_ref().is_ok_and(|account| account.line().knots().len() <= 2);
        if !is_constant {
            lines.extend(StripRow::chart(source, Label::Top(|watts| scaled(watts, "W")), limit, rows));
        }
        lines
    }

    fn age(&self, end_ns: u64) -> String {
        match self.scene.store.now_ns().saturating_sub(end_ns) {
            _ if self.axis.cursor.is_some() => "at the selected step".to_owned(),
            ..NOW_NS => "now".to_owned(),
            age_ns => format!("{} old", duration(age_ns)),
        }
    }

    /// A component in both scopes, its idle part, its phases, and what its counter went through.
    fn component(&self, component: &ComponentEnergy, figures: &Component) -> Vec<StripRow<'a>> {
        let mut lines =
            vec![StripRow::heading(&figures.name, if figures.source == "none" { "" } else { &figures.source })];
        let reason = || figures.reason.clone().unwrap_or_else(|| "not known".to_owned());
        lines.push(StripRow::fact("the device", figures.device.as_ref().map(describe_joules).ok_or_else(reason)));
        if let Some(device) = figures.device.as_ref() {
            let no_job = || figures.no_job_reason.clone().unwrap_or_else(|| "not known".to_owned());
            lines.push(StripRow::fact("the job", figures.job.as_ref().map(describe_joules).ok_or_else(no_job)));
            lines.extend(figures.idle.as_ref().map(|idle| StripRow::fact("idle", Ok(describe_joules(idle)))));
            let why = figures.reason.clone().filter(|_| device.label != Known::Measured);
            lines.extend(why.map(|why| StripRow::fact("no counter", Err(why))));
        }
        lines.extend(self.phases(component, figures));
        let is_counted = component.device.as_ref().is_ok_and(|account| account.source().best == Known::Measured);
        if let Some(period_ns) = figures.period_ns.filter(|_| is_counted) {
            let window = figures.window_ns.map(|ns| format!(", of which the sensor sees {}", duration(ns)));
            let text = format!("changes every {}{}", duration(period_ns), window.unwrap_or_default());
            lines.push(StripRow::fact("its counter", Ok(text)));
        }
        lines.extend(figures.doubt.as_ref().map(|doubt| StripRow::fact("doubt", Ok(doubt_in_words(doubt)))));
        let gap = |gap: &crate::report::energy::Gap| format!("{} x {}", count(gap.count), gap.reason);
        if !figures.gaps.is_empty() {
            let gaps: Vec<String> = figures.gaps.iter().map(gap).collect();
            lines.push(StripRow::fact("gaps", Ok(gaps.join(", "))));
        }
        lines
    }

    /// Energy of the device by phase: in the selected step, else in all that are kept.
    fn phases(&self, component: &ComponentEnergy, figures: &Component) -> Vec<StripRow<'a>> {
        let of_step = self.step.map(|row| {
            let phases = self.scene.store.step_energy_by_phase(component, row);
            phases.into_iter().map(PhaseEnergy::new).collect::<Vec<_>>()
        });
        let phases = of_step.as_ref().unwrap_or(&figures.phases);
        let line = |phase: &PhaseEnergy| StripRow::fact(&format!("  {}", phase.name), Ok(phase_in_words(phase)));
        phases.iter().map(line).collect()
    }
}

/// All ranks together: each machine once, each process once.
fn ranks<'a>(ranks: &RunEnergy) -> Vec<StripRow<'a>> {
    let of = |count: usize, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
    let line = |about: &str, figure: Option<EnergyFigure>, right: String| {
        let value = figure.map(|figure| total_in_words(&figure.into()));
        StripRow::Fact {
            about: about.to_owned(),
            value: value.ok_or_else(|| "no component is known".to_owned()),
            right,
        }
    };
    vec![
        line("all ranks", ranks.job, of(ranks.processes, "process", "processes")),
        line("their machines", ranks.device, of(ranks.machines, "machine", "machines")),
    ]
}

fn energy_fact<'a>(about: &str, joules: &Joules, right: String) -> StripRow<'a> {
    StripRow::Fact { about: about.to_owned(), value: Ok(describe_joules(joules)), right }
}

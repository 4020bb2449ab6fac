//! The last steps one by one: their phases on top of each other, and as a line what was in their batches.

use std::fmt::Write;

use crate::report::pictures::plot::{HEIGHT, Plot, WIDTH, grid, key, line};
use crate::report::pictures::shares::{PhaseKey, one_key, phase_keys};
use gnntop_analysis::figures::{count, duration};
use gnntop_analysis::store::{StepRow, Store};

/// Steps that are drawn one by one.
const STEPS: u64 = 60;
/// The scale ends at this many times the median step; what is longer is cut.
const HEADROOM: f64 = 3.0;

/// One step of the figure.
#[derive(Clone, Debug, PartialEq)]
pub struct StepParts {
    /// The step's number.
    pub step: u64,
    /// Its phases in the report's order, with the gap, in nanoseconds.
    pub parts_ns: Vec<u64>,
    /// What was in its batch, in the unit of [`Breakdown::size_unit`].
    pub size: Option<u64>,
}

/// The last steps by phase and size.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Breakdown {
    /// The phases.
    pub phases: Vec<String>,
    /// What sizes count: `edges` if the program reports them, else nodes, graphs or seeds.
    pub size_unit: &'static str,
    /// The steps, oldest first.
    pub steps: Vec<StepParts>,
}

impl Breakdown {
    /// The last steps from `skip` on.
    pub(in crate::report) fn new(store: &Store, skip: u64) -> Self {
        let phases = store.phases();
        let first = skip.max(store.steps().total().saturating_sub(STEPS));
        let rows: Vec<StepRow<'_>> = store.steps().rows(first..u64::MAX).collect();
        let (size_unit, size) = unit(&rows);
        let part = |row: &StepRow<'_>| StepParts {
            step: row.step().0,
            parts_ns: phases.iter().map(|phase| row.phase_ns(phase.slot)).collect(),
            size: size(row),
        };
        let names = phases.iter().map(|phase| phase.text.clone()).collect();
        Self { phases: names, size_unit, steps: rows.iter().map(part).collect() }
    }
}

type Size = fn(&StepRow<'_>) -> Option<u64>;

/// The first of these sizes that any step reports.
fn unit(rows: &[StepRow<'_>]) -> (&'static str, Size) {
    let sizes: [(&'static str, Size); 4] = [
        ("edges", |row| row.batch().edges),
        ("nodes", |row| row.batch().nodes),
        ("graphs", |row| row.batch().graphs),
        ("seeds", |row| row.batch().seeds),
    ];
    let told = sizes.iter().find(|(_, size)| rows.iter().any(|row| size(row).is_some()));
    *told.unwrap_or(&sizes[0])
}

/// The chart; empty for fewer than two steps.
pub(in crate::report) fn picture(breakdown: &Breakdown) -> String {
    let steps = &breakdown.steps;
    let (Some(first), Some(last), true) = (steps.first(), steps.last(), steps.len() > 1) else { return String::new() };
    let top_ns = scale_top_ns(steps);
    let keys = phase_keys(breakdown.phases.iter().map(String::as_str));
    let mut drawing = grid(&[0.5, 1.0]);
    for (at, step) in steps.iter().enumerate() {
        stack(&mut drawing, step, &keys, at as f64 * WIDTH / steps.len() as f64, WIDTH / steps.len() as f64, top_ns);
    }
    let largest = steps.iter().filter_map(|step| step.size).max().filter(|most| *most > 0);
    let is_seen = |phase: &usize| steps.iter().any(|step| step.parts_ns.get(*phase).is_some_and(|ns| *ns > 0));
    let seen = (0..breakdown.phases.len()).filter(is_seen);
    let mut legend: String = seen.map(|phase| one_key(&keys[phase], &breakdown.phases[phase])).collect();
    if let Some(most) = largest {
        let sizes = line(steps.iter().map(|step| Some(step.size? as f64 / most as f64 * 0.97)));
        let _ = write!(drawing, "<path style=\"--c:var(--fg)\" d=\"{sizes}\"/>");
        legend += &key("dim", "line", &format!("{} in the batch, at most {}", breakdown.size_unit, count(most)));
    }
    Plot {
        title: format!("The last {} steps", steps.len()),
        scale: [top_ns, top_ns / 2.0, 0.0]
            .map(|ns| if ns > 0.0 { duration(ns as u64) } else { "0".to_owned() })
            .to_vec(),
        below: vec![(None, format!("step {}", count(first.step))), (None, count(last.step))],
        values: steps.iter().map(|step| value(breakdown, step)).collect(),
        drawing,
        legend,
        is_small: false,
    }
    .to_html()
}

fn total(step: &StepParts) -> u64 {
    step.parts_ns.iter().fold(0_u64, |sum, ns| sum.saturating_add(*ns))
}

fn scale_top_ns(steps: &[StepParts]) -> f64 {
    let mut totals: Vec<u64> = steps.iter().map(total).collect();
    totals.sort_unstable();
    let usual = totals.get(totals.len() / 2).copied().unwrap_or(1) as f64;
    (totals.last().copied().unwrap_or(1) as f64).min(usual * HEADROOM).max(1.0)
}

fn stack(drawing: &mut String, step: &StepParts, keys: &[PhaseKey], x: f64, width: f64, top_ns: f64) {
    let mut bottom = HEIGHT;
    for (ns, key) in step.parts_ns.iter().zip(keys) {
        let top = (bottom - *ns as f64 / top_ns * HEIGHT).max(0.0);
        if bottom - top >= 0.2 {
            let (height, width) = (bottom - top, width * 0.9);
            let class = &key.class;
            let _ = write!(
                drawing,
                "<path class=\"fill {class}\" d=\"M{x:.1} {bottom:.1}h{width:.1}v-{height:.1}h-{width:.1}Z\"/>"
            );
        }
        bottom = top;
    }
}

/// What the readout says of a step: its time, its longest phases, its batch.
fn value(breakdown: &Breakdown, step: &StepParts) -> String {
    let mut parts: Vec<(&String, u64)> = breakdown.phases.iter().zip(step.parts_ns.iter().copied()).collect();
    parts.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let longest = parts.iter().take(3).filter(|(_, ns)| *ns > 0);
    let longest: Vec<String> = longest.map(|(name, ns)| format!("{name} {}", duration(*ns))).collect();
    let size = step.size.map_or_else(String::new, |size| format!("; {} {}", count(size), breakdown.size_unit));
    format!("step {}: {}: {}{size}", count(step.step), duration(total(step)), longest.join(", "))
}

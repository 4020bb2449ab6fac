//! The last steps one by one: their phases on top of each other, and above them what was in their batches.

use std::fmt::Write;

use crate::report::document::markup::escaped;
use crate::report::document::svg::{COLOURS, GREY, HEIGHT, LEFT, WIDTH, open};
use gnntop_analysis::figures::{count, duration};
use gnntop_analysis::store::{GAP, StepRow, Store};

/// Steps that are drawn one by one.
const STEPS: u64 = 60;

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
    /// What sizes count: `edges` where the program tells them, else nodes, graphs or seeds.
    pub size_unit: &'static str,
    /// The steps, oldest first.
    pub steps: Vec<StepParts>,
}

impl Breakdown {
    /// The last steps from `skip` on.
    pub(in crate::report) fn of(store: &Store, skip: u64) -> Self {
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

    /// As SVG; empty for fewer than two steps.
    pub(in crate::report) fn to_svg(&self) -> String {
        let total = |step: &StepParts| step.parts_ns.iter().fold(0_u64, |sum, ns| sum.saturating_add(*ns));
        let (Some(first), Some(last)) = (self.steps.first(), self.steps.last()) else { return String::new() };
        let most_ns = self.steps.iter().map(total).max().unwrap_or(0).max(1) as f64;
        if self.steps.len() < 2 {
            return String::new();
        }
        let mut svg = open("Phases of the last steps", HEIGHT + 16.0);
        let (room, width) = (HEIGHT - 28.0, (WIDTH - LEFT - 4.0) / self.steps.len() as f64);
        for share in [0.0, 0.5, 1.0] {
            let (y, text) = (8.0 + (1.0 - share) * room, duration((share * most_ns) as u64));
            let _ = write!(svg, r##"<line x1="{LEFT}" x2="{WIDTH}" y1="{y:.1}" y2="{y:.1}" stroke="#ddd"/>"##);
            let _ = write!(svg, r#"<text x="{}" y="{:.1}" text-anchor="end">{text}</text>"#, LEFT - 6.0, y + 4.0);
        }
        for (at, step) in self.steps.iter().enumerate() {
            let (x, mut bottom) = (LEFT + at as f64 * width, 8.0 + room);
            for (phase, ns) in step.parts_ns.iter().enumerate() {
                let height = *ns as f64 / most_ns * room;
                bottom -= height;
                if height < 0.3 {
                    continue;
                }
                let (colour, w) = (self.colour(phase), (width - 1.0).max(0.5));
                let _ = write!(
                    svg,
                    r#"<rect x="{x:.1}" y="{bottom:.1}" width="{w:.1}" height="{height:.1}" fill="{colour}"/>"#
                );
            }
        }
        self.write_sizes(&mut svg, room, width);
        let foot = format!("steps {} to {}: {}", first.step, last.step, self.legend());
        let _ = write!(svg, r#"<text x="{LEFT}" y="{}">{foot}</text>"#, HEIGHT - 4.0);
        self.write_colours(&mut svg);
        svg + "</svg>"
    }

    fn colour(&self, phase: usize) -> &'static str {
        if self.phases.get(phase).is_some_and(|name| name == GAP) { GREY } else { COLOURS[phase % COLOURS.len()] }
    }

    /// What was in the batches, as a line to a scale of its own that begins at zero.
    fn write_sizes(&self, svg: &mut String, room: f64, width: f64) {
        let Some(most) = self.steps.iter().filter_map(|step| step.size).max().filter(|most| *most > 0) else { return };
        let point = |(at, step): (usize, &StepParts)| {
            let y = 8.0 + (1.0 - step.size? as f64 / most as f64) * room;
            Some(format!("{:.1},{y:.1}", LEFT + (at as f64 + 0.5) * width))
        };
        let points: Vec<String> = self.steps.iter().enumerate().filter_map(point).collect();
        let _ = write!(svg, r##"<polyline points="{}" fill="none" stroke="#222"/>"##, points.join(" "));
    }

    fn legend(&self) -> String {
        match self.steps.iter().filter_map(|step| step.size).max() {
            Some(most) => format!("line: {} in the batch, from 0 to {}", self.size_unit, count(most)),
            None => "the sizes of the batches are not told".to_owned(),
        }
    }

    /// The phases that can be seen, with their colours.
    fn write_colours(&self, svg: &mut String) {
        let is_seen = |phase: &usize| self.steps.iter().any(|step| step.parts_ns.get(*phase).is_some_and(|ns| *ns > 0));
        for (at, phase) in (0..self.phases.len()).filter(is_seen).enumerate() {
            let x = LEFT + at as f64 * 110.0;
            let (colour, y) = (self.colour(phase), HEIGHT + 12.0);
            let _ = write!(svg, r#"<rect x="{x}" y="{}" width="10" height="10" fill="{colour}"/>"#, y - 9.0);
            let _ = write!(svg, r#"<text x="{}" y="{y}">{}</text>"#, x + 14.0, escaped(&self.phases[phase]));
        }
    }
}

type Size = fn(&StepRow<'_>) -> Option<u64>;

/// The first of these sizes that any step tells.
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

//! One step in full: its phases beside the median step's, its batch, its loss, and what its thread went through.
//!
//! ```text
//! ─step 1,105  epoch 3 ───────────────────────────── 42.1 ms, +3 % against the median ─
//!  ░░ F  forward      17.1 ms  ░░░░░░░░░░░░░░       median 17.0 ms    +1 %
//!  ██ B  backward     21.3 ms  █████████████████    median 21.0 ms    +1 %
//!  batch       128 graphs, 1,843 nodes, 3,920 edges
//!  rate        3.04 k graphs/s, 93.1 k edges/s; mean 3.12 k graphs/s, 95.5 k edges/s
//! ```

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;

use crate::app::View;
use crate::report::energy::describe_joules;
use crate::ui::panel::steps;
use crate::ui::scene::Scene;
use crate::ui::sheet::{Sheet, clip, first_scrolled};
use crate::ui::theme::PhaseStyle;
use gnntop_analysis::energy::EnergyScope;
use gnntop_analysis::figures::{count, difference, duration, elapsed, quantity};
use gnntop_analysis::findings::FindingKind;
use gnntop_analysis::store::{Phase, Stack, StepRow, Total};
use gnntop_wire::NameId;

/// Columns before a phase's name.
const SWATCH: u16 = 6;
/// Columns of a phase's name, or of what a fact is about.
const NAME: u16 = 14;
/// Columns of a duration.
const FIGURE: u16 = 9;
/// Columns of the comparison with the median step.
const USUAL: u16 = 27;
/// Longest bar.
const BAR_MOST: u16 = 60;

/// Findings that a step's detail names; a step seldom has more than two.
const FINDINGS_MOST: usize = 4;

/// Most stacks in a step's detail.
const STACKS_MOST: usize = 3;

/// Rows that the step bars above the detail need to say something.
const BARS_LEAST: u16 = 6;

/// Draws the detail below the step bars, as far as there is room for both.
pub fn draw_below_bars(body: &mut Sheet<'_>, scene: &Scene<'_>) {
    let height = body.height();
    let wanted = rows(scene).min((height * 3 / 5).max(height.saturating_sub(BARS_LEAST + 3)));
    let detail = if height < 10 { height } else { wanted };
    steps::draw(&mut body.rows(0, detail), scene);
    draw(&mut body.rows(height - detail, 0), scene);
}

/// Rows that the whole detail takes.
fn rows(scene: &Scene<'_>) -> u16 {
    let row = scene.app.step_in_view().and_then(|ordinal| scene.store.steps().known_row(ordinal));
    u16::try_from(1 + row.map_or(0, |row| lines(scene, &row).len())).unwrap_or(u16::MAX)
}

/// A line of the detail.
enum DetailRow<'a> {
    Phase { phase: &'a Phase, look: PhaseStyle },
    Fact { about: &'static str, text: String },
}

/// Draws the detail.
fn draw(sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
    let theme = scene.theme;
    sheet.fill_row(0, 0, theme.glyph('─', '-'), theme.dim());
    let row = scene.app.step_in_view().and_then(|ordinal| scene.store.steps().known_row(ordinal));
    let Some(row) = row else {
        sheet.text(1, 0, "no steps yet ", theme.strong());
        return;
    };
    draw_title(sheet, scene, &row);
    let lines = lines(scene, &row);
    let mut sheet = sheet.rows(1, 0);
    let rows = sheet.height();
    let first = first_scrolled(&mut sheet, scene.app.line(View::Step), lines.len(), rows);
    for (y, line) in (0..sheet.height()).zip(lines.iter().skip(first)) {
        let mut sheet = sheet.part(0, y, u16::MAX, 1);
        match line {
            DetailRow::Phase { phase, look } => draw_phase(&mut sheet, scene, &row, phase, look),
            DetailRow::Fact { about, text } => {
                sheet.text_within(1, 0, NAME, about, theme.dim());
                let room = sheet.width().saturating_sub(NAME);
                sheet.text(NAME, 0, &clip(text, room, theme), theme.plain());
            }
        }
    }
}

/// Draws a rule with the step's number, epoch and length, and how that compares with the median.
pub fn draw_title(sheet: &mut Sheet<'_>, scene: &Scene<'_>, row: &StepRow<'_>) {
    let theme = scene.theme;
    sheet.fill_row(0, 0, theme.glyph('─', '-'), theme.dim());
    let x = sheet.text(1, 0, &format!("step {} ", count(row.step().0)), theme.strong());
    let x = sheet.text(x, 0, &format!(" epoch {} ", count(row.epoch())), theme.dim());
    let median = scene.app.phases().statistics().period().percentile(0.5).unwrap_or(0);
    // A spike says itself how much longer it took than usual, by the steps around it and of its kind: two figures would differ.
    let is_spike = scene.app.findings().at_step(row.ordinal()).any(|(found, _)| found.kind == FindingKind::Spike);
    let against = |ns| match difference(ns, median).filter(|_| !is_spike) {
        Some(difference) => format!(", {difference} against the median"),
        None => String::new(),
    };
    let text = match scene.app.phases().by_clock(*row).map(|row| row.period_ns()) {
        Some(ns) => format!(" {}{} ", duration(ns), against(ns)),
        None => " not reported by the device ".to_owned(),
    };
    sheet.text_ending(x, sheet.width().saturating_sub(1), 0, &text, theme.plain());
}

fn draw_phase<'a>(sheet: &mut Sheet<'_>, scene: &Scene<'a>, row: &StepRow<'_>, phase: &'a Phase, look: &PhaseStyle) {
    let theme = scene.theme;
    let shown = scene.app.phases().row(row.ordinal());
    let told = |phase: &Phase| shown.as_ref().map(|row| row.phase_ns(phase.slot));
    (1..3).for_each(|x| sheet.cell(x, 0, look.fill, look.style()));
    sheet.cell(4, 0, look.letter, theme.strong());
    sheet.text_within(SWATCH, 0, NAME - 1, &clip(&scene.phase_name(phase), NAME - 1, theme), theme.plain());
    let figures = SWATCH + NAME;
    let Some(ns) = told(phase) else {
        sheet.text_ending(figures, figures + FIGURE, 0, theme.text("—", "-"), theme.dim());
        return;
    };
    sheet.text_ending(figures, figures + FIGURE, 0, &duration(ns), theme.plain());
    let start = figures + FIGURE + 2;
    let room = sheet.width().saturating_sub(start + USUAL + 1).min(BAR_MOST);
    let longest = scene.store.phases().iter().filter_map(told).max().unwrap_or(0);
    let share = ns as f64 / longest.max(1) as f64;
    let bar = (share * f64::from(room)).round() as u16;
    (0..bar.min(room)).for_each(|x| sheet.cell(start + x, 0, look.fill, look.style()));
    let Some(median) = scene.app.phases().statistics().phase(phase.slot).and_then(|all| all.percentile(0.5)) else {
        return;
    };
    let x = sheet.text(start + room + 1, 0, &format!("median {:>8}", duration(median)), theme.dim());
    sheet.text_ending(x, x + 9, 0, &difference(ns, median).unwrap_or_default(), theme.plain());
}

fn lines<'a>(scene: &Scene<'a>, row: &StepRow<'_>) -> Vec<DetailRow<'a>> {
    let phases = scene.store.phases().iter().zip(&scene.phase_styles);
    let mut lines: Vec<DetailRow<'a>> = phases.map(|(phase, look)| DetailRow::Phase { phase, look: *look }).collect();
    // What is not known of a step is not known of any other either, and no news.
    let mut fact = |about: &'static str, text: Option<String>| {
        lines.extend(text.map(|text| DetailRow::Fact { about, text }));
    };
    if let Some(text) = summarised(scene, row) {
        fact("summary", Some(text));
    }
    for text in finding_lines(scene, row) {
        fact("found", Some(text));
    }
    for text in stacks(scene, row) {
        fact("stack", Some(text));
    }
    if row.is_traced() {
        fact("traced", Some("a deep trace slowed this step down; percentiles and findings leave it out".to_owned()));
    }
    for (at, text) in span_lines(scene, row).into_iter().enumerate() {
        fact(if at == 0 { "spans" } else { "" }, Some(text));
    }
    for (phase, how) in inferred(scene) {
        fact("* inferred", Some(format!("{phase}: {how}")));
    }
    if let Some(clock) = scene.app.phases().describe_clock() {
        fact("clock", Some(clock));
        let other = scene.app.phases().other_clock(row.ordinal());
        fact(
            "other clock",
            Some(other.map_or_else(|| "the device has not reported this step".to_owned(), |o| clock_phases(scene, &o))),
        );
    }
    fact("batch", batch(scene, row));
    fact("rate", rates(scene, row));
    fact("time per", times_per(scene, row));
    fact("loss", row.loss().map(|loss| format!("{loss:.6}")));
    fact("energy", energy(scene, row));
    let (faults, switches) = usage(scene, row).unzip();
    fact("page faults", faults);
    fact("switches", switches);
    fact("time", Some(period_start(scene, row)));
    lines
}

/// For a step of long ago: how many steps it stands for.
pub fn summarised(scene: &Scene<'_>, row: &StepRow<'_>) -> Option<String> {
    let steps = scene.store.steps().coarseness(row.ordinal());
    (steps > 1).then(|| format!("the slowest of {} steps; of the others only a summary is left", count(steps)))
}

/// Page faults and context switches of the step, and of how many where it shares them with others.
fn usage(scene: &Scene<'_>, row: &StepRow<'_>) -> Option<(String, String)> {
    let (u, sharing) = scene.store.steps().shared_usage(row.ordinal())?;
    let of = sharing_in_words(&sharing);
    Some((
        format!("{} minor, {} major{of}", count(u.minor_faults), count(u.major_faults)),
        format!("{} voluntary, {} involuntary{of}", count(u.voluntary_switches), count(u.involuntary_switches)),
    ))
}

/// How many steps share page faults and context switches; nothing for one alone.
pub fn sharing_in_words(sharing: &Range<u64>) -> String {
    match sharing.end - sharing.start {
        1 => String::new(),
        steps => format!(" in {} steps", count(steps)),
    }
}

/// The phases that are inferred, and how.
fn inferred<'a>(scene: &Scene<'a>) -> impl Iterator<Item = (&'a str, &'a str)> {
    let store = scene.store;
    store.phases().iter().filter_map(move |phase| Some((phase.text.as_str(), store.session().inferred(&phase.text)?)))
}

/// Where the program was in the step when a phase took too long, each stack from the innermost frame outwards.
fn stacks(scene: &Scene<'_>, row: &StepRow<'_>) -> Vec<String> {
    let store = scene.store;
    let told = |stack: &Stack| {
        let after = duration(stack.t_ns.saturating_sub(row.period_start_ns()));
        let frames: Vec<&str> = stack.frames.iter().map(|frame| store.name(*frame)).collect();
        format!("after {after}: {}", frames.join(scene.theme.text(" ← ", " < ")))
    };
    store.stacks().within(row.period_start_ns()..row.end_ns()).take(STACKS_MOST).map(told).collect()
}

/// A step's phases by a clock, in words.
fn clock_phases(scene: &Scene<'_>, (clock, row): &(String, StepRow<'_>)) -> String {
    let phases = scene.store.phases().iter().filter(|phase| row.phase_ns(phase.slot) > 0);
    let phases: Vec<String> =
        phases.map(|phase| format!("{} {}", phase.text, duration(row.phase_ns(phase.slot)))).collect();
    format!("{clock}: step {}; {}", duration(row.period_ns()), phases.join(", "))
}

/// What was found at the step, the weightiest first.
pub fn finding_lines(scene: &Scene<'_>, row: &StepRow<'_>) -> Vec<String> {
    let found = scene.app.findings().at_step(row.ordinal()).take(FINDINGS_MOST);
    found.map(|(finding, place)| format!("{}: {}", finding.kind.title(), place.sentence)).collect()
}

/// Energy of the step, its scope and origin; `None` where no component is known.
pub fn energy(scene: &Scene<'_>, row: &StepRow<'_>) -> Option<String> {
    let known = scene.app.energy()?;
    let scope = known.figures.scope;
    let whose = if scope == EnergyScope::Job { "the job" } else { "the devices" };
    match known.book.total(scope, row.period_start_ns()..row.end_ns()) {
        Some((figure, _)) => Some(format!("{} of {whose}", describe_joules(&figure.into()))),
        None if known.figures.in_scope().is_none() => None,
        None => Some(format!("{} not read yet at this step", scene.theme.text("—", "-"))),
    }
}

/// When the step's period began.
pub fn period_start(scene: &Scene<'_>, row: &StepRow<'_>) -> String {
    let first = scene.store.first_ns().unwrap_or(0);
    format!("began {} after the start", elapsed(row.period_start_ns().saturating_sub(first)))
}

/// The known ones of some numbers, each with its word.
fn listed<T>(numbers: [(Option<T>, &str); 5], write: impl Fn(T) -> String) -> Option<String> {
    let known = numbers.into_iter().filter_map(|(n, word)| Some(format!("{} {word}", write(n?))));
    let text = known.collect::<Vec<_>>().join(", ");
    (!text.is_empty()).then_some(text)
}

/// The size of the step's batch, as far as it is known.
pub fn batch(scene: &Scene<'_>, row: &StepRow<'_>) -> Option<String> {
    let batch = row.batch();
    let numbers = [
        (batch.graphs, "graphs"),
        (batch.nodes, "nodes"),
        (batch.edges, "edges"),
        (batch.seeds, "seeds"),
        (scene.store.samples_of(row), "samples"),
    ];
    listed(numbers, count)
}

/// Work per second in this step, and on average.
fn rates(scene: &Scene<'_>, row: &StepRow<'_>) -> Option<String> {
    let per_s = |n: Option<u64>| n.filter(|_| row.period_ns() > 0).map(|n| n as f64 * 1e9 / row.period_ns() as f64);
    let (batch, all) = (row.batch(), scene.store.statistics().batch());
    let write = |graphs, edges, seeds, samples| {
        let numbers =
            [(graphs, "graphs/s"), (edges, "edges/s"), (seeds, "seeds/s"), (samples, "samples/s"), (None, "")];
        listed(numbers, quantity)
    };
    let samples = per_s(scene.store.samples_of(row));
    let this = write(per_s(batch.graphs), per_s(batch.edges), per_s(batch.seeds), samples)?;
    let mean = |total: Total, here: Option<u64>| here.and(total.per_s());
    let mean = write(mean(all.graphs, batch.graphs), mean(all.edges, batch.edges), mean(all.seeds, batch.seeds), None);
    Some(mean.map_or_else(|| this.clone(), |mean| format!("{this}; mean {mean}")))
}

/// Time for one piece of work in this step: a small batch is seen to be one.
pub fn times_per(scene: &Scene<'_>, row: &StepRow<'_>) -> Option<String> {
    let per = |n: Option<u64>| n.filter(|n| *n > 0).map(|n| row.period_ns() / n);
    let batch = row.batch();
    let numbers = [
        (batch.graphs, "a graph"),
        (batch.nodes, "a node"),
        (batch.edges, "an edge"),
        (batch.seeds, "a seed"),
        (scene.store.samples_of(row), "a sample"),
    ];
    listed(numbers.map(|(n, word)| (per(n), word)), duration)
}

/// Names on a line, and columns of each.
const NAMES: usize = 3;
const SPAN_NAME: u16 = 24;
/// Lines of a step, and of one whose operators were traced.
const LINES: usize = 1;
const TRACED_LINES: usize = 4;
/// Spans that are added up, so that drawing stays quick.
const MOST_SPANS: usize = 50_000;

/// Number of spans of a name, and their time in nanoseconds.
type Sums = HashMap<NameId, (u64, u64)>;

/// Names with the time that their spans take together, in words; empty if no span of the step is kept.
pub fn span_lines(scene: &Scene<'_>, row: &StepRow<'_>) -> Vec<String> {
    let mut sums: Vec<(NameId, (u64, u64))> = match scene.store.steps().slow().get(row.ordinal()) {
        // A slow step keeps its spans when its tracks no longer have them.
        Some(slow) => {
            let mut sums = Sums::new();
            slow.spans().iter().for_each(|span| add(&mut sums, span.name, span.end_ns.saturating_sub(span.start_ns)));
            sums
        }
        None => sum_tracks(scene, row),
    }
    .into_iter()
    .filter(|(name, _)| scene.store.phase(scene.store.name(*name)).is_none())
    .collect();
    sums.sort_by_key(|(name, (_, ns))| (Reverse(*ns), name.0));
    let short = |name: NameId| clip(scene.store.name(name), SPAN_NAME, scene.theme);
    let words: Vec<String> = sums.iter().map(|(name, sum)| describe(&short(*name), *sum)).collect();
    let span_lines = if row.is_traced() { TRACED_LINES } else { LINES };
    words.chunks(NAMES).take(span_lines).map(|words| words.join(", ")).collect()
}

/// Sums over the tracks that still have every span of the step.
fn sum_tracks(scene: &Scene<'_>, row: &StepRow<'_>) -> Sums {
    let (mut sums, mut seen) = (Sums::new(), 0);
    let lanes = scene.store.tracks().iter().filter_map(|track| track.lane());
    for lane in lanes.filter(|lane| lane.full_from_ns() <= row.period_start_ns()) {
        lane.each_box(row.period_start_ns()..row.end_ns(), |span, _| {
            seen += 1;
            // A longer one reaches into other steps.
            if seen <= MOST_SPANS && span.start_ns >= row.period_start_ns() && span.end_ns <= row.end_ns() {
                add(&mut sums, span.name, span.end_ns - span.start_ns);
            }
        });
    }
    sums
}

fn add(sums: &mut Sums, name: NameId, ns: u64) {
    let (spans, total_ns) = sums.entry(name).or_default();
    *spans += 1;
    *total_ns = total_ns.saturating_add(ns);
}

fn describe(name: &str, (spans, ns): (u64, u64)) -> String {
    let times = if spans > 1 { format!(" in {spans}") } else { String::new() };
    format!("{name} {}{times}", duration(ns))
}

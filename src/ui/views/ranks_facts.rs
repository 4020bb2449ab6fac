//! Facts about the ranks of a run, the most important first, a line each.

use ratatui::style::Style;

use crate::ui::scene::Scene;
use gnntop_analysis::figures::{count, duration, percent, quantity};
use gnntop_analysis::ranks::{Activity, Rank, Ranks, RunWork, StepWork, quantile};
use gnntop_analysis::stream::ClockEvidence;
use gnntop_wire::{Engine, phase};

/// Time over which rates are counted.
const RATE_NS: u64 = 5_000_000_000;
/// Most clocks that are listed.
const CLOCKS: usize = 3;

/// The lines below the lanes.
pub(super) fn facts(ranks: &Ranks<'_>, going: &Ranks<'_>, work: &RunWork, scene: &Scene<'_>) -> Vec<(String, Style)> {
    let theme = scene.theme;
    let mut facts: Vec<(String, Style)> =
        scene.app.run.notes().into_iter().map(|note| (note, theme.warning())).collect();
    facts.extend(going.oversubscribed().into_iter().map(|words| (words, theme.warning())));
    facts.extend(current_step(going, work, scene).map(|words| (words, theme.strong())));
    facts.extend(skew(going, work).map(|words| (words, theme.plain())));
    facts.push((pace(ranks, going, scene), theme.plain()));
    facts.extend(clocks(ranks).map(|words| (words, theme.plain())));
    facts
}

/// The step under the cursor, or the newest that all have.
fn current_step(going: &Ranks<'_>, work: &RunWork, scene: &Scene<'_>) -> Option<String> {
    let cursor = scene.app.window().cursor().and_then(|at| scene.store.steps().known_row(at)).map(|row| row.step());
    let found = |step| work.steps.iter().find(|work| work.step == step);
    let step = match cursor {
        Some(cursor) => match found(cursor) {
            Some(step) => step,
            None => return Some(format!("step {} is not among the newest that all ranks have", count(cursor.0))),
        },
        None => work.steps.first()?,
    };
    Some(describe_step(step, going))
}

fn describe_step(step: &StepWork, going: &Ranks<'_>) -> String {
    let number = count(step.step.0);
    match step.slowest().and_then(|at| going.all().get(at)) {
        Some(_) if step.skew_ns() == 0 => format!("step {number}: all ranks took the same time"),
        Some(rank) => format!(
            "step {number}: rank {} is the slowest, {} ({}) behind the fastest",
            rank.place.rank,
            duration(step.skew_ns()),
            percent(step.skew_share().unwrap_or(0.0))
        ),
        None => format!("step {number}: only one rank has it"),
    }
}

/// How far apart the ranks usually are.
fn skew(going: &Ranks<'_>, work: &RunWork) -> Option<String> {
    let median = quantile(&work.skew_ns, 0.5)?;
    let high = quantile(&work.skew_ns, 0.9)?;
    let steps = work.skew_ns.len();
    let slowest = work.usually_slowest().and_then(|(at, share)| Some((going.all().get(at)?.place.rank, share)));
    let slowest = slowest.map(|(rank, share)| format!("; rank {rank} is the slowest in {}", percent(share)));
    let (median, high) = (duration(median), duration(high));
    Some(format!("slowest behind fastest in {steps} steps: p50 {median}, p90 {high}{}", slowest.unwrap_or_default()))
}

/// The run's throughput, and how that compares with one rank alone.
fn pace(ranks: &Ranks<'_>, going: &Ranks<'_>, scene: &Scene<'_>) -> String {
    let whole = going.throughput(|rank| rank.store.recent_throughput(RATE_NS));
    let engine = ranks.all().iter().map(|rank| &rank.place.engine).find(|engine| **engine != Engine::Unknown);
    let mut parts = vec![format!("{} ranks", ranks.expected())];
    parts.extend(engine.map(|engine| format!("engine {engine}")));
    let rates = [(whole.steps_per_s, "steps/s"), (whole.graphs_per_s, "graphs/s"), (whole.seeds_per_s, "seeds/s")];
    parts.extend(rates.iter().filter_map(|(rate, unit)| Some(format!("{} {unit}", quantity((*rate)?)))));
    let other = scene.app.other().map(|other| other.store());
    let alone = other.filter(|store| {
        let place = store.session().info().map(|info| info.place.as_ref());
        store.steps().total() > 0 && place.is_some_and(|place| place.is_none_or(|place| place.ranks <= 1))
    });
    let alone = alone.map(|store| store.statistics().throughput());
    let alone = alone.and_then(|alone| alone.graphs_per_s.or(alone.seeds_per_s)).or_else(|| going.alone_per_s());
    parts.push(match alone.and_then(|alone| going.efficiency(&whole, alone)) {
        Some(share) => format!("efficiency {} of one rank", percent(share)),
        None => "efficiency unknown: gnntop.one_rank(items_per_s) reports what one rank does".to_owned(),
    });
    parts.join(scene.theme.text(" · ", " | "))
}

/// Clocks that are not the run's own, and how well that is known.
fn clocks(ranks: &Ranks<'_>) -> Option<String> {
    let other = |rank: &&Rank<'_>| !matches!(rank.evidence, ClockEvidence::SameClock | ClockEvidence::Imported);
    let others: Vec<&Rank<'_>> = ranks.all().iter().filter(other).collect();
    let words = |rank: &&Rank<'_>| {
        let host = rank.store.session().info().map_or("", |info| info.host.as_str());
        let sign = if rank.offset_ns < 0 { "-" } else { "+" };
        let offset = duration(rank.offset_ns.unsigned_abs());
        let error = match rank.error_ns {
            Some(error_ns) => format!("within {}", duration(error_ns)),
            None => "by the wall clocks, error unknown".to_owned(),
        };
        format!("rank {} ({host}) {sign}{offset} {error}", rank.place.rank)
    };
    let more = others.len().saturating_sub(CLOCKS);
    let more = if more > 0 { format!(", {more} more") } else { String::new() };
    let words: Vec<String> = others.iter().take(CLOCKS).map(words).collect();
    (!words.is_empty()).then(|| format!("clocks: {}{more}", words.join(", ")))
}

/// What the lanes show of an all-reduce.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SeenWaits {
    waits: bool,
    reduces: bool,
}

impl SeenWaits {
    /// Takes in what a column shows.
    pub(super) fn add(&mut self, what: Activity<'_>) {
        self.waits |= what == Activity::Wait;
        self.reduces |= what == Activity::Phase(phase::ALL_REDUCE);
    }
}

/// What the signs mean, of those that are there.
pub(super) fn legend(seen: SeenWaits, scene: &Scene<'_>) -> String {
    let theme = scene.theme;
    let wait = format!("{} wait for other ranks in the all-reduce", theme.glyph('·', '.'));
    let reduce = if seen.waits { "A the all-reduce itself" } else { "A the all-reduce and the wait for other ranks" };
    let parts = [seen.waits.then_some(wait.as_str()), seen.reduces.then_some(reduce)];
    let own =
        format!("own: a step without these waits, the median of the newest 100; {} slowest", theme.text("◀", "<"));
    parts.into_iter().flatten().chain([own.as_str()]).collect::<Vec<&str>>().join("; ")
}

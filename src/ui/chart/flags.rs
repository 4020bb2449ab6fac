//! Findings and marks among the steps of a chart, as a sign above each bar.

use ratatui::style::Style;

use crate::ui::chart::labels::Labels;
use crate::ui::scene::Scene;
use crate::ui::sheet::{Sheet, clip};
use crate::ui::theme::Theme;
use gnntop_analysis::figures::{count, counted, duration};
use gnntop_analysis::findings::{Finding, FindingKind, Severity};
use gnntop_analysis::store::StepColumn;

/// Longest name of a mark, in columns.
const NAME_MOST: u16 = 20;
/// A mark in more than one column out of this many says nothing about any of them...
const OFTEN: usize = 6;
/// ...but for those columns in which what ended at it took this share of the time.
const WORTH_A_SIGN: f64 = 0.05;

/// One sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag<'a> {
    /// A finding begins here.
    Finding(FindingKind, Severity),
    /// An instant that the program named.
    Mark(&'a str),
    /// The same, where what ended at it took a good part of the column's time.
    LongMark(&'a str),
}

impl Flag<'_> {
    fn style(self, theme: &Theme) -> Style {
        match self {
            Self::Finding(_, Severity::Minor | Severity::Major) => theme.warning(),
            Self::Finding(_, Severity::Note) | Self::Mark(_) | Self::LongMark(_) => theme.accent(),
        }
    }

    /// The sign, and what it means.
    fn sign(self, theme: &Theme) -> (char, &'static str) {
        match self {
            Self::Finding(kind, _) => sign(kind, theme),
            Self::Mark(_) | Self::LongMark(_) => (theme.glyph('◆', '*'), "mark"),
        }
    }
}

/// The sign of a finding, and what it means.
pub fn sign(kind: FindingKind, theme: &Theme) -> (char, &'static str) {
    match kind {
        FindingKind::Spike => ('!', "spike"),
        FindingKind::PartialBatch => (theme.glyph('◔', 'p'), "partial batch"),
        FindingKind::Gap => ('g', "long gap"),
        FindingKind::Stall => ('s', "stall at a mark"),
        FindingKind::PageFaults => ('f', "page faults"),
        FindingKind::WarmUp => ('w', "warm-up"),
        FindingKind::Drift => ('d', "gets slower"),
        other => (theme.glyph('•', 'o'), other.title()),
    }
}

/// The signs of a chart.
pub struct Flags<'a> {
    /// Columns of the screen, from left to right, with their signs; of several in a column the weightiest comes first.
    all: Vec<(u16, Flag<'a>)>,
    /// A mark that is left out because it is nearly everywhere: its name, how many there are and what they took.
    left_out: Option<(&'a str, u64, Option<u64>)>,
    /// The number of steps that findings cover, if the chart has older ones, too.
    looked_at: Option<u64>,
}

impl<'a> Flags<'a> {
    /// The signs of these columns.
    pub fn new<'c>(columns: impl Iterator<Item = (u16, &'c StepColumn<'c>)>, scene: &Scene<'a>) -> Self {
        let columns: Vec<(u16, &StepColumn<'_>)> = columns.collect();
        let mut all = findings_in(&columns, scene);
        for (x, column) in &columns {
            all.extend(marks_in(column, scene).into_iter().map(|mark| (*x, mark)));
        }
        let judgement = scene.app.judgement();
        let is_older = columns.first().is_some_and(|(_, column)| column.first < judgement.ordinals.start);
        let mut flags = Self { all, left_out: None, looked_at: is_older.then(|| judgement.steps()) };
        flags.leave_out_what_is_everywhere(columns.len(), scene);
        flags
    }

    fn leave_out_what_is_everywhere(&mut self, columns: usize, scene: &Scene<'a>) {
        let most = columns.div_ceil(OFTEN).max(2);
        let mut times: Vec<(&str, usize)> = Vec::new();
        for (_, flag) in &self.all {
            let (Flag::Mark(name) | Flag::LongMark(name)) = flag else { continue };
            match times.iter_mut().find(|(known, _)| known == name) {
                Some((_, times)) => *times += 1,
                None => times.push((name, 1)),
            }
        }
        times.retain(|(_, times)| *times > most);
        let Some((name, _)) = times.first() else { return };
        let (count, total_ns) = scene.store.marks_with_text(name);
        self.left_out = Some((*name, count, total_ns));
        self.all.retain(|(_, flag)| !times.iter().any(|(name, _)| *flag == Flag::Mark(name)));
    }

    /// Draws the signs, one a column.
    pub fn draw(&self, sheet: &mut Sheet<'_>, theme: &Theme) {
        for (x, flag) in self.all.iter().rev() {
            sheet.cell(*x, 0, flag.sign(theme).0, flag.style(theme));
        }
    }

    /// The signs of the chart with their meaning, and what was left out.
    pub fn legend(&self, theme: &Theme) -> String {
        let mut words: Vec<String> = Vec::new();
        for (_, flag) in &self.all {
            let (sign, meaning) = flag.sign(theme);
            let word = format!("{sign} {meaning}");
            if !words.contains(&word) {
                words.push(word);
            }
        }
        let mut parts = vec![words.join("  ")];
        if words.is_empty() {
            parts = vec!["no finding begins in these steps".to_owned()];
        }
        parts.extend(self.left_out.map(|(name, times, took_ns)| match took_ns {
            Some(ns) => format!("\"{name}\" {}, {} in all", counted(times, "time", "times"), duration(ns)),
            None => format!("\"{name}\" is nearly everywhere"),
        }));
        parts.extend(self.looked_at.map(|steps| format!("findings: newest {} steps", count(steps))));
        parts.join("; ")
    }

    /// Writes the names of marks where there is room, each as often as it occurs, except one that is nearly everywhere.
    pub fn draw_names(&self, sheet: &mut Sheet<'_>, labels: &mut Labels, scene: &Scene<'_>) {
        for (x, flag) in &self.all {
            let is_everywhere = |name: &str| self.left_out.is_some_and(|(left_out, ..)| left_out == name);
            if let Flag::Mark(name) | Flag::LongMark(name) = flag
                && !is_everywhere(name)
            {
                labels.place_around(sheet, *x, &clip(name, NAME_MOST, scene.theme), scene.theme.dim());
            }
        }
    }
}

/// Where findings begin: first those that name a cause, then the weightiest.
fn findings_in<'a>(columns: &[(u16, &StepColumn<'_>)], scene: &Scene<'_>) -> Vec<(u16, Flag<'a>)> {
    let mut all = Vec::new();
    let mut found: Vec<&Finding> = scene.app.findings().found.iter().collect();
    // A checkpoint between steps is a long gap too.
    found.sort_by_key(|finding| !matches!(finding.kind, FindingKind::Stall | FindingKind::PageFaults));
    for finding in found {
        let flag = Flag::Finding(finding.kind, finding.severity);
        for place in &finding.places {
            let ordinal = place.ordinals.start;
            let at = columns.partition_point(|(_, column)| column.ordinals().end <= ordinal);
            let Some((x, column)) = columns.get(at).filter(|(_, column)| column.first <= ordinal) else { continue };
            // Among several steps there is always a partial one.
            let says_nothing = finding.kind == FindingKind::PartialBatch && column.steps > 1;
            if !says_nothing && all.last() != Some(&(*x, flag)) {
                all.push((*x, flag));
            }
        }
    }
    all
}

/// The marks made while a column's steps ran, each text once.
fn marks_in<'a>(column: &StepColumn<'_>, scene: &Scene<'a>) -> Vec<Flag<'a>> {
    let times = scene.store.steps().column_time(column);
    let least_ns = WORTH_A_SIGN * times.end.saturating_sub(times.start) as f64;
    let mut texts: Vec<(&str, u64)> = Vec::new();
    for mark in scene.store.marks().within(times) {
        let (text, took_ns) = (scene.store.mark_text(mark), mark.duration_ns().unwrap_or(0));
        match texts.iter_mut().find(|(known, _)| *known == text) {
            Some((_, ns)) => *ns = ns.saturating_add(took_ns),
            None => texts.push((text, took_ns)),
        }
    }
    let flag = |(text, took_ns)| if took_ns as f64 > least_ns { Flag::LongMark(text) } else { Flag::Mark(text) };
    texts.into_iter().map(flag).collect()
}

//! What is worth a look among the steps of a chart, a sign above each bar: spikes, partial batches, marks.

use super::Scene;
use super::labels::Labels;
use super::sheet::{Sheet, clip};
use super::theme::Theme;
use crate::store::{StepColumn, StepRow};

/// Longest name of a mark, in columns.
const NAME_MOST: u16 = 20;
/// A mark that stands in more than one column out of this many says nothing about any of them.
const OFTEN: usize = 6;

/// One sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag<'a> {
    /// A step that took much longer than others.
    Spike,
    /// A step with less work than the others.
    Partial,
    /// An instant that the program named.
    Mark(&'a str),
}

impl Flag<'_> {
    /// The sign, and what it means.
    fn sign(self, theme: &Theme) -> (char, &'static str) {
        match self {
            Self::Spike => ('!', "spike"),
            Self::Mark(_) => (theme.glyph('◆', '*'), "mark"),
            Self::Partial => (theme.glyph('◔', 'p'), "partial batch"),
        }
    }
}

/// The signs of a chart.
pub struct Flags<'a> {
    /// Columns of the screen, from left to right, with their signs; of several in a column the weightiest comes first.
    all: Vec<(u16, Flag<'a>)>,
    /// The name of a mark that is left out because it stands nearly everywhere.
    left_out: Option<&'a str>,
}

impl<'a> Flags<'a> {
    /// The signs of these columns.
    pub fn of<'c>(columns: impl Iterator<Item = (u16, &'c StepColumn<'c>)>, scene: &Scene<'a>) -> Self {
        let columns: Vec<(u16, &StepColumn<'_>)> = columns.collect();
        let full = usual_size(columns.iter().map(|(_, column)| &column.median));
        let mut all = Vec::new();
        for (x, column) in &columns {
            let spikes = &scene.app.findings().spikes;
            let first = spikes.partition_point(|spike| spike.ordinal < column.first);
            if spikes.get(first).is_some_and(|spike| column.ordinals().contains(&spike.ordinal)) {
                all.push((*x, Flag::Spike));
            }
            // Among several steps there is always a partial one.
            let is_partial = column.steps == 1 && size(&column.median).is_some_and(|size| size < full);
            all.extend(is_partial.then_some((*x, Flag::Partial)));
            all.extend(marks_in(column, scene).map(|mark| (*x, Flag::Mark(mark))));
        }
        let mut flags = Self { all, left_out: None };
        flags.leave_out_what_is_everywhere(columns.len());
        flags
    }

    fn leave_out_what_is_everywhere(&mut self, columns: usize) {
        let most = columns.div_ceil(OFTEN).max(2);
        let mut times: Vec<(&str, usize)> = Vec::new();
        for (_, flag) in &self.all {
            let Flag::Mark(name) = flag else { continue };
            match times.iter_mut().find(|(known, _)| known == name) {
                Some((_, times)) => *times += 1,
                None => times.push((name, 1)),
            }
        }
        times.retain(|(_, times)| *times > most);
        self.left_out = times.first().map(|(name, _)| *name);
        self.all.retain(|(_, flag)| !times.iter().any(|(name, _)| *flag == Flag::Mark(name)));
    }

    /// Draws the signs, one a column.
    pub fn draw(&self, sheet: &mut Sheet<'_>, theme: &Theme) {
        for (x, flag) in self.all.iter().rev() {
            let style = if *flag == Flag::Spike { theme.warning() } else { theme.accent() };
            sheet.cell(*x, 0, flag.sign(theme).0, style);
        }
    }

    /// The signs that a chart may have, with their meaning, and what was left out.
    pub fn legend(&self, theme: &Theme) -> String {
        let words = [Flag::Spike, Flag::Partial, Flag::Mark("")].map(|flag| {
            let (sign, meaning) = flag.sign(theme);
            format!("{sign} {meaning}")
        });
        let left_out = self.left_out.map(|name| format!(", but for \"{name}\", which is nearly everywhere"));
        format!("{}{}", words.join("  "), left_out.unwrap_or_default())
    }

    /// Writes the names of marks where there is room, each as often as it comes.
    pub fn draw_names(&self, sheet: &mut Sheet<'_>, labels: &mut Labels, scene: &Scene<'_>) {
        for (x, flag) in &self.all {
            if let Flag::Mark(name) = flag {
                labels.place_around(sheet, *x, &clip(name, NAME_MOST, scene.theme), scene.theme.dim());
            }
        }
    }
}

/// Names of the marks made while a column's steps ran, the newest first, each once.
fn marks_in<'a>(column: &StepColumn<'_>, scene: &Scene<'a>) -> impl Iterator<Item = &'a str> {
    let times = scene.store.steps().time_of(column);
    let marks = scene.store.marks();
    let mut last = None;
    let in_column = marks.within(times).map(|mark| scene.store.name(mark.name));
    in_column.filter(move |name| last.replace(*name) != Some(*name))
}

/// The number that a batch's size is a choice of.
fn size(row: &StepRow<'_>) -> Option<u64> {
    row.batch().graphs.or(row.batch().seeds)
}

/// The median size of a batch, 0 where none is known.
fn usual_size<'r>(rows: impl Iterator<Item = &'r StepRow<'r>>) -> u64 {
    let mut sizes: Vec<u64> = rows.filter_map(size).collect();
    if sizes.is_empty() {
        return 0;
    }
    let middle = sizes.len() / 2;
    *sizes.select_nth_unstable(middle).1
}

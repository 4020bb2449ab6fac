//! Stacks that were taken all the time, as flames: the phases, and below each what ran in it, as wide as its share of the time.
//!
//! ```text
//! ─stacks ─ 1,318 taken, 20 a second, for 0.3 % of a core ──────────────────
//! │all ────────────────────────────────────────────────────────────────────
//! │data wait ─────────│backward ─────────────│forward ────────│optimizer
//! │main (train.py:19) │main (train.py:20) ───│main (train.py:2
//! │collate (train.py: │train_one (train.py:15│train_one (train
//!
//! collate (train.py:7): 17 % of the time, 4.1 % in it alone; 224 stacks
//! ```

use gnntop_analysis::figures::{count, percent};
use gnntop_analysis::store::{SampledStacks, StackTree};
use gnntop_wire::NameId;
use ratatui::style::Style;

use crate::ui::headings::rule;
use crate::ui::scene::Scene;
use crate::ui::sheet::{Sheet, clip, first_shown, width};

/// Rows from which on what is selected is read out below.
const READING_FROM: u16 = 5;
const NONE: &str = "no stacks: start a Python program with `gnntop run --stacks 20 -- python ...`";

/// What is drawn of the tree.
struct Flames<'a> {
    scene: &'a Scene<'a>,
    selected: &'a [NameId],
    zoomed: &'a [NameId],
    /// Depth of the first row.
    first: usize,
}

/// A frame's box: how deep it lies, and its columns.
#[derive(Clone, Copy)]
struct FrameBox {
    depth: usize,
    x: u16,
    end: u16,
}

/// Draws the view.
pub fn draw(body: &mut Sheet<'_>, scene: &Scene<'_>) {
    let sampled = scene.store.sampled();
    if sampled.total() == 0 {
        rule(body, 0, "stacks", "", scene);
        body.text(1, 1, &clip(NONE, body.width().saturating_sub(2), scene.theme), scene.theme.dim());
        return;
    }
    rule(body, 0, "stacks", &note(sampled, scene), scene);
    let tree = StackTree::from_sampled(sampled);
    let flame = scene.app.flame();
    let has_reading = body.height() >= READING_FROM;
    let mut rows = body.rows(1, u16::from(has_reading));
    // The selected frame is in view, and what it calls.
    let first = first_shown(flame.selected().len() + 1, depth(&tree), rows.height());
    let flames = Flames { scene, selected: flame.selected(), zoomed: flame.zoomed(), first };
    let all = FrameBox { depth: 0, x: 0, end: rows.width() };
    flames.draw(&mut rows, &tree, &mut Vec::new(), all);
    if has_reading {
        let y = body.height() - 1;
        read_out(&mut body.part(0, y, u16::MAX, 1), &tree, flame.selected(), scene);
    }
}

/// How many, how often, at what cost, and what of it is shown.
fn note(sampled: &SampledStacks, scene: &Scene<'_>) -> String {
    let mut text = format!("{} taken, {} a second", count(sampled.total()), sampled.per_second());
    let elapsed_ns = scene.store.elapsed_ns();
    if elapsed_ns > 0 {
        text += &format!(", for {} of a core", percent(sampled.cost_ns() as f64 / elapsed_ns as f64));
    }
    if sampled.located() < sampled.total() {
        text += &format!("; shown {}, whose place is known", count(sampled.located()));
    }
    text
}

/// Rows that the tree takes, the one of all stacks included.
fn depth(tree: &StackTree) -> usize {
    1 + tree.calls.values().map(depth).max().unwrap_or(0)
}

impl Flames<'_> {
    /// Draws the frame at this path, and below it what it calls.
    fn draw(&self, sheet: &mut Sheet<'_>, tree: &StackTree, path: &mut Vec<NameId>, place: FrameBox) {
        self.draw_box(sheet, path, place);
        let inner = place.depth + 1;
        if inner >= self.first + usize::from(sheet.height()) {
            return;
        }
        if let Some(zoomed) = self.zoomed.get(path.len())
            && self.zoomed.starts_with(path)
        {
            if let Some(called) = tree.calls.get(zoomed) {
                path.push(*zoomed);
                self.draw(sheet, called, path, FrameBox { depth: inner, ..place });
                path.pop();
            }
            return;
        }
        let columns = u64::from(place.end - place.x);
        let column = |before: u64| place.x + (before.saturating_mul(columns) / tree.count.max(1)) as u16;
        let mut before = 0;
        for (frame, called) in tree.most_frequent() {
            let (x, end) = (column(before), column(before + called.count));
            before += called.count;
            if x < end {
                path.push(frame);
                self.draw(sheet, called, path, FrameBox { depth: inner, x, end });
                path.pop();
            }
        }
    }

    fn draw_box(&self, sheet: &mut Sheet<'_>, path: &[NameId], place: FrameBox) {
        let Some(y) = place.depth.checked_sub(self.first).and_then(|y| u16::try_from(y).ok()) else { return };
        let theme = self.scene.theme;
        let is_selected = path == self.selected;
        let look = path.first().and_then(|phase| self.scene.phase_style(self.scene.store.name(*phase)));
        let edge = look.map_or(theme.dim(), |look| Style::new().fg(look.color));
        let mut part = sheet.part(place.x, y, place.end - place.x, 1);
        let line = if is_selected { ('━', '=') } else { ('─', '-') };
        part.fill_row(0, 0, theme.glyph(line.0, line.1), if is_selected { theme.accent() } else { theme.dim() });
        part.cell(0, 0, if is_selected { theme.glyph('▶', '>') } else { theme.glyph('│', '|') }, edge);
        let name = path.last().map_or("all", |frame| self.scene.store.name(*frame));
        let name = clip(name, part.width().saturating_sub(1), theme);
        let x = part.text(1, 0, &name, if is_selected { theme.accent() } else { theme.plain() });
        if x < part.width() {
            part.cell(x, 0, ' ', theme.plain());
        }
    }
}

/// The selected frame in words.
fn read_out(row: &mut Sheet<'_>, tree: &StackTree, selected: &[NameId], scene: &Scene<'_>) {
    let Some(node) = tree.get(selected) else { return };
    let share = |part: u64| percent(part as f64 / tree.count.max(1) as f64);
    let name = selected.last().map_or("all", |frame| scene.store.name(*frame));
    let told = format!(
        ": {} of the time, {} in it alone; {} {}",
        share(node.count),
        share(node.own_count()),
        count(node.count),
        if node.count == 1 { "stack" } else { "stacks" }
    );
    let room = row.width().saturating_sub(width(&told) + 2).max(row.width() / 2);
    let x = row.text(1, 0, &clip(name, room, scene.theme), scene.theme.strong());
    row.text(x, 0, &told, scene.theme.plain());
}

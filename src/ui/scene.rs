//! What all panels draw from: the app, its store, the theme, and the looks of the run's phases.

use super::sheet::{Sheet, clip, width};
use super::spots::Spots;
use super::theme::{PhaseLook, Theme};
use crate::app::{App, Panel, View};
use gnntop_analysis::store::{Phase, Store};

/// A phase counts as slow when it has been open for this many usual steps...
const SLOW_STEPS: u64 = 2;
/// ...and for this long.
const SLOW_NS: u64 = 200_000_000;

/// Everything that a frame is drawn from.
pub struct Scene<'a> {
    /// The app.
    pub app: &'a App,
    /// What is known of the run.
    pub store: &'a Store,
    /// Colours and glyphs.
    pub theme: &'a Theme,
    /// Looks of [`Store::phases`], in their order.
    pub looks: Vec<PhaseLook>,
    /// What the mouse can point at.
    pub spots: Spots,
}

/// A span that has been open for much longer than a step usually takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenPhase<'a> {
    /// What it is called.
    pub name: &'a str,
    /// For how long it has been open.
    pub ns: u64,
}

impl<'a> Scene<'a> {
    /// The scene of this moment.
    pub fn new(app: &'a App, theme: &'a Theme) -> Self {
        let store = app.run.store();
        let name = |phase: &'a Phase| (!phase.is_gap()).then_some(phase.text.as_str());
        let mut looks = theme.phase_looks(store.phases().iter().map(name));
        let is_clear = |phase: &Phase| app.highlight() == Some(phase.slot);
        if store.phases().iter().any(is_clear) {
            let others = looks.iter_mut().zip(store.phases()).filter(|(_, phase)| !is_clear(phase));
            others.for_each(|(look, _)| *look = theme.faint(*look));
        }
        Self { app, store, theme, looks, spots: Spots::default() }
    }

    /// Whether there is nothing but hardware to show, and a word on why.
    pub fn is_hardware_only(&self) -> bool {
        self.app.status().hint.is_some() && self.store.steps().total() == 0 && self.open_phase().is_none()
    }

    /// The look of the phase with this name.
    pub fn look(&self, name: &str) -> Option<PhaseLook> {
        let at = self.store.phases().iter().position(|phase| !phase.is_gap() && phase.text == name)?;
        self.looks.get(at).copied()
    }

    /// What has been open on the training track for much longer than a step usually takes.
    pub fn open_phase(&self) -> Option<OpenPhase<'a>> {
        let training = self.store.training_track().map(|track| track.id);
        let is_ours = |id| training.is_none_or(|training| training == id);
        let (_, open) = self.store.open_spans().find(|(track, _)| is_ours(track.id))?;
        let usual_ns = self.store.statistics().period().percentile(0.5).unwrap_or(0);
        let ns = self.store.now_ns().saturating_sub(open.since_ns);
        let is_slow = ns >= usual_ns.saturating_mul(SLOW_STEPS).max(SLOW_NS);
        is_slow.then(|| OpenPhase { name: self.store.name(open.name), ns })
    }
}

/// The first row of a panel: a rule with its name, and where the focus is.
pub struct Title<'t> {
    /// The panel.
    pub panel: Panel,
    /// Its name.
    pub name: &'t str,
    /// What to know to read it.
    pub note: &'t str,
    /// A figure that sums it up.
    pub right: &'t str,
}

impl Title<'_> {
    /// Draws the title into the sheet's first row.
    pub fn draw(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
        let theme = scene.theme;
        let focused = scene.app.view() == View::Overview && scene.app.focus() == self.panel;
        sheet.fill_row(0, 0, theme.glyph('─', '-'), theme.dim());
        if focused {
            sheet.cell(0, 0, theme.glyph('▌', '>'), theme.accent());
        }
        let style = if focused { theme.accent() } else { theme.strong() };
        let mut x = sheet.text(1, 0, self.name, style);
        x = sheet.text(x, 0, " ", theme.plain());
        let right_width = width(self.right);
        let room = sheet.width().saturating_sub(x);
        // The figure matters more than the note.
        let right_room = right_width.min(room.saturating_sub(3));
        let note_room = room.saturating_sub(if right_room > 0 { right_room + 6 } else { 3 });
        if !self.note.is_empty() && note_room >= 8 {
            x = sheet.text(x, 0, &format!(" {} ", clip(self.note, note_room, theme)), theme.dim());
        }
        if right_room > 0 {
            let text = format!(" {} ", clip(self.right, right_room, theme));
            let end = sheet.width().saturating_sub(1);
            sheet.text_ending(x, end, 0, &text, theme.plain());
        }
    }
}

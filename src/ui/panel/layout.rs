//! Where each panel of the overview goes.

use crate::ui::panel::hardware;
use crate::ui::panel::phases;
use crate::ui::scene::Scene;
use crate::ui::sheet::Sheet;

/// From this width on, phases and hardware are side by side.
const WIDE: u16 = 112;
/// The share of a wide screen that goes to the phases.
const PHASES_WIDTH: u16 = 76;
/// Rows that the step bars need to say something: title, labels, three of bars, numbers.
const STEPS_LEAST: u16 = 6;
/// Rows of a phase table that is worth showing.
const PHASES_LEAST: u16 = 4;

/// From this many rows on there is room for spans...
const ROOMY: u16 = 32;
/// ...and for this many of them.
const SPANS_MOST: u16 = 8;

/// A part of the body of the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PanelArea {
    x: u16,
    y: u16,
    width: u16,
    height: u16,
}

impl PanelArea {
    /// This part of the body.
    pub fn sheet_in<'a>(&self, body: &'a mut Sheet<'_>) -> Sheet<'a> {
        body.part(self.x, self.y, self.width, self.height)
    }
}

/// Where the panels of the overview are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverviewLayout {
    /// The step bars.
    pub steps: PanelArea,
    /// The phase table.
    pub phases: PanelArea,
    /// The hardware strip.
    pub hardware: PanelArea,
}

impl OverviewLayout {
    /// Lays out an overview of this size.
    pub fn new(width: u16, height: u16, scene: &Scene<'_>) -> Self {
        let (below, side_by_side) = rows_below(width, height, scene);
        let steps_height = height
            - below.phases.max(if side_by_side { below.hardware } else { 0 })
            - if side_by_side { 0 } else { below.hardware };
        let steps = PanelArea { x: 0, y: 0, width, height: steps_height };
        let y = steps_height;
        let (phases, hardware) = if side_by_side {
            let left = PHASES_WIDTH;
            let right = PanelArea { x: left + 2, y, width: width - left - 2, height: below.hardware };
            (PanelArea { x: 0, y, width: left, height: below.phases }, right)
        } else {
            let hardware = PanelArea { x: 0, y: y + below.phases, width, height: below.hardware };
            (PanelArea { x: 0, y, width, height: below.phases }, hardware)
        };
        Self { steps, phases, hardware }
    }
}

/// Rows for spans below the phases: only where the bars have plenty.
fn span_rows(body: u16, scene: &Scene<'_>) -> u16 {
    let spans = scene.store.spans().iter().filter(|span| !span.is_phase).count().min(usize::from(SPANS_MOST)) as u16;
    if spans == 0 || body < ROOMY { 0 } else { spans + 1 }
}

struct RowsBelow {
    phases: u16,
    hardware: u16,
}

/// Rows for the panels below the bars, and whether they are side by side.
fn rows_below(width: u16, body: u16, scene: &Scene<'_>) -> (RowsBelow, bool) {
    let spare = body.saturating_sub(STEPS_LEAST);
    let table = phases::rows(scene) + span_rows(body, scene);
    if width >= WIDE {
        let wanted = table.max(hardware::rows(scene, width - PHASES_WIDTH));
        let height = wanted.min(spare.max(body / 2));
        return (RowsBelow { phases: height, hardware: height }, true);
    }
    let strip = hardware::rows(scene, width);
    let below = match spare {
        _ if spare >= table + strip => RowsBelow { phases: table, hardware: strip },
        // Without its title the strip still says the most important.
        _ if spare > table => RowsBelow { phases: table, hardware: spare - table },
        _ if spare >= PHASES_LEAST => RowsBelow { phases: spare, hardware: 0 },
        _ => RowsBelow { phases: 0, hardware: 0 },
    };
    (below, false)
}

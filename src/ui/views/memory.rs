//! Memory: what the program's allocator tells, by phase.

use gnntop_wire::{NameId, PhaseMemory};

use super::{first_shown, rule};
use crate::app::View;
use crate::figures::{bytes, count};
use crate::ui::Scene;
use crate::ui::sheet::{Sheet, clip};

/// Columns of a figure with the space before it.
const FIGURE: u16 = 11;
/// What is told of each phase.
const HEADS: [&str; 4] = ["peak", "allocated", "freed", "calls"];

/// Draws the view.
pub fn draw(body: &mut Sheet<'_>, scene: &Scene<'_>) {
    let theme = scene.theme;
    let memory = scene.store.memory();
    rule(body, 0, "memory", "as the program's allocator tells it", scene);
    let live = memory.live_bytes().last().and_then(|point| point.value());
    let facts = [
        ("resident", scene.store.hardware().process_rss_bytes().map(bytes).map_err(|absence| absence.to_string())),
        ("live", live.map(bytes).ok_or_else(|| "not told by the program".to_owned())),
        ("peak", memory.peak_bytes().map(|n| bytes(n as f64)).ok_or_else(|| "not told by the program".to_owned())),
    ];
    for (y, (about, value)) in (1..).zip(facts) {
        body.text(1, y, about, theme.dim());
        match value {
            Ok(value) => body.text(12, y, &value, theme.plain()),
            Err(reason) => body.text(12, y, &format!("{} {reason}", theme.text("—", "-")), theme.dim()),
        };
    }
    if !memory.phases().is_empty() {
        draw_phases(&mut body.rows(5, 0), scene, memory.phases());
    }
}

fn draw_phases(sheet: &mut Sheet<'_>, scene: &Scene<'_>, phases: &[PhaseMemory]) {
    let theme = scene.theme;
    let figures = (sheet.width().saturating_sub(16) / FIGURE).min(HEADS.len() as u16);
    let name = sheet.width().saturating_sub(FIGURE * figures + 2);
    rule(sheet, 0, "phases", "", scene);
    for (i, head) in (1..=figures).zip(HEADS) {
        sheet.text_ending(0, name + i * FIGURE + 1, 0, &format!(" {head} "), theme.plain());
    }
    let first = first_shown(scene.app.line(View::Memory), phases.len(), sheet.height().saturating_sub(1));
    for (y, phase) in (1..sheet.height()).zip(&phases[first..]) {
        let text = if phase.phase == NameId::NONE { "outside phases" } else { scene.store.name(phase.phase) };
        sheet.text(1, y, &clip(text, name.saturating_sub(1), theme), theme.plain());
        let size = |n: u64| bytes(n as f64);
        let texts = [
            size(phase.peak_bytes),
            size(phase.allocated_bytes),
            size(phase.freed_bytes),
            count(phase.allocated_count),
        ];
        for (i, text) in (1..=figures).zip(texts) {
            sheet.text_ending(name, name + i * FIGURE, y, &text, theme.plain());
        }
    }
}

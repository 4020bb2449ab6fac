//! Percentiles: the curve of the step above the table of phases and spans.

use crate::ui::sheet::Sheet;
use crate::ui::{Scene, curve, phases};

/// Rows of a curve that says something.
const CURVE_LEAST: u16 = 6;

/// Draws the view.
pub fn draw(body: &mut Sheet<'_>, scene: &Scene<'_>) {
    let table = phases::rows(scene).saturating_add(2).max(body.height() / 2);
    let above = body.height().saturating_sub(table);
    let above = if above < CURVE_LEAST || scene.store.steps().is_empty() { 0 } else { above };
    if above > 0 {
        curve::draw(&mut body.part(0, 0, u16::MAX, above), scene);
    }
    phases::draw(&mut body.rows(above, 0), scene);
}

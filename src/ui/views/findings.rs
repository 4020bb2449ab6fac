//! What is slow, in words: the parts of the verdict, whole.

use super::{first_shown, rule};
use crate::app::View;
use crate::ui::Scene;
use crate::ui::sheet::{Sheet, clip};

/// Draws the view.
pub fn draw(body: &mut Sheet<'_>, scene: &Scene<'_>) {
    let theme = scene.theme;
    let parts = scene.app.findings().parts();
    rule(body, 0, "findings", "of the newest steps", scene);
    let first = first_shown(scene.app.line(View::Findings), parts.len(), body.height().saturating_sub(1));
    let room = body.width().saturating_sub(4);
    for (y, part) in (1..body.height()).zip(&parts[first..]) {
        body.cell(1, y, theme.glyph('•', '*'), theme.accent());
        body.text(3, y, &clip(part, room, theme), theme.plain());
    }
}

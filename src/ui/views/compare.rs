//! Two runs side by side.

use super::rule;
use crate::ui::Scene;
use crate::ui::sheet::Sheet;

/// Draws the view.
pub fn draw(body: &mut Sheet<'_>, scene: &Scene<'_>) {
    rule(body, 0, "compare", "", scene);
    body.text(1, 1, "one run is open: there is nothing to compare it with", scene.theme.dim());
}

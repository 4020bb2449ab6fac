//! The step bars, large.

use crate::ui::sheet::Sheet;
use crate::ui::{Scene, steps};

/// Draws the view.
pub fn draw(body: &mut Sheet<'_>, scene: &Scene<'_>) {
    steps::draw(body, scene);
}

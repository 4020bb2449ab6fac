//! Every quantity that the sensors and the program's counters give, large.

use crate::ui::sheet::Sheet;
use crate::ui::{Scene, hardware};

/// Draws the view.
pub fn draw(body: &mut Sheet<'_>, scene: &Scene<'_>) {
    hardware::draw_alone(body, scene);
}

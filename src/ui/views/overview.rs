//! The run at a glance: bars, phases and hardware.

use crate::ui::plan::Plan;
use crate::ui::sheet::Sheet;
use crate::ui::{Scene, hardware, phases, steps};

/// Draws the view.
pub fn draw(body: &mut Sheet<'_>, scene: &Scene<'_>) {
    if scene.is_hardware_only() {
        return hardware::draw_alone(body, scene);
    }
    let plan = Plan::new(body.width(), body.height(), scene);
    steps::draw(&mut plan.steps.of(body), scene);
    phases::draw(&mut plan.phases.of(body), scene);
    hardware::draw(&mut plan.hardware.of(body), scene);
}

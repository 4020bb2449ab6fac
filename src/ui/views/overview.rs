//! The run at a glance: bars, phases and hardware.

use crate::app::{Panel, Target};
use crate::ui::plan::{Place, Plan};
use crate::ui::sheet::Sheet;
use crate::ui::{Scene, hardware, phases, steps};

/// What draws a panel.
type DrawPanel = fn(&mut Sheet<'_>, &Scene<'_>);

/// Draws the view.
pub fn draw(body: &mut Sheet<'_>, scene: &Scene<'_>) {
    if scene.is_hardware_only() {
        return hardware::draw_alone(body, scene);
    }
    let plan = Plan::new(body.width(), body.height(), scene);
    let panels: [(Panel, Place, DrawPanel); 3] = [
        (Panel::Steps, plan.steps, steps::draw),
        (Panel::Phases, plan.phases, phases::draw),
        (Panel::Hardware, plan.hardware, hardware::draw),
    ];
    for (panel, place, draw) in panels {
        let mut sheet = place.of(body);
        scene.spots.offer(sheet.area(0, 0, u16::MAX, u16::MAX), Target::Panel(panel));
        draw(&mut sheet, scene);
    }
}

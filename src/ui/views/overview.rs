//! The run at a glance: bars, phases and hardware.

use crate::app::{Panel, Target};
use crate::ui::panel::hardware;
use crate::ui::panel::layout::{OverviewLayout, PanelArea};
use crate::ui::panel::phases;
use crate::ui::panel::steps;
use crate::ui::scene::Scene;
use crate::ui::sheet::Sheet;

/// What draws a panel.
type DrawPanel = fn(&mut Sheet<'_>, &Scene<'_>);

/// Draws the view.
pub fn draw(body: &mut Sheet<'_>, scene: &Scene<'_>) {
    if scene.is_hardware_only() {
        return hardware::draw_alone(body, scene);
    }
    let layout = OverviewLayout::new(body.width(), body.height(), scene);
    let panels: [(Panel, PanelArea, DrawPanel); 3] = [
        (Panel::Steps, layout.steps, steps::draw),
        (Panel::Phases, layout.phases, phases::draw),
        (Panel::Hardware, layout.hardware, hardware::draw),
    ];
    for (panel, area, draw) in panels {
        let mut sheet = area.sheet_in(body);
        sheet.offer(0, 0, u16::MAX, u16::MAX, Target::Panel(panel));
        draw(&mut sheet, scene);
    }
}

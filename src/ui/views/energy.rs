//! Power and energy: every signal that is one, or that there is none.

use gnntop_wire::{SignalKind, Unit};

use super::{first_shown, rule};
use crate::app::View;
use crate::figures::quantity;
use crate::store::Signal;
use crate::ui::Scene;
use crate::ui::sheet::{Sheet, clip};

/// Columns of a signal's name.
const NAME: u16 = 22;
/// Columns of its value.
const VALUE: u16 = 14;

/// Draws the view.
pub fn draw(body: &mut Sheet<'_>, scene: &Scene<'_>) {
    let theme = scene.theme;
    let is_energy = |signal: &&Signal| watts_per_unit(signal).is_some();
    let signals: Vec<&Signal> = scene.store.signals().all().iter().filter(is_energy).collect();
    rule(body, 0, "energy", "power now, and where it was read", scene);
    if signals.is_empty() {
        let text = format!("{} no sensor of power or energy is published", theme.text("—", "-"));
        body.text(1, 1, &text, theme.dim());
        return;
    }
    let first = first_shown(scene.app.line(View::Energy), signals.len(), body.height().saturating_sub(1));
    for (y, signal) in (1..body.height()).zip(&signals[first..]) {
        body.text(1, y, &clip(&signal.name, NAME - 2, theme), theme.dim());
        match scene.store.hardware().of(signal) {
            Ok(value) => {
                let watts = value * watts_per_unit(signal).unwrap_or(0.0);
                body.text_ending(NAME, NAME + VALUE, y, &format!("{} W", quantity(watts)), theme.plain());
                let room = body.width().saturating_sub(NAME + VALUE + 3);
                body.text(NAME + VALUE + 2, y, &clip(&signal.source, room, theme), theme.dim());
            }
            Err(absence) => {
                let text = format!("{} {absence}", theme.text("—", "-"));
                let room = body.width().saturating_sub(NAME + 1);
                body.text(NAME, y, &clip(&text, room, theme), theme.dim());
            }
        }
    }
}

/// Watts in one unit of a signal, an energy counter's being one a second; `None` for other signals.
fn watts_per_unit(signal: &Signal) -> Option<f64> {
    match (signal.unit, signal.kind) {
        (Unit::Milliwatts, SignalKind::Gauge) | (Unit::Millijoules, SignalKind::Counter) => Some(1e-3),
        (Unit::Microjoules, SignalKind::Counter) => Some(1e-6),
        _ => None,
    }
}

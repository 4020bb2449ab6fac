//! Where the time of each step goes: the bars, large, and the step under the cursor read out below.
//!
//! ```text
//!  steps  1 step a column ──────────────────────── 23.4 steps/s    steps.rs, step_chart.rs
//!  60 ms┤              ▲
//!       │▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓
//!  ! spike  ◔ partial batch  ◆ mark                                flags.rs
//! ─step 70  epoch 2 ───────────────────────────────── 85.0 ms ─    readout.rs
//!  ╱ W data wait   4.00 ms   ░ F forward     10.0 ms
//! ```

use crate::ui::panel::readout;
use crate::ui::panel::steps;
use crate::ui::scene::Scene;
use crate::ui::sheet::Sheet;

/// Fewest rows with which the bars get their own view.
const BARS_LEAST: u16 = 9;

/// Draws the view.
pub fn draw(body: &mut Sheet<'_>, scene: &Scene<'_>) {
    let height = body.height();
    let spare = height.saturating_sub(BARS_LEAST);
    let below = match (spare, scene.store.steps().is_empty()) {
        (0..2, _) | (_, true) => 0,
        _ => readout::rows(body.width(), scene).min(spare),
    };
    let above = height - below;
    if below > 0 && spare > below {
        steps::draw_with_legend(&mut body.part(0, 0, u16::MAX, above), scene);
    } else {
        steps::draw(&mut body.part(0, 0, u16::MAX, above), scene);
    }
    readout::draw(&mut body.rows(above, 0), scene);
}

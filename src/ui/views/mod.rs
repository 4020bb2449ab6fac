//! The views: each a file with one draw function that fills what header and footer leave.
//!
//! ```text
//!  1 overview   overview.rs   steps, phases, hardware in one picture
//!  2 steps      steps.rs      the bars, large
//!  3 latency    latency.rs    percentile curve and table
//!  4 memory     memory.rs     live, peak, by phase
//!  5 hardware   hardware.rs   every sensor
//!  6 energy     energy.rs     power and energy
//!  7 tracks     tracks.rs     what each thread does
//!  8 findings   findings.rs   what is slow
//!  9 compare    compare.rs    this run beside another
//!  P pipeline   pipeline.rs   the stages of a pipeline in one step
//!  R ranks      ranks.rs      the ranks of a run side by side (ranks_facts.rs: in words)
//!  Enter        panel/step_detail.rs   one step in full, below the bars
//!  f            stacks.rs     where in the program the time goes
//!  (gnntop top)  runs.rs    many runs in a table: the whole screen
//!  V            values.rs    the loss and all else that is logged
//!  m, o, ?, O   marks.rs, log.rs, help.rs, sessions.rs   marks by text, the program's output, the keys, the choice of sessions
//! ```

mod compare;
mod energy;
mod findings;
mod hardware;
mod help;
mod latency;
mod log;
mod marks;
mod memory;
mod overview;
mod pipeline;
mod quantities;
mod ranks;
mod ranks_facts;
mod runs;
mod sessions;
mod span_table;
mod stacks;
mod steps;
mod tracks;
mod values;

use super::panel::step_detail;
use super::scene::Scene;
use super::sheet::Sheet;
use crate::app::View;

/// Draws what fills the screen between header and footer.
pub fn draw(body: &mut Sheet<'_>, scene: &Scene<'_>) {
    match scene.app.view() {
        View::Overview => overview::draw(body, scene),
        View::Steps => steps::draw(body, scene),
        View::Latency => latency::draw(body, scene),
        View::Memory => memory::draw(body, scene),
        View::Hardware => hardware::draw(body, scene),
        View::Energy => energy::draw(body, scene),
        View::Tracks => tracks::draw(body, scene),
        View::Findings => findings::draw(body, scene),
        View::Compare => compare::draw(body, scene),
        View::Ranks => ranks::draw(body, scene),
        View::Pipeline => pipeline::draw(body, scene),
        View::Step => step_detail::draw_below_bars(body, scene),
        View::Sessions => sessions::draw(body, scene),
        View::Log => log::draw(body, scene),
        View::Marks => marks::draw(body, scene),
        View::Values => values::draw(body, scene),
        View::Stacks => stacks::draw(body, scene),
        View::Help => help::draw(body, scene),
        View::Runs => runs::draw(body, scene),
    }
}

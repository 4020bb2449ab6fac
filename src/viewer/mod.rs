//! The viewer: takes the terminal, turns what comes from it into actions, polls the sources, and lets the screen be drawn.
//!
//! ```text
//! run.rs          the main loop                    options.rs   options of the viewer, and how it ended
//! terminal.rs     takes the terminal and gives it back, whatever happens; signals.rs: signals as flags
//! keyboard.rs     bytes become events; input.rs: events become actions
//! watches.rs      findings and energy, each as old as it may be
//! tracing.rs      a deep trace that a key has asked for
//! own_cost.rs     what the viewer itself takes from the machine
//! ```

mod input;
mod keyboard;
mod options;
mod own_cost;
mod run;
mod signals;
mod terminal;
mod tracing;
mod watches;

pub use options::{Outcome, ScreenOptions};
pub use run::{run_choice, run_comparison, run_screen};

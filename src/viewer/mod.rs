//! The viewer: takes the terminal, turns what comes from it into actions, polls the sources, and lets the screen be drawn.
//!
//! ```text
//! run.rs          the main loop                    options.rs   options of the viewer, and how it ended
//! terminal.rs     takes the terminal and gives it back, whatever happens; signals as flags
//! input.rs        bytes become events, and events become actions
//! watches.rs      findings and energy, each as old as it may be, and what the viewer itself takes from the machine
//! tracing.rs      a deep trace that a key has asked for
//! ```

mod input;
mod options;
mod run;
mod terminal;
mod tracing;
mod watches;

pub use options::{Outcome, ScreenOptions};
pub use run::{run_choice, run_comparison, run_screen};

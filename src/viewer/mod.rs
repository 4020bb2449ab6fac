//! The viewer: takes the terminal, turns what comes from it into actions, polls the sources, and lets the screen be drawn.
//!
//! ```text
//! start.rs        what can be shown
//! run.rs          the main loop                    options.rs   options of the viewer, and how it ended
//! terminal.rs     takes the terminal and gives it back, whatever happens
//! input.rs        events become actions
//! watches.rs      findings and energy, each as old as it may be, and what the viewer itself takes from the machine
//! runs_feed.rs    many runs, read on a thread of their own
//! tracing.rs      a deep trace that a key has asked for
//! ```

mod input;
mod options;
mod run;
mod runs_feed;
mod start;
mod terminal;
mod tracing;
mod watches;

pub use options::{Outcome, ScreenOptions};
pub use start::{run_choice, run_comparison, run_screen, run_table};

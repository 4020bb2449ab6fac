//! The state of the screen and how it changes: an event becomes an [`Action`], [`update()`] applies it to the [`App`],
//! and the screen draws what the app then is. Nothing here draws, reads a file, looks at a clock or knows a terminal.
//!
//! ```text
//! update.rs     what happened reaches the app          mouse.rs, execute.rs: what the mouse and commands change
//! state.rs      the app: its parts, and what drawing asks
//! parts         navigation, axes, presentation, status, findings, flame, latency, questions, sessions, runs, output:
//!               each changes only by its own methods and knows no other one
//! words         action, command, input, keys, keymap, situation, view, colors
//! ```

mod action;
mod axes;
mod colors;
mod command;
mod execute;
mod findings;
mod flame;
mod input;
mod keymap;
pub mod keys;
mod latency;
mod mouse;
mod navigation;
mod output;
mod presentation;
mod questions;
mod runs;
mod sessions;
mod situation;
mod state;
mod status;
mod step_search;
mod update;
mod view;
mod window;

pub use action::{Action, Effect, OwnCost};
pub use axes::TimeWindow;
pub use colors::{Background, ColorDepth, Palette};
pub use command::Command;
pub use findings::FindingLine;
pub use flame::Flame;
pub use input::{Gesture, Target};
pub use keymap::{BoundAction, KeyMap, KeyMapError, Override};
pub use latency::{Latency, LatencyLine, QUANTILES, StepScope};
pub use output::LogView;
pub use presentation::{ClockedPhases, PhaseClock, Preferences};
pub use questions::{Prompt, Question};
pub use runs::passes;
pub use sessions::ComparedSession;
pub use situation::{Situation, When};
pub use state::App;
pub use step_search::RangeSummary;
pub use update::update;
pub use view::{LineExtent, Panel, View};
pub use window::{AXIS_WIDTH, Window};

// The parts of the source that the app holds, re-exported, so that drawing code does not depend on sources.
pub use gnntop_analysis::many_runs::{RunRow, RunState};
pub use gnntop_analysis::source::catalog::{CatalogEntry, EntryKind};
pub use gnntop_analysis::source::{SourceState, Status, Transport};

//! The state of the screen and how it changes: an event becomes an [`Action`], [`update()`] applies it to the [`App`],
//! and the screen draws what the app then is. Nothing here draws, reads a file, looks at a clock or knows a terminal.
//!
//! ```text
//! update.rs     what happened reaches the app          mouse.rs, execute.rs, ranks.rs: what the mouse, commands, ranks change
//! state.rs      the app: its parts, and what drawing asks
//! parts         navigation, axes, presentation, feed, findings, flame, latency, compare, questions, sessions, output, notice:
//!               each changes only by its own methods and knows no other one
//! words         action, command, key, keys, keymap, situation, view, pointing, looks, preferences
//! ```

mod action;
mod axes;
mod colors;
mod command;
mod compare;
mod execute;
mod feed;
mod findings;
mod flame;
mod key;
mod keymap;
pub mod keys;
mod latency;
mod mouse;
mod navigation;
mod notice;
mod output;
mod phase_clock;
mod pointing;
mod preferences;
mod presentation;
mod prompt;
mod questions;
mod ranks;
mod sessions;
mod situation;
mod state;
mod time_window;
mod update;
mod view;
mod window;

pub use action::{Action, Effect, OwnCost};
pub use colors::{Background, ColorDepth, Palette};
pub use command::Command;
pub use compare::ComparedSession;
pub use findings::FindingLine;
pub use flame::Flame;
pub use keymap::{BoundAction, KeyMap, KeyMapError, Override};
pub use latency::{Latency, LatencyLine, QUANTILES, StepScope};
pub use output::LogView;
pub use phase_clock::{ClockedPhases, PhaseClock};
pub use pointing::{Gesture, Target};
pub use preferences::Preferences;
pub use prompt::{Prompt, Question};
pub use situation::Situation;
pub use state::App;
pub use time_window::TimeWindow;
pub use update::update;
pub use view::{LineExtent, Panel, View};
pub use window::{AXIS_WIDTH, Window};

// The parts of the source that the app holds, re-exported, so that drawing code does not depend on sources.
pub use gnntop_analysis::source::catalog::{CatalogEntry, EntryKind};
pub use gnntop_analysis::source::{SourceState, Status, Transport};

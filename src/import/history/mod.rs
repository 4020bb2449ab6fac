//! Histories that experiment trackers keep: values that a program logged, with the time and the step of each.
//!
//! ```text
//! event files:   tfrecord.rs ─▶ tensorboard.rs ─┐ protobuf.rs
//! W&B offline:   wandb_log.rs ─▶ wandb.rs ──────┤ wandb_jsonl.rs: before 0.10
//! MLflow:        files, or sqlite ─▶ mlflow.rs ─┼─▶ series.rs ─▶ axis.rs: its steps ─▶ recording.rs
//! trackio:       sqlite ─▶ trackio.rs ──────────┘   signals.rs: readings of hardware
//! ```
//!
//! A step is the time between two values of the series that has most of them. Where values are several steps apart,
//! these steps have their mean time: what is slow for a single step is not in such a file, and the import says so.

mod axis;
mod mlflow;
mod options;
mod places;
mod protobuf;
mod recording;
mod series;
mod signals;
mod sqlite;
mod sqlite_columns;
mod tensorboard;
mod tfrecord;
mod trackio;
mod wandb;
mod wandb_jsonl;
mod wandb_log;

pub use options::{HistoryOptions, Tracker};
pub use recording::import;

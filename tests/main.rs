//! The whole program, in one binary: its command line, its screens, its files, and the rules of its layout.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    missing_docs
)]

mod agents;
#[cfg(unix)]
mod clean;
mod command_line;
#[cfg(unix)]
mod demos;
mod dependencies;
mod device_view;
#[cfg(target_os = "linux")]
mod died;
mod documents;
mod emissions;
mod export;
mod export_parquet;
mod far;
mod faults;
mod first_look;
mod gates;
mod import;
mod interaction;
mod layering;
#[cfg(target_os = "linux")]
mod left_alone;
mod mutants;
mod names;
#[cfg(unix)]
mod otlp;
#[cfg(unix)]
mod owner;
mod packaging;
mod pages;
mod parts;
mod pictures;
mod pipeline_view;
#[cfg(unix)]
mod prepared;
mod prometheus;
mod prove;
mod python;
mod python_view;
mod ranks_view;
mod recorded_screens;
mod recording;
mod restarts;
#[cfg(unix)]
mod run_screen;
mod running;
mod runs;
#[cfg(unix)]
mod screen_pty;
mod screens;
mod serving;
mod sessions;
mod sharing;
#[cfg(target_os = "linux")]
mod stacks;
mod stacks_view;
#[cfg(target_os = "linux")]
mod standstill;
mod study;
mod summaries;
#[cfg(unix)]
mod tasks;
#[cfg(unix)]
mod terminal;
#[cfg(unix)]
mod top;
#[cfg(unix)]
mod tracing;
mod train_job;
mod values_view;
mod views;
mod watch;
mod words;

//! The command line: what can be typed, and which command does it.
//!
//! Every command is a file with a struct of its arguments and a function that does it. Errors travel up as one
//! chain and are printed by `commands.rs`, in one line; exit codes are in `exit.rs`.
//!
//! On Linux there are all commands. Elsewhere there are those that read recordings and copied sessions, and `reading_only.rs` stands
//! for the others.
#![cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, unused_imports, reason = "commands that need Linux use more of what all commands share")
)]

mod assumptions;
mod check;
mod commands;
mod compare;
mod completions;
mod config;
mod demo;
mod exit;
mod export;
mod import;
mod list;
mod named;
mod new_file;
mod output;
mod patience;
mod plain;
mod quantities;
mod reading;
mod replay;
mod report;
mod run_part;
mod screen;
mod settings;
mod signals;
mod suggestion;
mod time_spec;
mod top;

// What starts, joins, steers, sends or records programs.
#[cfg(target_os = "linux")]
mod attach;
#[cfg(target_os = "linux")]
mod clean;
#[cfg(target_os = "linux")]
mod doctor;
#[cfg(target_os = "linux")]
mod env;
#[cfg(target_os = "linux")]
mod far;
#[cfg(target_os = "linux")]
mod layers;
#[cfg(target_os = "linux")]
mod mcp;
#[cfg(target_os = "linux")]
mod otlp;
#[cfg(target_os = "linux")]
mod passing_on;
#[cfg(target_os = "linux")]
mod piped;
#[cfg(target_os = "linux")]
mod prove;
#[cfg(target_os = "linux")]
mod push;
#[cfg(target_os = "linux")]
mod record;
#[cfg(target_os = "linux")]
mod retention;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod serve;
#[cfg(target_os = "linux")]
mod share;
#[cfg(target_os = "linux")]
mod source_recorder;
#[cfg(target_os = "linux")]
mod stop;
#[cfg(target_os = "linux")]
mod study;
#[cfg(target_os = "linux")]
mod trace;
#[cfg(target_os = "linux")]
mod train;
#[cfg(target_os = "linux")]
mod watch;

// Elsewhere these commands say that they need Linux.
#[cfg(not(target_os = "linux"))]
mod reading_only;
#[cfg(not(target_os = "linux"))]
use reading_only::{
    attach, clean, doctor, env, far, mcp, prove, push, record, run, serve, share, stop, study, trace, train, watch,
};

pub use commands::main;
pub use settings::settings_mistake;

//! The command line: what can be typed, and which command does it.
//!
//! Every command is a file with a struct of its arguments and a function that does it. Errors travel up as one
//! chain and are printed by `commands.rs`, in one line; exit codes are in `exit.rs`.

mod assumptions;
mod attach;
mod check;
mod clean;
mod commands;
mod compare;
mod completions;
mod config;
mod demo;
mod doctor;
mod exit;
mod export;
mod import;
mod layers;
mod list;
mod mcp;
mod named;
mod new_file;
mod otlp;
mod output;
mod patience;
mod piped;
mod plain;
mod prove;
mod push;
mod quantities;
mod reading;
mod record;
mod replay;
mod report;
mod retention;
mod run;
mod run_part;
mod screen;
mod serve;
mod settings;
mod signals;
mod source_recorder;
mod stop;
mod study;
mod suggestion;
mod time_spec;
mod top;
mod trace;
mod train;
mod watch;

pub use commands::main;
pub use settings::settings_mistake;

//! The parts of the `gnntop` binary, from the byte stream to the screen. `ARCHITECTURE.md` has the map of all members.
//!
//! ```text
//!            main ─▶ cli: a file for each command; the only place that prints
//!                     │
//!      ┌──────────────┼────────────────┬──────────────────┬──────────────────┐
//!  run, attach,    report, compare,  export, serve,    import, study     doctor, list, stop,
//!  replay          check             push                 │              clean, trace, record
//!      ▼              ▼                ▼                  ▼
//!   viewer ◀─ keys  report ─▶ document export ─▶ formats  import ─▶ a recording
//!    │  ▲ │           ▲                ▲                  study  ─▶ runs, then a document
//!    │  │ └▶ ui       │ figures        │ items
//!    ▼  │   draws   ┌─┴────────────────┴──┐
//!   app: state ◀────┤ gnntop-analysis     │◀── sessions, recordings
//!    update(action) └─────────────────────┘
//!
//!  run: keeper ─▶ owns program and recording ─▶ death: why it ended        python: the package that a program imports
//!       collector ─▶ log: its output, bounded
//! ```
//!
//! `phase_style` has the letters and colours of phases for pages and the screen, `wrap` breaks lines for both. `locked_dir` is a temporary
//! folder whose owner is known. `runs_table` has the
//! columns of a table of many runs, for the screen and for text. `platform` is what differs between systems; what has to do with
//! running programs is for Linux alone.

pub mod app;
pub mod cli;
#[cfg(target_os = "linux")]
pub mod death;
pub mod export;
pub mod import;
#[cfg(target_os = "linux")]
mod locked_dir;
pub mod log;
mod phase_style;
pub mod platform;
#[cfg(target_os = "linux")]
pub mod python;
pub mod report;
pub mod runs_table;
pub mod study;
pub mod ui;
pub mod viewer;
mod wrap;

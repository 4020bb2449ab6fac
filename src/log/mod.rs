//! The log of a program's output: bounded while it is written, and read from its end.
//!
//! ```text
//! bounded.rs  the newest output in two files, the older of which is deleted when the newer is full
//! pump.rs     from the program's pipe into the log, without ever keeping the program waiting
//! tail.rs     its last lines, harmless to a terminal
//! ```
//!
//! Only Linux has programs whose output is written; logs are read everywhere.

#[cfg(target_os = "linux")]
mod bounded;
#[cfg(target_os = "linux")]
mod pump;
mod tail;

#[cfg(target_os = "linux")]
pub use bounded::BoundedLog;
#[cfg(target_os = "linux")]
pub use pump::Pump;
pub use tail::read;

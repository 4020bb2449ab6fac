//! The log of a program's output: bounded while it is written, and read from its end.
//!
//! ```text
//! bounded.rs  the newest output in two files, the older of which is deleted when the newer is full
//! pump.rs     from the program's pipe into the log, without ever keeping the program waiting
//! tail.rs     its last lines, harmless to a terminal
//! ```

mod bounded;
mod pump;
mod tail;

pub use bounded::BoundedLog;
pub use pump::Pump;
pub use tail::read;

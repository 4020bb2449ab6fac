//! What people do with gnntop on an ordinary day, in a shell in a terminal: each test is one task. Its person types commands
//! and presses only keys that the footer or the help shows at that moment, so a task that takes more knowledge than that
//! fails.

mod dying;
mod judging;
mod keeping;
mod mistakes;
mod naming;
mod numbers;
mod person;
mod python;
mod replaying;
mod slowest;
mod starting;
mod training;
mod watching;

//! Linux and macOS.

pub mod files;
pub mod keyboard;
pub mod process;
pub mod signals;

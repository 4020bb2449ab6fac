//! Windows: enough to read recordings and copied sessions.

pub mod files;
pub mod keyboard;
pub mod process;
pub mod signals;

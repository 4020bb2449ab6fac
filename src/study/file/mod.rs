//! A study's file: TOML, in which every mistake is reported with its line.

mod mistake;
mod reader;
mod shown;

pub use mistake::FileError;
pub use reader::read;

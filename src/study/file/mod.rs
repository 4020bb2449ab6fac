//! A study's file: TOML, in which every mistake is reported with its line.

mod reader;
mod shown;

pub use reader::read;
pub use shown::FileError;

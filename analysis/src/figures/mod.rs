//! Numbers for people, with three significant digits and a unit; and names so that two runs can be distinguished.

mod text;
mod unit;

pub use text::{
    bytes, change, count, counted, difference, duration, elapsed, elapsed_time, hundredths, joined, lasting, percent,
    quantity, scaled, shorten_pair, significant, timecode, utc,
};
pub use unit::{FigureUnit, UnitError};

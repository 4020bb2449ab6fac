//! The store as a whole.

mod energy;
mod past;
mod properties;
mod streams;
mod traced;

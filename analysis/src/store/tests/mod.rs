//! The store as a whole.

mod energy;
mod properties;
mod streams;

//! How a table of runs reads, on the screen and as text: its columns, their order, and which of them fit.

mod column;
mod fitted;
mod order;

pub use column::Column;
pub use fitted::{FittedColumn, fit};
pub use order::Order;

//! Dense matrix products on borrowed slices.
//!
//! candle's `matmul` always makes a new tensor. The kernels need products that accumulate into a strided part of a
//! buffer they own, so this is a bounds-checked interface to the gemm crate, the one that candle itself uses. Many
//! products by one large operand go through [`tiles`] where the processor has them, and those that may round to bf16 through
//! [`pairs`].

mod pairs;
mod products;
mod tiles;
mod views;

pub use products::{MatmulPrecision, Right, add_column_sums, multiply, multiply_by, multiply_rows};
pub use views::{Matrix, MatrixMut};

//! Stands in for the products where the processor has none of bf16.

use crate::kernels::Values;
use crate::kernels::matrix::{Matrix, MatrixMut};

/// An operand arranged for products of bf16: there is none.
#[derive(Debug)]
pub(in crate::kernels::matrix) enum Packed {}

impl Packed {
    /// Never called, because there are no such products.
    pub fn right(_: Matrix<'_, f32>) -> Self {
        unreachable!("there are no products of bf16")
    }
}

/// Never.
pub(in crate::kernels::matrix) fn is_available() -> bool {
    false
}

/// Cannot be called: there is no packed operand.
pub(in crate::kernels::matrix) fn multiply<'a>(
    _: MatrixMut<'_, f32>,
    _: bool,
    _: impl Fn(usize) -> Values<'a, f32>,
    right: &Packed,
) {
    match *right {}
}

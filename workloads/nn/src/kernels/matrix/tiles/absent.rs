//! Stands in for the products where the processor or the system has no tiles.

use crate::kernels::matrix::{Matrix, MatrixMut};

/// An operand arranged for products on tiles: there is none.
#[derive(Debug)]
pub(in crate::kernels::matrix) enum Packed {}

impl Packed {
    /// Never called, because tiles never pay.
    pub fn right(_: Matrix<'_, f32>) -> Self {
        unreachable!("there are no tiles")
    }
}

/// Never.
pub(in crate::kernels::matrix) fn pays(_: usize, _: usize) -> bool {
    false
}

/// Cannot be called: there is no packed operand.
pub(in crate::kernels::matrix) fn multiply(_: MatrixMut<'_, f32>, _: bool, _: Matrix<'_, f32>, right: &Packed) {
    match *right {}
}

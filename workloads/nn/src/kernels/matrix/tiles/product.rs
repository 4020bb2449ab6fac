//! Products of whole matrices, panel by panel.

use std::cell::RefCell;

use super::pack::{Side, pack};
use super::unit::{Block, DEPTH, LINES, PANEL, TileRow, Tiles, is_available};
use crate::kernels::matrix::{Matrix, MatrixMut};

/// Columns of the product from which on splitting the left operand is worth it.
const COLUMNS: usize = 96;
/// Numbers along the inner dimension from which on.
const INNER: usize = 64;

/// Whether products with this inner dimension and number of columns are faster on tiles, and there are tiles.
pub(in crate::kernels::matrix) fn pays(inner: usize, columns: usize) -> bool {
    columns >= COLUMNS && inner >= INNER && is_available()
}

/// The right operand of one or several products, split and arranged in panels of columns.
#[derive(Debug)]
pub(in crate::kernels::matrix) struct Packed {
    lines: Vec<TileRow>,
    inner: usize,
    columns: usize,
}

/// Lines of a panel for an inner dimension.
fn panel_lines(inner: usize) -> usize {
    inner.div_ceil(DEPTH) * LINES
}

impl Packed {
    /// `matrix` is `[inner, columns]`.
    ///
    /// # Panics
    /// If products with it do not [pay](pays).
    pub fn right(matrix: Matrix<'_, f32>) -> Self {
        let (inner, columns) = (matrix.row_count(), matrix.column_count());
        assert!(pays(inner, columns), "no product for tiles");
        let mut lines = vec![TileRow([0; 16]); columns.div_ceil(PANEL) * panel_lines(inner)];
        // SAFETY: where tiles are available, so is AVX-512.
        unsafe { pack(matrix, Side::Right, 0, &mut lines) };
        Self { lines, inner, columns }
    }
}

thread_local! {
    /// A panel of the left operand, kept because fresh memory is expensive.
    static LEFT: RefCell<Vec<TileRow>> = const { RefCell::new(Vec::new()) };
}

/// `target = left x right`, or `target += left x right` where `accumulate`. On the calling thread.
///
/// # Panics
/// If the shapes do not fit.
pub(in crate::kernels::matrix) fn multiply(
    mut target: MatrixMut<'_, f32>,
    accumulate: bool,
    left: Matrix<'_, f32>,
    right: &Packed,
) {
    assert!(left.column_count() == right.inner, "inner dimensions differ");
    assert!(
        target.row_count() == left.row_count() && target.column_count() == right.columns,
        "product and target differ in shape"
    );
    let panel = panel_lines(right.inner);
    let mut block = Block([0.0; PANEL * PANEL]);
    LEFT.with_borrow_mut(|lines| {
        lines.resize(panel, TileRow([0; 16]));
        // SAFETY: there is a packed operand, so tiles are available.
        let tiles = unsafe { Tiles::take() };
        for row in (0..left.row_count()).step_by(PANEL) {
            // SAFETY: and so is AVX-512.
            unsafe { pack(left, Side::Left, row, lines) };
            for (column, right) in right.lines.chunks_exact(panel).enumerate() {
                tiles.multiply(lines, right, &mut block);
                put(&mut target, row, column * PANEL, accumulate, &block);
            }
        }
    });
}

/// Writes or adds the part of a block that is in the target.
fn put(target: &mut MatrixMut<'_, f32>, first_row: usize, first_column: usize, accumulate: bool, block: &Block) {
    let count = PANEL.min(target.column_count() - first_column);
    let rows = PANEL.min(target.row_count() - first_row);
    for (row, values) in block.0.as_chunks::<PANEL>().0.iter().take(rows).enumerate() {
        let out = &mut target.row_mut(first_row + row)[first_column..][..count];
        if accumulate {
            out.iter_mut().zip(values).for_each(|(out, value)| *out += value);
        } else {
            out.copy_from_slice(&values[..count]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    fn values(rng: &mut StdRng, count: usize) -> Vec<f32> {
        (0..count).map(|_| rng.random_range(-1.0..1.0f32) * 10f32.powi(rng.random_range(-3..3))).collect()
    }

    /// By rows, or by columns where `transposed`.
    fn matrix(data: &[f32], rows: usize, columns: usize, transposed: bool) -> Matrix<'_, f32> {
        if transposed {
            Matrix::new(data, columns, rows, rows).transposed()
        } else {
            Matrix::new(data, rows, columns, columns)
        }
    }

    fn at(data: &[f32], [rows, columns]: [usize; 2], transposed: bool, row: usize, column: usize) -> f64 {
        f64::from(if transposed { data[column * rows + row] } else { data[row * columns + column] })
    }

    #[test]
    fn products_are_as_exact_as_in_f32() {
        if !is_available() {
            println!("skipped: this processor has no tiles for bf16, or the system does not lend them");
            return;
        }
        let mut rng = StdRng::seed_from_u64(3);
        for (rows, inner, columns) in [(1, 64, 96), (33, 65, 97), (70, 602, 128), (31, 127, 99), (96, 300, 96)] {
            for orders in 0..4 {
                let (left_transposed, right_transposed) = (orders & 1 == 1, orders & 2 == 2);
                let (left, right) = (values(&mut rng, rows * inner), values(&mut rng, inner * columns));
                let mut out = vec![1.0; rows * (columns + 3)];
                let target = MatrixMut::new(&mut out, rows, columns, columns + 3);
                let (a, b) =
                    (matrix(&left, rows, inner, left_transposed), matrix(&right, inner, columns, right_transposed));
                multiply(target, orders == 3, a, &Packed::right(b));
                for row in 0..rows {
                    for column in 0..columns {
                        let terms = (0..inner).map(|k| {
                            at(&left, [rows, inner], left_transposed, row, k)
                                * at(&right, [inner, columns], right_transposed, k, column)
                        });
                        let start = if orders == 3 { 1.0 } else { 0.0 };
                        let (sum, size) = terms.fold((start, 1.0), |(sum, size), term| (sum + term, size + term.abs()));
                        let difference = (f64::from(out[row * (columns + 3) + column]) - sum).abs();
                        assert!(difference <= size * 6e-7, "{rows} {inner} {columns} {orders}: {difference} of {size}");
                    }
                    assert_eq!(out[row * (columns + 3) + columns..][..3], [1.0; 3], "written beyond the row");
                }
            }
        }
    }

    #[test]
    fn whole_numbers_are_exact_and_what_is_no_number_stays_none() {
        if !is_available() {
            println!("skipped: this processor has no tiles for bf16, or the system does not lend them");
            return;
        }
        let (rows, inner, columns) = (32, 64, 96);
        let mut left: Vec<f32> =
            (0..rows * inner).map(|index| (index * 2_654_435_761 % 4001) as f32 - 2000.0).collect();
        let right: Vec<f32> = (0..inner * columns).map(|index| (index * 40_503 % 63) as f32 - 31.0).collect();
        let product = |left: &[f32]| {
            let mut out = vec![0.0; rows * columns];
            let target = MatrixMut::new(&mut out, rows, columns, columns);
            multiply(
                target,
                false,
                matrix(left, rows, inner, false),
                &Packed::right(matrix(&right, inner, columns, false)),
            );
            out
        };
        let out = product(&left);
        for (place, &value) in out.iter().enumerate() {
            let (row, column) = (place / columns, place % columns);
            let exact: f64 = (0..inner).map(|k| f64::from(left[row * inner + k] * right[k * columns + column])).sum();
            assert_eq!(f64::from(value), exact);
        }
        for bits in [0x7fc0_0000, 0x7fff_ffff, 0xffff_ffff, 0x7f80_0001] {
            left[5 * inner + 7] = f32::from_bits(bits);
            assert!(product(&left)[5 * columns..6 * columns].iter().all(|value| value.is_nan()), "{bits:x}");
            assert!(product(&left)[6 * columns..].iter().all(|value| value.is_finite()));
        }
    }
}

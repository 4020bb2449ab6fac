//! Rounds numbers to bf16, to the nearest, and arranges them in pairs along the inner dimension.

use std::arch::x86_64::*;

use half::bf16;

use crate::kernels::matrix::Matrix;

/// Numbers of a vector of f32.
pub(super) const LANES: usize = 16;

/// A vector of pairs, at 16 places of the outer dimension.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Line(pub [u32; LANES]);

/// Two neighbours; the lower half is the first.
fn pair(first: f32, second: f32) -> u32 {
    u32::from(bf16::from_f32(first).to_bits()) | u32::from(bf16::from_f32(second).to_bits()) << 16
}

/// Writes some columns of a right operand, `[inner, columns]`, from column `first` on: for each pair along the inner
/// dimension `vectors` lines. What is beyond the matrix is 0.
pub(super) fn arrange(matrix: Matrix<'_, f32>, first: usize, vectors: usize, lines: &mut [Line]) {
    let columns = matrix.column_count().min(first + vectors * LANES) - first;
    let (by_column, inner) = (matrix.transposed(), matrix.row_count());
    let at = |inner: usize, column: usize| {
        if matrix.is_by_row() { matrix.row(inner)[column] } else { by_column.row(column)[inner] }
    };
    for column in 0..columns {
        let (vector, lane) = (column / LANES, column % LANES);
        for (index, lines) in lines.chunks_exact_mut(vectors).enumerate() {
            let (low, high) = (2 * index, 2 * index + 1);
            let second = if high < inner { at(high, first + column) } else { 0.0 };
            lines[vector].0[lane] = pair(at(low, first + column), second);
        }
    }
}

/// Writes the pairs of a row; of an odd number of numbers the last has 0 beside it.
///
/// # Panics
/// If the row has not as many.
#[target_feature(enable = "avx512f,avx512bf16")]
pub(super) fn round_row(row: &[f32], pairs: &mut [u32]) {
    assert!(row.len().div_ceil(2) == pairs.len(), "inner dimensions differ");
    let (blocks, rest) = row.as_chunks::<{ 2 * LANES }>();
    let (whole, last) = pairs.split_at_mut(blocks.len() * LANES);
    for (numbers, pairs) in blocks.iter().zip(whole.as_chunks_mut::<LANES>().0) {
        // SAFETY: a block has 32 numbers and as many times 2 bytes of pairs; no alignment is needed.
        unsafe {
            let (low, high) = (_mm512_loadu_ps(numbers.as_ptr()), _mm512_loadu_ps(numbers.as_ptr().add(LANES)));
            let rounded = std::mem::transmute::<__m512bh, __m512i>(_mm512_cvtne2ps_pbh(high, low));
            _mm512_storeu_si512(pairs.as_mut_ptr().cast(), rounded);
        }
    }
    for (numbers, to) in rest.chunks(2).zip(last) {
        *to = pair(numbers[0], numbers.get(1).copied().unwrap_or(0.0));
    }
}

/// As [`round_row`], of numbers that are rounded.
#[inline(always)]
pub(super) fn join_row(row: &[bf16], pairs: &mut [u32]) {
    assert!(row.len().div_ceil(2) == pairs.len(), "inner dimensions differ");
    let (whole, last) = row.as_chunks::<2>();
    for (pair, to) in whole.iter().zip(&mut *pairs) {
        *to = u32::from(pair[0].to_bits()) | u32::from(pair[1].to_bits()) << 16;
    }
    if let Some(last) = last.first() {
        pairs[whole.len()] = u32::from(last.to_bits());
    }
}

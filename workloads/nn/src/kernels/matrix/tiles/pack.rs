//! Splits numbers into three of bf16 and arranges them as the tiles want them.
//!
//! Seen as 32-bit pairs of neighbours along the inner dimension, a tile of the left operand has a row for each of its 16
//! rows, and one of the right operand a row for each of 16 pairs: the one is the other's transpose. So there are two ways
//! to read a matrix, by the dimension along which its numbers are next to each other, and a transposition where what was
//! read is the other way round.

use std::arch::x86_64::*;

use super::unit::{DEPTH, LINES, PANEL, ROWS, TileRow};
use crate::kernels::matrix::Matrix;
use crate::kernels::prefetch_row;

/// Which operand a matrix is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// Its rows are outside, its columns are the inner dimension.
    Left,
    /// The other way round.
    Right,
}

/// Writes the panels of `matrix` from place `first` of its outer dimension on, as many as fit into `panels`, each with all
/// of the inner dimension.
///
/// # Safety
/// The processor must have AVX-512 F and BW.
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) unsafe fn pack(matrix: Matrix<'_, f32>, side: Side, first: usize, panels: &mut [TileRow]) {
    let matrix = if side == Side::Left { matrix } else { matrix.transposed() };
    let source = Source { matrix, by_inner: matrix.is_by_row(), first };
    let transposed = source.by_inner != (side == Side::Left);
    let groups = matrix.column_count().div_ceil(DEPTH);
    let count = panels.len() / (groups * LINES);
    let mut tiles = |panel: usize, group: usize| {
        let lines = &mut panels[(panel * groups + group) * LINES..][..LINES];
        for half in 0..PANEL / ROWS {
            source.pack(panel, group, half, lines);
            if transposed {
                (0..3).for_each(|part| transpose(&mut lines[(part * 2 + half) * ROWS..][..ROWS]));
            }
        }
    };
    // In the order in which the numbers are in memory.
    if source.by_inner {
        (0..count).for_each(|panel| (0..groups).for_each(|group| tiles(panel, group)));
    } else {
        (0..groups).for_each(|group| (0..count).for_each(|panel| tiles(panel, group)));
    }
}

/// Where the numbers come from.
#[derive(Clone, Copy)]
struct Source<'a> {
    /// `[outer, inner]`
    matrix: Matrix<'a, f32>,
    /// Whether numbers next to each other are neighbours along the inner dimension.
    by_inner: bool,
    /// The first place of the outer dimension.
    first: usize,
}

impl Source<'_> {
    /// Writes the three parts of one tile as they are read, a vector a line.
    #[target_feature(enable = "avx512f,avx512bw")]
    fn pack(&self, panel: usize, group: usize, half: usize, lines: &mut [TileRow]) {
        let (outer, inner) = (self.first + panel * PANEL + half * ROWS, group * DEPTH);
        for index in 0..ROWS {
            let parts =
                if self.by_inner { self.row(outer + index, inner) } else { self.pair(outer, inner + 2 * index) };
            for (part, vector) in parts.into_iter().enumerate() {
                store(&mut lines[(part * 2 + half) * ROWS + index], vector);
            }
        }
    }

    /// 16 pairs along the inner dimension, at one place of the outer one.
    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    fn row(&self, outer: usize, inner: usize) -> [__m512i; 3] {
        let values = if outer < self.matrix.row_count() { self.matrix.row(outer) } else { &[] };
        prefetch_row(values, inner + DEPTH, DEPTH);
        let (low, high) = (split(load(values, inner)), split(load(values, inner + DEPTH / 2)));
        let upper = words(UPPER);
        [0, 1, 2].map(|part| _mm512_permutex2var_epi16(low[part], upper, high[part]))
    }

    /// One pair along the inner dimension, at 16 places of the outer one.
    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    fn pair(&self, outer: usize, inner: usize) -> [__m512i; 3] {
        let by_inner = self.matrix.transposed();
        let row = |place: usize| if place < by_inner.row_count() { by_inner.row(place) } else { &[] };
        prefetch_row(row(inner + DEPTH), outer, ROWS);
        prefetch_row(row(inner + DEPTH + 1), outer, ROWS);
        let (even, odd) = (split(load(row(inner), outer)), split(load(row(inner + 1), outer)));
        [0, 1, 2].map(|part| _mm512_or_si512(_mm512_srli_epi32::<16>(even[part]), odd[part]))
    }
}

/// The upper halves of the 32-bit lanes of two vectors, in order.
const UPPER: [u16; 32] = {
    let mut index = [0; 32];
    let mut lane = 0;
    while lane < 32 {
        index[lane] = 2 * lane as u16 + 1;
        lane += 1;
    }
    index
};

#[target_feature(enable = "avx512f")]
#[inline]
fn store(line: &mut TileRow, vector: __m512i) {
    // SAFETY: a line is 64 bytes and aligned to as many.
    unsafe { _mm512_store_si512(line.0.as_mut_ptr().cast(), vector) };
}

#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn words(values: [u16; 32]) -> __m512i {
    // SAFETY: the array has 64 bytes, and the load needs no alignment.
    unsafe { _mm512_loadu_si512(values.as_ptr().cast()) }
}

/// 16 values from `start` on, 0 beyond the end.
#[target_feature(enable = "avx512f")]
#[inline]
fn load(values: &[f32], start: usize) -> __m512 {
    let values = values.get(start..).unwrap_or_default();
    let lanes = values.len().min(16);
    let mask = ((1u32 << lanes) - 1) as u16;
    // SAFETY: lanes that the mask leaves out are not read; the others are in the slice.
    unsafe { _mm512_maskz_loadu_ps(mask, values.as_ptr()) }
}

/// Three numbers of bf16, each in the upper half of its lane; the lower half is 0.
#[target_feature(enable = "avx512f")]
#[inline]
fn split(value: __m512) -> [__m512i; 3] {
    let first = rounded(value);
    let rest = _mm512_sub_ps(value, _mm512_castsi512_ps(first));
    let second = rounded(rest);
    let rest = _mm512_sub_ps(rest, _mm512_castsi512_ps(second));
    [first, second, rounded(rest)]
}

/// The nearest bf16. NaN stays NaN: the addition would turn some into 0.
#[target_feature(enable = "avx512f")]
#[inline]
fn rounded(value: __m512) -> __m512i {
    let bits = _mm512_castps_si512(value);
    let is_nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(value, value);
    let sum = _mm512_mask_add_epi32(_mm512_set1_epi32(-1), !is_nan, bits, _mm512_set1_epi32(0x8000));
    _mm512_and_si512(sum, _mm512_set1_epi32(0xffff_0000u32.cast_signed()))
}

/// Rows become columns, 32-bit lanes.
#[target_feature(enable = "avx512f")]
fn transpose(lines: &mut [TileRow]) {
    // SAFETY: a line is 64 bytes and aligned to as many.
    let row = |index: usize| unsafe { _mm512_load_si512(lines[index].0.as_ptr().cast()) };
    let mut pairs = [_mm512_setzero_si512(); ROWS];
    for index in 0..ROWS / 2 {
        let (above, below) = (row(2 * index), row(2 * index + 1));
        pairs[2 * index] = _mm512_unpacklo_epi32(above, below);
        pairs[2 * index + 1] = _mm512_unpackhi_epi32(above, below);
    }
    // Now each 128-bit quarter holds two columns of two rows; next, one column of four.
    let mut fours = [_mm512_setzero_si512(); ROWS];
    for group in 0..4 {
        for side in 0..2 {
            let (above, below) = (pairs[4 * group + side], pairs[4 * group + 2 + side]);
            fours[4 * group + 2 * side] = _mm512_unpacklo_epi64(above, below);
            fours[4 * group + 2 * side + 1] = _mm512_unpackhi_epi64(above, below);
        }
    }
    for column in 0..4 {
        let [a, b, c, d] = [0, 1, 2, 3].map(|group| fours[4 * group + column]);
        let (ab_even, cd_even) = (_mm512_shuffle_i32x4::<0x88>(a, b), _mm512_shuffle_i32x4::<0x88>(c, d));
        let (ab_odd, cd_odd) = (_mm512_shuffle_i32x4::<0xdd>(a, b), _mm512_shuffle_i32x4::<0xdd>(c, d));
        store(&mut lines[column], _mm512_shuffle_i32x4::<0x88>(ab_even, cd_even));
        store(&mut lines[column + 4], _mm512_shuffle_i32x4::<0x88>(ab_odd, cd_odd));
        store(&mut lines[column + 8], _mm512_shuffle_i32x4::<0xdd>(ab_even, cd_even));
        store(&mut lines[column + 12], _mm512_shuffle_i32x4::<0xdd>(ab_odd, cd_odd));
    }
}

//! Gradients of weights from gradients that are mostly zeros.
//!
//! After ReLU and dropout of one half, about three quarters of a gradient are zeros, and rows without influence on the
//! loss are all zeros. `G^T X` adds up `g x_i` over the entries `g` of `G`, so the zeros are left out: the rows are
//! taken in blocks, the entries of each column of a block are listed, and for each column the product walks its list
//! with a strip of the result in registers. The strip of the rows of `X` that the lists point to is copied to aligned
//! memory first, where it stays in the nearest cache.

use pulp::{Simd, WithSimd};

use super::{Buffer, Lanes, Selected, Workspaces, add_column_sums, lanes};
use gnntop_data::graph::DropMask;
use gnntop_data::tasks::run_tasks;

/// Rows of a block: one bit each in a word.
const BLOCK: usize = 64;

/// Vectors of a strip, of which as many accumulators stay in registers: with [`BLOCK`] rows it fits into the nearest cache
/// of 32 KiB.
const STRIP: usize = 7;

/// The entries that are not 0 of a matrix `[rows, columns]`: for each block of rows, column by column.
pub(crate) struct CompressedRows<T> {
    columns: usize,
    rows: usize,
    /// For each block room for all its entries; those of its columns one after the other.
    values: Buffer<T>,
    /// The row of each value, counted in its block.
    places: Buffer<u32>,
    /// For each block where its columns start, `[blocks, columns + 1]`.
    starts: Buffer<u32>,
    /// Sum of every column.
    column_sums: Vec<T>,
}

impl<T: Lanes> CompressedRows<T> {
    /// Of `gradient`, `[any, columns]`. `relu` is the result of ReLU and dropout, and the factor of kept values: the
    /// gradient becomes the one before both, which passes where the result is more than 0.
    pub(crate) fn behind(gradient: &mut [T], columns: usize, relu: Option<(&[T], T)>, workspaces: &Workspaces) -> Self {
        let rows = gradient.len() / columns;
        let (blocks, size) = (rows.div_ceil(BLOCK), BLOCK * columns);
        let mut values = T::workspace(workspaces).take(blocks * size);
        let mut places = workspaces.indices.take(values.len());
        let mut starts = workspaces.indices.take(blocks * (columns + 1));
        let mut sums = vec![T::zero(); blocks * columns];
        let tasks = gradient.chunks_mut(size).zip(values.chunks_exact_mut(size)).zip(places.chunks_exact_mut(size));
        let tasks = tasks.zip(starts.chunks_exact_mut(columns + 1)).zip(sums.chunks_exact_mut(columns)).enumerate();
        run_tasks(tasks, |(block, ((((gradient, values), places), starts), sums))| {
            let relu = relu.map(|(result, factor)| (&result[block * size..][..gradient.len()], factor));
            pulp::Arch::new().dispatch(CompressBlock { gradient, columns, relu, values, places, starts, sums });
        });
        let mut column_sums = vec![T::zero(); columns];
        add_column_sums(&mut column_sums, &sums);
        Self { columns, rows, values, places, starts, column_sums }
    }

    /// Sum of every column.
    pub(crate) fn into_column_sums(self) -> Vec<T> {
        self.column_sums
    }

    /// Rows and values of a column of a block.
    #[inline(always)]
    fn entries(&self, block: usize, column: usize) -> (&[u32], &[T]) {
        let starts = &self.starts[block * (self.columns + 1) + column..][..2];
        let first = block * BLOCK * self.columns;
        let range = first + starts[0] as usize..first + starts[1] as usize;
        (&self.places[range.clone()], &self.values[range])
    }
}

/// Lists the entries of one block.
struct CompressBlock<'a, T> {
    gradient: &'a mut [T],
    columns: usize,
    relu: Option<(&'a [T], T)>,
    values: &'a mut [T],
    places: &'a mut [u32],
    starts: &'a mut [u32],
    sums: &'a mut [T],
}

impl<T: Lanes> pulp::NullaryFnOnce for CompressBlock<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(mut self) {
        if let Some((result, factor)) = self.relu {
            for (gradient, &result) in self.gradient.iter_mut().zip(result) {
                let passed = *gradient * factor;
                *gradient = if result > T::zero() { passed } else { T::zero() };
            }
        }
        for row in self.gradient.chunks_exact(self.columns) {
            for (sum, &value) in self.sums.iter_mut().zip(row) {
                *sum += value;
            }
        }
        self.list();
    }
}

impl<T: Lanes> CompressBlock<'_, T> {
    /// First a bit mask of each column's entries, by whole rows, which vectorises; then one step per entry.
    #[inline(always)]
    fn list(&mut self) {
        /// Columns at once: their words stay in registers.
        const COLUMNS: usize = 64;
        let mut count = 0;
        for first in (0..self.columns).step_by(COLUMNS) {
            let width = COLUMNS.min(self.columns - first);
            let mut words = [0u64; COLUMNS];
            for (place, row) in self.gradient.chunks_exact(self.columns).enumerate() {
                for (word, &value) in words.iter_mut().zip(&row[first..first + width]) {
                    *word |= u64::from(value != T::zero()) << place;
                }
            }
            for (column, &word) in words[..width].iter().enumerate() {
                self.starts[first + column] = count as u32;
                let mut word = word;
                while word != 0 {
                    let place = word.trailing_zeros();
                    self.values[count] = self.gradient[place as usize * self.columns + first + column];
                    self.places[count] = place;
                    count += 1;
                    word &= word - 1;
                }
            }
        }
        self.starts[self.columns] = count as u32;
    }
}

/// `G^T X`, `[columns, width]`, for the rows of `x` (further ones are left out), from which `mask` has dropped
/// values before. Every sum is in the order of the rows, whatever the threads.
pub(crate) fn gradient_of_weight<T: Lanes>(
    rows: &CompressedRows<T>,
    x: Selected<'_, T>,
    mask: Option<DropMask>,
    workspaces: &Workspaces,
) -> Vec<T> {
    let width = x.width();
    let task = width.div_ceil(rayon::current_num_threads()).next_multiple_of(32);
    let mut parts: Vec<_> = (0..width).step_by(task).map(|first| (first, task.min(width - first), None)).collect();
    run_tasks(parts.iter_mut(), |(first, count, out)| {
        let strip = Strips { rows, x, mask, first: *first, count: *count, workspaces };
        *out = Some(pulp::Arch::new().dispatch(strip));
    });
    let mut gradient = vec![T::zero(); rows.columns * width];
    for (first, count, part) in &parts {
        let Some(part) = part else { continue };
        for (to, from) in gradient.chunks_exact_mut(width).zip(part.chunks_exact(*count)) {
            to[*first..first + count].copy_from_slice(from);
        }
    }
    gradient
}

/// The columns from `first` on of a product.
struct Strips<'a, T: Lanes> {
    rows: &'a CompressedRows<T>,
    x: Selected<'a, T>,
    mask: Option<DropMask>,
    first: usize,
    count: usize,
    workspaces: &'a Workspaces,
}

impl<T: Lanes> WithSimd for Strips<'_, T> {
    /// `[columns of the gradient, count]`
    type Output = Buffer<T>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Buffer<T> {
        let lanes = lanes::<T, S>();
        let pool = T::workspace(self.workspaces);
        let (stride, longest) = (self.count.next_multiple_of(lanes), STRIP * lanes);
        let mut packed = pool.take((BLOCK + 1) * longest);
        let mut sums = pool.take(self.rows.columns * stride + lanes);
        let (packed, sums) = (aligned::<T, S>(&mut packed), aligned::<T, S>(&mut sums));
        sums.fill(T::zero());
        for block in 0..self.rows.rows.div_ceil(BLOCK) {
            for done in (0..self.count).step_by(longest) {
                macro_rules! strip {
                    ($($n:literal)*) => {
                        match (self.count - done).div_ceil(lanes).min(STRIP) {
                            $($n => self.strip::<S, $n>(simd, block, done, packed, &mut sums[done..], stride),)*
                            _ => {}
                        }
                    };
                }
                strip!(1 2 3 4 5 6 7 8 9 10);
            }
        }
        let mut out = pool.take(self.rows.columns * self.count);
        for (to, from) in out.chunks_exact_mut(self.count).zip(sums.chunks_exact(stride)) {
            to.copy_from_slice(&from[..self.count]);
        }
        out
    }
}

impl<T: Lanes> Strips<'_, T> {
    /// Adds the product with a block of rows, for `N` vectors of columns from `done` on. `sums` has rows of `stride`.
    #[inline(always)]
    fn strip<S: Simd, const N: usize>(
        &self,
        simd: S,
        block: usize,
        done: usize,
        packed: &mut [T],
        sums: &mut [T],
        stride: usize,
    ) {
        let padded = N * lanes::<T, S>();
        self.pack(block, done, packed, padded);
        let packed = T::vectors::<S>(&packed[..BLOCK * padded]).as_chunks::<N>().0;
        for (column, sums) in sums.chunks_mut(stride).enumerate().take(self.rows.columns) {
            let (places, values) = self.rows.entries(block, column);
            if let Some(sums) = T::vectors_mut::<S>(sums).first_chunk_mut::<N>() {
                add_entries::<T, S, N>(simd, places, values, packed, sums);
            }
        }
    }

    /// Copies the strip from `done` on of a block's rows, `padded` apart and with zeros at their ends, and calls for the
    /// rows of the next block.
    #[inline(always)]
    fn pack(&self, block: usize, done: usize, packed: &mut [T], padded: usize) {
        let (skipped, columns) = (self.first + done, padded.min(self.count - done));
        let rows = block * BLOCK..self.rows.rows.min((block + 1) * BLOCK);
        for (to, row) in packed.chunks_exact_mut(padded).zip(rows) {
            self.x.prefetch(row + BLOCK, skipped, columns);
            let (to, rest) = to.split_at_mut(columns);
            rest.fill(T::zero());
            self.x.copy(row, skipped..skipped + columns, self.mask, to);
        }
    }
}

/// Adds `value` times a packed row for each entry.
#[inline(always)]
fn add_entries<T: Lanes, S: Simd, const N: usize>(
    simd: S,
    places: &[u32],
    values: &[T],
    packed: &[[T::Vector<S>; N]],
    sums: &mut [T::Vector<S>; N],
) {
    let mut sum = *sums;
    for (&place, &value) in places.iter().zip(values) {
        let (value, row) = (T::splat(simd, value), &packed[place as usize]);
        for lane in 0..N {
            sum[lane] = T::multiply_add(simd, value, row[lane], sum[lane]);
        }
    }
    *sums = sum;
}

/// The part of a slice that begins at a multiple of a vector's size, so that no vector crosses cache lines.
fn aligned<T: Lanes, S: Simd>(slice: &mut [T]) -> &mut [T] {
    let skip = slice.as_ptr().align_offset(size_of::<T::Vector<S>>());
    slice.get_mut(skip..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    /// `[rows, columns]` of which a share is not 0.
    fn matrix(rng: &mut StdRng, rows: usize, columns: usize, share: f64) -> Vec<f64> {
        let mut value = || if rng.random_bool(share) { rng.random_range(-1.0..1.0) } else { 0.0 };
        (0..rows * columns).map(|_| value()).collect()
    }

    fn naive(gradient: &[f64], columns: usize, x: &[f64], width: usize) -> Vec<f64> {
        let mut out = vec![0.0; columns * width];
        for (row, gradient) in gradient.chunks_exact(columns).enumerate() {
            for (column, &gradient) in gradient.iter().enumerate() {
                for place in 0..width {
                    out[column * width + place] += gradient * x[row * width + place];
                }
            }
        }
        out
    }

    #[test]
    fn the_product_agrees_with_its_definition_at_any_density() {
        let mut rng = StdRng::seed_from_u64(1);
        let workspaces = Workspaces::default();
        for (rows, columns, width, share) in
            [(1, 1, 1, 1.0), (64, 70, 33, 0.25), (130, 5, 171, 0.5), (200, 65, 602, 0.1), (100, 3, 16, 0.0)]
        {
            let (gradient, x) = (matrix(&mut rng, rows, columns, share), matrix(&mut rng, rows + 3, width, 1.0));
            let expected = naive(&gradient, columns, &x, width);
            let compressed = CompressedRows::behind(&mut gradient.clone(), columns, None, &workspaces);
            let exact = gradient_of_weight(&compressed, Selected::all(&x, width), None, &workspaces);
            assert!(exact.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12), "{rows} {columns} {width}");
            let single = |values: &[f64]| values.iter().map(|&value| value as f32).collect::<Vec<_>>();
            let compressed = CompressedRows::behind(&mut single(&gradient), columns, None, &workspaces);
            let near = gradient_of_weight(&compressed, Selected::all(&single(&x), width), None, &workspaces);
            assert!(near.iter().zip(&expected).all(|(&a, b)| (f64::from(a) - b).abs() < 1e-4));
            let ones = vec![1.0f32; rows];
            let sums = naive(&gradient, columns, &vec![1.0; rows], 1);
            assert!(compressed.column_sums.iter().zip(&sums).all(|(&a, b)| (f64::from(a) - b).abs() < 1e-4));
            let product = gradient_of_weight(&compressed, Selected::all(&ones, 1), None, &workspaces);
            assert!(product.iter().zip(&sums).all(|(&a, b)| (f64::from(a) - b).abs() < 1e-4));
        }
    }

    #[test]
    fn threads_do_not_change_the_result() {
        let mut rng = StdRng::seed_from_u64(2);
        let (gradient, x) = (matrix(&mut rng, 300, 40, 0.3), matrix(&mut rng, 300, 602, 1.0));
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let workspaces = Workspaces::default();
                gradient_of_weight(
                    &CompressedRows::behind(&mut gradient.clone(), 40, None, &workspaces),
                    Selected::all(&x, 602),
                    None,
                    &workspaces,
                )
            })
        };
        assert_eq!(run(1), run(7));
    }

    #[test]
    fn not_a_number_is_an_entry() {
        let workspaces = Workspaces::default();
        let compressed = CompressedRows::behind(&mut [0.0, f32::NAN], 2, None, &workspaces);
        assert!(gradient_of_weight(&compressed, Selected::all(&[1.0], 1), None, &workspaces)[1].is_nan());
    }
}

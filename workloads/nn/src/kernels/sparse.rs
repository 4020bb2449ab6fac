//! A sparse constant matrix times a dense one: the first layer over bag-of-words features, of which Cora's are 1.3 %
//! dense.

use std::ops::Range;
use std::sync::Arc;

use candle_core::{CpuStorage, CustomOp1, DType, Device, Layout, Result, Shape, Tensor, bail};

use super::Stored;
use super::message::{AddRows, Gathered, PADDING, Target};
use super::tensors::{number_type, slice, storage_of, tensor_of, with_slice};
use crate::cuda::{Entries, SparseOnDevice, SparseProduct};
use gnntop_data::graph::{Compressed, DropMask, SparseMatrix, balanced_ranges};
use gnntop_data::tasks::{run_tasks, split_rows};

/// Multiplications below which one thread does them all: they take as long as a parallel region costs.
const MIN_PARALLEL: usize = 1 << 19;

/// The operation that multiplies a matrix by a dense one on a GPU.
pub(crate) fn product_on_device(
    matrix: &SparseMatrix,
    device: &Device,
    mask: Option<DropMask>,
) -> Result<SparseProduct> {
    let make = || SparseOnDevice::new(&entries(matrix.by_row()), &entries(matrix.by_column()), device);
    Ok(SparseProduct { matrix: matrix.on_device().get(device, make)?, mask, rows: matrix.rows() })
}

/// As a GPU takes them.
fn entries(matrix: &Compressed) -> Entries<'_> {
    Entries { start: &matrix.start, other: &matrix.other, value: &matrix.value, number: &matrix.number }
}

/// `matrix` times `dense`, row-major with rows of `width`.
pub(crate) fn times<T: Stored<Wide = f32>>(
    matrix: &Compressed,
    mask: Option<DropMask>,
    dense: &[T],
    width: usize,
) -> Vec<T> {
    let mut out = vec![T::default(); (matrix.start.len() - 1) * width];
    times_into(matrix, mask, dense, width, &mut out);
    out
}

/// The same into existing memory.
pub(crate) fn times_into<T: Stored<Wide = f32>>(
    matrix: &Compressed,
    mask: Option<DropMask>,
    dense: &[T],
    width: usize,
    out: &mut [T],
) {
    let parts = if matrix.value.len() * width < MIN_PARALLEL { 1 } else { rayon::current_num_threads() };
    let ranges = balanced_ranges(&matrix.start, parts, usize::MAX);
    run_tasks(ranges.iter().zip(split_rows(out, &ranges, width)), |(range, out)| {
        pulp::Arch::new().dispatch(ProductRange { matrix, mask, dense, width, range: range.clone(), out });
    });
}

struct ProductRange<'a, T> {
    matrix: &'a Compressed,
    mask: Option<DropMask>,
    dense: &'a [T],
    width: usize,
    range: Range<usize>,
    out: &'a mut [T],
}

impl<T: Stored<Wide = f32>> pulp::NullaryFnOnce for ProductRange<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { matrix, mask, dense, width, range, out } = self;
        if width == 0 {
            return;
        }
        let first = matrix.start[range.start] as usize;
        let ends: Vec<usize> =
            matrix.start[range.start + 1..=range.end].iter().map(|&end| end as usize - first).collect();
        let entries = first..first + ends.last().copied().unwrap_or(0);
        let dropped;
        let factors = match mask {
            None => &matrix.value[entries.clone()],
            Some(mask) => {
                dropped = after_dropout(matrix, mask, entries.clone());
                &dropped[..]
            }
        };
        let gathered = Gathered { x: dense, width, rows: &matrix.other[entries], ends: &ends };
        let sum = &mut vec![0.0; width + PADDING];
        AddRows { gathered, heads: 1, factors, mean: false, sum, target: Target::Rows(out) }.call();
    }
}

/// The values of some entries after dropout. To be inlined where vectors are at hand.
#[inline(always)]
fn after_dropout(matrix: &Compressed, mask: DropMask, entries: Range<usize>) -> Vec<f32> {
    let (stream, factor) = (mask.stream(0), mask.factor() as f32);
    let numbers = &matrix.number[entries.clone()];
    let kept = |(&value, &number)| if stream.stays(number) { value * factor } else { 0.0 };
    matrix.value[entries].iter().zip(numbers).map(kept).collect()
}

/// `X W^T` for a sparse constant `X`, `[rows, columns]`, and `weight`, `[out, columns]`: `[rows, out]`. The gradient
/// goes to `weight`.
///
/// # Errors
/// `weight` does not have one column for each of the matrix, is not f32, bf16 or f16, or is not in host memory.
pub fn sparse_linear(matrix: &Arc<SparseMatrix>, weight: &Tensor) -> Result<Tensor> {
    product(matrix, weight, None)
}

/// [`sparse_linear`] after a [`dropout`](super::dropout) of `X`: its values are numbered by rows.
///
/// # Errors
/// As [`sparse_linear`], or `p` is not in `0..=1`.
pub fn sparse_linear_dropout(matrix: &Arc<SparseMatrix>, weight: &Tensor, p: f64, seed: u64) -> Result<Tensor> {
    let mask = DropMask::new(p, seed)?;
    product(matrix, weight, (p > 0.0).then_some(mask))
}

fn product(matrix: &Arc<SparseMatrix>, weight: &Tensor, mask: Option<DropMask>) -> Result<Tensor> {
    let (_, columns) = weight.dims2()?;
    if columns != matrix.columns() {
        bail!("weight has shape {:?}, but the sparse matrix has {} columns", weight.dims(), matrix.columns());
    }
    if weight.device().is_cuda() {
        let product = product_on_device(matrix, weight.device(), mask)?;
        return weight.t()?.contiguous()?.apply_op1(product);
    }
    weight.contiguous()?.apply_op1(SparseLinear { matrix: Arc::clone(matrix), mask })
}

struct SparseLinear {
    matrix: Arc<SparseMatrix>,
    mask: Option<DropMask>,
}

/// Runs `$body` with `$T` as the number type of `$dtype`; f64 is not among them, as the matrix is f32.
macro_rules! with_single {
    ($dtype:expr, |$T:ident| $body:expr) => {
        match $dtype {
            DType::F32 => {
                type $T = f32;
                $body
            }
            DType::BF16 => {
                type $T = half::bf16;
                $body
            }
            DType::F16 => {
                type $T = half::f16;
                $body
            }
            dtype => bail!("sparse_linear takes f32, bf16 or f16, not {dtype:?}"),
        }
    };
}

/// `[rows, columns]` to `[columns, rows]`, in tiles that stay in the nearest cache.
pub(crate) fn transposed<T: Stored>(matrix: &[T], rows: usize, columns: usize) -> Vec<T> {
    const TILE: usize = 16;
    let mut out = vec![T::default(); rows * columns];
    for row_tile in (0..rows).step_by(TILE) {
        for column_tile in (0..columns).step_by(TILE) {
            for row in row_tile..rows.min(row_tile + TILE) {
                for column in column_tile..columns.min(column_tile + TILE) {
                    out[column * rows + row] = matrix[row * columns + column];
                }
            }
        }
    }
    out
}

impl CustomOp1 for SparseLinear {
    fn name(&self) -> &'static str {
        "sparse-linear"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (width, columns) = layout.shape().dims2()?;
        let out = with_single!(number_type(storage), |T| {
            let weight = transposed::<T>(slice(storage, layout)?, width, columns);
            storage_of(times(self.matrix.by_row(), self.mask, &weight, width))
        });
        Ok((out, Shape::from((self.matrix.rows(), width))))
    }

    fn bwd(&self, weight: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        let (width, columns) = weight.dims2()?;
        with_single!(weight.dtype(), |T| with_slice::<T, _>(gradient, |gradient| {
            let product = times(self.matrix.by_column(), self.mask, gradient, width);
            tensor_of(transposed(&product, columns, width), weight.shape().clone(), weight)
        }))
        .map(Some)
    }
}

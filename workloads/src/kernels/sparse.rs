//! A sparse constant matrix times a dense one: the first layer over bag-of-words features, of which Cora's are 1.3 %
//! dense.

use std::ops::Range;
use std::sync::Arc;

use candle_core::{CpuStorage, CustomOp1, DType, Device, Layout, Result, Shape, Tensor, bail};

use super::Stored;
use super::message::{AddRows, Gathered, PADDING, Target};
use super::ranges::{run_tasks, split_rows};
use super::tensors::{number_type, slice, storage_of, tensor_of, with_slice};
use crate::cuda::{Entries, SparseOnDevice, SparseProduct};
use crate::graph::{DeviceSlot, DropMask, balanced_ranges};

/// Multiplications below which one thread does them all.
const MIN_PARALLEL: usize = 1 << 16;

/// One direction of a sparse matrix.
#[derive(Debug, Clone)]
struct Compressed {
    start: Vec<u32>,
    /// Column of each non-zero.
    other: Vec<u32>,
    value: Vec<f32>,
    /// Position of each non-zero in the matrix by rows, which numbers it for dropout.
    number: Vec<u32>,
}

/// A sparse constant matrix `[rows, columns]` in f32, by rows and by columns.
#[derive(Debug, Clone)]
pub struct SparseMatrix {
    by_row: Compressed,
    by_column: Compressed,
    on_device: DeviceSlot,
}

impl SparseMatrix {
    /// From CSR: row `i` has the values `value[row_start[i]..row_start[i + 1]]` in the columns `column[..]` of the same
    /// places. A column that occurs twice in a row counts twice.
    ///
    /// # Errors
    /// `row_start` does not ascend from 0 to the number of values, `column` has another length than `value`, or a
    /// column is not below `columns`.
    pub fn new(row_start: Vec<u32>, column: Vec<u32>, value: Vec<f32>, columns: usize) -> Result<Self> {
        let ascending = row_start.windows(2).all(|row| row[0] <= row[1]);
        let ends = (row_start.first().copied(), row_start.last().map(|&last| last as usize));
        if ends != (Some(0), Some(value.len())) || !ascending || column.len() != value.len() {
            bail!("row_start must ascend from 0 to the number of values ({}), each with a column", value.len());
        }
        if let Some(wrong) = column.iter().find(|&&column| column as usize >= columns) {
            bail!("a value is in column {wrong}, but there are only {columns} columns");
        }
        let number = (0..value.len() as u32).collect();
        let by_row = Compressed { start: row_start, other: column, value, number };
        Ok(Self { by_column: by_row.transposed(columns), by_row, on_device: DeviceSlot::default() })
    }

    /// The non-zeros of a matrix, `[rows, columns]`.
    ///
    /// # Errors
    /// `dense` is not a matrix, or does not convert to f32 in host memory.
    pub fn from_dense(dense: &Tensor) -> Result<Self> {
        let (rows, columns) = dense.dims2()?;
        let (mut row_start, mut column, mut value) = (vec![0], Vec::new(), Vec::new());
        with_slice::<f32, _>(&dense.to_dtype(DType::F32)?, |dense| {
            for row in 0..rows {
                let entries = dense[row * columns..][..columns].iter().enumerate();
                for (place, &entry) in entries.filter(|&(_, &entry)| entry != 0.0) {
                    column.push(place as u32);
                    value.push(entry);
                }
                row_start.push(value.len() as u32);
            }
            Ok(())
        })?;
        Self::new(row_start, column, value, columns)
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.by_row.start.len() - 1
    }

    /// Number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.by_column.start.len() - 1
    }

    /// Number of stored values.
    #[must_use]
    pub fn non_zeros(&self) -> usize {
        self.by_row.value.len()
    }
}

impl SparseMatrix {
    /// The operation that multiplies this matrix by a dense one on a GPU.
    pub(crate) fn product_on_device(&self, device: &Device, mask: Option<DropMask>) -> Result<SparseProduct> {
        let make = || SparseOnDevice::new(&self.by_row.entries(), &self.by_column.entries(), device);
        Ok(SparseProduct { matrix: self.on_device.get(device, make)?, mask, rows: self.rows() })
    }
}

impl Compressed {
    /// As a GPU takes them.
    fn entries(&self) -> Entries<'_> {
        Entries { start: &self.start, other: &self.other, value: &self.value, number: &self.number }
    }

    /// The other direction, by counting; `others` is the number of its rows.
    fn transposed(&self, others: usize) -> Self {
        let mut start = vec![0u32; others + 1];
        self.other.iter().for_each(|&other| start[other as usize + 1] += 1);
        (1..start.len()).for_each(|index| start[index] += start[index - 1]);
        let mut cursor = start.clone();
        let entries = self.value.len();
        let (mut other, mut value, mut number) = (vec![0; entries], vec![0.0; entries], vec![0; entries]);
        for (row, range) in self.start.windows(2).enumerate() {
            for entry in range[0] as usize..range[1] as usize {
                let slot = &mut cursor[self.other[entry] as usize];
                let place = *slot as usize;
                (other[place], value[place], number[place]) = (row as u32, self.value[entry], entry as u32);
                *slot += 1;
            }
        }
        Self { start, other, value, number }
    }

    /// This matrix times `dense`, row-major with rows of `width`.
    fn times<T: Stored<Wide = f32>>(&self, mask: Option<DropMask>, dense: &[T], width: usize) -> Vec<T> {
        let rows = self.start.len() - 1;
        let mut out = vec![T::default(); rows * width];
        let parts = if self.value.len() * width < MIN_PARALLEL { 1 } else { rayon::current_num_threads() };
        let ranges = balanced_ranges(&self.start, parts, usize::MAX);
        run_tasks(ranges.iter().zip(split_rows(&mut out, &ranges, width)), |(range, out)| {
            pulp::Arch::new().dispatch(ProductRange { matrix: self, mask, dense, width, range: range.clone(), out });
        });
        out
    }
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
                dropped = matrix.dropped(mask, entries.clone());
                &dropped[..]
            }
        };
        let gathered = Gathered { x: dense, width, rows: &matrix.other[entries], ends: &ends };
        let sum = &mut vec![0.0; width + PADDING];
        AddRows { gathered, heads: 1, factors, mean: false, sum, target: Target::Rows(out) }.call();
    }
}

impl Compressed {
    /// The values of some entries after dropout. To be inlined where vectors are at hand.
    #[inline(always)]
    fn dropped(&self, mask: DropMask, entries: Range<usize>) -> Vec<f32> {
        let (stream, factor) = (mask.stream(0), mask.factor() as f32);
        let numbers = &self.number[entries.clone()];
        let kept = |(&value, &number)| if stream.stays(number) { value * factor } else { 0.0 };
        self.value[entries].iter().zip(numbers).map(kept).collect()
    }
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
        let product = matrix.product_on_device(weight.device(), mask)?;
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
fn transposed<T: Stored>(matrix: &[T], rows: usize, columns: usize) -> Vec<T> {
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
            storage_of(self.matrix.by_row.times(self.mask, &weight, width))
        });
        Ok((out, Shape::from((self.matrix.rows(), width))))
    }

    fn bwd(&self, weight: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        let (width, columns) = weight.dims2()?;
        with_single!(weight.dtype(), |T| with_slice::<T, _>(gradient, |gradient| {
            let product = self.matrix.by_column.times(self.mask, gradient, width);
            tensor_of(transposed(&product, columns, width), weight.shape().clone(), weight)
        }))
        .map(Some)
    }
}

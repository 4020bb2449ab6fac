//! A sparse constant matrix times a dense one on a device: a sum of copied rows, each times the value of its entry.

use std::ops::Range;
use std::sync::Arc;

use candle_core::{CpuStorage, CudaStorage, CustomOp1, Device, Layout, Result, Shape, Tensor};

use super::edges::{Lists, Walk, list};
use super::elements::dropped_values;
use super::machine::{Memory, View};
use super::messages::{Directed, Messages, Operand};
use gnntop_data::graph::{Direction, DropMask, Endpoint};

/// Entries of a row from which it is computed in parts.
const HUB_ENTRIES: usize = 1024;

/// Entries of a sparse matrix by its rows or by its columns.
pub(crate) struct Entries<'a> {
    pub(crate) start: &'a [u32],
    /// The column of each.
    pub(crate) other: &'a [u32],
    pub(crate) value: &'a [f32],
    /// Which numbers them for dropout.
    pub(crate) number: &'a [u32],
}

/// One direction of a sparse matrix on a device.
#[derive(Debug)]
pub(crate) struct Half {
    memory: Tensor,
    value: Tensor,
    walk: Walk,
    number: Range<usize>,
}

/// A sparse matrix on a device, by rows and by columns.
#[derive(Debug)]
pub(crate) struct SparseOnDevice {
    by_row: Half,
    by_column: Half,
}

impl SparseOnDevice {
    /// Copies a matrix.
    ///
    /// # Errors
    /// The device has too little memory.
    pub(crate) fn new(by_row: &Entries<'_>, by_column: &Entries<'_>, device: &Device) -> Result<Self> {
        let columns = by_column.start.len() - 1;
        let rows = by_row.start.len() - 1;
        Ok(Self { by_row: Half::new(by_row, columns, device)?, by_column: Half::new(by_column, rows, device)? })
    }

    /// `[columns, width]` to `[rows, width]`.
    fn times(&self, mask: Option<DropMask>, dense: View<'_>, width: usize) -> Result<Memory> {
        self.by_row.times(mask, dense, width)
    }

    /// `[rows, width]` to `[columns, width]`.
    fn transposed_times(&self, mask: Option<DropMask>, dense: View<'_>, width: usize) -> Result<Memory> {
        self.by_column.times(mask, dense, width)
    }
}

impl Half {
    fn new(entries: &Entries<'_>, others: usize, device: &Device) -> Result<Self> {
        let mut lists = Lists::default();
        let other = (others, entries.other.iter().copied());
        let walk = Walk::new(&mut lists, entries.start, other, None, HUB_ENTRIES);
        let number = lists.push(entries.number.iter().copied());
        let value = Tensor::from_slice(entries.value, entries.value.len(), device)?;
        Ok(Self { memory: lists.copy_to(device)?, value, walk, number })
    }

    fn times(&self, mask: Option<DropMask>, dense: View<'_>, width: usize) -> Result<Memory> {
        let device = self.memory.device();
        let value = match mask {
            Some(mask) => {
                let number = list(&self.memory, &self.number)?;
                let dropped = dropped_values(device, View::new(&self.value)?, number, mask)?;
                dropped.into_tensor(self.value.shape())
            }
            None => self.value.clone(),
        };
        let scale = Some(Operand { rows: View::new(&value)?, at: Endpoint::Edge });
        let messages = Messages { scale, ..Messages::copies(width, Operand { rows: dense, at: Endpoint::Source }) };
        let (memory, walk) = (&self.memory, &self.walk);
        Directed { device, memory, walk, direction: Direction::Incoming, targets: None }.sum(&messages, false)
    }
}

/// A sparse matrix times a dense one, `[columns, width]` to `[rows, width]`; its gradient goes to the dense one.
pub(crate) struct SparseProduct {
    pub(crate) matrix: Arc<SparseOnDevice>,
    pub(crate) mask: Option<DropMask>,
    pub(crate) rows: usize,
}

impl SparseProduct {
    /// The product of the tensors on the device.
    pub(crate) fn forward(&self, dense: View<'_>, width: usize) -> Result<Memory> {
        self.matrix.times(self.mask, dense, width)
    }

    /// The gradient of the dense matrix from that of the product.
    pub(crate) fn backward(&self, gradient: &Tensor) -> Result<Memory> {
        self.matrix.transposed_times(self.mask, View::new(gradient)?, gradient.dim(1)?)
    }
}

impl CustomOp1 for SparseProduct {
    fn name(&self) -> &'static str {
        "sparse-product"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (_, width) = layout.shape().dims2()?;
        let out = self.forward(View::of_host(storage, layout)?, width)?;
        out.into_host(Shape::from((self.rows, width)))
    }

    fn cuda_fwd(&self, storage: &CudaStorage, layout: &Layout) -> Result<(CudaStorage, Shape)> {
        let (_, width) = layout.shape().dims2()?;
        let out = self.forward(View::of_storage(storage, layout)?, width)?;
        out.into_storage(Shape::from((self.rows, width)))
    }

    fn bwd(&self, dense: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        Ok(Some(self.backward(&gradient.contiguous()?)?.into_tensor(dense.shape())))
    }
}

//! The fixed graph of an image: each pixel and its up to eight neighbours, without self-loops.
//!
//! PyTorch Geometric makes the same graph with `grid(height, width)`. On it the sum over neighbours is the sum of a
//! 3x3 box without its centre, so no edge list is needed.

use std::ops::Range;

use candle_core::{CpuStorage, CudaStorage, CustomOp1, DType, Layout, Result, Shape, Tensor, bail};

use super::lanes::Vectorised;
use crate::cuda::{self, View, device_of};
use crate::kernels::{Workspaces, cpu_slice, host_slice};
use gnntop_data::tasks::run_tasks;

/// Height and width of every image, in pixels. A batch numbers its nodes `(image * height + row) * width + column`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
}

impl Grid {
    /// Nodes of an image.
    #[must_use]
    pub fn nodes(self) -> usize {
        self.height * self.width
    }

    /// Directed edges of an image: 7,812 for 32 x 32.
    #[must_use]
    pub fn edges(self) -> usize {
        (0..self.nodes()).map(|node| self.degree(node)).sum()
    }

    /// Neighbours of a node, counted from the first of its image or of the batch.
    #[must_use]
    pub fn degree(self, node: usize) -> usize {
        let node = node % self.nodes().max(1);
        let (row, column) = (node / self.width.max(1), node % self.width.max(1));
        let rows = around(row, self.height).len();
        (rows * around(column, self.width).len()).saturating_sub(1)
    }

    /// Images in a batch of `nodes` nodes.
    ///
    /// # Errors
    /// The nodes are not whole images, or there are none.
    pub fn images(self, nodes: usize) -> Result<usize> {
        if nodes == 0 || self.nodes() == 0 || !nodes.is_multiple_of(self.nodes()) {
            bail!("vig: {nodes} nodes are not whole images of {} x {}", self.height, self.width);
        }
        Ok(nodes / self.nodes())
    }

    /// `out_i = sum of rows_j over the neighbours j of i`, both `[nodes, columns]`. The graph is symmetric, so this
    /// is its own transpose.
    pub(super) fn sum_neighbours<T: Vectorised>(
        self,
        rows: &[T],
        columns: usize,
        out: &mut [T],
        workspaces: &Workspaces,
    ) {
        let image = self.nodes() * columns;
        if image == 0 {
            return;
        }
        run_tasks(rows.chunks_exact(image).zip(out.chunks_exact_mut(image)), |(rows, out)| {
            let mut scratch = T::workspace(workspaces).take(self.width * columns);
            for row in 0..self.height {
                self.sum_row(rows, columns, row, &mut scratch, out);
            }
        });
    }

    /// One row of pixels. `others` is scratch: the sum of the rows above and below.
    fn sum_row<T: Vectorised>(self, rows: &[T], columns: usize, row: usize, others: &mut [T], out: &mut [T]) {
        let stride = self.width * columns;
        let own = &rows[row * stride..][..stride];
        others.fill(T::zero());
        for other in around(row, self.height).filter(|&other| other != row) {
            let other = &rows[other * stride..][..stride];
            others.iter_mut().zip(other).for_each(|(sum, &value)| *sum += value);
        }
        let out = &mut out[row * stride..][..stride];
        out.copy_from_slice(others);
        let inner = stride - columns;
        for ((out, &other), &own) in out[columns..].iter_mut().zip(&others[..inner]).zip(&own[..inner]) {
            *out += other + own;
        }
        for ((out, &other), &own) in out[..inner].iter_mut().zip(&others[columns..]).zip(&own[columns..]) {
            *out += other + own;
        }
    }
}

/// `place` and the places beside it in `0..length`.
fn around(place: usize, length: usize) -> Range<usize> {
    place.saturating_sub(1)..(place + 2).min(length)
}

/// Sum over the neighbours of every node, `[nodes, columns]` to the same.
///
/// # Errors
/// The nodes are not whole images, or the number type is neither f32 nor f64.
pub fn neighbour_sum(x: &Tensor, grid: Grid, workspaces: &Workspaces) -> Result<Tensor> {
    grid.images(x.dim(0)?)?;
    x.contiguous()?.apply_op1(NeighbourSum { grid, workspaces: workspaces.clone() })
}

struct NeighbourSum {
    grid: Grid,
    workspaces: Workspaces,
}

impl NeighbourSum {
    fn sum<T: Vectorised>(&self, rows: &[T], columns: usize) -> Vec<T> {
        let mut out = vec![T::zero(); rows.len()];
        self.grid.sum_neighbours(rows, columns, &mut out, &self.workspaces);
        out
    }

    fn forward<T: Vectorised>(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (_, columns) = layout.shape().dims2()?;
        let out = self.sum::<T>(cpu_slice(storage, layout)?, columns);
        Ok((T::to_cpu_storage_owned(out), layout.shape().clone()))
    }

    fn backward<T: Vectorised>(&self, gradient: &Tensor) -> Result<Tensor> {
        let gradient = gradient.contiguous()?;
        let (storage, layout) = gradient.storage_and_layout();
        let out = self.sum::<T>(host_slice(&storage, layout)?, gradient.dim(1)?);
        Tensor::from_vec(out, gradient.shape(), gradient.device())
    }
}

impl CustomOp1 for NeighbourSum {
    fn name(&self) -> &'static str {
        "grid-neighbour-sum"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        match storage {
            CpuStorage::F32(_) => self.forward::<f32>(storage, layout),
            CpuStorage::F64(_) => self.forward::<f64>(storage, layout),
            _ => bail!("neighbour sum: only f32 and f64 are supported"),
        }
    }

    fn cuda_fwd(&self, storage: &CudaStorage, layout: &Layout) -> Result<(CudaStorage, Shape)> {
        let device = device_of(storage);
        let (x, size) = (View::of_storage(storage, layout)?, (self.grid.height, self.grid.width));
        let out = cuda::neighbour_sum(&device, x, size, layout.dims()[1])?;
        out.into_storage(layout.shape().clone())
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        if x.device().is_cuda() {
            let (gradient, size) = (gradient.contiguous()?, (self.grid.height, self.grid.width));
            let view = View::new(&gradient)?;
            let out = cuda::neighbour_sum(x.device(), view, size, x.dim(1)?)?;
            return Ok(Some(out.into_tensor(x.shape())));
        }
        match x.dtype() {
            DType::F32 => self.backward::<f32>(gradient).map(Some),
            DType::F64 => self.backward::<f64>(gradient).map(Some),
            other => bail!("neighbour sum: only f32 and f64 are supported, not {other:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::Device;

    /// Neighbours by the definition: all pixels at most one row and one column away.
    fn neighbours(grid: Grid, node: usize) -> Vec<usize> {
        let place = |node: usize| ((node / grid.width) as i64, (node % grid.width) as i64);
        let near = |&other: &usize| {
            let ((row, column), (other_row, other_column)) = (place(node), place(other));
            other != node && (row - other_row).abs() <= 1 && (column - other_column).abs() <= 1
        };
        (0..grid.nodes()).filter(near).collect()
    }

    #[test]
    fn an_image_of_cifar_has_7812_edges() {
        assert_eq!(Grid { height: 32, width: 32 }.edges(), 7812);
    }

    #[test]
    fn sums_and_degrees_follow_the_definition_for_any_shape() {
        for (height, width) in [(1, 1), (1, 5), (4, 1), (2, 2), (3, 7), (6, 4)] {
            let (grid, images, columns) = (Grid { height, width }, 3, 2);
            let values: Vec<f64> =
                (0..images * grid.nodes() * columns).map(|i| f64::from((i * 37 % 101) as u32)).collect();
            let x = Tensor::from_slice(&values, (images * grid.nodes(), columns), &Device::Cpu).unwrap();
            let sums = neighbour_sum(&x, grid, &Workspaces::default()).unwrap().to_vec2::<f64>().unwrap();
            for (node, sums) in sums.iter().enumerate() {
                let (image, within) = (node / grid.nodes(), node % grid.nodes());
                let neighbours = neighbours(grid, within);
                assert_eq!(grid.degree(node), neighbours.len());
                for (column, &sum) in sums.iter().enumerate() {
                    let value = |&other: &usize| values[(image * grid.nodes() + other) * columns + column];
                    assert_eq!(sum, neighbours.iter().map(value).sum::<f64>(), "{grid:?} node {node}");
                }
            }
        }
    }

    #[test]
    fn a_part_of_an_image_is_refused() {
        let grid = Grid { height: 2, width: 3 };
        let x = Tensor::zeros((7, 1), DType::F32, &Device::Cpu).unwrap();
        assert!(neighbour_sum(&x, grid, &Workspaces::default()).is_err());
        assert!(grid.images(0).is_err());
    }
}

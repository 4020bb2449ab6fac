//! A node's columns before the first linear map, laid out for the fused kernel: tiles of [`TILE`] nodes, and in each
//! tile one row per column.
//!
//! The columns are the node's own channels around a centre (`x - centre`), and for the first half of a block the sum
//! of those over its neighbours and its degree. Around the mean, nothing large cancels in the products that follow.

use std::ops::Range;

use candle_core::{CpuStorage, CustomOp2, DType, Layout, Result, Shape, Tensor, bail};

use super::lanes::Vectorised;
use super::{CHANNELS, Grid};
use crate::kernels::{Workspaces, cpu_slice, host_slice, run_tasks};

/// Nodes of a tile. Seven columns of it, their gradients and that of the result fit a first-level cache.
pub(super) const TILE: usize = 512;

/// The nodes of a tile, fewer than [`TILE`] in the last one.
pub(super) fn tile_nodes(tile: usize, nodes: usize) -> Range<usize> {
    tile * TILE..((tile + 1) * TILE).min(nodes)
}

/// `x - centre` of `x` `[nodes, 3]` and `centre` `[3]` as tiles, `[tiles, 3, TILE]`; with a grid also the neighbours'
/// sums and the degree, `[tiles, 7, TILE]`. Rows beyond the last node are 0.
///
/// # Errors
/// The shapes or number types do not fit, or the nodes are not whole images of the grid.
pub(super) fn columns(x: &Tensor, centre: &Tensor, grid: Option<Grid>, workspaces: &Workspaces) -> Result<Tensor> {
    if x.dim(1)? != CHANNELS || centre.dims() != [CHANNELS] || x.dim(0)? == 0 {
        bail!("vig: expected features [nodes, {CHANNELS}], got {:?} around {:?}", x.dims(), centre.dims());
    }
    if let Some(grid) = grid {
        grid.images(x.dim(0)?)?;
    }
    x.contiguous()?.apply_op2(&centre.contiguous()?, Columns { grid, workspaces: workspaces.clone() })
}

struct Columns {
    grid: Option<Grid>,
    workspaces: Workspaces,
}

impl Columns {
    fn count(&self) -> usize {
        if self.grid.is_some() { 2 * CHANNELS + 1 } else { CHANNELS }
    }

    fn forward<T: Vectorised>(&self, x: &[T], centre: &[T]) -> Vec<T> {
        let nodes = x.len() / CHANNELS;
        let mut out = vec![T::zero(); nodes.div_ceil(TILE) * self.count() * TILE];
        let mut centred = T::workspace(&self.workspaces).take(x.len());
        for (row, x) in centred.chunks_exact_mut(CHANNELS).zip(x.chunks_exact(CHANNELS)) {
            row.iter_mut().zip(x).zip(centre).for_each(|((out, &x), &centre)| *out = x - centre);
        }
        let mut sums = T::workspace(&self.workspaces).take(if self.grid.is_some() { x.len() } else { 0 });
        if let Some(grid) = self.grid {
            grid.sum_neighbours(&centred, CHANNELS, &mut sums, &self.workspaces);
        }
        run_tasks(out.chunks_exact_mut(self.count() * TILE).enumerate(), |(tile, out)| {
            let nodes = tile_nodes(tile, nodes);
            let (own, rest) = out.split_at_mut(CHANNELS * TILE);
            pack(&centred[nodes.start * CHANNELS..nodes.end * CHANNELS], own);
            if let Some(grid) = self.grid {
                let (neighbours, degree) = rest.split_at_mut(CHANNELS * TILE);
                pack(&sums[nodes.start * CHANNELS..nodes.end * CHANNELS], neighbours);
                degree.iter_mut().zip(nodes).for_each(|(out, node)| *out = T::from_f64(grid.degree(node) as f64));
            }
        });
        out
    }

    /// Gradients of `x` and `centre`.
    fn backward<T: Vectorised>(&self, gradient: &[T], nodes: usize) -> (Vec<T>, Vec<T>) {
        let mut of_x = vec![T::zero(); nodes * CHANNELS];
        let mut of_sums = T::workspace(&self.workspaces).take(if self.grid.is_some() { of_x.len() } else { 0 });
        if let Some(grid) = self.grid {
            unpack(gradient, self.count(), CHANNELS, &mut of_sums);
            grid.sum_neighbours(&of_sums, CHANNELS, &mut of_x, &self.workspaces);
            drop(of_sums);
            let mut of_own = T::workspace(&self.workspaces).take(of_x.len());
            unpack(gradient, self.count(), 0, &mut of_own);
            of_x.iter_mut().zip(&*of_own).for_each(|(out, &own)| *out += own);
        } else {
            unpack(gradient, self.count(), 0, &mut of_x);
        }
        let mut of_centre = [0.0; CHANNELS];
        for row in of_x.chunks_exact(CHANNELS) {
            of_centre.iter_mut().zip(row).for_each(|(sum, &value)| *sum -= value.to_f64());
        }
        (of_x, of_centre.map(T::from_f64).to_vec())
    }

    fn forward_typed<T: Vectorised>(&self, x: &[T], centre: &[T]) -> (CpuStorage, Shape) {
        let tiles = (x.len() / CHANNELS).div_ceil(TILE);
        (T::to_cpu_storage_owned(self.forward(x, centre)), Shape::from((tiles, self.count(), TILE)))
    }

    fn backward_typed<T: Vectorised>(&self, x: &Tensor, gradient: &Tensor) -> Result<(Tensor, Tensor)> {
        let gradient = gradient.contiguous()?;
        let (storage, layout) = gradient.storage_and_layout();
        let (of_x, of_centre) = self.backward::<T>(host_slice(&storage, layout)?, x.dim(0)?);
        Ok((Tensor::from_vec(of_x, x.shape(), x.device())?, Tensor::from_vec(of_centre, CHANNELS, x.device())?))
    }
}

/// `[nodes, 3]` to the first three rows of a tile.
fn pack<T: Vectorised>(rows: &[T], tile: &mut [T]) {
    for (channel, out) in tile.chunks_exact_mut(TILE).enumerate() {
        out.iter_mut().zip(rows.iter().skip(channel).step_by(CHANNELS)).for_each(|(out, &value)| *out = value);
    }
}

/// Three columns of all tiles, from `first`, to `[nodes, 3]`.
fn unpack<T: Vectorised>(tiles: &[T], columns: usize, first: usize, out: &mut [T]) {
    for (tile, out) in tiles.chunks_exact(columns * TILE).zip(out.chunks_mut(CHANNELS * TILE)) {
        for (node, out) in out.chunks_exact_mut(CHANNELS).enumerate() {
            for (channel, out) in out.iter_mut().enumerate() {
                *out = tile[(first + channel) * TILE + node];
            }
        }
    }
}

impl CustomOp2 for Columns {
    fn name(&self) -> &'static str {
        "vig-columns"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        centre: &CpuStorage,
        centre_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        match x {
            CpuStorage::F32(_) => {
                Ok(self.forward_typed::<f32>(cpu_slice(x, x_layout)?, cpu_slice(centre, centre_layout)?))
            }
            CpuStorage::F64(_) => {
                Ok(self.forward_typed::<f64>(cpu_slice(x, x_layout)?, cpu_slice(centre, centre_layout)?))
            }
            _ => bail!("vig: only f32 and f64 are supported"),
        }
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let (of_x, of_centre) = match x.dtype() {
            DType::F32 => self.backward_typed::<f32>(x, gradient)?,
            DType::F64 => self.backward_typed::<f64>(x, gradient)?,
            other => bail!("vig: only f32 and f64 are supported, not {other:?}"),
        };
        Ok((Some(of_x), Some(of_centre)))
    }
}

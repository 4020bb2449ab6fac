//! A node's columns before the first linear map, laid out for the fused kernel: groups of [`GROUP`] nodes, and in each
//! group one run of numbers per column.
//!
//! The columns are the node's own channels around a centre (`x - centre`), and for the first half of a block the sum
//! of those over its neighbours and its degree. Around the mean, nothing large cancels in the products that follow.

use candle_core::{CpuStorage, CustomOp2, DType, Layout, Result, Shape, Tensor, bail};

use super::lanes::{GROUP, Vectorised};
use super::{CHANNELS, Grid};
use crate::kernels::{Workspaces, cpu_slice, host_slice};
use gnntop_data::tasks::run_tasks;

/// Nodes that one task packs.
const CHUNK_GROUPS: usize = 64;

/// `x - centre` of `x` `[nodes, 3]` and `centre` `[3]` as groups, `[groups, 3, GROUP]`; with a grid also the
/// neighbours' sums and the degree, `[groups, 7, GROUP]`. Beyond the last node all is 0.
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
        let width = self.count() * GROUP;
        let mut out = vec![T::zero(); nodes.div_ceil(GROUP) * width];
        let mut centred = T::workspace(&self.workspaces).take(x.len());
        for (row, x) in centred.chunks_exact_mut(CHANNELS).zip(x.chunks_exact(CHANNELS)) {
            row.iter_mut().zip(x).zip(centre).for_each(|((out, &x), &centre)| *out = x - centre);
        }
        let mut sums = T::workspace(&self.workspaces).take(if self.grid.is_some() { x.len() } else { 0 });
        if let Some(grid) = self.grid {
            grid.sum_neighbours(&centred, CHANNELS, &mut sums, &self.workspaces);
        }
        let rows = |first: usize| first * GROUP * CHANNELS..nodes.min((first + CHUNK_GROUPS) * GROUP) * CHANNELS;
        run_tasks(out.chunks_mut(CHUNK_GROUPS * width).enumerate(), |(task, out)| {
            let first = task * CHUNK_GROUPS;
            pack(&centred[rows(first)], out, self.count(), 0);
            if let Some(grid) = self.grid {
                pack(&sums[rows(first)], out, self.count(), CHANNELS);
                for node in first * GROUP..nodes.min((first + CHUNK_GROUPS) * GROUP) {
                    let (group, lane) = (node / GROUP - first, node % GROUP);
                    out[group * width + 2 * CHANNELS * GROUP + lane] = T::from_f64(grid.degree(node) as f64);
                }
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
        let groups = (x.len() / CHANNELS).div_ceil(GROUP);
        (T::to_cpu_storage_owned(self.forward(x, centre)), Shape::from((groups, self.count(), GROUP)))
    }

    fn backward_typed<T: Vectorised>(&self, x: &Tensor, gradient: &Tensor) -> Result<(Tensor, Tensor)> {
        let gradient = gradient.contiguous()?;
        let (storage, layout) = gradient.storage_and_layout();
        let (of_x, of_centre) = self.backward::<T>(host_slice(&storage, layout)?, x.dim(0)?);
        Ok((Tensor::from_vec(of_x, x.shape(), x.device())?, Tensor::from_vec(of_centre, CHANNELS, x.device())?))
    }
}

/// `[nodes, 3]` to three of the `columns` of groups, from `first`.
pub(super) fn pack<T: Vectorised>(rows: &[T], groups: &mut [T], columns: usize, first: usize) {
    for (rows, group) in rows.chunks(GROUP * CHANNELS).zip(groups.chunks_exact_mut(columns * GROUP)) {
        for (lane, row) in rows.chunks_exact(CHANNELS).enumerate() {
            for (channel, &value) in row.iter().enumerate() {
                group[(first + channel) * GROUP + lane] = value;
            }
        }
    }
}

/// Three of the `columns` of groups, from `first`, to `[nodes, 3]`.
pub(super) fn unpack<T: Vectorised>(groups: &[T], columns: usize, first: usize, rows: &mut [T]) {
    for (group, rows) in groups.chunks_exact(columns * GROUP).zip(rows.chunks_mut(GROUP * CHANNELS)) {
        for (lane, row) in rows.chunks_exact_mut(CHANNELS).enumerate() {
            for (channel, value) in row.iter_mut().enumerate() {
                *value = group[(first + channel) * GROUP + lane];
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

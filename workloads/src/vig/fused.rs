//! `W GELU(M u + c)` in one operation: the hidden layer exists only in registers, a few nodes at a time.
//!
//! Before each GELU of a block everything is linear in few columns u of a node, so the 256 or 512 hidden values of a
//! node are cheaper to compute again in the backward pass than to read back. Both passes run with the vectors over
//! nodes: the forward keeps u and the result of a few nodes in registers while the hidden units go by, the backward
//! keeps one hidden unit's parameter gradients in registers while the nodes of a tile go by.

use candle_core::{CpuStorage, CustomOp2, DType, Layout, Result, Shape, Tensor, bail};

use super::CHANNELS;
use super::lanes::{Kernel, Lanes, PADDING, Vectorised};
use super::tiles::{TILE, tile_nodes};
use crate::kernels::{Workspaces, cpu_slice, host_slice, run_tasks};

/// Tiles that one task takes: its gradients of the weights are added up in order before they are put with the
/// others, so results do not depend on the number of threads.
const TASK_TILES: usize = 2;

/// `W GELU(M u + c)` of every node: `inputs` u as tiles of `nodes` nodes, `[tiles, columns, TILE]` with 3 or 7
/// columns (see [`super::tiles`]); `weights` `[hidden, columns + 4]`, of each hidden unit its row of M, its c and its
/// column of W. Returns `[nodes, 3]`. The seventh column, if any, is a constant and gets no gradient.
///
/// # Errors
/// The shapes do not fit, or the number type is neither f32 nor f64.
pub(super) fn fused_mlp(inputs: &Tensor, weights: &Tensor, nodes: usize, workspaces: &Workspaces) -> Result<Tensor> {
    let (tiles, columns, tile) = inputs.dims3()?;
    let width = weights.dim(1)?;
    if tile != TILE || tiles != nodes.div_ceil(TILE) || width != columns + 1 + CHANNELS {
        bail!("fused mlp: inputs {:?} and weights {:?} do not fit {nodes} nodes", inputs.dims(), weights.dims());
    }
    let operation = FusedMlp { nodes, workspaces: workspaces.clone() };
    inputs.contiguous()?.apply_op2(&weights.contiguous()?, operation)
}

struct FusedMlp {
    nodes: usize,
    workspaces: Workspaces,
}

/// The result of one tile, `[3, padded]`, from `inputs` `[COLUMNS, TILE]`.
struct Forward<'a, T, const COLUMNS: usize> {
    inputs: &'a [T],
    weights: &'a [T],
    out: &'a mut [T],
    padded: usize,
}

impl<T: Vectorised, const COLUMNS: usize> Kernel<T> for Forward<'_, T, COLUMNS> {
    #[inline(always)]
    fn run<L: Lanes<Number = T>>(self, lanes: L) {
        let inputs: [&[L::Vector]; COLUMNS] = rows::<L, COLUMNS>(self.inputs, self.padded);
        let [first, second, third] = rows_mut::<L, CHANNELS>(self.out, self.padded);
        let pairs = first.as_chunks_mut::<2>().0.iter_mut();
        let pairs = pairs.zip(second.as_chunks_mut::<2>().0).zip(third.as_chunks_mut::<2>().0);
        for (pair, ((first, second), third)) in pairs.enumerate() {
            let mut columns = [[lanes.splat(T::zero()); COLUMNS]; 2];
            for lane in 0..2 {
                for column in 0..COLUMNS {
                    columns[lane][column] = inputs[column][2 * pair + lane];
                }
            }
            let mut sums = [[lanes.splat(T::zero()); CHANNELS]; 2];
            for unit in self.weights.chunks_exact(COLUMNS + 1 + CHANNELS) {
                for lane in 0..2 {
                    let mut hidden = lanes.splat(unit[COLUMNS]);
                    for column in 0..COLUMNS {
                        hidden = lanes.multiply_add(lanes.splat(unit[column]), columns[lane][column], hidden);
                    }
                    let activation = lanes.gelu(hidden);
                    for channel in 0..CHANNELS {
                        let weight = lanes.splat(unit[COLUMNS + 1 + channel]);
                        sums[lane][channel] = lanes.multiply_add(weight, activation, sums[lane][channel]);
                    }
                }
            }
            for lane in 0..2 {
                (first[lane], second[lane], third[lane]) = (sums[lane][0], sums[lane][1], sums[lane][2]);
            }
        }
    }
}

/// The gradients of one tile: adds to `of_inputs` `[COLUMNS, TILE]` in the first `MOVING` columns and to
/// `of_weights`; `of_out`, `[3, padded]`, is 0 in the padding.
struct Backward<'a, T, const COLUMNS: usize, const MOVING: usize> {
    inputs: &'a [T],
    weights: &'a [T],
    of_out: &'a [T],
    of_inputs: &'a mut [T],
    of_weights: &'a mut [T],
    padded: usize,
}

impl<T: Vectorised, const COLUMNS: usize, const MOVING: usize> Kernel<T> for Backward<'_, T, COLUMNS, MOVING> {
    #[inline(always)]
    fn run<L: Lanes<Number = T>>(self, lanes: L) {
        let inputs: [&[L::Vector]; COLUMNS] = rows::<L, COLUMNS>(self.inputs, self.padded);
        let of_out: [&[L::Vector]; CHANNELS] = rows::<L, CHANNELS>(self.of_out, self.padded);
        let of_inputs: [&mut [L::Vector]; MOVING] = rows_mut::<L, MOVING>(self.of_inputs, self.padded);
        let vectors = inputs[0].len();
        let units = self.weights.chunks_exact(COLUMNS + 1 + CHANNELS);
        for (unit, of_unit) in units.zip(self.of_weights.chunks_exact_mut(COLUMNS + 1 + CHANNELS)) {
            let mut of_row = [lanes.splat(T::zero()); COLUMNS];
            let mut of_offset = lanes.splat(T::zero());
            let mut of_output = [lanes.splat(T::zero()); CHANNELS];
            for index in 0..vectors {
                let mut hidden = lanes.splat(unit[COLUMNS]);
                for column in 0..COLUMNS {
                    hidden = lanes.multiply_add(lanes.splat(unit[column]), inputs[column][index], hidden);
                }
                let (activation, slope) = lanes.gelu_and_slope(hidden);
                let mut upstream = lanes.splat(T::zero());
                for channel in 0..CHANNELS {
                    let gradient = of_out[channel][index];
                    let weight = lanes.splat(unit[COLUMNS + 1 + channel]);
                    upstream = lanes.multiply_add(weight, gradient, upstream);
                    of_output[channel] = lanes.multiply_add(activation, gradient, of_output[channel]);
                }
                let of_hidden = lanes.multiply(upstream, slope);
                of_offset = lanes.add(of_offset, of_hidden);
                for column in 0..COLUMNS {
                    of_row[column] = lanes.multiply_add(of_hidden, inputs[column][index], of_row[column]);
                }
                for column in 0..MOVING {
                    let sum = &mut of_inputs[column][index];
                    *sum = lanes.multiply_add(lanes.splat(unit[column]), of_hidden, *sum);
                }
            }
            for column in 0..COLUMNS {
                of_unit[column] += lanes.sum(of_row[column]);
            }
            of_unit[COLUMNS] += lanes.sum(of_offset);
            for channel in 0..CHANNELS {
                of_unit[COLUMNS + 1 + channel] += lanes.sum(of_output[channel]);
            }
        }
    }
}

/// The first `padded` numbers of each row of a tile, as vectors.
#[inline(always)]
fn rows<L: Lanes, const ROWS: usize>(tile: &[L::Number], padded: usize) -> [&[L::Vector]; ROWS] {
    let mut rows: [&[L::Vector]; ROWS] = [&[]; ROWS];
    for (row, numbers) in rows.iter_mut().zip(tile.chunks_exact(TILE)) {
        *row = L::vectors(&numbers[..padded]);
    }
    rows
}

#[inline(always)]
fn rows_mut<L: Lanes, const ROWS: usize>(tile: &mut [L::Number], padded: usize) -> [&mut [L::Vector]; ROWS] {
    let mut rest = tile.chunks_exact_mut(TILE);
    std::array::from_fn(|_| rest.next().map_or(&mut [][..], |row| L::vectors_mut(&mut row[..padded])))
}

/// Which sizes of the kernels fit this many columns.
fn columns_of(inputs: usize) -> Result<Columns> {
    match inputs {
        3 => Ok(Columns::Own),
        7 => Ok(Columns::Neighbours),
        other => bail!("fused mlp: {other} columns instead of 3 or 7"),
    }
}

#[derive(Clone, Copy)]
enum Columns {
    /// A node's own channels.
    Own,
    /// Its own channels, its neighbours' sums, and its degree.
    Neighbours,
}

impl Columns {
    fn count(self) -> usize {
        match self {
            Self::Own => CHANNELS,
            Self::Neighbours => 2 * CHANNELS + 1,
        }
    }

    fn forward<T: Vectorised>(self, inputs: &[T], weights: &[T], out: &mut [T], padded: usize) {
        match self {
            Self::Own => T::run(Forward::<T, 3> { inputs, weights, out, padded }),
            Self::Neighbours => T::run(Forward::<T, 7> { inputs, weights, out, padded }),
        }
    }

    fn backward<T: Vectorised>(self, tile: Tile<'_, T>, weights: &[T], of_weights: &mut [T], padded: usize) {
        let Tile { inputs, of_out, of_inputs } = tile;
        match self {
            Self::Own => T::run(Backward::<T, 3, 3> { inputs, weights, of_out, of_inputs, of_weights, padded }),
            Self::Neighbours => T::run(Backward::<T, 7, 6> { inputs, weights, of_out, of_inputs, of_weights, padded }),
        }
    }
}

/// What the backward pass of one tile reads and writes.
struct Tile<'a, T> {
    inputs: &'a [T],
    of_out: &'a [T],
    of_inputs: &'a mut [T],
}

/// Nodes of a tile, rounded up to whole pairs of vectors.
fn padded(tile: usize, nodes: usize) -> usize {
    tile_nodes(tile, nodes).len().next_multiple_of(PADDING)
}

impl FusedMlp {
    fn forward<T: Vectorised>(&self, inputs: &[T], columns: Columns, weights: &[T]) -> Vec<T> {
        let mut out = vec![T::zero(); self.nodes * CHANNELS];
        let tiles = inputs.chunks_exact(columns.count() * TILE).zip(out.chunks_mut(TILE * CHANNELS)).enumerate();
        run_tasks(tiles, |(tile, (inputs, out))| {
            let mut result = T::workspace(&self.workspaces).take(CHANNELS * TILE);
            columns.forward(inputs, weights, &mut result, padded(tile, self.nodes));
            for (node, out) in out.chunks_exact_mut(CHANNELS).enumerate() {
                for (channel, out) in out.iter_mut().enumerate() {
                    *out = result[channel * TILE + node];
                }
            }
        });
        out
    }

    /// Gradients of inputs and weights.
    fn backward<T: Vectorised>(
        &self,
        inputs: &[T],
        columns: Columns,
        weights: &[T],
        gradient: &[T],
    ) -> (Vec<T>, Vec<T>) {
        let tile_width = columns.count() * TILE;
        let mut of_inputs = vec![T::zero(); inputs.len()];
        let tasks = of_inputs.chunks_mut(TASK_TILES * tile_width).enumerate();
        let mut partial = T::workspace(&self.workspaces).take(tasks.len() * weights.len());
        run_tasks(tasks.zip(partial.chunks_exact_mut(weights.len().max(1))), |((task, of_inputs), of_weights)| {
            of_weights.fill(T::zero());
            let mut of_out = T::workspace(&self.workspaces).take(CHANNELS * TILE);
            for (tile, of_inputs) in (task * TASK_TILES..).zip(of_inputs.chunks_exact_mut(tile_width)) {
                let nodes = tile_nodes(tile, self.nodes);
                transpose(&gradient[nodes.start * CHANNELS..nodes.end * CHANNELS], &mut of_out);
                let inputs = &inputs[tile * tile_width..(tile + 1) * tile_width];
                let tile_data = Tile { inputs, of_out: &of_out, of_inputs };
                columns.backward(tile_data, weights, of_weights, padded(tile, self.nodes));
            }
        });
        let mut of_weights = vec![T::zero(); weights.len()];
        for part in partial.chunks_exact(weights.len().max(1)) {
            of_weights.iter_mut().zip(part).for_each(|(sum, &value)| *sum += value);
        }
        (of_inputs, of_weights)
    }

    fn forward_typed<T: Vectorised>(
        &self,
        (inputs, inputs_layout): (&CpuStorage, &Layout),
        (weights, weights_layout): (&CpuStorage, &Layout),
    ) -> Result<(CpuStorage, Shape)> {
        let columns = columns_of(inputs_layout.dims()[1])?;
        let inputs = cpu_slice(inputs, inputs_layout)?;
        let out = self.forward::<T>(inputs, columns, cpu_slice(weights, weights_layout)?);
        Ok((T::to_cpu_storage_owned(out), Shape::from((self.nodes, CHANNELS))))
    }

    fn backward_typed<T: Vectorised>(
        &self,
        inputs: &Tensor,
        weights: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Tensor, Tensor)> {
        let gradient = gradient.contiguous()?;
        let (inputs_storage, inputs_layout) = inputs.storage_and_layout();
        let (weights_storage, weights_layout) = weights.storage_and_layout();
        let (gradient_storage, gradient_layout) = gradient.storage_and_layout();
        let (of_inputs, of_weights) = self.backward::<T>(
            host_slice(&inputs_storage, inputs_layout)?,
            columns_of(inputs.dim(1)?)?,
            host_slice(&weights_storage, weights_layout)?,
            host_slice(&gradient_storage, gradient_layout)?,
        );
        let of_inputs = Tensor::from_vec(of_inputs, inputs.shape(), inputs.device())?;
        Ok((of_inputs, Tensor::from_vec(of_weights, weights.shape(), weights.device())?))
    }
}

/// `[nodes, 3]` to `[3, TILE]`, 0 in the padding.
fn transpose<T: Vectorised>(rows: &[T], out: &mut [T]) {
    for (channel, out) in out.chunks_exact_mut(TILE).enumerate() {
        out.fill(T::zero());
        out.iter_mut().zip(rows.iter().skip(channel).step_by(CHANNELS)).for_each(|(out, &value)| *out = value);
    }
}

impl CustomOp2 for FusedMlp {
    fn name(&self) -> &'static str {
        "vig-fused-mlp"
    }

    fn cpu_fwd(
        &self,
        inputs: &CpuStorage,
        inputs_layout: &Layout,
        weights: &CpuStorage,
        weights_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (inputs, weights) = ((inputs, inputs_layout), (weights, weights_layout));
        match inputs.0 {
            CpuStorage::F32(_) => self.forward_typed::<f32>(inputs, weights),
            CpuStorage::F64(_) => self.forward_typed::<f64>(inputs, weights),
            _ => bail!("fused mlp: only f32 and f64 are supported"),
        }
    }

    fn bwd(
        &self,
        inputs: &Tensor,
        weights: &Tensor,
        _: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let (inputs, weights) = match inputs.dtype() {
            DType::F32 => self.backward_typed::<f32>(inputs, weights, gradient)?,
            DType::F64 => self.backward_typed::<f64>(inputs, weights, gradient)?,
            other => bail!("fused mlp: only f32 and f64 are supported, not {other:?}"),
        };
        Ok((Some(inputs), Some(weights)))
    }
}

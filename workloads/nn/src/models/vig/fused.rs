//! `W GELU(M u + c)` in one operation: the hidden layer exists only in registers, a few nodes at a time.
//!
//! Before each GELU of a block everything is linear in few columns u of a node, so the 256 or 512 hidden values of a
//! node are cheaper to compute again in the backward pass than to read back. Both passes run with the vectors over
//! nodes: the forward keeps u and the result of a few nodes in registers while the hidden units go by, the backward
//! keeps one hidden unit's parameter gradients in registers while the nodes of a tile go by.

use candle_core::{CpuStorage, CustomOp2, DType, Layout, Result, Shape, Tensor, bail};

use super::CHANNELS;
use super::groups::{pack, unpack};
use super::kernel::{Backward, Forward};
use super::lanes::{GROUP, Vectorised};
use crate::kernels::{Buffer, Workspaces, cpu_slice, host_slice};
use gnntop_data::tasks::run_tasks;

/// Groups that are computed together: their columns and gradients fit a first-level cache.
const TILE_GROUPS: usize = 32;

/// Groups that one task takes: its gradients of the weights are added up in order before they are put with the
/// others, so results do not depend on the number of threads.
const TASK_GROUPS: usize = 2 * TILE_GROUPS;

/// Bytes between the starts of cache lines, and of the widest vectors.
const LINE: usize = 64;

/// `W GELU(M u + c)` of every node: `inputs` u in groups, `[groups, columns, GROUP]` with 3 or 7 columns (see
/// [`super::groups`]); `weights` `[hidden, columns + 4]`, of each hidden unit its row of M, its c and its column of W.
/// Returns `[nodes, 3]`. The seventh column, if any, is a constant and gets no gradient.
///
/// # Errors
/// The shapes do not fit, or the number type is neither f32 nor f64.
pub(super) fn fused_mlp(inputs: &Tensor, weights: &Tensor, nodes: usize, workspaces: &Workspaces) -> Result<Tensor> {
    let (groups, columns, group) = inputs.dims3()?;
    let (hidden, width) = weights.dims2()?;
    if group != GROUP || groups != nodes.div_ceil(GROUP) || width != columns + 1 + CHANNELS || hidden == 0 {
        bail!("fused mlp: inputs {:?} and weights {:?} do not fit {nodes} nodes", inputs.dims(), weights.dims());
    }
    let operation = FusedMlp { nodes, workspaces: workspaces.clone() };
    inputs.contiguous()?.apply_op2(&weights.contiguous()?, operation)
}

struct FusedMlp {
    nodes: usize,
    workspaces: Workspaces,
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

    fn forward<T: Vectorised>(self, inputs: &[T], weights: &[T], out: &mut [T]) {
        match self {
            Self::Own => T::run(Forward::<T, 3> { inputs, weights, out }),
            Self::Neighbours => T::run(Forward::<T, 7> { inputs, weights, out }),
        }
    }

    fn backward<T: Vectorised>(self, tile: Tile<'_, T>, weights: &[T], of_weights: &mut [T]) {
        let Tile { inputs, of_out, of_inputs } = tile;
        match self {
            Self::Own => T::run(Backward::<T, 3, 3> { inputs, weights, of_out, of_inputs, of_weights }),
            Self::Neighbours => T::run(Backward::<T, 7, 6> { inputs, weights, of_out, of_inputs, of_weights }),
        }
    }
}

/// What the backward pass of one tile reads and writes.
struct Tile<'a, T> {
    inputs: &'a [T],
    of_out: &'a [T],
    of_inputs: &'a mut [T],
}

/// A buffer that starts on a cache line. Vectors across two lines cost the kernel a sixth of its time.
struct Aligned<T> {
    buffer: Buffer<T>,
    start: usize,
    length: usize,
}

impl<T: Vectorised> Aligned<T> {
    fn take(length: usize, workspaces: &Workspaces) -> Self {
        let slack = LINE / size_of::<T>();
        let buffer = T::workspace(workspaces).take(length + slack);
        let start = buffer.as_ptr().align_offset(LINE).min(slack);
        Self { buffer, start, length }
    }

    fn numbers(&mut self) -> &mut [T] {
        &mut self.buffer[self.start..self.start + self.length]
    }
}

impl FusedMlp {
    fn forward<T: Vectorised>(&self, inputs: &[T], columns: Columns, weights: &[T]) -> Vec<T> {
        let mut out = vec![T::zero(); self.nodes * CHANNELS];
        let inputs = inputs.chunks(TASK_GROUPS * columns.count() * GROUP);
        run_tasks(inputs.zip(out.chunks_mut(TASK_GROUPS * CHANNELS * GROUP)), |(inputs, out)| {
            let mut result = T::workspace(&self.workspaces).take(inputs.len() / columns.count() * CHANNELS);
            columns.forward(inputs, weights, &mut result);
            unpack(&result, CHANNELS, 0, out);
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
        let task_width = TASK_GROUPS * columns.count() * GROUP;
        let mut of_inputs = vec![T::zero(); inputs.len()];
        let mut partial = T::workspace(&self.workspaces).take(inputs.len().div_ceil(task_width) * weights.len());
        let tasks = of_inputs.chunks_mut(task_width).zip(inputs.chunks(task_width));
        let tasks = tasks.zip(gradient.chunks(TASK_GROUPS * CHANNELS * GROUP));
        run_tasks(tasks.zip(partial.chunks_exact_mut(weights.len())), |(((of_inputs, inputs), gradient), partial)| {
            partial.fill(T::zero());
            let tile_width = TILE_GROUPS * columns.count() * GROUP;
            let tiles = of_inputs.chunks_mut(tile_width).zip(inputs.chunks(tile_width));
            for ((of_inputs, inputs), gradient) in tiles.zip(gradient.chunks(TILE_GROUPS * CHANNELS * GROUP)) {
                self.backward_tile(columns, (inputs, weights, gradient), of_inputs, partial);
            }
        });
        let mut of_weights = vec![T::zero(); weights.len()];
        for part in partial.chunks_exact(weights.len()) {
            of_weights.iter_mut().zip(part).for_each(|(sum, &value)| *sum += value);
        }
        (of_inputs, of_weights)
    }

    /// One tile, in aligned copies.
    fn backward_tile<T: Vectorised>(
        &self,
        columns: Columns,
        (inputs, weights, gradient): (&[T], &[T], &[T]),
        of_inputs: &mut [T],
        of_weights: &mut [T],
    ) {
        let take = |length: usize| Aligned::<T>::take(length, &self.workspaces);
        let (mut own_inputs, mut sums) = (take(inputs.len()), take(inputs.len()));
        let mut of_out = take(inputs.len() / columns.count() * CHANNELS);
        own_inputs.numbers().copy_from_slice(inputs);
        sums.numbers().fill(T::zero());
        of_out.numbers().fill(T::zero());
        pack(gradient, of_out.numbers(), CHANNELS, 0);
        let tile = Tile { inputs: own_inputs.numbers(), of_out: of_out.numbers(), of_inputs: sums.numbers() };
        columns.backward(tile, weights, of_weights);
        of_inputs.copy_from_slice(sums.numbers());
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

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::{Device, Var};
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    /// Inputs of `nodes` nodes, whose padding is 0, and weights for `hidden` units.
    fn random(nodes: usize, columns: usize, hidden: usize) -> (Vec<f64>, Vec<f64>) {
        let mut rng = StdRng::seed_from_u64(nodes as u64);
        let mut inputs = vec![0.0; nodes.div_ceil(GROUP) * columns * GROUP];
        for node in 0..nodes {
            for column in 0..columns {
                inputs[place(node, column, columns)] = rng.random_range(-1.0..1.0);
            }
        }
        (inputs, (0..hidden * (columns + 4)).map(|_| rng.random_range(-1.0..1.0)).collect())
    }

    fn place(node: usize, column: usize, columns: usize) -> usize {
        (node / GROUP * columns + column) * GROUP + node % GROUP
    }

    /// The definition, node by node.
    fn naive(inputs: &[f64], weights: &[f64], nodes: usize, columns: usize) -> Vec<f64> {
        let mut out = vec![0.0; nodes * CHANNELS];
        for (node, out) in out.chunks_exact_mut(CHANNELS).enumerate() {
            for unit in weights.chunks_exact(columns + 4) {
                let product = |column: usize| unit[column] * inputs[place(node, column, columns)];
                let hidden = unit[columns] + (0..columns).map(product).sum::<f64>();
                let activation = 0.5 * hidden * candle_core::cpu::erf::erfc_f64(-hidden / 2f64.sqrt());
                out.iter_mut().zip(&unit[columns + 1..]).for_each(|(out, weight)| *out += weight * activation);
            }
        }
        out
    }

    struct Run {
        out: Vec<f64>,
        of_inputs: Vec<f64>,
        of_weights: Vec<f64>,
    }

    /// Forward, and backward of the sum of `out * upstream`.
    fn run(inputs: &[f64], weights: &[f64], columns: usize, upstream: &[f64], dtype: DType) -> Run {
        let nodes = upstream.len() / CHANNELS;
        let variable = |values: &[f64], shape: &[usize]| {
            let tensor = Tensor::from_slice(values, shape, &Device::Cpu).unwrap().to_dtype(dtype).unwrap();
            Var::from_tensor(&tensor).unwrap()
        };
        let inputs = variable(inputs, &[nodes.div_ceil(GROUP), columns, GROUP]);
        let weights = variable(weights, &[weights.len() / (columns + 4), columns + 4]);
        let out = fused_mlp(&inputs, &weights, nodes, &Workspaces::default()).unwrap();
        let upstream = variable(upstream, &[nodes, CHANNELS]);
        let gradients = (&out * upstream.as_tensor()).unwrap().sum_all().unwrap().backward().unwrap();
        let numbers =
            |tensor: &Tensor| tensor.to_dtype(DType::F64).unwrap().flatten_all().unwrap().to_vec1::<f64>().unwrap();
        let (of_inputs, of_weights) = (gradients.get(&inputs).unwrap(), gradients.get(&weights).unwrap());
        Run { out: numbers(&out), of_inputs: numbers(of_inputs), of_weights: numbers(of_weights) }
    }

    fn upstream(nodes: usize) -> Vec<f64> {
        (0..nodes * CHANNELS).map(|index| f64::from((index * 31 % 17) as u32) / 17.0 - 0.4).collect()
    }

    #[test]
    fn double_precision_agrees_with_the_definition_and_finite_differences() {
        for (nodes, columns, hidden) in [(1, 3, 5), (21, 7, 4), (33, 3, 6)] {
            let (inputs, weights) = random(nodes, columns, hidden);
            let upstream = upstream(nodes);
            let ours = run(&inputs, &weights, columns, &upstream, DType::F64);
            let expected = naive(&inputs, &weights, nodes, columns);
            assert!(ours.out.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-13));
            let objective = |inputs: &[f64], weights: &[f64]| -> f64 {
                let out = naive(inputs, weights, nodes, columns);
                out.iter().zip(&upstream).map(|(out, weight)| out * weight).sum()
            };
            let slope = |values: &[f64], index: usize, at: &dyn Fn(&[f64]) -> f64| {
                let mut moved = values.to_vec();
                moved[index] += 1e-5;
                let above = at(&moved);
                moved[index] -= 2e-5;
                (above - at(&moved)) / 2e-5
            };
            for (index, &gradient) in ours.of_weights.iter().enumerate() {
                let expected = slope(&weights, index, &|weights| objective(&inputs, weights));
                assert!((gradient - expected).abs() < 1e-8, "weight {index}: {gradient} {expected}");
            }
            for node in 0..nodes {
                for column in 0..columns {
                    let index = place(node, column, columns);
                    // The degree, column 6, is constant.
                    let expected = match column {
                        6 => 0.0,
                        _ => slope(&inputs, index, &|inputs| objective(inputs, &weights)),
                    };
                    let gradient = ours.of_inputs[index];
                    assert!((gradient - expected).abs() < 1e-8, "node {node} column {column}: {gradient} {expected}");
                }
            }
        }
    }

    #[test]
    fn single_precision_agrees_with_double_over_several_tasks() {
        for (nodes, columns, hidden) in [(2 * TASK_GROUPS * GROUP + 37, 7, 9), (1500, 3, 11), (16, 3, 1)] {
            let (inputs, weights) = random(nodes, columns, hidden);
            let upstream = upstream(nodes);
            let single = run(&inputs, &weights, columns, &upstream, DType::F32);
            let double = run(&inputs, &weights, columns, &upstream, DType::F64);
            let close = |a: &[f64], b: &[f64], tolerance: f64| {
                let difference = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(a.len() == b.len() && difference < tolerance, "off by {difference}");
            };
            close(&single.out, &double.out, 4e-6);
            close(&single.of_inputs, &double.of_inputs, 4e-6);
            close(&single.of_weights, &double.of_weights, 2e-7 * nodes as f64 + 2e-6);
        }
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let (nodes, columns) = (5000, 7);
        let (inputs, weights) = random(nodes, columns, 8);
        let upstream = upstream(nodes);
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let run = pool.install(|| run(&inputs, &weights, columns, &upstream, DType::F32));
            [run.out, run.of_inputs, run.of_weights]
        };
        assert_eq!(with(1), with(3));
    }

    #[test]
    fn shapes_that_do_not_fit_are_refused() {
        let zeros = |shape: &[usize]| Tensor::zeros(shape, DType::F32, &Device::Cpu).unwrap();
        let workspaces = Workspaces::default();
        for (inputs, weights, nodes) in [
            (zeros(&[2, 3, GROUP]), zeros(&[5, 8]), 20),
            (zeros(&[2, 3, GROUP]), zeros(&[5, 7]), 40),
            (zeros(&[2, 5, GROUP]), zeros(&[5, 9]), 20),
            (zeros(&[2, 3, GROUP]), zeros(&[0, 7]), 20),
        ] {
            assert!(fused_mlp(&inputs, &weights, nodes, &workspaces).is_err());
        }
        let integers = zeros(&[2, 3, GROUP]).to_dtype(DType::U32).unwrap();
        assert!(fused_mlp(&integers, &zeros(&[5, 7]), 20, &workspaces).is_err());
    }
}

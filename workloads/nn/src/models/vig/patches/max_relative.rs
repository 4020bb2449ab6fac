//! Max-relative aggregation: in each channel the largest difference between a node's neighbours and itself.

mod on_device;

use std::sync::{Mutex, PoisonError};

use candle_core::{CpuStorage, CustomOp1, DType, Layout, Result, Shape, Tensor, bail};

use super::Neighbours;
use crate::kernels::{cpu_slice, host_slice};
use crate::models::vig::Vectorised;
use gnntop_data::tasks::run_tasks;

/// `max over j of x_j - x_i` over the neighbours j of every node i, `[images * nodes, channels]` to the same. The
/// nearest neighbour that holds a maximum gets its gradient.
///
/// # Errors
/// `x` does not have the neighbours' nodes, or is neither f32 nor f64.
pub fn max_relative(x: &Tensor, neighbours: &Neighbours) -> Result<Tensor> {
    if neighbours.on_device.0.is_some() {
        return on_device::max_relative(x, neighbours);
    }
    let rows = neighbours.indices.len() / neighbours.count.max(1);
    if x.dim(0)? != rows || x.dim(1)? == 0 {
        bail!("max relative: features {:?} for {rows} nodes", x.dims());
    }
    x.contiguous()?.apply_op1(MaxRelative { neighbours: neighbours.clone(), holders: Mutex::default() })
}

struct MaxRelative {
    neighbours: Neighbours,
    /// `[images * nodes, channels]`: which node of the image holds each maximum; written by the forward pass.
    holders: Mutex<Vec<u32>>,
}

impl MaxRelative {
    fn forward<T: Vectorised>(&self, x: &[T], channels: usize) -> Vec<T> {
        let Neighbours { nodes, count, indices, .. } = &self.neighbours;
        let mut out = vec![T::zero(); x.len()];
        let mut holders = vec![0; x.len()];
        let image = nodes * channels;
        let tasks = x.chunks_exact(image).zip(out.chunks_exact_mut(image)).zip(holders.chunks_exact_mut(image));
        run_tasks(tasks.zip(indices.chunks_exact(nodes * count)), |(((x, out), holders), indices)| {
            let rows = out.chunks_exact_mut(channels).zip(holders.chunks_exact_mut(channels));
            for ((own, (out, holders)), neighbours) in
                x.chunks_exact(channels).zip(rows).zip(indices.chunks_exact(*count))
            {
                let row = |node: u32| &x[node as usize * channels..][..channels];
                out.copy_from_slice(row(neighbours[0]));
                holders.fill(neighbours[0]);
                for &node in &neighbours[1..] {
                    for ((out, holder), &value) in out.iter_mut().zip(&mut *holders).zip(row(node)) {
                        if value > *out {
                            (*out, *holder) = (value, node);
                        }
                    }
                }
                out.iter_mut().zip(own).for_each(|(out, &own)| *out -= own);
            }
        });
        *self.holders.lock().unwrap_or_else(PoisonError::into_inner) = holders;
        out
    }

    fn backward<T: Vectorised>(&self, gradient: &[T], channels: usize) -> Vec<T> {
        let holders = self.holders.lock().unwrap_or_else(PoisonError::into_inner);
        let image = self.neighbours.nodes * channels;
        let mut out = vec![T::zero(); gradient.len()];
        let tasks = out.chunks_exact_mut(image).zip(gradient.chunks_exact(image)).zip(holders.chunks_exact(image));
        run_tasks(tasks, |((out, gradient), holders)| {
            for (index, (&gradient, &holder)) in gradient.iter().zip(holders).enumerate() {
                out[holder as usize * channels + index % channels] += gradient;
                out[index] -= gradient;
            }
        });
        out
    }

    fn forward_typed<T: Vectorised>(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let out = self.forward::<T>(cpu_slice(storage, layout)?, layout.dims()[1]);
        Ok((T::to_cpu_storage_owned(out), layout.shape().clone()))
    }

    fn backward_typed<T: Vectorised>(&self, gradient: &Tensor) -> Result<Tensor> {
        let gradient = gradient.contiguous()?;
        let (storage, layout) = gradient.storage_and_layout();
        let out = self.backward::<T>(host_slice(&storage, layout)?, gradient.dim(1)?);
        Tensor::from_vec(out, gradient.shape(), gradient.device())
    }
}

impl CustomOp1 for MaxRelative {
    fn name(&self) -> &'static str {
        "max-relative"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        match storage {
            CpuStorage::F32(_) => self.forward_typed::<f32>(storage, layout),
            CpuStorage::F64(_) => self.forward_typed::<f64>(storage, layout),
            _ => bail!("max relative: only f32 and f64 are supported"),
        }
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        match x.dtype() {
            DType::F32 => self.backward_typed::<f32>(gradient).map(Some),
            DType::F64 => self.backward_typed::<f64>(gradient).map(Some),
            other => bail!("max relative: only f32 and f64 are supported, not {other:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::{Device, Var};

    /// Of images of two nodes.
    fn neighbours(count: usize, indices: &[u32]) -> Neighbours {
        Neighbours { nodes: 2, count, indices: indices.into(), on_device: Default::default() }
    }

    #[test]
    fn the_largest_difference_wins_and_the_nearest_of_equals_gets_the_gradient() {
        // Two images of two nodes; node 1 of the first image is joined to node 0 and itself, which tie in channel 1.
        let neighbours = neighbours(2, &[0, 1, 1, 0, 0, 1, 0, 0]);
        let x = [[1.0f32, 5.0], [3.0, 5.0], [0.5, -1.0], [-2.0, f32::NAN]];
        let x = Var::from_tensor(&Tensor::new(&x, &Device::Cpu).unwrap()).unwrap();
        let out = max_relative(&x, &neighbours).unwrap();
        let values = out.to_vec2::<f32>().unwrap();
        assert_eq!(values[..3], [[2.0, 0.0], [0.0, 0.0], [0.0, 0.0]]);
        assert!(values[3][0] == 2.5 && values[3][1].is_nan());
        let weights = Tensor::new(&[[1.0f32, 10.0], [100.0, 1000.0], [0.0, 0.0], [7.0, 0.0]], &Device::Cpu).unwrap();
        let gradients = (out * weights).unwrap().sum_all().unwrap().backward().unwrap();
        // Node 0: -1 + 0 from channel 0 of itself, whose maximum node 1 holds; its own tie cancels.
        let expected = [[-1.0, 0.0], [1.0, 0.0], [7.0, 0.0], [-7.0, 0.0]];
        assert_eq!(gradients.get(&x).unwrap().to_vec2::<f32>().unwrap(), expected);
    }

    #[test]
    fn features_of_other_nodes_are_refused() {
        let neighbours = neighbours(1, &[0, 1]);
        assert!(max_relative(&Tensor::zeros((4, 3), DType::F32, &Device::Cpu).unwrap(), &neighbours).is_err());
    }
}

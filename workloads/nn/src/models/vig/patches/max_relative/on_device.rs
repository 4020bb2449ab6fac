//! Max-relative aggregation on a GPU, whose neighbours were found there.

use candle_core::{CpuStorage, CudaStorage, CustomOp1, Device, Layout, Result, Shape, Tensor, bail};

use super::Neighbours;
use crate::cuda::{Joined, Memory, SavedTensor, View, device_of};

/// [`max_relative`](super::max_relative) with neighbours that are on the device of `x`.
pub(super) fn max_relative(x: &Tensor, neighbours: &Neighbours) -> Result<Tensor> {
    let Some(nearest) = &neighbours.on_device.0 else { bail!("max relative: the neighbours are in host memory") };
    if x.dim(0)? != nearest.dim(0)? {
        bail!("max relative: features {:?} for {} nodes", x.dims(), nearest.dim(0)?);
    }
    let operation = MaxRelative { nearest: nearest.clone(), nodes: neighbours.nodes, holders: SavedTensor::default() };
    x.contiguous()?.apply_op1(operation)
}

struct MaxRelative {
    nearest: Tensor,
    nodes: usize,
    /// Which node of the image holds each maximum; written by the forward pass.
    holders: SavedTensor,
}

impl MaxRelative {
    fn joined(&self) -> Joined<'_> {
        Joined { nearest: &self.nearest, nodes: self.nodes }
    }

    fn forward(&self, device: &Device, x: View<'_>, layout: &Layout) -> Result<Memory> {
        let (_, channels) = layout.shape().dims2()?;
        let (out, holders) = self.joined().max_relative(device, x, channels)?;
        self.holders.set(holders.into_tensor(layout.shape()));
        Ok(out)
    }
}

impl CustomOp1 for MaxRelative {
    fn name(&self) -> &'static str {
        "max-relative"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let out = self.forward(&Device::Cpu, View::of_host(storage, layout)?, layout)?;
        out.into_host(layout.shape().clone())
    }

    fn cuda_fwd(&self, storage: &CudaStorage, layout: &Layout) -> Result<(CudaStorage, Shape)> {
        let device = device_of(storage);
        let out = self.forward(&device, View::of_storage(storage, layout)?, layout)?;
        out.into_storage(layout.shape().clone())
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        let (gradient, holders) = (gradient.contiguous()?, self.holders.get()?);
        let views = (View::new(&gradient)?, View::new(&holders)?);
        let out = self.joined().gradient(x.device(), views.0, views.1, x.dim(1)?)?;
        Ok(Some(out.into_tensor(x.shape())))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Var};

    use super::*;
    use crate::cuda::tests::multigraph::{generator, random_tensor};
    use crate::cuda::tests::{assert_near, gradient_of};
    use crate::kernels::Workspaces;
    use crate::models::vig::patches::nearest;

    #[test]
    fn nearest_nodes_and_largest_differences_agree() {
        if !crate::cuda::emulation::is_possible() {
            return;
        }
        let mut rng = generator(71);
        for (nodes, channels, count, dilation) in [(1, 1, 1, 1), (12, 5, 4, 3), (40, 7, 9, 1), (64, 16, 12, 2)] {
            let x = Var::from_tensor(&random_tensor(&mut rng, &[3 * nodes, channels], DType::F64)).unwrap();
            let expected = nearest(&x, nodes, count, dilation, &Workspaces::default()).unwrap();
            let found = Neighbours::found_on_device(&x.detach(), nodes, count, dilation).unwrap();
            let indices = found.on_device.0.as_ref().unwrap().flatten_all().unwrap().to_vec1::<u32>().unwrap();
            assert_eq!(indices, expected.indices());
            let expected = super::super::max_relative(&x, &expected).unwrap();
            let found = max_relative(&x, &found).unwrap();
            assert_near(&found, &expected, "differences");
            let upstream = random_tensor(&mut rng, expected.dims(), DType::F64);
            let [found, expected] = [&found, &expected].map(|out| gradient_of(out, &upstream, &x));
            assert_near(&found, &expected, "gradient of the differences");
        }
    }

    #[test]
    fn equal_and_odd_numbers_give_each_node_once() {
        if !crate::cuda::emulation::is_possible() {
            return;
        }
        let mut values = vec![1.0f32; 40 * 2];
        (values[6], values[11], values[14]) = (f32::NAN, f32::INFINITY, -1.0);
        let x = Tensor::from_vec(values, (40, 2), &Device::Cpu).unwrap();
        let found = Neighbours::found_on_device(&x, 40, 40, 1).unwrap();
        for row in found.on_device.0.unwrap().to_vec2::<u32>().unwrap() {
            let mut sorted = row.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..40).collect::<Vec<_>>(), "{row:?}");
        }
    }
}

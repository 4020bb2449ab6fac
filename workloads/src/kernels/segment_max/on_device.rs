//! Maximum over the nodes of each graph on a GPU.

use std::sync::Arc;

use candle_core::{Device, Result, Tensor};

use super::SegmentMax;
use crate::cuda::{Memory, SegmentsOnDevice, View, gradient_of_segment_max, segment_max};

impl SegmentMax {
    fn copied_to(&self, device: &Device) -> Result<Arc<SegmentsOnDevice>> {
        let segments = &*self.segments;
        segments.on_device.get(device, || SegmentsOnDevice::new(&segments.start, &segments.members, device))
    }

    pub(super) fn forward_on_device(&self, device: &Device, rows: View<'_>, width: usize) -> Result<Memory> {
        let (out, holders) = segment_max(&*self.copied_to(device)?, rows, width)?;
        self.kept.set(holders.into_tensor((self.segments.count(), width)));
        Ok(out)
    }

    pub(super) fn backward_on_device(&self, rows: &Tensor, gradient: &Tensor) -> Result<Tensor> {
        let (segments, holders) = (self.copied_to(rows.device())?, self.kept.get()?);
        let (gradient, width) = (View::of(gradient)?, rows.dim(1)?);
        Ok(gradient_of_segment_max(&segments, gradient, View::of(&holders)?, width)?.into_tensor(rows.shape()))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Var};

    use super::*;
    use crate::cuda::Kept;
    use crate::cuda::tests::multigraph::{generator, random_tensor};
    use crate::cuda::tests::{assert_near, gradient_of};
    use crate::kernels::{Segments, segment_max};

    #[test]
    fn maxima_of_segments_agree() {
        if !crate::cuda::emulation::is_possible() {
            return;
        }
        let mut rng = generator(51);
        for (dtype, width) in [(DType::F32, 1), (DType::F64, 13)] {
            let segments = Arc::new(Segments::new(vec![0, 3, 3, 4, 8], vec![7, 1, 4, 0, 2, 3, 5, 6]).unwrap());
            // Few different numbers, so that maxima are shared.
            let rows = (random_tensor(&mut rng, &[8, width], dtype) * 2.0).unwrap().round().unwrap();
            let rows = Var::from_tensor(&rows).unwrap();
            let upstream = random_tensor(&mut rng, &[4, width], dtype);
            let expected = segment_max(&rows, &segments).unwrap();
            let operation = SegmentMax { segments, holders: std::sync::Mutex::default(), kept: Kept::default() };
            let found = operation.forward_on_device(&Device::Cpu, View::of(&rows).unwrap(), width).unwrap();
            assert_near(&found.into_tensor((4, width)), &expected, "maxima");
            let back = operation.backward_on_device(&rows, &upstream).unwrap();
            assert_near(&back, &gradient_of(&expected, &upstream, &rows), "gradient of the maxima");
        }
    }
}

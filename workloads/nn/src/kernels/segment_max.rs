//! Maximum over the nodes of each graph (global max pooling) as a candle operation.

use std::sync::{Arc, Mutex, PoisonError};

use candle_core::{CpuStorage, CudaStorage, CustomOp1, DType, Device, Layout, Result, Shape, Tensor, bail};

use super::{Element, cpu_slice, host_slice};
use crate::cuda::{self, Memory, SavedTensor, SegmentsOnDevice, View, device_of};
use gnntop_data::graph::{DeviceSlot, balanced_ranges};
use gnntop_data::tasks::{run_tasks, split_rows};

/// Values to pool, rows times columns, below which one thread does it alone.
const MIN_PARALLEL: usize = 1 << 15;

/// Holder of an empty segment.
const NOBODY: u32 = u32::MAX;

/// Which rows form which segment: segment `g` is the rows `members[start[g]..start[g + 1]]`.
#[derive(Debug, Clone)]
pub struct Segments {
    start: Vec<u32>,
    members: Vec<u32>,
    rows: usize,
    on_device: DeviceSlot,
}

impl Segments {
    /// Segments over the rows `0..members.len()`, each of which belongs to one.
    ///
    /// # Errors
    /// `start` does not ascend from 0 to the number of members, or `members` is not a permutation of the rows.
    pub fn new(start: Vec<u32>, members: Vec<u32>) -> Result<Self> {
        let rows = members.len();
        let ascending = start.windows(2).all(|pair| pair[0] <= pair[1]);
        if start.first() != Some(&0) || start.last().map(|&end| end as usize) != Some(rows) || !ascending {
            bail!("segment starts must ascend from 0 to the number of rows ({rows})");
        }
        let mut seen = vec![false; rows];
        for &member in &members {
            match seen.get_mut(member as usize) {
                Some(seen) if !*seen => *seen = true,
                _ => bail!("row {member} is in two segments or does not exist; there are {rows} rows"),
            }
        }
        Ok(Self { start, members, rows, on_device: DeviceSlot::default() })
    }

    /// Number of segments.
    #[must_use]
    pub fn count(&self) -> usize {
        self.start.len() - 1
    }

    fn members(&self, segment: usize) -> &[u32] {
        &self.members[self.start[segment] as usize..self.start[segment + 1] as usize]
    }
}

/// Maximum of each column over each segment: `[rows, width]` to `[segments, width]`. An empty segment gives 0. The
/// first member that holds a maximum gets its gradient.
///
/// # Errors
/// `rows` is not a contiguous f32 or f64 matrix in host memory with one row for each member.
pub fn segment_max(rows: &Tensor, segments: &Arc<Segments>) -> Result<Tensor> {
    let operation =
        SegmentMax { segments: Arc::clone(segments), holders: Mutex::default(), on_device: SavedTensor::default() };
    rows.contiguous()?.apply_op1(operation)
}

struct SegmentMax {
    segments: Arc<Segments>,
    /// `[segments, width]`: the row that holds each maximum; written by the forward pass.
    holders: Mutex<Vec<u32>>,
    /// The same on a GPU.
    on_device: SavedTensor,
}

impl SegmentMax {
    fn forward<T: Element>(&self, values: &[T], width: usize) -> Vec<T> {
        let segments = &*self.segments;
        let parts = if values.len() < MIN_PARALLEL { 1 } else { rayon::current_num_threads() };
        let ranges = balanced_ranges(&segments.start, parts, usize::MAX);
        let mut out = vec![T::zero(); segments.count() * width];
        let mut holders = vec![NOBODY; out.len()];
        let tasks = ranges.iter().zip(split_rows(&mut out, &ranges, width));
        run_tasks(tasks.zip(split_rows(&mut holders, &ranges, width)), |((range, out), holders)| {
            if width == 0 {
                return;
            }
            let rows = out.chunks_exact_mut(width).zip(holders.chunks_exact_mut(width));
            for (segment, (out, holders)) in range.clone().zip(rows) {
                maximum(segments.members(segment), values, out, holders);
            }
        });
        *self.holders.lock().unwrap_or_else(PoisonError::into_inner) = holders;
        out
    }

    fn backward<T: Element>(&self, gradient: &[T], width: usize) -> Vec<T> {
        let holders = self.holders.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = vec![T::zero(); self.segments.rows * width];
        for (index, (&holder, &gradient)) in holders.iter().zip(gradient).enumerate() {
            if holder != NOBODY {
                out[holder as usize * width + index % width] = gradient;
            }
        }
        out
    }

    fn forward_typed<T: Element>(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (rows, width) = layout.shape().dims2()?;
        if rows != self.segments.rows {
            bail!("segment max: {rows} rows given, the segments have {}", self.segments.rows);
        }
        let out = self.forward::<T>(cpu_slice(storage, layout)?, width);
        Ok((T::to_cpu_storage_owned(out), Shape::from((self.segments.count(), width))))
    }

    fn backward_typed<T: Element>(&self, rows: &Tensor, gradient: &Tensor) -> Result<Tensor> {
        let width = rows.dim(1)?;
        let gradient = gradient.contiguous()?;
        let (storage, layout) = gradient.storage_and_layout();
        let out = self.backward::<T>(host_slice(&storage, layout)?, width);
        Tensor::from_vec(out, rows.shape(), rows.device())
    }
}

/// Maximum of each column over the `members` of `values`, and which member holds it.
fn maximum<T: Element>(members: &[u32], values: &[T], out: &mut [T], holders: &mut [u32]) {
    let width = out.len();
    let row = |member: u32| &values[member as usize * width..][..width];
    let Some((&head, rest)) = members.split_first() else { return };
    out.copy_from_slice(row(head));
    holders.fill(head);
    for &member in rest {
        for ((out, holder), &value) in out.iter_mut().zip(holders.iter_mut()).zip(row(member)) {
            if value > *out {
                (*out, *holder) = (value, member);
            }
        }
    }
}

/// The same on a GPU.
impl SegmentMax {
    fn copied_to(&self, device: &Device) -> Result<Arc<SegmentsOnDevice>> {
        let segments = &*self.segments;
        segments.on_device.get(device, || SegmentsOnDevice::new(&segments.start, &segments.members, device))
    }

    fn forward_on_device(&self, device: &Device, rows: View<'_>, width: usize) -> Result<Memory> {
        let (out, holders) = cuda::segment_max(&*self.copied_to(device)?, rows, width)?;
        self.on_device.set(holders.into_tensor((self.segments.count(), width)));
        Ok(out)
    }

    fn backward_on_device(&self, rows: &Tensor, gradient: &Tensor) -> Result<Tensor> {
        let (segments, holders) = (self.copied_to(rows.device())?, self.on_device.get()?);
        let (gradient, width) = (View::new(gradient)?, rows.dim(1)?);
        Ok(cuda::gradient_of_segment_max(&segments, gradient, View::new(&holders)?, width)?.into_tensor(rows.shape()))
    }
}

impl CustomOp1 for SegmentMax {
    fn name(&self) -> &'static str {
        "segment-max"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        match storage {
            CpuStorage::F32(_) => self.forward_typed::<f32>(storage, layout),
            CpuStorage::F64(_) => self.forward_typed::<f64>(storage, layout),
            _ => bail!("segment max: only f32 and f64 are supported"),
        }
    }

    fn cuda_fwd(&self, storage: &CudaStorage, layout: &Layout) -> Result<(CudaStorage, Shape)> {
        let device = device_of(storage);
        let (_, width) = layout.shape().dims2()?;
        let out = self.forward_on_device(&device, View::of_storage(storage, layout)?, width)?;
        out.into_storage(Shape::from((self.segments.count(), width)))
    }

    fn bwd(&self, rows: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        if rows.device().is_cuda() {
            return self.backward_on_device(rows, &gradient.contiguous()?).map(Some);
        }
        Ok(Some(match rows.dtype() {
            DType::F64 => self.backward_typed::<f64>(rows, gradient)?,
            _ => self.backward_typed::<f32>(rows, gradient)?,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::emulation;
    use crate::cuda::tests::multigraph::{generator, random_tensor};
    use crate::cuda::tests::{assert_near, gradient_of};
    use candle_core::{Device, Var};

    #[test]
    fn ties_go_to_the_first_member_and_empty_segments_to_nobody() {
        let rows = Var::new(&[[1.0f64, -2.0], [3.0, -2.0], [3.0, -1.0], [9.0, 9.0]], &Device::Cpu).unwrap();
        let segments = Arc::new(Segments::new(vec![0, 3, 3, 4], vec![2, 1, 0, 3]).unwrap());
        let out = segment_max(&rows, &segments).unwrap();
        assert_eq!(out.to_vec2::<f64>().unwrap(), [[3.0, -1.0], [0.0, 0.0], [9.0, 9.0]]);
        let weights = Tensor::new(&[[1.0f64, 2.0], [4.0, 8.0], [16.0, 32.0]], &Device::Cpu).unwrap();
        let gradients = (out * weights).unwrap().sum_all().unwrap().backward().unwrap();
        let gradient = gradients.get(&rows).unwrap().to_vec2::<f64>().unwrap();
        assert_eq!(gradient, [[0.0, 0.0], [0.0, 0.0], [1.0, 2.0], [16.0, 32.0]]);
    }

    #[test]
    fn many_rows_in_parallel_agree_with_one_thread() {
        let (rows, width) = (5000u32, 16usize);
        let values: Vec<f32> = (0..rows as usize * width).map(|index| ((index * 7919) % 10_007) as f32).collect();
        let start: Vec<u32> = (0..=100).map(|segment| segment * rows / 100).collect();
        let segments = Arc::new(Segments::new(start, (0..rows).collect()).unwrap());
        let tensor = Tensor::from_slice(&values, (rows as usize, width), &Device::Cpu).unwrap();
        let out = segment_max(&tensor, &segments).unwrap().to_vec2::<f32>().unwrap();
        for (segment, out) in out.iter().enumerate() {
            for (column, &value) in out.iter().enumerate() {
                let members = (0..50).map(|row| values[(segment * 50 + row) * width + column]);
                assert_eq!(value, members.fold(f32::MIN, f32::max));
            }
        }
    }

    #[test]
    fn wrong_segments_and_rows_are_refused() {
        assert!(Segments::new(vec![], vec![]).is_err());
        assert!(Segments::new(vec![0, 1], vec![0, 1]).is_err());
        assert!(Segments::new(vec![0, 2], vec![0, 0]).is_err());
        assert!(Segments::new(vec![0, 2], vec![0, 2]).is_err());
        let segments = Arc::new(Segments::new(vec![0, 2], vec![0, 1]).unwrap());
        let wrong = Tensor::zeros((3, 2), DType::F32, &Device::Cpu).unwrap();
        assert!(segment_max(&wrong, &segments).is_err());
        let integers = Tensor::zeros((2, 2), DType::U32, &Device::Cpu).unwrap();
        assert!(segment_max(&integers, &segments).is_err());
    }

    #[test]
    fn maxima_of_segments_agree() {
        if !emulation::is_possible() {
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
            let operation = SegmentMax { segments, holders: Mutex::default(), on_device: SavedTensor::default() };
            let found = operation.forward_on_device(&Device::Cpu, View::new(&rows).unwrap(), width).unwrap();
            assert_near(&found.into_tensor((4, width)), &expected, "maxima");
            let back = operation.backward_on_device(&rows, &upstream).unwrap();
            assert_near(&back, &gradient_of(&expected, &upstream, &rows), "gradient of the maxima");
        }
    }
}

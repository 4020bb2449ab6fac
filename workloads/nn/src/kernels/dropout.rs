//! Dropout without a stored mask: whether a value is dropped follows from a seed and its position alone.

use candle_core::{CpuStorage, CudaStorage, CustomOp1, Layout, Result, Shape, Tensor, WithDType};

use super::Stored;
use super::tensors::{check_dtype, number_type, slice, storage_of, tensor_of, with_slice, with_stored};
use crate::cuda::{self, View, device_of};
use gnntop_data::graph::DropMask;
use gnntop_data::tasks::run_tasks;

/// Values that one task takes.
const CHUNK: usize = 1 << 14;

/// Sets each value to 0 with probability `p` and multiplies the others by `1 / (1 - p)`, so that the expectation stays.
/// The same seed drops the same positions, whatever the number type and the threads; use a new one for each call.
///
/// # Errors
/// `p` is not in `0..=1`, or `x` is not a float or not in host memory.
pub fn dropout(x: &Tensor, p: f64, seed: u64) -> Result<Tensor> {
    check_dtype(x.dtype())?;
    if p == 0.0 {
        return Ok(x.clone());
    }
    x.contiguous()?.apply_op1(Dropout { mask: DropMask::new(p, seed)? })
}

/// Applies the mask to a part of the values.
struct DropChunk<'a, T> {
    mask: DropMask,
    first: usize,
    from: &'a [T],
    to: &'a mut [T],
}

impl<T: Stored> pulp::NullaryFnOnce for DropChunk<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        // A chunk does not cross a multiple of 2^32, because its size divides it.
        let stream = self.mask.stream(self.first as u64 >> 32);
        let factor = T::Wide::from_f64(self.mask.factor());
        for (index, (to, from)) in self.to.iter_mut().zip(self.from).enumerate() {
            let kept = T::narrow(from.widen() * factor);
            let stays = stream.stays((self.first as u32).wrapping_add(index as u32));
            *to = if stays { kept } else { T::default() };
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Dropout {
    mask: DropMask,
}

impl Dropout {
    fn apply<T: Stored>(&self, from: &[T]) -> Vec<T> {
        let mut out = vec![T::default(); from.len()];
        let chunks = out.chunks_mut(CHUNK).zip(from.chunks(CHUNK)).enumerate();
        run_tasks(chunks, |(index, (to, from))| {
            pulp::Arch::new().dispatch(DropChunk { mask: self.mask, first: index * CHUNK, from, to });
        });
        out
    }
}

impl CustomOp1 for Dropout {
    fn name(&self) -> &'static str {
        "dropout"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let out = with_stored!(number_type(storage), |T| storage_of(self.apply::<T>(slice(storage, layout)?)));
        Ok((out, layout.shape().clone()))
    }

    fn cuda_fwd(&self, storage: &CudaStorage, layout: &Layout) -> Result<(CudaStorage, Shape)> {
        let device = device_of(storage);
        let out = cuda::dropout(&device, View::of_storage(storage, layout)?, self.mask)?;
        out.into_storage(layout.shape().clone())
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        if x.device().is_cuda() {
            let gradient = gradient.contiguous()?;
            let out = cuda::dropout(x.device(), View::new(&gradient)?, self.mask)?;
            return Ok(Some(out.into_tensor(x.shape())));
        }
        with_stored!(x.dtype(), |T| with_slice::<T, _>(gradient, |gradient| {
            tensor_of(self.apply(gradient), x.shape().clone(), x)
        }))
        .map(Some)
    }
}

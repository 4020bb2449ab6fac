//! Dropout without a stored mask: whether a value is dropped follows from a seed and its position alone.

use std::ops::Range;

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor, WithDType, bail};
use rayon::prelude::*;

use super::tensors::{check_dtype, number_type, slice, storage_of, tensor_of, with_slice, with_stored};
use super::{Stored, Wide};

/// Values that one task takes.
const CHUNK: usize = 1 << 14;

/// Sets each value to 0 with probability `p` and multiplies the others by `1 / (1 - p)`, so that the expectation stays.
/// The same seed drops the same positions, whatever the number type and the threads; take a new one for each call.
///
/// # Errors
/// `p` is not in `0..=1`, or `x` is no float or not in host memory.
pub fn dropout(x: &Tensor, p: f64, seed: u64) -> Result<Tensor> {
    check_dtype(x.dtype())?;
    if p == 0.0 {
        return Ok(x.clone());
    }
    x.contiguous()?.apply_op1(Dropout { mask: DropMask::new(p, seed)? })
}

/// Which positions are dropped, and the factor of the others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DropMask {
    /// A position stays if its random number is at least this.
    threshold: u64,
    factor: f64,
    seed: u64,
}

impl DropMask {
    pub fn new(p: f64, seed: u64) -> Result<Self> {
        if !(0.0..=1.0).contains(&p) {
            bail!("the probability of dropout must lie in 0..=1, not {p}");
        }
        let factor = if p == 1.0 { 0.0 } else { 1.0 / (1.0 - p) };
        Ok(Self { threshold: (p * 2f64.powi(32)).round() as u64, factor, seed })
    }

    /// The generator for the `2^32` positions from `high * 2^32` on.
    #[inline(always)]
    pub fn stream(&self, high: u64) -> MaskStream {
        let first = mix64(self.seed ^ mix64(high));
        let second = mix64(first.wrapping_add(0x9e37_79b9_7f4a_7c15));
        // A probability of 1 has a threshold of 2^32, which its factor of 0 makes unnecessary.
        let threshold = self.threshold.min(u64::from(u32::MAX)) as u32;
        MaskStream { keys: [first as u32, second as u32], threshold }
    }

    pub fn factor(&self) -> f64 {
        self.factor
    }

    /// What a GPU needs besides the factor. A probability of 1 has a threshold of 2^32, which its factor of 0 makes
    /// unnecessary.
    #[cfg(any(feature = "cuda", test))]
    pub fn seed_and_threshold(&self) -> (u64, u32) {
        (self.seed, self.threshold.min(u64::from(u32::MAX)) as u32)
    }

    /// Drops values in place, the first of which has position `first`. To be inlined where vectors are at hand.
    #[inline(always)]
    pub fn apply<T: Wide>(&self, first: u64, values: &mut [T]) {
        let factor = T::from_f64(self.factor);
        self.streams(first, values.len(), |stream, position, range| {
            for (index, value) in values[range].iter_mut().enumerate() {
                let kept = *value * factor;
                *value = if stream.stays(position.wrapping_add(index as u32)) { kept } else { T::zero() };
            }
        });
    }

    /// The same from one slice into another of its length.
    #[inline(always)]
    pub fn copy<T: Wide>(&self, first: u64, from: &[T], to: &mut [T]) {
        let factor = T::from_f64(self.factor);
        self.streams(first, to.len(), |stream, position, range| {
            for (index, (to, &from)) in to[range.clone()].iter_mut().zip(&from[range]).enumerate() {
                let kept = from * factor;
                *to = if stream.stays(position.wrapping_add(index as u32)) { kept } else { T::zero() };
            }
        });
    }

    /// The parts of `count` positions from `first` on that have one generator: it, the first position, and the part.
    #[inline(always)]
    fn streams(&self, first: u64, count: usize, mut part: impl FnMut(MaskStream, u32, Range<usize>)) {
        let mut done = 0;
        while done < count {
            let position = first + done as u64;
            let until_next = (1u64 << 32) - (position & 0xffff_ffff);
            let end = count.min(done.saturating_add(usize::try_from(until_next).unwrap_or(usize::MAX)));
            part(self.stream(position >> 32), position as u32, done..end);
            done = end;
        }
    }
}

/// Random numbers by position.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MaskStream {
    keys: [u32; 2],
    threshold: u32,
}

impl MaskStream {
    /// Whether the position stays. The hash is `triple32` (C. Wellons, "Prospecting for hash functions") with a key
    /// at its start and one in its middle; it vectorises.
    #[inline(always)]
    pub fn stays(self, position: u32) -> bool {
        let mut hash = position.wrapping_add(self.keys[0]);
        hash = (hash ^ (hash >> 17)).wrapping_mul(0xed5a_d4bb);
        hash = ((hash ^ (hash >> 11)) ^ self.keys[1]).wrapping_mul(0xac4c_1b51);
        hash = (hash ^ (hash >> 15)).wrapping_mul(0x3184_8bab);
        hash ^ (hash >> 14) >= self.threshold
    }
}

/// The finaliser of SplitMix64.
fn mix64(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
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
        let chunks = out.par_chunks_mut(CHUNK).zip(from.par_chunks(CHUNK)).enumerate();
        chunks.for_each(|(index, (to, from))| {
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

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        storage: &candle_core::CudaStorage,
        layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        let device = crate::cuda::device_of(storage);
        let out = crate::cuda::dropout(&device, crate::cuda::View::of_storage(storage, layout)?, self.mask)?;
        Ok((out.into_storage()?, layout.shape().clone()))
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        #[cfg(feature = "cuda")]
        if x.device().is_cuda() {
            let gradient = gradient.contiguous()?;
            let out = crate::cuda::dropout(x.device(), crate::cuda::View::of(&gradient)?, self.mask)?;
            return Ok(Some(out.into_tensor(x.shape())));
        }
        with_stored!(x.dtype(), |T| with_slice::<T, _>(gradient, |gradient| {
            tensor_of(self.apply(gradient), x.shape().clone(), x)
        }))
        .map(Some)
    }
}

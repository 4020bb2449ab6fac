//! The number types that kernels compute in, and the way from candle storage to plain slices.

use candle_core::{CpuStorage, FloatDType, Layout, Result, Storage, bail};

use super::{Workspace, Workspaces};

/// A number type of the kernels: `f32` for training, `f64` for checks by finite differences.
pub trait Element: FloatDType + Default {
    /// Square root.
    #[must_use]
    fn square_root(self) -> Self;

    /// The pool of buffers of this type.
    fn workspace(pools: &Workspaces) -> &Workspace<Self>;

    /// The numbers, if this type is `f32`.
    fn singles(values: &[Self]) -> Option<&[f32]>;

    /// Values of f32 as such, if they are of this type.
    fn of_singles(values: &[f32]) -> Option<&[Self]>;

    /// As [`singles`](Self::singles).
    fn singles_mut(values: &mut [Self]) -> Option<&mut [f32]>;
}

impl Element for f32 {
    fn square_root(self) -> Self {
        self.sqrt()
    }

    fn workspace(pools: &Workspaces) -> &Workspace<Self> {
        &pools.single
    }

    fn singles(values: &[Self]) -> Option<&[f32]> {
        Some(values)
    }

    fn of_singles(values: &[f32]) -> Option<&[Self]> {
        Some(values)
    }

    fn singles_mut(values: &mut [Self]) -> Option<&mut [f32]> {
        Some(values)
    }
}

impl Element for f64 {
    fn square_root(self) -> Self {
        self.sqrt()
    }

    fn workspace(pools: &Workspaces) -> &Workspace<Self> {
        &pools.double
    }

    fn singles(_: &[Self]) -> Option<&[f32]> {
        None
    }

    fn of_singles(_: &[f32]) -> Option<&[Self]> {
        None
    }

    fn singles_mut(_: &mut [Self]) -> Option<&mut [f32]> {
        None
    }
}

/// The elements of a contiguous tensor in host memory, row-major.
///
/// # Errors
/// The tensor lives on another device, has another number type, or is not contiguous.
pub fn host_slice<'a, T: FloatDType>(storage: &'a Storage, layout: &Layout) -> Result<&'a [T]> {
    match storage {
        Storage::Cpu(storage) => cpu_slice(storage, layout),
        _ => bail!("this operation runs on the CPU only; move its arguments there"),
    }
}

/// [`host_slice`] for storage that is known to be on the CPU, as custom operations receive it.
pub(crate) fn cpu_slice<'a, T: FloatDType>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [T]> {
    let elements = T::cpu_storage_as_slice(storage)?;
    match layout.contiguous_offsets() {
        Some((start, end)) => Ok(&elements[start..end]),
        None => bail!("an argument is not contiguous; call contiguous() on it first"),
    }
}

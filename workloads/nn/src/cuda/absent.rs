//! Stands in for the [driver](super::driver) in a build without CUDA: the same names, with types that have no values
//! where the driver returns something. No tensor is on a GPU then, so most of this is compiled but never reached.

use std::convert::Infallible;
use std::result::Result as StdResult;

use bytemuck::NoUninit;
use candle_core::{CudaDevice, CudaStorage, DType, Device, Result, Tensor, bail};

use super::kernel::{Address, Grid, Kernel, not_here};
use super::ring::CopyEngine;
use crate::device::DeviceError;

pub(super) fn address_of(_: &CudaStorage) -> Result<Address> {
    not_here()
}

pub(super) fn allocate(_: &CudaDevice, _: DType, _: usize) -> Result<CudaStorage> {
    not_here()
}

/// # Safety
/// No conditions: nothing is launched.
pub(super) unsafe fn launch<A: NoUninit>(_: &CudaDevice, kernel: &Kernel, _: Grid, _: &A) -> Result<()> {
    bail!("{} of {:?} cannot be launched: this program was built without CUDA", kernel.name, kernel.module)
}

/// There are no GPUs to count.
///
/// # Errors
/// Always: this program was built without CUDA.
pub fn count() -> StdResult<usize, DeviceError> {
    Err(DeviceError::NotBuilt)
}

/// There is no GPU to open.
///
/// # Errors
/// Always: this program was built without CUDA.
pub fn open(_: usize) -> StdResult<Device, DeviceError> {
    Err(DeviceError::NotBuilt)
}

/// Changes nothing: no GPU multiplies.
pub fn allow_tf32(_: bool) {}

/// Runs the work.
///
/// # Errors
/// Those of `work`.
pub fn rehearse<R>(_: &Device, work: impl FnOnce() -> Result<R>) -> Result<R> {
    work()
}

/// There is no GPU to capture work of.
///
/// # Errors
/// Always.
pub fn capture(_: &Device, _: impl FnOnce() -> Result<()>) -> Result<Captured> {
    bail!("only work for a GPU can be captured")
}

/// Work that is submitted by one launch: there is none.
pub enum Captured {}

impl Captured {
    /// Never called.
    ///
    /// # Errors
    /// None.
    pub fn launch(&self) -> Result<()> {
        match *self {}
    }
}

pub(super) fn stream_of(_: &CudaDevice) -> Result<*mut std::ffi::c_void> {
    not_here()
}

pub(super) fn let_use(_: &CudaDevice, _: &[usize]) -> Result<()> {
    not_here()
}

/// Copies from page-locked memory: there are none.
#[derive(Debug)]
pub(crate) enum PinnedCopies {}

impl PinnedCopies {
    pub(crate) fn new(_: &Device) -> Result<Self> {
        not_here()
    }
}

impl CopyEngine for PinnedCopies {
    type Host = Infallible;
    type Device = Tensor;
    type Event = Infallible;

    fn allocate(&self, _: usize) -> Result<(Infallible, Tensor)> {
        match *self {}
    }

    fn values<'a>(&self, _: &'a mut Infallible) -> Result<&'a mut [f32]> {
        match *self {}
    }

    fn copy(&self, _: &Infallible, _: &mut Tensor, _: usize) -> Result<Infallible> {
        match *self {}
    }

    fn computed(&self) -> Result<Infallible> {
        match *self {}
    }

    fn copies_wait(&self, _: &Infallible) -> Result<()> {
        match *self {}
    }

    fn host_waits(&self, _: &Infallible) -> Result<()> {
        match *self {}
    }
}

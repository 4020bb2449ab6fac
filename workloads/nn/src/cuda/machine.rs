//! The one place where memory of a device is addressed and kernels are launched.
//!
//! An [`Address`] comes from a [`View`] of a tensor or from [`Memory`], both of which are checked to be contiguous and on the
//! device. Launches and frees are ordered by the device's one stream, so memory may be given back as soon as its last
//! kernel has been launched.

use std::marker::PhantomData;

use bytemuck::NoUninit;
use candle_core::backend::BackendStorage;
use candle_core::op::BackpropOp;
use candle_core::{CpuStorage, CudaStorage, DType, Device, Error, Layout, Result, Shape, Storage, Tensor, bail};

use super::driver;
#[cfg(any(test, feature = "emulation"))]
use super::emulation;
use super::kernel::{Address, Grid, Kernel, not_here};
use crate::device::asked_for;

/// The elements of a contiguous tensor, to be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    address: Address,
    dtype: DType,
    length: usize,
    tensor: PhantomData<&'a Tensor>,
}

impl<'a> View<'a> {
    /// # Errors
    /// The tensor is not contiguous or not on a device that kernels run on.
    pub(crate) fn new(tensor: &'a Tensor) -> Result<Self> {
        let (storage, layout) = tensor.storage_and_layout();
        let address = match &*storage {
            Storage::Cpu(storage) => host_address(storage)?,
            Storage::Cuda(storage) => driver::address_of(storage)?,
            Storage::Metal(_) => return not_here(),
        };
        Self::within(address, tensor.dtype(), layout)
    }

    /// The same for an argument of a custom operation.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(crate) fn of_storage(storage: &'a CudaStorage, layout: &Layout) -> Result<Self> {
        Self::within(driver::address_of(storage)?, storage.dtype(), layout)
    }

    /// The same for an argument in host memory, where only tests run kernels.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(crate) fn of_host(storage: &'a CpuStorage, layout: &Layout) -> Result<Self> {
        Self::within(host_address(storage)?, storage.dtype(), layout)
    }

    fn within(address: Address, dtype: DType, layout: &Layout) -> Result<Self> {
        match layout.contiguous_offsets() {
            Some((start, end)) => Ok(Self {
                address: Address(address.0 + (start * dtype.size_in_bytes()) as u64),
                dtype,
                length: end - start,
                tensor: PhantomData,
            }),
            None => bail!("an argument is not contiguous; call contiguous() on it first"),
        }
    }

    /// The elements from `first` on.
    ///
    /// # Errors
    /// There are fewer than `first + length`.
    pub(super) fn part(self, first: usize, length: usize) -> Result<Self> {
        if first.checked_add(length).is_none_or(|end| end > self.length) {
            bail!("elements {first}.. of {length} are outside of {}", self.length);
        }
        Ok(Self { address: Address(self.address.0 + (first * self.dtype.size_in_bytes()) as u64), length, ..self })
    }

    pub(crate) fn dtype(self) -> DType {
        self.dtype
    }

    pub(super) fn length(self) -> usize {
        self.length
    }

    /// Where the elements are, for a kernel that reads `length` elements of this number type.
    ///
    /// # Errors
    /// There are others or fewer.
    pub(super) fn address(self, dtype: DType, length: usize) -> Result<Address> {
        if self.dtype != dtype || self.length < length {
            bail!("a kernel was to read {length} x {dtype:?} from {} x {:?}", self.length, self.dtype);
        }
        Ok(self.address)
    }
}

/// The device of a custom operation's argument.
pub(crate) fn device_of(storage: &CudaStorage) -> Device {
    Device::Cuda(storage.device().clone())
}

/// Fresh memory of a device, for a kernel to write; its contents are unspecified before.
#[derive(Debug)]
pub struct Memory {
    storage: Storage,
    address: Address,
    length: usize,
}

impl Memory {
    /// Room for `length` elements.
    ///
    /// # Errors
    /// The device has too little memory, or kernels do not run on it.
    pub(super) fn new(device: &Device, dtype: DType, length: usize) -> Result<Self> {
        match device {
            Device::Cuda(device) => {
                // Added to an error, so that it says how much memory was requested.
                let asked = |error: Error| error.context(asked_for(length * dtype.size_in_bytes()));
                let storage = driver::allocate(device, dtype, length).map_err(asked)?;
                Ok(Self { address: driver::address_of(&storage)?, storage: Storage::Cuda(storage), length })
            }
            Device::Cpu => {
                let storage = host_memory(dtype, length)?;
                Ok(Self { address: host_address(&storage)?, storage: Storage::Cpu(storage), length })
            }
            Device::Metal(_) => not_here(),
        }
    }

    pub(super) fn address(&self) -> Address {
        self.address
    }

    /// The memory's content, for a kernel that reads it.
    pub(super) fn view(&self) -> View<'_> {
        let dtype = match &self.storage {
            Storage::Cpu(storage) => storage.dtype(),
            Storage::Cuda(storage) => storage.dtype(),
            Storage::Metal(storage) => storage.dtype(),
        };
        View { address: self.address, dtype, length: self.length, tensor: PhantomData }
    }

    /// As a tensor.
    ///
    /// # Panics
    /// If the shape has another number of elements.
    pub(crate) fn into_tensor(self, shape: impl Into<Shape>) -> Tensor {
        let shape = shape.into();
        self.check(&shape);
        Tensor::from_storage(self.storage, shape, BackpropOp::none(), false)
    }

    /// As the result of a custom operation in host memory.
    ///
    /// # Errors
    /// The memory is a GPU's.
    ///
    /// # Panics
    /// If the shape has another number of elements.
    pub(crate) fn into_host(self, shape: impl Into<Shape>) -> Result<(CpuStorage, Shape)> {
        let shape = shape.into();
        self.check(&shape);
        match self.storage {
            Storage::Cpu(storage) => Ok((storage, shape)),
            _ => not_here(),
        }
    }

    /// As the result of a custom operation.
    ///
    /// # Errors
    /// The memory is the host's.
    ///
    /// # Panics
    /// If the shape has another number of elements.
    pub(crate) fn into_storage(self, shape: impl Into<Shape>) -> Result<(CudaStorage, Shape)> {
        let shape = shape.into();
        self.check(&shape);
        match self.storage {
            Storage::Cuda(storage) => Ok((storage, shape)),
            _ => not_here(),
        }
    }

    /// A tensor of more elements would be read beyond its memory.
    fn check(&self, shape: &Shape) {
        assert!(shape.elem_count() == self.length, "{shape:?} does not fit {} elements", self.length);
    }
}

/// Launches a kernel on the device's stream and returns at once. A grid without blocks is no launch.
///
/// # Errors
/// The device refuses, or kernels do not run on it.
///
/// # Safety
/// `arguments` is the struct that the kernel takes. Its addresses are of this device and alive, and the memory behind
/// each is as long as the kernel needs for the sizes in it; only work launched before or after it reads or writes what
/// it writes.
pub(super) unsafe fn launch<A: NoUninit>(device: &Device, kernel: &Kernel, grid: Grid, arguments: &A) -> Result<()> {
    if grid.blocks.contains(&0) {
        return Ok(());
    }
    match device {
        // SAFETY: the caller vouches for the arguments.
        Device::Cuda(device) => unsafe { driver::launch(device, kernel, grid, arguments) },
        #[cfg(any(test, feature = "emulation"))]
        // SAFETY: as above.
        Device::Cpu => unsafe { emulation::launch(&kernel.name, grid, arguments) },
        _ => not_here(),
    }
}

/// Only tests run kernels on the host.
#[cfg(not(any(test, feature = "emulation")))]
fn host_address(_: &CpuStorage) -> Result<Address> {
    not_here()
}

#[cfg(not(any(test, feature = "emulation")))]
fn host_memory(_: DType, _: usize) -> Result<CpuStorage> {
    not_here()
}

#[cfg(any(test, feature = "emulation"))]
fn host_address(storage: &CpuStorage) -> Result<Address> {
    macro_rules! address {
        ($($variant:ident)*) => {
            match storage {
                $(CpuStorage::$variant(values) => Ok(Address(values.as_ptr() as u64)),)*
                _ => not_here(),
            }
        };
    }
    address!(F32 F64 BF16 F16 U32 I64)
}

/// Filled with a value that no kernel computes, so that a test sees what was not written.
#[cfg(any(test, feature = "emulation"))]
fn host_memory(dtype: DType, length: usize) -> Result<CpuStorage> {
    Ok(match dtype {
        DType::F32 => CpuStorage::F32(vec![f32::NAN; length]),
        DType::F64 => CpuStorage::F64(vec![f64::NAN; length]),
        DType::BF16 => CpuStorage::BF16(vec![half::bf16::NAN; length]),
        DType::F16 => CpuStorage::F16(vec![half::f16::NAN; length]),
        DType::U32 => CpuStorage::U32(vec![0xdead_beef; length]),
        _ => return not_here(),
    })
}

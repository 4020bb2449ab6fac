//! The one place where memory of a device is addressed and kernels are launched; everything above is safe.
//!
//! A kernel takes one struct by value. Its fields of type [`Address`] come from a [`View`] of a tensor or from
//! [`Memory`], both of which are checked to be contiguous and on the device; whoever fills in the struct checks that they
//! are long enough for the sizes beside them. Launches and frees are ordered by the device's one stream, so memory may be
//! given back as soon as its last kernel has been launched.

#[cfg(feature = "cuda")]
mod on_cuda;

use std::marker::PhantomData;

use candle_core::op::BackpropOp;
use candle_core::{CpuStorage, CudaStorage, DType, Device, Layout, Result, Shape, Storage, Tensor, bail};

/// Threads of a block.
pub(super) const THREADS: u32 = 256;

/// Blocks of a loop over elements, at most: several for each multiprocessor of the largest devices.
const MAX_BLOCKS: u64 = 1 << 14;

/// Where something lies on a device; 0 is nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Address(pub(super) u64);

impl Address {
    pub(super) const NONE: Self = Self(0);
}

/// What a kernel takes.
///
/// # Safety
/// The type is `repr(C)` without padding, and its fields are those of the struct of the same name in
/// `workloads/kernels`, in the same order.
pub(super) unsafe trait Arguments {}

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
    pub(crate) fn of(tensor: &'a Tensor) -> Result<Self> {
        let (storage, layout) = tensor.storage_and_layout();
        let address = match &*storage {
            Storage::Cpu(storage) => host_address(storage)?,
            Storage::Cuda(storage) => cuda_address(storage)?,
            Storage::Metal(_) => return not_here(),
        };
        Self::within(address, tensor.dtype(), layout)
    }

    /// Of what a custom operation received.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub(crate) fn of_storage(storage: &'a CudaStorage, layout: &Layout) -> Result<Self> {
        use candle_core::backend::BackendStorage;
        Self::within(cuda_address(storage)?, storage.dtype(), layout)
    }

    /// Of what a custom operation received in host memory, where only tests run kernels.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub(crate) fn of_host(storage: &'a CpuStorage, layout: &Layout) -> Result<Self> {
        use candle_core::backend::BackendStorage;
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

/// The device of what a custom operation received.
pub(crate) fn device_of(storage: &CudaStorage) -> Device {
    use candle_core::backend::BackendStorage;
    Device::Cuda(storage.device().clone())
}

/// Fresh memory of a device, for a kernel to write; its contents are unspecified before.
#[derive(Debug)]
pub(crate) struct Memory {
    storage: Storage,
    address: Address,
    length: usize,
}

impl Memory {
    /// Room for `length` elements.
    ///
    /// # Errors
    /// The device has not enough memory, or kernels do not run on it.
    pub(super) fn new(device: &Device, dtype: DType, length: usize) -> Result<Self> {
        match device {
            Device::Cuda(device) => {
                let storage = cuda_memory(device, dtype, length)?;
                Ok(Self { address: cuda_address(&storage)?, storage: Storage::Cuda(storage), length })
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

    /// As a tensor.
    pub(crate) fn into_tensor(self, shape: impl Into<Shape>) -> Tensor {
        let shape = shape.into();
        debug_assert_eq!(shape.elem_count(), self.length);
        Tensor::from_storage(self.storage, shape, BackpropOp::none(), false)
    }

    /// As the result of a custom operation in host memory.
    ///
    /// # Errors
    /// The memory is a GPU's.
    pub(crate) fn into_host(self) -> Result<CpuStorage> {
        match self.storage {
            Storage::Cpu(storage) => Ok(storage),
            _ => not_here(),
        }
    }

    /// As the result of a custom operation.
    ///
    /// # Errors
    /// The memory is the host's.
    pub(crate) fn into_storage(self) -> Result<CudaStorage> {
        match self.storage {
            Storage::Cuda(storage) => Ok(storage),
            _ => not_here(),
        }
    }
}

fn not_here<T>() -> Result<T> {
    bail!("this kernel runs on CUDA devices; move its arguments there")
}

/// A kernel: the file it is in and its name there.
#[derive(Debug, Clone)]
pub(super) struct Kernel {
    pub(super) module: Module,
    pub(super) name: String,
}

/// A file of kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Module {
    Adam,
    Aggregate,
    Attention,
    AttentionBack,
    Elements,
    Gather,
    Images,
    Loss,
    Messages,
    Norm,
    Sage,
    Segments,
    Softmax,
}

impl Module {
    /// A kernel of this file for a number type.
    ///
    /// # Errors
    /// Kernels are not made for it.
    pub(super) fn kernel(self, name: &str, dtype: DType) -> Result<Kernel> {
        let suffix = match dtype {
            DType::F32 => "f32",
            DType::F64 => "f64",
            DType::BF16 => "bf16",
            DType::F16 => "f16",
            other => bail!("graph kernels take f32, f64, bf16 or f16, not {other:?}"),
        };
        Ok(Kernel { module: self, name: format!("{name}_{suffix}") })
    }

    #[cfg(feature = "cuda")]
    fn name_and_code(self) -> (&'static str, &'static str) {
        macro_rules! code {
            ($name:literal) => {
                (concat!("gnntop-", $name), include_str!(concat!(env!("OUT_DIR"), "/", $name, ".ptx")))
            };
        }
        match self {
            Self::Adam => code!("adam"),
            Self::Aggregate => code!("aggregate"),
            Self::Attention => code!("attention"),
            Self::AttentionBack => code!("attention_back"),
            Self::Elements => code!("elements"),
            Self::Gather => code!("gather"),
            Self::Images => code!("images"),
            Self::Loss => code!("loss"),
            Self::Messages => code!("messages"),
            Self::Norm => code!("norm"),
            Self::Sage => code!("sage"),
            Self::Segments => code!("segments"),
            Self::Softmax => code!("softmax"),
        }
    }
}

/// Blocks and their threads, both along x and y.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Grid {
    pub(super) blocks: [u32; 2],
    pub(super) threads: [u32; 2],
}

impl Grid {
    /// For a loop over `count` elements.
    pub(super) fn over(count: u64) -> Self {
        let blocks = count.div_ceil(u64::from(THREADS)).min(MAX_BLOCKS) as u32;
        Self { blocks: [blocks, 1], threads: [THREADS, 1] }
    }

    /// For `rows` rows of `lanes` threads each, a power of two of at most [`THREADS`].
    ///
    /// # Errors
    /// A grid cannot have so many.
    pub(super) fn of_rows(rows: u64, lanes: u32) -> Result<Self> {
        let rows_of_block = THREADS / lanes;
        match i32::try_from(rows.div_ceil(u64::from(rows_of_block))) {
            Ok(blocks) => Ok(Self { blocks: [blocks as u32, 1], threads: [lanes, rows_of_block] }),
            Err(_) => bail!("{rows} rows are more than a kernel can be launched for"),
        }
    }

    /// Neighbouring threads, a power of two of at most 32, that share `work` units.
    pub(super) fn lanes_for(work: usize) -> u32 {
        work.clamp(1, 32).next_power_of_two() as u32
    }
}

/// The number type that sums of a type are in.
pub(super) fn wide(dtype: DType) -> DType {
    if dtype == DType::F64 { DType::F64 } else { DType::F32 }
}

/// Launches a kernel on the device's stream and returns at once. A grid without blocks is no launch.
///
/// # Errors
/// The device refuses, or kernels do not run on it.
pub(super) fn launch<A: Arguments>(device: &Device, kernel: &Kernel, grid: Grid, arguments: &A) -> Result<()> {
    if grid.blocks.contains(&0) {
        return Ok(());
    }
    match device {
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => on_cuda::launch(device, kernel, grid, arguments),
        #[cfg(test)]
        Device::Cpu => {
            super::emulation::launch(&kernel.name, grid.blocks, grid.threads, std::ptr::from_ref(arguments).cast())
        }
        _ => {
            let _ = (kernel.module, arguments);
            not_here()
        }
    }
}

#[cfg(feature = "cuda")]
use on_cuda::{cuda_address, cuda_memory};

#[cfg(not(feature = "cuda"))]
fn cuda_address(_: &CudaStorage) -> Result<Address> {
    not_here()
}

#[cfg(not(feature = "cuda"))]
fn cuda_memory(_: &candle_core::CudaDevice, _: DType, _: usize) -> Result<CudaStorage> {
    not_here()
}

/// Only tests run kernels on the host.
#[cfg(not(test))]
fn host_address(_: &CpuStorage) -> Result<Address> {
    not_here()
}

#[cfg(not(test))]
fn host_memory(_: DType, _: usize) -> Result<CpuStorage> {
    not_here()
}

#[cfg(test)]
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

/// Filled with what no kernel computes, so that a test sees what was not written.
#[cfg(test)]
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

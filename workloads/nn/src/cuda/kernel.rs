//! The parts of a launch: a kernel by its file and name, a grid of threads, and addresses among its arguments.
//!
//! A kernel takes one struct by value: `repr(C)` without padding, which `NoUninit` vouches for, with the fields of the
//! struct of the same name in `workloads/nn/kernels`, in their order.

use bytemuck::NoUninit;
use candle_core::{DType, Result, bail};

/// Threads of a block.
pub(super) const THREADS: u32 = 256;

/// Largest number of blocks of a loop over elements: several for each multiprocessor of the largest devices.
const MAX_BLOCKS: u64 = 1 << 14;

/// An address on a device; 0 is null.
#[derive(Debug, Clone, Copy, PartialEq, Eq, NoUninit)]
#[repr(transparent)]
pub(super) struct Address(pub(super) u64);

impl Address {
    pub(super) const NONE: Self = Self(0);
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
    /// There is no kernel for it.
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
    /// A grid cannot have that many.
    pub(super) fn for_rows(rows: u64, lanes: u32) -> Result<Self> {
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

/// Error of a call whose tensors are not on a device that kernels run on.
pub(super) fn not_here<T>() -> Result<T> {
    bail!("this kernel runs on CUDA devices; move its arguments there")
}

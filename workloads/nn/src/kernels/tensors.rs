//! Between candle tensors and the slices that the graph kernels work on.

use candle_core::backend::BackendStorage;
use candle_core::{CpuStorage, DType, Layout, Result, Shape, Tensor, bail};

use super::{Stored, host_slice};
use gnntop_data::graph::{Adjacency, Endpoint};

/// Runs `$body` with `$T` as the number type of `$dtype`.
macro_rules! with_stored {
    ($dtype:expr, |$T:ident| $body:expr) => {
        match $dtype {
            candle_core::DType::F32 => {
                type $T = f32;
                $body
            }
            candle_core::DType::F64 => {
                type $T = f64;
                $body
            }
            candle_core::DType::BF16 => {
                type $T = half::bf16;
                $body
            }
            candle_core::DType::F16 => {
                type $T = half::f16;
                $body
            }
            dtype => candle_core::bail!("graph kernels take f32, f64, bf16 or f16, not {dtype:?}"),
        }
    };
}
pub(super) use with_stored;

/// Checks that `rows` has one row for each endpoint there, and a number type that kernels take.
pub(super) fn check_rows(adjacency: &Adjacency, rows: &Tensor, at: Endpoint, name: &str) -> Result<()> {
    let expected = at.rows(adjacency);
    match rows.dims().first() {
        Some(&count) if count == expected => {}
        _ => bail!("{name} has shape {:?}; expected {expected} rows, one for each {at}", rows.dims()),
    }
    check_dtype(rows.dtype())
}

pub(super) fn check_dtype(dtype: DType) -> Result<()> {
    with_stored!(dtype, |T| {
        let _ = T::default();
        Ok(())
    })
}

/// The shape of rows, without their number.
pub(super) fn trailing(rows: &Tensor) -> &[usize] {
    rows.dims().get(1..).unwrap_or(&[])
}

/// `rows` rows of the trailing shape of another tensor.
pub(super) fn shape_of(rows: usize, trailing: &[usize]) -> Shape {
    let mut dims = vec![rows];
    dims.extend_from_slice(trailing);
    Shape::from(dims)
}

/// The number type of a custom operation's argument.
pub(super) fn number_type(storage: &CpuStorage) -> DType {
    storage.dtype()
}

/// The result of a custom operation.
pub(super) fn storage_of<T: Stored>(data: Vec<T>) -> CpuStorage {
    T::to_cpu_storage_owned(data)
}

/// The elements of a custom operation's argument.
pub(super) fn slice<'a, T: Stored>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [T]> {
    super::cpu_slice(storage, layout)
}

/// Calls `work` with the elements of a tensor in host memory; it is made contiguous where it is not.
pub(super) fn with_slice<T: Stored, R>(tensor: &Tensor, work: impl FnOnce(&[T]) -> Result<R>) -> Result<R> {
    let tensor = tensor.contiguous()?;
    let (storage, layout) = tensor.storage_and_layout();
    work(host_slice(&storage, layout)?)
}

/// A tensor that holds `data`, with the device of another one.
pub(super) fn tensor_of<T: Stored>(data: Vec<T>, shape: Shape, like: &Tensor) -> Result<Tensor> {
    Tensor::from_vec(data, shape, like.device())
}

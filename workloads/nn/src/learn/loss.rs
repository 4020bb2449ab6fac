//! Cross-entropy of chosen rows, as one candle operation: the loss of node classification, where a model gives a row for
//! every node and only some have a label to learn from.

use std::sync::Arc;

use candle_core::{CpuStorage, CudaStorage, CustomOp1, DType, Device, Layout, Result, Shape, Tensor, bail};

use crate::cuda::{LabelsOnDevice, View, device_of};
use crate::kernels::{Element, cpu_slice, host_slice};
use gnntop_data::graph::DeviceSlot;

/// The rows that have a label to learn from, and their labels. Clones share them.
#[derive(Debug, Clone)]
pub struct LabelledRows {
    pairs: Arc<[(u32, u32)]>,
    on_device: Arc<DeviceSlot>,
}

impl LabelledRows {
    /// Row `rows[i]` has label `labels[i]`.
    ///
    /// # Errors
    /// Their numbers differ, or there are none.
    pub fn new(rows: impl IntoIterator<Item = u32>, labels: &[u32]) -> Result<Self> {
        let rows: Vec<u32> = rows.into_iter().collect();
        if rows.len() != labels.len() || rows.is_empty() {
            bail!(
                "cross-entropy: {} rows with {} labels; it takes one label per row, and at least one row",
                rows.len(),
                labels.len()
            );
        }
        Ok(Self { pairs: rows.into_iter().zip(labels.iter().copied()).collect(), on_device: Arc::default() })
    }

    /// Their copy on a GPU, made when first needed.
    pub(crate) fn copied_to(&self, device: &Device) -> Result<Arc<LabelsOnDevice>> {
        self.on_device.get(device, || LabelsOnDevice::new(&self.pairs, device))
    }
}

/// Mean of `-log softmax(logits)[label]` over the labelled rows (PyTorch's `F.cross_entropy` of `logits[rows]`), a
/// scalar. `logits` is `[rows, classes]`; rows without a label get no gradient.
///
/// # Errors
/// `logits` is not an f32 or f64 matrix in host memory, or a row or label is out of range.
pub fn cross_entropy(logits: &Tensor, labelled: &LabelledRows) -> Result<Tensor> {
    logits.contiguous()?.apply_op1(CrossEntropy(labelled.clone()))
}

struct CrossEntropy(LabelledRows);

impl CrossEntropy {
    fn forward<T: Element>(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (rows, classes) = layout.shape().dims2()?;
        let logits = cpu_slice::<T>(storage, layout)?;
        let mut sum = 0.0;
        for &(row, label) in self.0.pairs.iter() {
            if row as usize >= rows || label as usize >= classes {
                bail!("cross-entropy: row {row} has label {label}, but there are {rows} rows and {classes} classes");
            }
            let row = &logits[row as usize * classes..][..classes];
            sum += log_sum_exp(row) - row[label as usize].to_f64();
        }
        let mean = sum / self.0.pairs.len() as f64;
        Ok((T::to_cpu_storage_owned(vec![T::from_f64(mean)]), Shape::from(())))
    }

    fn backward<T: Element>(&self, logits: &Tensor, upstream: f64) -> Result<Tensor> {
        let (rows, classes) = logits.dims2()?;
        let (storage, layout) = logits.storage_and_layout();
        let values = host_slice::<T>(&storage, layout)?;
        let mut gradient = vec![T::zero(); rows * classes];
        let share = upstream / self.0.pairs.len() as f64;
        for &(row, label) in self.0.pairs.iter() {
            let range = row as usize * classes..(row as usize + 1) * classes;
            let log_sum = log_sum_exp(&values[range.clone()]);
            for (gradient, value) in gradient[range.clone()].iter_mut().zip(&values[range.clone()]) {
                *gradient += T::from_f64(share * (value.to_f64() - log_sum).exp());
            }
            gradient[range.start + label as usize] -= T::from_f64(share);
        }
        Tensor::from_vec(gradient, (rows, classes), logits.device())
    }
}

/// Stable for large values; NaN if a value is NaN.
fn log_sum_exp<T: Element>(row: &[T]) -> f64 {
    let largest = row.iter().map(|value| value.to_f64()).fold(f64::NEG_INFINITY, f64::max);
    largest + row.iter().map(|value| (value.to_f64() - largest).exp()).sum::<f64>().ln()
}

impl CustomOp1 for CrossEntropy {
    fn name(&self) -> &'static str {
        "cross-entropy"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        match storage {
            CpuStorage::F32(_) => self.forward::<f32>(storage, layout),
            CpuStorage::F64(_) => self.forward::<f64>(storage, layout),
            _ => bail!("cross-entropy: logits must be f32 or f64"),
        }
    }

    fn cuda_fwd(&self, storage: &CudaStorage, layout: &Layout) -> Result<(CudaStorage, Shape)> {
        let device = device_of(storage);
        let logits = View::of_storage(storage, layout)?;
        let loss = self.0.copied_to(&device)?.mean_loss(logits, layout.shape().dims2()?)?;
        loss.into_storage(Shape::from(()))
    }

    fn bwd(&self, logits: &Tensor, _: &Tensor, upstream: &Tensor) -> Result<Option<Tensor>> {
        if logits.device().is_cuda() {
            let labels = self.0.copied_to(logits.device())?;
            let (logits, upstream) = (logits.contiguous()?, upstream.contiguous()?);
            return labels.gradient(&logits, View::new(&upstream)?).map(Some);
        }
        let upstream = upstream.to_dtype(DType::F64)?.to_scalar::<f64>()?;
        let logits = logits.contiguous()?;
        Ok(Some(match logits.dtype() {
            DType::F64 => self.backward::<f64>(&logits, upstream)?,
            _ => self.backward::<f32>(&logits, upstream)?,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::{Device, Var};

    fn logits() -> Var {
        let values = [[0.5f64, -1.0, 2.0], [300.0, 1.0, -4.0], [0.1, 0.2, 0.3], [-2.0, 0.0, 1.5]];
        Var::new(&values, &Device::Cpu).unwrap()
    }

    fn labelled() -> LabelledRows {
        LabelledRows::new([3, 0, 1, 0], &[1, 2, 1, 0]).unwrap()
    }

    #[test]
    fn it_is_the_mean_of_candles_log_softmax() {
        let logits = logits();
        let log = candle_nn::ops::log_softmax(logits.as_tensor(), 1).unwrap().to_vec2::<f64>().unwrap();
        let expected = -(log[3][1] + log[0][2] + log[1][1] + log[0][0]) / 4.0;
        let loss = cross_entropy(&logits, &labelled()).unwrap().to_scalar::<f64>().unwrap();
        assert!((loss - expected).abs() < 1e-12, "{loss} {expected}");
    }

    #[test]
    fn its_gradient_is_that_of_finite_differences() {
        let logits = logits();
        let loss = |values: &[f64]| {
            let tensor = Tensor::from_slice(values, (4, 3), &Device::Cpu).unwrap();
            cross_entropy(&tensor, &labelled()).unwrap().to_scalar::<f64>().unwrap()
        };
        let gradients = cross_entropy(&logits, &labelled()).unwrap().affine(2.0, 1.0).unwrap().backward().unwrap();
        let gradient = gradients.get(&logits).unwrap().flatten_all().unwrap().to_vec1::<f64>().unwrap();
        let values = logits.flatten_all().unwrap().to_vec1::<f64>().unwrap();
        for index in 0..values.len() {
            let at = |shift: f64| {
                let mut moved = values.clone();
                moved[index] += shift;
                loss(&moved)
            };
            let expected = 2.0 * (at(1e-5) - at(-1e-5)) / 2e-5;
            assert!((gradient[index] - expected).abs() < 1e-8, "{index}: {} {expected}", gradient[index]);
        }
        assert_eq!(gradient[6..9], [0.0; 3]);
    }

    #[test]
    fn rows_and_labels_out_of_range_are_refused() {
        let logits = logits();
        for (row, label) in [(4, 0), (0, 3)] {
            assert!(cross_entropy(&logits, &LabelledRows::new([row], &[label]).unwrap()).is_err());
        }
        assert!(LabelledRows::new([], &[]).is_err() && LabelledRows::new([1], &[]).is_err());
    }
}

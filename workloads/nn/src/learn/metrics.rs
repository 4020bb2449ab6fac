//! How good predictions are.

use candle_core::{DType, Result, Tensor, bail};

/// Right answers among many. With one label per node this is also the micro-averaged F1 score: every wrong answer is
/// one false positive and one false negative.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Accuracy {
    /// Right answers.
    pub right: usize,
    /// Answers.
    pub of: usize,
}

impl Accuracy {
    /// Compares the largest of each row of `logits`, `[rows, classes]`, with the row's label. Of equal values the first
    /// counts; a row without any number counts as wrong.
    ///
    /// # Errors
    /// `logits` is not a matrix, or does not have one row per label.
    pub fn new(logits: &Tensor, labels: &[u32]) -> Result<Self> {
        let (rows, classes) = logits.dims2()?;
        if rows != labels.len() {
            bail!("accuracy: {rows} rows of predictions for {} labels", labels.len());
        }
        let values = logits.to_dtype(DType::F32)?.flatten_all()?.to_vec1::<f32>()?;
        let is_right = |(row, &label): (&[f32], &u32)| largest(row) == Some(label as usize);
        let right = values.chunks_exact(classes.max(1)).zip(labels).filter(|&pair| is_right(pair)).count();
        Ok(Self { right, of: labels.len() })
    }

    /// Share of right answers; 0 of none.
    #[must_use]
    pub fn share(&self) -> f64 {
        if self.of == 0 { 0.0 } else { self.right as f64 / self.of as f64 }
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { right: self.right + other.right, of: self.of + other.of }
    }
}

/// Position of the first largest number.
fn largest(row: &[f32]) -> Option<usize> {
    let mut best: Option<(usize, f32)> = None;
    for (column, &value) in row.iter().enumerate() {
        if !value.is_nan() && best.is_none_or(|(_, largest)| value > largest) {
            best = Some((column, value));
        }
    }
    best.map(|(column, _)| column)
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::Device;

    #[test]
    fn the_first_largest_counts_and_nan_is_wrong() {
        let nan = f32::NAN;
        let logits = [[0.0f32, 2.0, 2.0], [5.0, 1.0, 0.0], [nan, nan, nan], [nan, 0.0, -1.0]];
        let logits = Tensor::new(&logits, &Device::Cpu).unwrap();
        let accuracy = Accuracy::new(&logits, &[1, 2, 0, 1]).unwrap();
        assert_eq!(accuracy, Accuracy { right: 2, of: 4 });
        assert_eq!(accuracy.and(accuracy).share(), 0.5);
        assert!(Accuracy::new(&logits, &[1]).is_err());
        assert_eq!(Accuracy::default().share(), 0.0);
    }
}

//! A sparse constant matrix, such as bag-of-words features, of which Cora's are 1.3 % dense.

use candle_core::{DType, Result, Tensor, bail};

use super::DeviceSlot;

/// One direction of a sparse matrix.
#[derive(Debug, Clone)]
pub struct Compressed {
    /// Where each row begins, and where the last one ends.
    pub start: Vec<u32>,
    /// Column of each non-zero.
    pub other: Vec<u32>,
    /// The non-zeros.
    pub value: Vec<f32>,
    /// Position of each non-zero in the matrix by rows, which numbers it for dropout.
    pub number: Vec<u32>,
}

/// A sparse constant matrix `[rows, columns]` in f32, by rows and by columns.
#[derive(Debug, Clone)]
pub struct SparseMatrix {
    by_row: Compressed,
    by_column: Compressed,
    on_device: DeviceSlot,
}

impl SparseMatrix {
    /// From CSR: row `i` has the values `value[row_start[i]..row_start[i + 1]]` in the columns `column[..]` of the same
    /// places. A column that occurs twice in a row counts twice.
    ///
    /// # Errors
    /// `row_start` does not ascend from 0 to the number of values, `column` has another length than `value`, or a
    /// column is not below `columns`.
    pub fn new(row_start: Vec<u32>, column: Vec<u32>, value: Vec<f32>, columns: usize) -> Result<Self> {
        let ascending = row_start.windows(2).all(|row| row[0] <= row[1]);
        let ends = (row_start.first().copied(), row_start.last().map(|&last| last as usize));
        if ends != (Some(0), Some(value.len())) || !ascending || column.len() != value.len() {
            bail!("row_start must ascend from 0 to the number of values ({}), each with a column", value.len());
        }
        if let Some(wrong) = column.iter().find(|&&column| column as usize >= columns) {
            bail!("a value is in column {wrong}, but there are only {columns} columns");
        }
        let number = (0..value.len() as u32).collect();
        let by_row = Compressed { start: row_start, other: column, value, number };
        Ok(Self { by_column: by_row.transposed(columns), by_row, on_device: DeviceSlot::default() })
    }

    /// The non-zeros of a matrix, `[rows, columns]`.
    ///
    /// # Errors
    /// `dense` is not a matrix, or does not convert to f32 in host memory.
    pub fn from_dense(dense: &Tensor) -> Result<Self> {
        let (rows, columns) = dense.dims2()?;
        let (mut row_start, mut column, mut value) = (vec![0], Vec::new(), Vec::new());
        let dense = dense.to_dtype(DType::F32)?.flatten_all()?.to_vec1::<f32>()?;
        for row in 0..rows {
            let entries = dense[row * columns..][..columns].iter().enumerate();
            for (place, &entry) in entries.filter(|&(_, &entry)| entry != 0.0) {
                column.push(place as u32);
                value.push(entry);
            }
            row_start.push(value.len() as u32);
        }
        Self::new(row_start, column, value, columns)
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.by_row.start.len() - 1
    }

    /// Number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.by_column.start.len() - 1
    }

    /// Number of stored values.
    #[must_use]
    pub fn non_zeros(&self) -> usize {
        self.by_row.value.len()
    }

    /// The non-zeros of each row.
    #[must_use]
    pub fn by_row(&self) -> &Compressed {
        &self.by_row
    }

    /// The non-zeros of each column.
    #[must_use]
    pub fn by_column(&self) -> &Compressed {
        &self.by_column
    }

    /// A device's copy.
    #[must_use]
    pub fn on_device(&self) -> &DeviceSlot {
        &self.on_device
    }
}

impl Compressed {
    /// The other direction, by counting; `others` is the number of its rows.
    fn transposed(&self, others: usize) -> Self {
        let mut start = vec![0u32; others + 1];
        self.other.iter().for_each(|&other| start[other as usize + 1] += 1);
        (1..start.len()).for_each(|index| start[index] += start[index - 1]);
        let mut cursor = start.clone();
        let entries = self.value.len();
        let (mut other, mut value, mut number) = (vec![0; entries], vec![0.0; entries], vec![0; entries]);
        for (row, range) in self.start.windows(2).enumerate() {
            for entry in range[0] as usize..range[1] as usize {
                let slot = &mut cursor[self.other[entry] as usize];
                let place = *slot as usize;
                (other[place], value[place], number[place]) = (row as u32, self.value[entry], entry as u32);
                *slot += 1;
            }
        }
        Self { start, other, value, number }
    }
}

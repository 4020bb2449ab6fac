//! The columns of an Apache Parquet file.
//!
//! Rows are gathered and written a row group at a time, so that memory stays bounded. Texts repeat, so they are kept as
//! dictionaries; times rise, so they are kept as differences: no compression on top is worth a further dependency.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Encoding, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type};

/// Rows of a group, for which about 10 MB are held.
const GROUP_ROWS: usize = 1 << 16;

/// A Parquet file that is being written.
pub(super) struct RowGroups<W: Write + Send> {
    /// `None` when it could not be begun, or was ended.
    file: Option<SerializedFileWriter<W>>,
    /// Why it could not be begun, until that is reported.
    refused: Option<ParquetError>,
    rows: usize,
    columns: Vec<ParquetColumn>,
}

/// The values of one column in the group that is being gathered; a row without one is not `present`.
pub(super) struct ParquetColumn {
    name: String,
    values: ColumnValues,
    present: Vec<i16>,
}

/// The values of a column, by their type.
pub(super) enum ColumnValues {
    Text(Vec<ByteArray>),
    Unsigned(Vec<i64>),
    Signed(Vec<i64>),
    Double(Vec<f64>),
}

impl ColumnValues {
    pub(super) fn texts() -> Self {
        Self::Text(Vec::new())
    }

    pub(super) fn unsigned() -> Self {
        Self::Unsigned(Vec::new())
    }

    pub(super) fn signed() -> Self {
        Self::Signed(Vec::new())
    }

    pub(super) fn doubles() -> Self {
        Self::Double(Vec::new())
    }
}

/// The value of one cell.
pub(super) enum ParquetCell {
    Text(ByteArray),
    Integer(i64),
    Double(f64),
}

impl ParquetCell {
    /// For a column that is declared unsigned: what does not fit into 63 bits keeps its bits.
    pub(super) fn unsigned(n: u64) -> Self {
        Self::Integer(n.cast_signed())
    }
}

impl ParquetColumn {
    pub(super) fn new(name: &str, values: ColumnValues) -> Self {
        Self { name: name.to_owned(), values, present: Vec::new() }
    }

    /// Its type in the schema.
    fn field(&self) -> Result<Type> {
        let (physical, logical) = match self.values {
            ColumnValues::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            ColumnValues::Unsigned(_) => (Physical::INT64, Some(LogicalType::integer(64, false))),
            ColumnValues::Signed(_) => (Physical::INT64, Some(LogicalType::integer(64, true))),
            ColumnValues::Double(_) => (Physical::DOUBLE, None),
        };
        let field = Type::primitive_type_builder(&self.name, physical);
        field.with_logical_type(logical).with_repetition(Repetition::OPTIONAL).build()
    }

    fn push(&mut self, cell: Option<ParquetCell>) {
        self.present.push(i16::from(cell.is_some()));
        match (&mut self.values, cell) {
            (ColumnValues::Text(values), Some(ParquetCell::Text(text))) => values.push(text),
            (ColumnValues::Unsigned(values) | ColumnValues::Signed(values), Some(ParquetCell::Integer(n))) => {
                values.push(n)
            }
            (ColumnValues::Double(values), Some(ParquetCell::Double(value))) => values.push(value),
            (_, cell) => debug_assert!(cell.is_none(), "{} is of another type", self.name),
        }
    }

    fn write(&mut self, writer: &mut SerializedColumnWriter<'_>) -> Result<()> {
        let present = Some(self.present.as_slice());
        match &mut self.values {
            ColumnValues::Text(values) => {
                writer.typed::<ByteArrayType>().write_batch(values, present, None)?;
                values.clear();
            }
            ColumnValues::Unsigned(values) | ColumnValues::Signed(values) => {
                writer.typed::<Int64Type>().write_batch(values, present, None)?;
                values.clear();
            }
            ColumnValues::Double(values) => {
                writer.typed::<DoubleType>().write_batch(values, present, None)?;
                values.clear();
            }
        }
        self.present.clear();
        Ok(())
    }
}

/// `rising` are the columns whose numbers rise from row to row.
fn properties(rising: &[&str]) -> WriterProperties {
    let differences = |properties: WriterPropertiesBuilder, name: &&str| {
        let column = ColumnPath::from(*name);
        let plain = properties.set_column_dictionary_enabled(column.clone(), false);
        plain.set_column_encoding(column, Encoding::DELTA_BINARY_PACKED)
    };
    let made_by = format!("gnntop version {}", env!("CARGO_PKG_VERSION"));
    rising.iter().fold(WriterProperties::builder().set_created_by(made_by), differences).build()
}

impl<W: Write + Send> RowGroups<W> {
    /// A file whose rows are called `row` in its schema.
    pub(super) fn new(out: W, row: &str, columns: Vec<ParquetColumn>, rising: &[&str]) -> Self {
        let fields = columns.iter().map(|column| column.field().map(Arc::new)).collect::<Result<Vec<_>>>();
        let schema = fields.and_then(|fields| Type::group_type_builder(row).with_fields(fields).build());
        let file =
            schema.and_then(|schema| SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties(rising))));
        let (file, refused) = match file {
            Ok(file) => (Some(file), None),
            Err(error) => (None, Some(error)),
        };
        Self { file, refused, rows: 0, columns }
    }

    /// Notes a fact in the file's metadata.
    pub(super) fn note(&mut self, key: &str, value: String) {
        if let Some(file) = &mut self.file {
            file.append_key_value_metadata(KeyValue::new(key.to_owned(), value));
        }
    }

    /// Adds a row, which has a cell for each column.
    pub(super) fn push(&mut self, cells: impl IntoIterator<Item = Option<ParquetCell>>) -> io::Result<()> {
        self.columns.iter_mut().zip(cells).for_each(|(column, cell)| column.push(cell));
        self.rows += 1;
        if self.rows == GROUP_ROWS { self.group().map_err(plain) } else { Ok(()) }
    }

    /// Ends the file.
    pub(super) fn close(&mut self) -> io::Result<()> {
        if let Some(error) = self.refused.take() {
            return Err(plain(error));
        }
        self.group().map_err(plain)?;
        let file = self.file.take();
        file.map_or(Ok(()), |file| file.close().map(|_| ()).map_err(plain))
    }

    /// Writes the rows gathered as a group.
    fn group(&mut self) -> Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        if self.rows == 0 {
            return Ok(());
        }
        let mut group = file.next_row_group()?;
        for column in &mut self.columns {
            let Some(mut writer) = group.next_column()? else { break };
            column.write(&mut writer)?;
            writer.close()?;
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }
}

/// What went wrong with the file itself, where that is what it was.
fn plain(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        error => io::Error::other(error),
    }
}

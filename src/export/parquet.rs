//! One event a row in the typed columns of an Apache Parquet file, with the fields of the line forms.
//!
//! Rows are gathered and written a row group at a time, so that memory stays bounded. Texts repeat, so they are kept as
//! dictionaries; times rise, so they are kept as differences: no compression on top is worth a further dependency.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use gnntop_wire::{BatchShape, SessionInfo, TrackId};
use parquet::basic::{Encoding, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type};

use super::format::{Entry, Format};
use super::numbered::Numbered;
use super::rows::Fields;

/// Rows of a group, for which about 10 MB are held.
const GROUP_ROWS: usize = 1 << 16;
/// Columns that rise from row to row.
const RISING: [&str; 3] = ["step", "start_ns", "end_ns"];

/// A Parquet file that is being written.
pub(super) struct Parquet<W: Write + Send> {
    /// `None` when it could not be begun, or was ended.
    file: Option<SerializedFileWriter<W>>,
    /// Why it could not be begun, until that is said.
    refused: Option<ParquetError>,
    has_session: bool,
    rows: usize,
    columns: Vec<Column>,
    titles: HashMap<TrackId, ByteArray>,
    /// The names seen, so that each is held once, and as cells by their numbers.
    texts: Numbered,
    held: Vec<ByteArray>,
}

/// The values of one column in the group that is being gathered; a row without one is not `present`.
struct Column {
    name: &'static str,
    values: Values,
    present: Vec<i16>,
}

enum Values {
    Text(Vec<ByteArray>),
    Unsigned(Vec<i64>),
    Signed(Vec<i64>),
    Double(Vec<f64>),
}

/// The value of one cell.
enum Cell {
    Text(ByteArray),
    Integer(i64),
    Double(f64),
}

/// Empty columns, in the order in which cells of a row come.
fn columns() -> Vec<Column> {
    let unsigned = ["graphs", "nodes", "edges", "seeds"];
    let head = [
        ("kind", Values::Text(Vec::new())),
        ("track", Values::Text(Vec::new())),
        ("name", Values::Text(Vec::new())),
        ("step", Values::Unsigned(Vec::new())),
        ("start_ns", Values::Unsigned(Vec::new())),
        ("end_ns", Values::Unsigned(Vec::new())),
        ("value", Values::Double(Vec::new())),
        ("reading", Values::Signed(Vec::new())),
        ("unit", Values::Text(Vec::new())),
        ("epoch", Values::Unsigned(Vec::new())),
    ];
    let sizes = unsigned.map(|name| (name, Values::Unsigned(Vec::new())));
    head.into_iter().chain(sizes).map(|(name, values)| Column { name, values, present: Vec::new() }).collect()
}

impl Column {
    /// How a reader is told of it.
    fn field(&self) -> Result<Type> {
        let (physical, logical) = match self.values {
            Values::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Values::Unsigned(_) => (Physical::INT64, Some(LogicalType::integer(64, false))),
            Values::Signed(_) => (Physical::INT64, Some(LogicalType::integer(64, true))),
            Values::Double(_) => (Physical::DOUBLE, None),
        };
        let field = Type::primitive_type_builder(self.name, physical);
        field.with_logical_type(logical).with_repetition(Repetition::OPTIONAL).build()
    }

    fn push(&mut self, cell: Option<Cell>) {
        self.present.push(i16::from(cell.is_some()));
        match (&mut self.values, cell) {
            (Values::Text(values), Some(Cell::Text(text))) => values.push(text),
            (Values::Unsigned(values) | Values::Signed(values), Some(Cell::Integer(n))) => values.push(n),
            (Values::Double(values), Some(Cell::Double(value))) => values.push(value),
            (_, cell) => debug_assert!(cell.is_none(), "{} is of another type", self.name),
        }
    }

    fn write(&mut self, writer: &mut SerializedColumnWriter<'_>) -> Result<()> {
        let present = Some(self.present.as_slice());
        match &mut self.values {
            Values::Text(values) => {
                writer.typed::<ByteArrayType>().write_batch(values, present, None)?;
                values.clear();
            }
            Values::Unsigned(values) | Values::Signed(values) => {
                writer.typed::<Int64Type>().write_batch(values, present, None)?;
                values.clear();
            }
            Values::Double(values) => {
                writer.typed::<DoubleType>().write_batch(values, present, None)?;
                values.clear();
            }
        }
        self.present.clear();
        Ok(())
    }
}

fn properties() -> WriterProperties {
    let differences = |properties: parquet::file::properties::WriterPropertiesBuilder, name: &str| {
        let column = ColumnPath::from(name);
        let plain = properties.set_column_dictionary_enabled(column.clone(), false);
        plain.set_column_encoding(column, Encoding::DELTA_BINARY_PACKED)
    };
    let made_by = format!("gnntop version {}", env!("CARGO_PKG_VERSION"));
    RISING.into_iter().fold(WriterProperties::builder().set_created_by(made_by), differences).build()
}

impl<W: Write + Send> Parquet<W> {
    pub(super) fn new(out: W) -> Self {
        let columns = columns();
        let fields = columns.iter().map(|column| column.field().map(Arc::new)).collect::<Result<Vec<_>>>();
        let schema = fields.and_then(|fields| Type::group_type_builder("event").with_fields(fields).build());
        let file = schema.and_then(|schema| SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties())));
        let (file, refused) = match file {
            Ok(file) => (Some(file), None),
            Err(error) => (None, Some(error)),
        };
        let (titles, texts, held) = (HashMap::new(), Numbered::default(), Vec::new());
        Self { file, refused, has_session: false, rows: 0, columns, titles, texts, held }
    }

    fn text(&mut self, text: &str) -> io::Result<Option<Cell>> {
        if text.is_empty() {
            return Ok(None);
        }
        let (number, is_new) = self.texts.number(text)?;
        if is_new {
            self.held.push(ByteArray::from(text));
        }
        Ok(self.held.get(number as usize).cloned().map(Cell::Text))
    }

    fn row(&mut self, track: TrackId, entry: &Entry<'_>) -> io::Result<[Option<Cell>; 14]> {
        let fields = Fields::of(entry);
        let (epoch, batch) = match entry {
            Entry::Step { step } => (Some(step.epoch), step.batch),
            _ => (None, BatchShape::default()),
        };
        // The column is declared unsigned: what does not fit into 63 bits keeps its bits.
        let unsigned = |n: u64| Cell::Integer(n.cast_signed());
        Ok([
            self.text(fields.kind)?,
            self.titles.get(&track).cloned().map(Cell::Text),
            self.text(fields.name)?,
            fields.step.map(unsigned),
            Some(unsigned(fields.start_ns)),
            Some(unsigned(fields.end_ns)),
            fields.value.or_else(|| fields.whole.map(|whole| whole as f64)).map(Cell::Double),
            fields.whole.map(Cell::Integer),
            self.text(fields.unit)?,
            epoch.map(unsigned),
            batch.graphs.map(unsigned),
            batch.nodes.map(unsigned),
            batch.edges.map(unsigned),
            batch.seeds.map(unsigned),
        ])
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

impl<W: Write + Send> Format for Parquet<W> {
    fn session(&mut self, info: &SessionInfo) {
        let Some(file) = self.file.as_mut().filter(|_| !self.has_session) else { return };
        self.has_session = true;
        let facts = [
            ("gnntop.session", info.name.clone()),
            ("gnntop.host", info.host.clone()),
            ("gnntop.command", info.command.clone()),
            ("gnntop.start_ns", info.start.monotonic_ns.to_string()),
            ("gnntop.start_unix_ns", info.start.wall_ns.to_string()),
        ];
        for (key, value) in facts {
            file.append_key_value_metadata(KeyValue::new(key.to_owned(), value));
        }
    }

    fn track(&mut self, track: TrackId, title: &str) -> io::Result<()> {
        self.titles.insert(track, ByteArray::from(title));
        Ok(())
    }

    fn entry(&mut self, track: TrackId, entry: &Entry<'_>) -> io::Result<()> {
        for (column, cell) in self.row(track, entry)?.into_iter().enumerate() {
            self.columns[column].push(cell);
        }
        self.rows += 1;
        if self.rows == GROUP_ROWS { self.group().map_err(plain) } else { Ok(()) }
    }

    fn end(&mut self) -> io::Result<()> {
        if let Some(error) = self.refused.take() {
            return Err(plain(error));
        }
        self.group().map_err(plain)?;
        let file = self.file.take();
        file.map_or(Ok(()), |file| file.close().map(|_| ()).map_err(plain))
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

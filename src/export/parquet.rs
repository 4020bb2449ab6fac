//! One event a row in the typed columns of an Apache Parquet file, with the fields of the line forms.

use std::collections::HashMap;
use std::io::{self, Write};

use gnntop_wire::{BatchShape, SessionInfo, TrackId};
use parquet::data_type::ByteArray;

use super::definitions::Interner;
use super::format::{Entry, FormatWriter};
use super::row_groups::{ColumnValues, ParquetCell, ParquetColumn, RowGroups};
use super::rows::Fields;

/// Columns that rise from row to row.
const RISING: [&str; 3] = ["step", "start_ns", "end_ns"];

/// A table of events that is being written.
pub(super) struct Parquet<W: Write + Send> {
    file: RowGroups<W>,
    has_session: bool,
    titles: HashMap<TrackId, ByteArray>,
    /// The names seen, so that each is held once, and as cells by their numbers.
    texts: Interner,
    held: Vec<ByteArray>,
}

/// Empty columns, in the order in which cells of a row come.
fn columns() -> Vec<ParquetColumn> {
    let head = [
        ("kind", ColumnValues::texts()),
        ("track", ColumnValues::texts()),
        ("name", ColumnValues::texts()),
        ("step", ColumnValues::unsigned()),
        ("start_ns", ColumnValues::unsigned()),
        ("end_ns", ColumnValues::unsigned()),
        ("value", ColumnValues::doubles()),
        ("reading", ColumnValues::signed()),
        ("unit", ColumnValues::texts()),
        ("epoch", ColumnValues::unsigned()),
    ];
    let sizes = ["graphs", "nodes", "edges", "seeds"].map(|name| (name, ColumnValues::unsigned()));
    head.into_iter().chain(sizes).map(|(name, values)| ParquetColumn::new(name, values)).collect()
}

impl<W: Write + Send> Parquet<W> {
    pub(super) fn new(out: W) -> Self {
        let file = RowGroups::new(out, "event", columns(), &RISING);
        Self { file, has_session: false, titles: HashMap::new(), texts: Interner::default(), held: Vec::new() }
    }

    fn text(&mut self, text: &str) -> io::Result<Option<ParquetCell>> {
        if text.is_empty() {
            return Ok(None);
        }
        let (number, is_new) = self.texts.intern(text)?;
        if is_new {
            self.held.push(ByteArray::from(text));
        }
        Ok(self.held.get(number as usize).cloned().map(ParquetCell::Text))
    }

    fn row(&mut self, track: TrackId, entry: &Entry<'_>) -> io::Result<[Option<ParquetCell>; 14]> {
        let fields = Fields::new(entry);
        let (epoch, batch) = match entry {
            Entry::Step { step } => (Some(step.epoch), step.batch),
            _ => (None, BatchShape::default()),
        };
        Ok([
            self.text(fields.kind)?,
            self.titles.get(&track).cloned().map(ParquetCell::Text),
            self.text(fields.name)?,
            fields.step.map(ParquetCell::unsigned),
            Some(ParquetCell::unsigned(fields.start_ns)),
            Some(ParquetCell::unsigned(fields.end_ns)),
            fields.value.or_else(|| fields.whole.map(|whole| whole as f64)).map(ParquetCell::Double),
            fields.whole.map(ParquetCell::Integer),
            self.text(fields.unit)?,
            epoch.map(ParquetCell::unsigned),
            batch.graphs.map(ParquetCell::unsigned),
            batch.nodes.map(ParquetCell::unsigned),
            batch.edges.map(ParquetCell::unsigned),
            batch.seeds.map(ParquetCell::unsigned),
        ])
    }
}

impl<W: Write + Send> FormatWriter for Parquet<W> {
    fn session(&mut self, info: &SessionInfo) {
        if self.has_session {
            return;
        }
        self.has_session = true;
        let facts = [
            ("gnntop.session", info.name.clone()),
            ("gnntop.host", info.host.clone()),
            ("gnntop.command", info.command.clone()),
            ("gnntop.start_ns", info.start.monotonic_ns.to_string()),
            ("gnntop.start_unix_ns", info.start.wall_ns.to_string()),
        ];
        facts.into_iter().for_each(|(key, value)| self.file.note(key, value));
    }

    fn track(&mut self, track: TrackId, title: &str) -> io::Result<()> {
        self.titles.insert(track, ByteArray::from(title));
        Ok(())
    }

    fn entry(&mut self, track: TrackId, entry: &Entry<'_>) -> io::Result<()> {
        let row = self.row(track, entry)?;
        self.file.push(row)
    }

    fn end(&mut self) -> io::Result<()> {
        self.file.close()
    }
}

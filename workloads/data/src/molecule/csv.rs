//! The PCQM4Mv2 layout: `data.csv` or `data.csv.gz` with the header `idx,smiles,homolumogap`, the gap in eV.
//!
//! Rows are read in chunks and their SMILES parsed in parallel; the graphs keep the order of the file. A row whose
//! SMILES is not a molecule is skipped and listed; a row without a gap (the test rows of the original) is counted
//! apart. Any other mistake in the file ends the reading with an error that names the line and what was expected there.

use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};

use csv::{ByteRecord, ErrorKind, ReaderBuilder};
use rayon::prelude::*;
use thiserror::Error;

use super::smiles::{SmilesError, from_smiles};
use crate::files::{self, FileError};
use crate::graph::Graph;

/// The columns, in order.
const HEADER: [&str; 3] = ["idx", "smiles", "homolumogap"];

/// Rows parsed at once: enough to parallelise, few enough for a smooth progress bar.
const CHUNK_ROWS: usize = 1024;

/// Longest line that is read. A file without line ends must not fill the memory.
const LONGEST_LINE_BYTES: usize = 64 * 1024;

/// Skipped rows that are described; the others are only counted.
const DESCRIBED_ROWS: usize = 100;

/// Molecules read or generated.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MoleculeSet {
    /// One graph per molecule, in the order of the source, `y` in eV.
    pub graphs: Vec<Graph>,
    /// The first rows whose SMILES is not a molecule.
    pub skipped: Vec<SkippedRow>,
    /// All of them.
    pub skipped_rows: u64,
    /// Rows without a gap.
    pub rows_without_gap: u64,
    /// The origin of the molecules, for people.
    pub source: String,
}

/// A row that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedRow {
    /// Line in the file, from 1; the header is line 1.
    pub line: u64,
    /// Why.
    pub reason: SmilesError,
}

/// Why a file of molecules cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MoleculeError {
    /// The file cannot be opened or read.
    #[error(transparent)]
    Unreadable(#[from] FileError),
    /// The first line is not the header.
    #[error("{}, line 1: expected the header idx,smiles,homolumogap, found {found:?}", path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// The beginning of the line.
        found: String,
    },
    /// A row that does not have the layout.
    #[error("{}, line {line}: {problem}", path.display())]
    Row {
        /// The file.
        path: PathBuf,
        /// Line in the file, from 1.
        line: u64,
        /// What was expected, and what was found.
        problem: String,
    },
    /// Not one usable row.
    #[error(
        "{} has no molecule to train on: {skipped} rows are not molecules, {without_gap} have no gap",
        path.display()
    )]
    Empty {
        /// The file.
        path: PathBuf,
        /// Rows whose SMILES is not a molecule.
        skipped: u64,
        /// Rows without a gap.
        without_gap: u64,
    },
}

/// Reads the molecules of `path`, at most the first `limit` that are usable, packed or not (detected from the content).
/// `progress` is called from time to time with the number of rows done.
///
/// # Errors
/// See [`MoleculeError`].
pub fn read(path: &Path, limit: Option<usize>, progress: &mut dyn FnMut(u64)) -> Result<MoleculeSet, MoleculeError> {
    let mut rows = Rows::open(path)?;
    let mut set = MoleculeSet { source: path.display().to_string(), ..MoleculeSet::default() };
    let mut done = 0;
    loop {
        let wanted = limit.map_or(CHUNK_ROWS, |limit| CHUNK_ROWS.min(limit.saturating_sub(set.graphs.len())));
        let (chunk, without_gap) = rows.chunk(wanted)?;
        set.rows_without_gap += without_gap;
        if chunk.is_empty() {
            break;
        }
        done += chunk.len() as u64 + without_gap;
        parse_into(&mut set, &chunk);
        progress(done);
    }
    if set.graphs.is_empty() && limit != Some(0) {
        let (skipped, without_gap) = (set.skipped_rows, set.rows_without_gap);
        return Err(MoleculeError::Empty { path: path.to_owned(), skipped, without_gap });
    }
    Ok(set)
}

/// Parses a chunk on all cores and appends the results, in order.
fn parse_into(set: &mut MoleculeSet, chunk: &[Row]) {
    let parsed: Vec<_> = chunk.par_iter().map(|row| from_smiles(&row.smiles, row.gap_ev)).collect();
    for (row, graph) in chunk.iter().zip(parsed) {
        match graph {
            Ok(graph) => set.graphs.push(graph),
            Err(reason) => {
                set.skipped_rows += 1;
                if set.skipped.len() < DESCRIBED_ROWS {
                    set.skipped.push(SkippedRow { line: row.line, reason });
                }
            }
        }
    }
}

/// A row with a gap.
struct Row {
    line: u64,
    smiles: String,
    gap_ev: f32,
}

/// The rows of an open file, past its header.
struct Rows {
    path: PathBuf,
    reader: csv::Reader<BoundedLines<Box<dyn BufRead>>>,
    record: ByteRecord,
}

impl Rows {
    fn open(path: &Path) -> Result<Self, MoleculeError> {
        let text = files::open_text(path)?;
        let reader =
            ReaderBuilder::new().has_headers(false).from_reader(BoundedLines { inner: text, since_line_end: 0 });
        let mut rows = Self { path: path.to_owned(), reader, record: ByteRecord::new() };
        rows.check_header()?;
        Ok(rows)
    }

    fn check_header(&mut self) -> Result<(), MoleculeError> {
        const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
        const SHOWN_CHARACTERS: usize = 80;
        self.next()?;
        let first = self.record.get(0).unwrap_or_default();
        let first = first.strip_prefix(BYTE_ORDER_MARK).unwrap_or(first);
        let found = std::iter::once(first).chain(self.record.iter().skip(1)).map(<[u8]>::trim_ascii);
        if found.clone().eq(HEADER.map(str::as_bytes)) {
            return Ok(());
        }
        let line = found.collect::<Vec<_>>().join(&b',');
        let found = String::from_utf8_lossy(&line).chars().take(SHOWN_CHARACTERS).collect();
        Err(MoleculeError::Header { path: self.path.clone(), found })
    }

    /// Up to `wanted` rows with a gap, and how many without one were between them.
    fn chunk(&mut self, wanted: usize) -> Result<(Vec<Row>, u64), MoleculeError> {
        let mut rows = Vec::with_capacity(wanted);
        let mut without_gap = 0;
        while rows.len() < wanted && self.next()? {
            match self.row()? {
                Some(row) => rows.push(row),
                None => without_gap += 1,
            }
        }
        Ok((rows, without_gap))
    }

    /// Advances to the next record; false at the end.
    fn next(&mut self) -> Result<bool, MoleculeError> {
        let last = self.reader.position().line().saturating_sub(1);
        self.reader.read_byte_record(&mut self.record).map_err(|error| self.describe(error, last))
    }

    fn describe(&self, error: csv::Error, last: u64) -> MoleculeError {
        let path = self.path.clone();
        match error.into_kind() {
            ErrorKind::Io(source) => FileError::Read { path, line: last, source }.into(),
            ErrorKind::UnequalLengths { pos, len, .. } => {
                let problem = format!("expected 3 fields (idx,smiles,homolumogap), found {len}");
                MoleculeError::Row { path, line: pos.map_or(last + 1, |pos| pos.line()), problem }
            }
            other => MoleculeError::Row { path, line: last + 1, problem: format!("not a row of CSV: {other:?}") },
        }
    }

    /// The current record as a row; `None` without a gap.
    fn row(&self) -> Result<Option<Row>, MoleculeError> {
        let line = self.record.position().map_or(0, csv::Position::line);
        let problem = |problem: String| MoleculeError::Row { path: self.path.clone(), line, problem };
        let field = |index: usize| {
            let bytes = self.record.get(index).unwrap_or_default();
            let text = std::str::from_utf8(bytes).map(str::trim);
            text.map_err(|_| problem(format!("the field {} is not UTF-8 text", HEADER[index])))
        };
        let gap = field(2)?;
        if gap.is_empty() {
            return Ok(None);
        }
        let gap_ev = gap.parse::<f32>().ok().filter(|gap| gap.is_finite());
        let gap_ev = gap_ev.ok_or_else(|| {
            let shown: String = gap.chars().take(40).collect();
            problem(format!("expected a number in eV as homolumogap, found {shown:?}"))
        })?;
        Ok(Some(Row { line, smiles: field(1)?.to_owned(), gap_ev }))
    }
}

/// Passes text through without its carriage returns, at which the CSV reader would miscount lines, and fails on a line
/// longer than [`LONGEST_LINE_BYTES`].
struct BoundedLines<R> {
    inner: R,
    since_line_end: usize,
}

impl<R: Read> Read for BoundedLines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.inner.read(buffer)?;
            let mut kept = 0;
            for index in 0..count {
                let byte = buffer[index];
                buffer[kept] = byte;
                kept += usize::from(byte != b'\r');
                self.since_line_end = if byte == b'\n' { 0 } else { self.since_line_end + 1 };
                if self.since_line_end > LONGEST_LINE_BYTES {
                    let message = format!("a line is longer than {LONGEST_LINE_BYTES} bytes");
                    return Err(io::Error::new(io::ErrorKind::InvalidData, message));
                }
            }
            // A chunk of only carriage returns is not the end of the file.
            if kept > 0 || count == 0 {
                return Ok(kept);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;
    use tempfile::NamedTempFile;

    fn file(content: impl AsRef<[u8]>) -> NamedTempFile {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(content.as_ref()).unwrap();
        file
    }

    fn packed(content: impl AsRef<[u8]>) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(content.as_ref()).unwrap();
        encoder.finish().unwrap()
    }

    fn load(content: impl AsRef<[u8]>) -> Result<MoleculeSet, MoleculeError> {
        read(file(content).path(), None, &mut |_| {})
    }

    /// The message without the path, which differs from run to run.
    fn failure(content: impl AsRef<[u8]>) -> String {
        let file = file(content);
        let error = read(file.path(), None, &mut |_| {}).unwrap_err();
        let cause = std::error::Error::source(&error).map_or_else(String::new, |cause| format!(": {cause}"));
        format!("{error}{cause}").replace(&file.path().display().to_string(), "FILE")
    }

    const SMALL: &str = "idx,smiles,homolumogap\n0,CCO,7.5\n1,C(,1.0\n2,c1ccccc1,\n3,c1ccccc1,6.25\n";

    #[test]
    fn rows_are_read_skipped_and_counted() {
        for content in [SMALL.as_bytes().to_vec(), packed(SMALL), SMALL.replace('\n', "\r\n").into_bytes()] {
            let set = load(content).unwrap();
            assert_eq!(
                set.graphs.iter().map(|graph| (graph.nodes, graph.y)).collect::<Vec<_>>(),
                [(3, 7.5), (6, 6.25)]
            );
            assert_eq!((set.skipped_rows, set.rows_without_gap), (1, 1));
            assert_eq!(set.skipped[0].line, 3);
            assert!(matches!(set.skipped[0].reason, SmilesError::Syntax(_)));
        }
    }

    #[test]
    fn a_byte_order_mark_and_quotes_are_accepted() {
        let set = load("\u{feff}idx,smiles,homolumogap\n0,\"CCO\",\"7.5\"\n").unwrap();
        assert_eq!((set.graphs.len(), set.graphs[0].y), (1, 7.5));
    }

    #[test]
    fn the_limit_counts_usable_rows() {
        let read_first = |limit| read(file(SMALL).path(), Some(limit), &mut |_| {}).unwrap();
        assert_eq!(read_first(1).graphs.len(), 1);
        assert_eq!(read_first(1).skipped_rows, 0);
        assert_eq!(read_first(2).graphs[1].nodes, 6);
        assert_eq!(read_first(5).graphs.len(), 2);
        assert_eq!(read_first(0).graphs.len(), 0);
    }

    #[test]
    fn order_and_progress_hold_over_many_chunks() {
        let rows = 3 * CHUNK_ROWS + 5;
        let mut content = String::from("idx,smiles,homolumogap\n");
        for row in 0..rows {
            content += &format!("{row},{},{row}\n", "C".repeat(1 + row % 7));
        }
        let mut seen = Vec::new();
        let set = read(file(packed(content)).path(), None, &mut |done| seen.push(done)).unwrap();
        assert_eq!(set.graphs.len(), rows);
        assert!(set.graphs.iter().enumerate().all(|(row, graph)| graph.y == row as f32 && graph.nodes == 1 + row % 7));
        assert!(seen.is_sorted());
        assert_eq!(seen.last(), Some(&(rows as u64)));
    }

    #[test]
    fn skipped_rows_are_described_up_to_a_bound() {
        let mut content = String::from("idx,smiles,homolumogap\n0,C,1\n");
        content += &"1,X,1\n".repeat(1000);
        let set = load(content).unwrap();
        assert_eq!((set.skipped.len(), set.skipped_rows), (DESCRIBED_ROWS, 1000));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let header = "idx,smiles,homolumogap\n";
        let wrong = [
            (String::new(), "FILE, line 1: expected the header idx,smiles,homolumogap, found \"\""),
            ("smiles,gap\n".into(), "FILE, line 1: expected the header idx,smiles,homolumogap, found \"smiles,gap\""),
            (format!("{header}0,C,x1\n"), "FILE, line 2: expected a number in eV as homolumogap, found \"x1\""),
            (
                format!("{header}0,C,1\n1,C,NaN\n"),
                "FILE, line 3: expected a number in eV as homolumogap, found \"NaN\"",
            ),
            (format!("{header}0,C,1\n1,C\n"), "FILE, line 3: expected 3 fields (idx,smiles,homolumogap), found 2"),
            (
                format!("{header}0,C,\n1,Q,2\n"),
                "FILE has no molecule to train on: 1 rows are not molecules, 1 have no gap",
            ),
            (header.into(), "FILE has no molecule to train on: 0 rows are not molecules, 0 have no gap"),
        ];
        for (content, message) in wrong {
            assert_eq!(failure(content), message);
        }
        assert_eq!(failure(b"idx,smiles,homolumogap\n0,C\xff,1\n"), "FILE, line 2: the field smiles is not UTF-8 text");
    }

    #[test]
    fn a_missing_file_or_a_folder_is_said_so() {
        let missing = read(Path::new("/nonexistent/data.csv"), None, &mut |_| {}).unwrap_err().to_string();
        assert_eq!(missing, "cannot open /nonexistent/data.csv");
        let folder = tempfile::tempdir().unwrap();
        assert!(read(folder.path(), None, &mut |_| {}).is_err());
    }

    #[test]
    fn an_archive_cut_anywhere_is_an_error() {
        let mut content = String::from("idx,smiles,homolumogap\n");
        for row in 0..300 {
            content += &format!("{row},C1CCCC{}1,{}.5\n", "CO".repeat(row % 5), row * 7919 % 1000);
        }
        let archive = packed(content);
        for length in (0..archive.len()).step_by(7) {
            let message = failure(&archive[..length]);
            assert!(message.starts_with("FILE"), "{message}");
        }
        assert!(failure(&archive[..archive.len() - 20]).contains("after line "));
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let endless = format!("idx,smiles,homolumogap\n0,{},1\n", "C".repeat(LONGEST_LINE_BYTES));
        assert!(failure(&endless).contains("a line is longer than 65536 bytes"));
        assert!(failure(packed(&endless)).contains("a line is longer than 65536 bytes"));
    }
}

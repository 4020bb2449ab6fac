//! Reads a graph from files, in whichever of the known layouts they are.
//!
//! | layout | files |
//! |---|---|
//! | plain text | `NAME.nodes.tsv`, `NAME.edges.tsv` |
//! | LINQS | `NAME.content`, `NAME.cites` |
//! | Reddit | `reddit_data.npz`, `reddit_graph.npz` |
//! | table and list | `nodes.csv`, `edges.csv` (or `.tsv`) |
//!
//! Planetoid's own files (`ind.NAME.*`) are not read: they are Python 2 pickles.
//!
//! Text may be packed with gzip under the same name. Undirected edges are read in any number and either direction; the
//! graph has both directions of each once, and no self-loops, as PyTorch Geometric reads Planetoid's files.

mod edge_list;
mod error;
mod lines;
mod linqs;
mod npz;
mod plain;
mod reddit;
mod table;

use std::path::{Path, PathBuf};

pub use self::error::ReadError;
use super::dataset::NodeDataset;
use crate::files::FileError;

/// A pair of files that make a graph.
struct Layout {
    /// The ending of the first file's name; the second file has the same stem.
    first: &'static str,
    second: &'static str,
    /// Whether there may be a stem before the ending.
    named: bool,
    read: fn(&Path, &Path) -> Result<NodeDataset, ReadError>,
}

const LAYOUTS: [Layout; 5] = [
    Layout { first: ".nodes.tsv", second: ".edges.tsv", named: true, read: plain::read },
    Layout { first: ".content", second: ".cites", named: true, read: linqs::read },
    Layout { first: "reddit_data.npz", second: "reddit_graph.npz", named: false, read: reddit::read },
    Layout { first: "nodes.csv", second: "edges.csv", named: false, read: edge_list::read },
    Layout { first: "nodes.tsv", second: "edges.tsv", named: false, read: edge_list::read },
];

/// Reads the graph at `path`: a directory with the files of one graph, or one of the files. Memory is about that of the
/// graph and, where edges are listed, 16 bytes for each of them.
///
/// Labels are below the number of classes and every class has a node, features are finite, edges join nodes that exist.
/// The split is the published one where the files have it, else 20 nodes per class train, 500 validate and 1,000 test,
/// chosen by a fixed seed.
///
/// # Errors
/// See [`ReadError`]: there is no known layout, a file is missing, or its content is wrong.
pub fn read(path: &Path) -> Result<NodeDataset, ReadError> {
    let metadata = std::fs::metadata(path).map_err(FileError::opening(path))?;
    let found = if metadata.is_dir() { in_directory(path)? } else { of_file(path) };
    let not_found = || ReadError::NotFound { path: path.to_owned(), looked_for: looked_for() };
    let Found { first, second, layout } = found.ok_or_else(not_found)?;
    for (missing, present) in [(&first, &second), (&second, &first)] {
        if !missing.exists() {
            return Err(ReadError::Incomplete { path: present.clone(), missing: missing.clone() });
        }
    }
    (layout.read)(&first, &second)
}

/// The files of a graph.
struct Found {
    first: PathBuf,
    second: PathBuf,
    layout: &'static Layout,
}

impl Found {
    fn complete(&self) -> bool {
        self.first.exists() && self.second.exists()
    }
}

/// The only graph of a directory. Without a whole one, half a graph counts, so that the error can name it.
fn in_directory(path: &Path) -> Result<Option<Found>, ReadError> {
    let open_error = FileError::opening(path);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path).map_err(&open_error)? {
        names.push(entry.map_err(&open_error)?.path());
    }
    names.sort();
    let mut found: Vec<Found> = Vec::new();
    for graph in names.iter().filter_map(|name| of_file(name)) {
        if found.iter().all(|known| known.first != graph.first) {
            found.push(graph);
        }
    }
    if found.iter().any(Found::complete) {
        found.retain(Found::complete);
    }
    if found.len() > 1 {
        let candidates: Vec<String> = found.iter().map(|graph| graph.first.display().to_string()).collect();
        return Err(ReadError::Ambiguous { path: path.to_owned(), candidates: candidates.join(", ") });
    }
    Ok(found.pop())
}

/// The graph that a file is part of, by its name.
fn of_file(path: &Path) -> Option<Found> {
    let name = path.file_name()?.to_str()?;
    LAYOUTS.iter().find_map(|layout| {
        let stem = [layout.first, layout.second].iter().find_map(|ending| name.strip_suffix(ending))?;
        // Layouts with a name need a stem, others must not have one.
        if layout.named == stem.is_empty() {
            return None;
        }
        let file = |ending: &str| path.with_file_name(format!("{stem}{ending}"));
        Some(Found { first: file(layout.first), second: file(layout.second), layout })
    })
}

fn looked_for() -> String {
    let pair = |layout: &Layout| {
        let name = if layout.named { "NAME" } else { "" };
        format!("{name}{} with {name}{}", layout.first, layout.second)
    };
    LAYOUTS.iter().map(pair).collect::<Vec<_>>().join("; ")
}

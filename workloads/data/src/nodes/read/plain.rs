//! Two plain text files: `NAME.nodes.tsv` with a line `node, label, split, word indices` per node (fields separated by
//! tabs, indices by blanks) and `NAME.edges.tsv` with a line `node, node` per undirected edge.
//!
//! Nodes are numbered from 0 in the order of the lines. The split is `train`, `val`, `test` or `-`. A label of -1 means
//! that nothing is known about the node: it gets class 0, as in PyTorch Geometric, and must not be in the split. A
//! first line such as `# ... (of 1433)` gives the number of words; without it, the highest index does.

use std::path::Path;
use std::sync::Arc;

use super::super::dataset::{Csr, Features, NodeDataset, Split};
use super::error::ReadError;
use super::lines::{Lines, shortened};
use super::table::{checked_classes, edges_of};

/// Most words that are supported: a wildly wrong index must not create a matrix that no memory holds.
const MOST_WORDS: usize = 1 << 24;

pub(super) fn read(nodes: &Path, edges: &Path) -> Result<NodeDataset, ReadError> {
    let table = Nodes::read(nodes)?;
    let count = table.labels.len();
    let edges = edges_of(
        &mut Lines::open(edges)?,
        &|text| text.parse::<u32>().ok().filter(|&node| (node as usize) < count),
        count,
    )?;
    Ok(NodeDataset {
        origin: nodes.display().to_string(),
        graph: Arc::new(Csr::symmetric(count, &edges)),
        features: Arc::new(table.words),
        classes: checked_classes(nodes, &table.labels)?,
        labels: Arc::new(table.labels),
        split: table.split,
    })
}

/// The content of the file of nodes.
struct Nodes {
    labels: Vec<u32>,
    split: Split,
    words: Features,
}

impl Nodes {
    fn read(path: &Path) -> Result<Self, ReadError> {
        let mut lines = Lines::open(path)?;
        let (mut labels, mut split) = (Vec::new(), Split::default());
        let (mut row_start, mut column, mut declared) = (vec![0], Vec::new(), None);
        while lines.advance()? {
            let text = lines.text()?;
            if let Some(comment) = text.strip_prefix('#') {
                declared = declared.or(words_declared(comment));
                if let Some(words) = declared.filter(|&words| words > MOST_WORDS) {
                    return Err(
                        lines.problem(format!("{words} words are declared; at most {MOST_WORDS} are supported"))
                    );
                }
                continue;
            }
            let fields: [&str; 4] = fields(&lines, text)?;
            let node = labels.len() as u32;
            if lines.number::<u32>(fields[0], "a node number")? != node {
                return Err(lines.problem(format!("expected node {node}, found {:?}", shortened(fields[0]))));
            }
            labels.push(label(&lines, &fields)?);
            assign(&lines, &mut split, fields[2], node)?;
            append_words(&lines, &mut column, fields[3], declared)?;
            row_start
                .push(u32::try_from(column.len()).map_err(|_| lines.problem("more words than 32 bits can count"))?);
        }
        if labels.is_empty() {
            return Err(ReadError::file(path, "expected lines of nodes, found none"));
        }
        let width = declared.unwrap_or_else(|| column.iter().max().map_or(0, |&highest| highest as usize + 1));
        let words = Features::Sparse { row_start, value: vec![1.0; column.len()], column, width };
        Ok(Self { labels, split, words })
    }
}

/// The number in `(of NUMBER)`.
fn words_declared(comment: &str) -> Option<usize> {
    let (_, rest) = comment.split_once("(of ")?;
    rest.split_once(')')?.0.trim().parse().ok()
}

/// Four fields, the last of which may be left out.
fn fields<'a>(lines: &Lines, text: &'a str) -> Result<[&'a str; 4], ReadError> {
    let found: Vec<&str> = text.split('\t').collect();
    match *found {
        [node, label, split] => Ok([node, label, split, ""]),
        [node, label, split, words] => Ok([node, label, split, words]),
        _ => {
            let problem =
                format!("expected 4 fields separated by tabs (node, label, split, words), found {}", found.len());
            Err(lines.problem(problem))
        }
    }
}

fn label(lines: &Lines, fields: &[&str; 4]) -> Result<u32, ReadError> {
    match lines.number::<i64>(fields[1], "a class number as label, or -1")? {
        -1 if matches!(fields[2].trim(), "-" | "") => Ok(0),
        -1 => Err(lines.problem(format!("a node without a label is {:?} in the split", shortened(fields[2])))),
        label => u32::try_from(label)
            .map_err(|_| lines.problem(format!("expected a class number from 0 as label, or -1, found {label}"))),
    }
}

/// Puts a node into the part of the split that a field names.
pub(super) fn assign(lines: &Lines, split: &mut Split, field: &str, node: u32) -> Result<(), ReadError> {
    match field.trim() {
        "train" => split.train.push(node),
        "val" | "validation" => split.validation.push(node),
        "test" => split.test.push(node),
        "-" | "" => (),
        other => {
            let problem = format!("expected train, val, test or - as split, found {:?}", shortened(other));
            return Err(lines.problem(problem));
        }
    }
    Ok(())
}

/// Appends the word indices of one node, ascending.
fn append_words(lines: &Lines, column: &mut Vec<u32>, field: &str, width: Option<usize>) -> Result<(), ReadError> {
    let row = column.len();
    for text in field.split_ascii_whitespace() {
        let word: u32 = lines.number(text, "the index of a word")?;
        let width = width.unwrap_or(MOST_WORDS);
        if word as usize >= width {
            return Err(lines.problem(format!("there is a word {word}, but only {width} words (numbered from 0)")));
        }
        column.push(word);
    }
    column[row..].sort_unstable();
    match column[row..].windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(lines.problem(format!("the word {} is listed twice", pair[0]))),
        None => Ok(()),
    }
}

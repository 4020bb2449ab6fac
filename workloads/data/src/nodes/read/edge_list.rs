//! A table of nodes and a list of edges: `nodes.csv` and `edges.csv`, or the same with `.tsv` and tabs.
//!
//! The table begins with a header `id,label,split,NAMES OF FEATURES...` (the column `split` may be left out); then each
//! node has a line: a name of any form, a class (a number or a name), `train`, `val`, `test` or `-`, and a number per
//! feature. The list begins with a header of two columns, then each undirected edge has a line with two names. Fields
//! are not quoted. Without the column `split`, 20 nodes per class train, 500 validate, 1,000 test, by a fixed seed.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::super::dataset::{Csr, Features, NodeDataset, Split};
use super::error::ReadError;
use super::lines::{Lines, shortened};
use super::plain::assign;
use super::table::{classes_by_name, edges_of, pair, seeded_split};

pub(super) fn read(nodes: &Path, edges: &Path) -> Result<NodeDataset, ReadError> {
    let table = Table::read(nodes)?;
    let edges = list(edges, &table.numbers)?;
    let (labels, classes) = classes_by_name(&table.classes);
    Ok(NodeDataset {
        origin: nodes.display().to_string(),
        graph: Arc::new(Csr::symmetric(labels.len(), &edges)),
        features: Arc::new(Features::Dense { values: table.values.into(), width: table.width }),
        split: table.split.unwrap_or_else(|| seeded_split(&labels, classes)),
        labels: Arc::new(labels),
        classes,
    })
}

/// The content of the table of nodes.
struct Table {
    numbers: HashMap<String, u32>,
    classes: Vec<String>,
    split: Option<Split>,
    values: Vec<f32>,
    width: usize,
}

impl Table {
    fn read(path: &Path) -> Result<Self, ReadError> {
        let mut lines = Lines::open(path)?;
        if !lines.advance()? {
            return Err(ReadError::file(path, "expected a header (id,label,split,features...), found an empty file"));
        }
        let separator = if lines.text()?.contains('\t') { '\t' } else { ',' };
        let header: Vec<&str> = lines.text()?.split(separator).map(str::trim).collect();
        let columns = header.len();
        let first_feature = match *header {
            ["id", "label", "split", ..] => 3,
            ["id", "label", ..] => 2,
            _ => {
                let found = shortened(lines.text()?);
                return Err(lines.problem(format!("expected a header id,label,split,features..., found {found:?}")));
            }
        };
        let mut table = Self {
            numbers: HashMap::new(),
            classes: Vec::new(),
            split: (first_feature == 3).then(Split::default),
            values: Vec::new(),
            width: columns - first_feature,
        };
        while lines.advance()? {
            let fields: Vec<&str> = lines.text()?.split(separator).map(str::trim).collect();
            if fields.len() != columns {
                return Err(
                    lines.problem(format!("expected {columns} fields as in the header, found {}", fields.len()))
                );
            }
            table.append(&lines, &fields, first_feature)?;
        }
        if table.classes.is_empty() {
            return Err(ReadError::file(path, "expected lines of nodes after the header, found none"));
        }
        Ok(table)
    }

    fn append(&mut self, lines: &Lines, fields: &[&str], first_feature: usize) -> Result<(), ReadError> {
        let node = self.classes.len() as u32;
        if fields[0].is_empty() || fields[1].is_empty() {
            return Err(lines.problem("expected an id and a label, found an empty field"));
        }
        if self.numbers.insert(fields[0].to_owned(), node).is_some() {
            return Err(lines.problem(format!("the node {:?} is listed twice", shortened(fields[0]))));
        }
        self.classes.push(fields[1].to_owned());
        if let Some(split) = &mut self.split {
            assign(lines, split, fields[2], node)?;
        }
        for (feature, text) in fields[first_feature..].iter().enumerate() {
            let value: f32 = lines.number(text, "a number as feature")?;
            if !value.is_finite() {
                return Err(lines.problem(format!("expected a finite number as feature {feature}, found {text}")));
            }
            self.values.push(value);
        }
        Ok(())
    }
}

/// The edges by the numbers of their nodes.
fn list(path: &Path, numbers: &HashMap<String, u32>) -> Result<Vec<(u32, u32)>, ReadError> {
    let mut lines = Lines::open(path)?;
    if !lines.advance()? {
        return Err(ReadError::file(path, "expected a header of two columns, found an empty file"));
    }
    let (from, to) = pair(&lines, lines.text()?)?;
    if numbers.contains_key(from) && numbers.contains_key(to) {
        return Err(lines.problem("expected a header of two columns (source,target), found an edge"));
    }
    edges_of(&mut lines, &|name| numbers.get(name).copied(), numbers.len())
}

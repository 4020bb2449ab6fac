//! Reddit as DGL ships it: `reddit_data.npz` (feature `[nodes, width]`, label `[nodes]`, node_types `[nodes]`: 1 train,
//! 2 validation, 3 test) and `reddit_graph.npz` (a SciPy matrix in COO form: row, col, shape).
//!
//! The edges are taken as they are, from row to column: the file holds both directions of each, no loops and no
//! duplicates. The values of the matrix (`data`) are not read; they are all 1.

use std::path::Path;
use std::sync::Arc;

use super::super::dataset::{Csr, Features, NodeDataset, Split};
use super::error::ReadError;
use super::npz::{Array, Npz};
use super::table::checked_classes;

pub(super) fn read(data: &Path, graph: &Path) -> Result<NodeDataset, ReadError> {
    let mut npz = Npz::open(data)?;
    let (values, width) = features(&mut npz)?;
    let nodes = values.len().checked_div(width).unwrap_or(0);
    let labels = per_node(&mut npz, "label", nodes)?;
    let split = split(&mut npz, nodes)?;
    Ok(NodeDataset {
        origin: data.display().to_string(),
        graph: Arc::new(edges(graph, nodes)?),
        features: Arc::new(Features::Dense { values: values.into(), width }),
        classes: checked_classes(data, &labels)?,
        labels: Arc::new(labels),
        split,
    })
}

fn features(npz: &mut Npz) -> Result<(Vec<f32>, usize), ReadError> {
    let Array { values, shape } = npz.read::<f32>("feature")?;
    let width = match *shape {
        [nodes, width] if nodes > 0 && width > 0 => width,
        _ => return Err(npz.problem("feature", format!("expected the shape [nodes, features], found {shape:?}"))),
    };
    match values.iter().position(|value| !value.is_finite()) {
        Some(place) => {
            let (node, feature, value) = (place / width, place % width, values[place]);
            Err(npz
                .problem("feature", format!("feature {feature} of node {node} is {value}; expected a finite number")))
        }
        None => Ok((values, width)),
    }
}

/// An array of one integer per node.
fn per_node(npz: &mut Npz, name: &str, nodes: usize) -> Result<Vec<u32>, ReadError> {
    let Array { values, shape } = npz.read::<u32>(name)?;
    if *shape != [nodes] {
        return Err(
            npz.problem(name, format!("expected the shape [{nodes}], one for each row of feature, found {shape:?}"))
        );
    }
    Ok(values)
}

fn split(npz: &mut Npz, nodes: usize) -> Result<Split, ReadError> {
    let mut split = Split::default();
    for (node, kind) in (0..).zip(per_node(npz, "node_types", nodes)?) {
        match kind {
            1 => split.train.push(node),
            2 => split.validation.push(node),
            3 => split.test.push(node),
            other => {
                let problem = format!("expected 1 (train), 2 (validation) or 3 (test), found {other} for node {node}");
                return Err(npz.problem("node_types", problem));
            }
        }
    }
    Ok(split)
}

fn edges(path: &Path, nodes: usize) -> Result<Csr, ReadError> {
    let mut npz = Npz::open(path)?;
    let shape = npz.read::<u32>("shape")?.values;
    if *shape != [nodes as u32; 2] {
        return Err(npz.problem("shape", format!("expected [{nodes}, {nodes}] for {nodes} nodes, found {shape:?}")));
    }
    let row = npz.read::<u32>("row")?;
    let col = npz.read::<u32>("col")?;
    if row.shape.len() != 1 || row.shape != col.shape {
        let problem = format!("expected the shape of row, which is {:?}, found {:?}", row.shape, col.shape);
        return Err(npz.problem("col", problem));
    }
    Csr::from_columns(nodes, &row.values, &col.values).map_err(|error| ReadError::file(path, error.to_string()))
}

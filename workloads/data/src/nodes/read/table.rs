//! The common part of the text layouts: edges as pairs of names, classes, and a split if none is given.

use std::collections::BTreeMap;
use std::path::Path;

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;

use super::super::dataset::Split;
use super::error::ReadError;
use super::lines::{Lines, shortened};

/// The edges of the lines that follow, two nodes on each, apart by a tab, a comma or blanks. `node_of` finds a node by
/// its name. Lines that begin with `#` are comments.
pub(super) fn edges_of(
    lines: &mut Lines,
    node_of: &dyn Fn(&str) -> Option<u32>,
    nodes: usize,
) -> Result<Vec<(u32, u32)>, ReadError> {
    let mut edges = Vec::new();
    while lines.advance()? {
        let text = lines.text()?;
        if text.starts_with('#') {
            continue;
        }
        let (from, to) = pair(lines, text)?;
        let known = |name: &str| {
            let problem = || format!("{:?} is not one of the graph's {nodes} nodes", shortened(name));
            node_of(name).ok_or_else(|| lines.problem(problem()))
        };
        edges.push((known(from)?, known(to)?));
        check_count(lines, edges.len())?;
    }
    Ok(edges)
}

/// The two fields of a line.
pub(super) fn pair<'a>(lines: &Lines, text: &'a str) -> Result<(&'a str, &'a str), ReadError> {
    let separator = |letter: char| matches!(letter, '\t' | ',' | ' ');
    let mut fields = text.split(separator).map(str::trim).filter(|field| !field.is_empty());
    match (fields.next(), fields.next(), fields.next()) {
        (Some(from), Some(to), None) => Ok((from, to)),
        _ => Err(lines.problem(format!("expected two nodes, found {:?}", shortened(text)))),
    }
}

/// Both directions of every edge must fit 32-bit positions.
pub(super) fn check_count(lines: &Lines, edges: usize) -> Result<(), ReadError> {
    const MOST: usize = u32::MAX as usize / 2;
    if edges > MOST {
        return Err(lines.problem(format!("more than {MOST} undirected edges")));
    }
    Ok(())
}

/// The number of classes: they are numbered from 0 and each has a node. That also detects a column that is not the
/// label.
pub(super) fn checked_classes(path: &Path, labels: &[u32]) -> Result<usize, ReadError> {
    let classes = labels.iter().max().map_or(0, |&highest| highest as usize + 1);
    let mut present = vec![false; classes.min(labels.len())];
    for &label in labels {
        if let Some(present) = present.get_mut(label as usize) {
            *present = true;
        }
    }
    match present.iter().position(|present| !present).or((classes > present.len()).then_some(present.len())) {
        Some(missing) => {
            let problem =
                format!("there is a class {}, but no node of class {missing}; number classes from 0", classes - 1);
            Err(ReadError::file(path, problem))
        }
        None => Ok(classes),
    }
}

/// Classes of nodes by the names of their labels. Names are numbered in their order, as numbers where all are.
pub(super) fn classes_by_name(names: &[String]) -> (Vec<u32>, usize) {
    let as_number = |name: &String| name.parse::<i64>().ok();
    let all_numbers = names.iter().all(|name| as_number(name).is_some());
    let key = |name: &String| (as_number(name).filter(|_| all_numbers), name.clone());
    let mut classes: BTreeMap<_, u32> = names.iter().map(|name| (key(name), 0)).collect();
    for (number, class) in classes.values_mut().enumerate() {
        *class = number as u32;
    }
    (names.iter().map(|name| classes[&key(name)]).collect(), classes.len())
}

/// A split for data that come without one, of the sizes Planetoid uses: 20 nodes of each class train, 500 validate and
/// 1,000 test, chosen by a fixed seed. Of small graphs at most half of a class trains, and a third of the rest validates.
pub(super) fn seeded_split(labels: &[u32], classes: usize) -> Split {
    const SEED: u64 = 1;
    const TRAIN_PER_CLASS: usize = 20;
    const VALIDATION: usize = 500;
    const TEST: usize = 1_000;
    let mut order: Vec<u32> = (0..labels.len() as u32).collect();
    order.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(SEED));
    let mut wanted = vec![0; classes];
    labels.iter().for_each(|&label| wanted[label as usize] += 1);
    wanted.iter_mut().for_each(|size: &mut usize| *size = size.div_ceil(2).min(TRAIN_PER_CLASS));
    let (mut train, mut rest) = (Vec::new(), Vec::new());
    for node in order {
        let wanted = &mut wanted[labels[node as usize] as usize];
        if *wanted > 0 {
            *wanted -= 1;
            train.push(node);
        } else {
            rest.push(node);
        }
    }
    let (validation, test) = rest.split_at(VALIDATION.min(rest.len() / 3));
    let mut split = Split { train, validation: validation.to_vec(), test: test[..TEST.min(test.len())].to_vec() };
    for part in [&mut split.train, &mut split.validation, &mut split.test] {
        part.sort_unstable();
    }
    split
}

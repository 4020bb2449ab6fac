//! The layout of the LINQS group: `NAME.content` with a line `paper, words..., class` per node (fields separated by
//! tabs or blanks, each word 0 or 1) and `NAME.cites` with a line `cited paper, citing paper` per citation.
//!
//! Papers have names of any form and are numbered in the order of the lines; classes are numbered in the order of their
//! names. Citations to papers without content, which LINQS's Citeseer has, are skipped and counted in the origin. There
//! is no published split: 20 nodes per class train, 500 validate, 1,000 test, by a fixed seed.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::super::dataset::{Csr, Features, NodeDataset};
use super::error::ReadError;
use super::lines::{Lines, shortened};
use super::table::{check_count, classes_by_name, pair, seeded_split};

pub(super) fn read(content: &Path, cites: &Path) -> Result<NodeDataset, ReadError> {
    let papers = Papers::read(content)?;
    let (edges, unknown) = citations(cites, &papers.numbers)?;
    let (labels, classes) = classes_by_name(&papers.classes);
    let left_out =
        if unknown == 0 { String::new() } else { format!(" ({unknown} citations of unknown papers skipped)") };
    Ok(NodeDataset {
        origin: format!("{}{left_out}", content.display()),
        graph: Arc::new(Csr::symmetric(labels.len(), &edges)),
        features: Arc::new(papers.words),
        split: seeded_split(&labels, classes),
        labels: Arc::new(labels),
        classes,
    })
}

/// The content of the file of papers.
struct Papers {
    numbers: HashMap<String, u32>,
    classes: Vec<String>,
    words: Features,
}

impl Papers {
    fn read(path: &Path) -> Result<Self, ReadError> {
        let mut lines = Lines::open(path)?;
        let (mut numbers, mut classes) = (HashMap::new(), Vec::new());
        let (mut row_start, mut column, mut width) = (vec![0], Vec::new(), None);
        while lines.advance()? {
            let fields: Vec<&str> = lines.text()?.split_ascii_whitespace().collect();
            let [paper, words @ .., class] = &*fields else {
                return Err(lines.problem("expected a paper, its words (0 or 1 each) and its class, found one field"));
            };
            let width = *width.get_or_insert(words.len());
            if words.len() != width {
                return Err(lines.problem(format!("expected {width} words as before, found {}", words.len())));
            }
            if numbers.insert((*paper).to_owned(), classes.len() as u32).is_some() {
                return Err(lines.problem(format!("the paper {:?} is listed twice", shortened(paper))));
            }
            append_words(&lines, &mut column, words)?;
            row_start
                .push(u32::try_from(column.len()).map_err(|_| lines.problem("more words than 32 bits can count"))?);
            classes.push((*class).to_owned());
        }
        let Some(width) = width else {
            return Err(ReadError::file(path, "expected lines of papers, found none"));
        };
        let words = Features::Sparse { row_start, value: vec![1.0; column.len()], column, width };
        Ok(Self { numbers, classes, words })
    }
}

fn append_words(lines: &Lines, column: &mut Vec<u32>, words: &[&str]) -> Result<(), ReadError> {
    for (word, mark) in words.iter().enumerate() {
        match *mark {
            "0" => (),
            "1" => column.push(word as u32),
            other => {
                let problem = format!("expected 0 or 1 for word {word}, found {:?}", shortened(other));
                return Err(lines.problem(problem));
            }
        }
    }
    Ok(())
}

/// The citations between known papers, and the number of others.
fn citations(path: &Path, numbers: &HashMap<String, u32>) -> Result<(Vec<(u32, u32)>, usize), ReadError> {
    let mut lines = Lines::open(path)?;
    let (mut edges, mut unknown) = (Vec::new(), 0);
    while lines.advance()? {
        let (cited, citing) = pair(&lines, lines.text()?)?;
        match (numbers.get(cited), numbers.get(citing)) {
            (Some(&cited), Some(&citing)) => edges.push((citing, cited)),
            _ => unknown += 1,
        }
        check_count(&lines, edges.len())?;
    }
    if edges.is_empty() && unknown > 0 {
        let problem =
            format!("none of the {unknown} citations joins papers of the content file; do the files belong together?");
        return Err(ReadError::file(path, problem));
    }
    Ok((edges, unknown))
}

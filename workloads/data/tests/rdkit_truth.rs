//! The SMILES reader against features that RDKit computed for the same molecules.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gnntop_data::graph::Graph;
use gnntop_data::molecule::{ATOM_FEATURES, SmilesError, from_smiles};

use crate::shared::shared;

fn data(name: &str) -> PathBuf {
    shared("data").join(name)
}

const FEATURES: [&str; ATOM_FEATURES] =
    ["atomic number", "chirality", "degree", "charge", "hydrogens", "radicals", "hybridisation", "aromatic", "ring"];

fn column(path: &PathBuf, name: &str) -> Vec<String> {
    let mut reader = csv::Reader::from_path(path).unwrap();
    let index = reader.headers().unwrap().iter().position(|header| header == name).unwrap();
    reader.records().map(|record| record.unwrap()[index].to_owned()).collect()
}

/// Atoms, directed edges and the nine column sums: a row of `rdkit_expected_*.csv` without its number.
fn summary(graph: &Result<Graph, SmilesError>) -> Vec<i64> {
    let mut row = vec![0; 2 + ATOM_FEATURES];
    if let Ok(graph) = graph {
        row[0] = graph.nodes as i64;
        row[1] = graph.edges.len() as i64;
        for (value, &feature) in graph.features.iter().enumerate() {
            row[2 + value % ATOM_FEATURES] += feature as i64;
        }
    }
    row
}

/// Compares every row, prints what disagrees, and returns the share that agrees in all eleven figures.
fn agreement(smiles: &[String], expected: &PathBuf) -> f64 {
    let mut differing: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut reader = csv::Reader::from_path(expected).unwrap();
    let mut agreeing = 0;
    let mut rows = 0;
    for record in reader.records() {
        let record: Vec<i64> = record.unwrap().iter().map(|field| field.parse().unwrap()).collect();
        let text = &smiles[usize::try_from(record[0]).unwrap()];
        let graph = from_smiles(text, 0.0);
        let actual = summary(&graph);
        rows += 1;
        if actual == record[1..] {
            agreeing += 1;
        } else {
            let what = match &graph {
                Err(error) => error.to_string(),
                Ok(_) if record[1] == 0 => "RDKit refuses it".to_owned(),
                Ok(_) if actual[..2] != record[1..3] => "atoms or edges".to_owned(),
                Ok(_) => {
                    let wrong = (0..ATOM_FEATURES).filter(|&feature| actual[2 + feature] != record[3 + feature]);
                    wrong.map(|feature| FEATURES[feature]).collect::<Vec<_>>().join(", ")
                }
            };
            differing.entry(what).or_default().push(text.clone());
        }
    }
    let share = agreeing as f64 / rows as f64;
    println!("{}: {agreeing} of {rows} rows agree, {:.3} %", expected.display(), share * 100.0);
    for (what, rows) in differing {
        println!("  {} rows differ in {what}, such as {}", rows.len(), rows[..rows.len().min(4)].join("  "));
    }
    share
}

fn check(file: &str, header: &str, expected: &str, floor: f64) {
    let [file, expected] = [file, expected].map(data);
    let share = agreement(&column(&file, header), &expected);
    assert!(share >= floor, "{:.4} % agree, at least {:.4} % before", share * 100.0, floor * 100.0);
}

#[test]
#[cfg_attr(not(shared_data), ignore = "needs data sets beside the repository: CONTRIBUTING.md")]
fn homolumo_agrees() {
    check("homolumo16k/data.csv", "smiles", "homolumo16k/rdkit_expected_all.csv", 1.0);
}

#[test]
#[cfg_attr(not(shared_data), ignore = "needs data sets beside the repository: CONTRIBUTING.md")]
fn esol_agrees() {
    check("moleculenet/ESOL_delaney-processed.csv", "smiles", "moleculenet/rdkit_expected_ESOL.csv", 0.999);
}

#[test]
#[cfg_attr(not(shared_data), ignore = "needs data sets beside the repository: CONTRIBUTING.md")]
fn freesolv_agrees() {
    check("moleculenet/FreeSolv_SAMPL.csv", "smiles", "moleculenet/rdkit_expected_FreeSolv.csv", 1.0);
}

/// Where RDKit's answer for the set is known as totals only.
#[test]
#[cfg_attr(not(shared_data), ignore = "needs data sets beside the repository: CONTRIBUTING.md")]
fn lipophilicity_totals_agree() {
    let path = data("moleculenet/Lipophilicity.csv");
    let graphs: Vec<Graph> = column(&path, "smiles").iter().map(|text| from_smiles(text, 0.0).unwrap()).collect();
    assert_eq!(graphs.len(), 4_200);
    assert_eq!(graphs.iter().map(|graph| graph.nodes).sum::<usize>(), 113_568);
    assert_eq!(graphs.iter().map(|graph| graph.edges.len()).sum::<usize>(), 247_798);
}

/// The complete feature matrices and edge lists, atom by atom.
#[test]
#[cfg_attr(not(shared_data), ignore = "needs data sets beside the repository: CONTRIBUTING.md")]
fn full_matrices_agree() {
    for file in
        ["homolumo16k/rdkit_expected_all", "moleculenet/rdkit_expected_ESOL", "moleculenet/rdkit_expected_FreeSolv"]
    {
        let path = data(&format!("{file}.full.json"));
        let rows: Vec<serde_json::Value> = serde_json::from_reader(std::fs::File::open(path).unwrap()).unwrap();
        let mut agreeing = 0;
        for row in &rows {
            let text = row["smiles"].as_str().unwrap();
            let graph = from_smiles(text, 0.0).unwrap();
            let number = |value: &serde_json::Value| value.as_i64().unwrap();
            let x: Vec<i64> =
                row["x"].as_array().unwrap().iter().flat_map(|atom| atom.as_array().unwrap()).map(number).collect();
            let edges: Vec<(u32, u32)> = row["edges"]
                .as_array()
                .unwrap()
                .iter()
                .map(|edge| (number(&edge[0]) as u32, number(&edge[1]) as u32))
                .collect();
            let same = graph.edges == edges && graph.features.iter().map(|&code| code as i64).eq(x);
            if !same {
                println!("  differs: {text}");
            }
            agreeing += usize::from(same);
        }
        println!("{file}: {agreeing} of {} complete matrices agree", rows.len());
        assert!(agreeing as f64 >= 0.99 * rows.len() as f64);
    }
}

/// 41,127 molecules with metals, many fragments and odd valences: each is read or refused with a reason.
#[test]
#[cfg_attr(not(shared_data), ignore = "needs data sets beside the repository: CONTRIBUTING.md")]
fn hiv_is_read_or_refused() {
    let path = data("moleculenet/HIV.csv");
    let smiles = column(&path, "smiles");
    let mut refused = BTreeMap::new();
    for text in &smiles {
        match from_smiles(text, 0.0) {
            Ok(graph) => assert!(graph.nodes > 0),
            Err(error) => *refused.entry(error.to_string()).or_insert(0) += 1,
        }
    }
    let count: usize = refused.values().sum();
    println!("HIV: {count} of {} rows refused: {refused:?}", smiles.len());
    assert!(count <= 10, "{count} of {} rows refused", smiles.len());
}

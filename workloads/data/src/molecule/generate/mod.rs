//! Molecules generated from a seed, with the statistics of PCQM4Mv2's first 10,000 rows: on average 13.86 atoms and
//! 28.70 directed edges per graph, rings and aromatic rings, valid valences. They stand in if no data set is at hand.
//!
//! The target follows the structure by a formula ([`gap_ev`]) with some noise, in the range of real HOMO-LUMO gaps
//! (mean 5.7, standard deviation 1.5 eV), so that a model can learn it. It is not chemistry.

mod grow;
mod templates;
mod write;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use self::grow::{NITROGEN, OXYGEN, grow};
use self::write::write;
use super::csv::MoleculeSet;
use super::features::graph_of;
use super::structure::Structure;
use crate::graph::Graph;

/// Mean and standard deviation of the number of atoms before rounding, and its bounds.
const ATOMS_MEAN: f64 = 13.86;
const ATOMS_DEVIATION: f64 = 2.9;
const ATOMS_BOUNDS: (f64, f64) = (2.0, 26.0);

/// Noise on the target, standard deviation in eV.
const NOISE_EV: f64 = 0.25;

/// A generated molecule.
#[derive(Debug, Clone, PartialEq)]
pub struct GeneratedMolecule {
    /// Its SMILES; [`super::from_smiles`] reads it as the same graph.
    pub smiles: String,
    /// Its graph; `y` is the gap in eV.
    pub graph: Graph,
}

/// The molecule at a position of the endless sequence of `seed`.
#[must_use]
pub fn generated_molecule(seed: u64, index: u64) -> GeneratedMolecule {
    let mut random = StdRng::seed_from_u64(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ index);
    let size = (ATOMS_MEAN + ATOMS_DEVIATION * normal(&mut random)).round().clamp(ATOMS_BOUNDS.0, ATOMS_BOUNDS.1);
    let (smiles, structure) = write(&grow(&mut random, size as usize));
    let gap = gap_ev(&structure) + NOISE_EV * normal(&mut random);
    GeneratedMolecule { smiles, graph: graph_of(&structure, gap as f32) }
}

/// The first `count` molecules of a seed.
#[must_use]
pub fn generate(seed: u64, count: usize) -> MoleculeSet {
    let graphs = (0..count as u64).map(|index| generated_molecule(seed, index).graph).collect();
    MoleculeSet { graphs, source: format!("generated, seed {seed}"), ..MoleculeSet::default() }
}

/// The generated gap: it falls with the extent of the pi system, as in real molecules, and a little with N and O.
fn gap_ev(structure: &Structure) -> f64 {
    let count = |atoms: &dyn Fn(usize) -> bool| (0..structure.atoms.len()).filter(|&atom| atoms(atom)).count() as f64;
    let unsaturated = count(&|atom| structure.bonds_of(atom).any(|bond| bond.is_multiple()));
    let nitrogens = count(&|atom| structure.atoms[atom].atomic_number == NITROGEN);
    let oxygens = count(&|atom| structure.atoms[atom].atomic_number == OXYGEN);
    let nitro = count(&|atom| structure.atoms[atom].charge > 0);
    9.15 - 1.38 * unsaturated.sqrt() - 0.15 * nitrogens - 0.05 * oxygens - 1.0 * nitro
}

/// A sample of the standard normal distribution, as the sum of twelve uniform ones.
fn normal(random: &mut StdRng) -> f64 {
    (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0
}

#[cfg(test)]
mod tests {
    use super::super::elements::valences;
    use super::super::smiles::from_smiles;
    use super::*;
    use crate::graph::in_degree_histogram;

    const MANY: usize = 10_000;

    #[test]
    fn the_means_are_those_of_the_data_set() {
        let set = generate(1, MANY);
        let mean = |total: usize| total as f64 / MANY as f64;
        let atoms = mean(set.graphs.iter().map(|graph| graph.nodes).sum());
        let edges = mean(set.graphs.iter().map(|graph| graph.edges.len()).sum());
        println!("{atoms} atoms, {edges} edges");
        assert!((atoms / 13.86 - 1.0).abs() < 0.015, "{atoms} atoms");
        assert!((edges / 28.70 - 1.0).abs() < 0.015, "{edges} edges");
    }

    #[test]
    fn the_target_has_the_spread_of_real_gaps() {
        let set = generate(2, MANY);
        let mean = set.graphs.iter().map(|graph| f64::from(graph.y)).sum::<f64>() / MANY as f64;
        let variance = set.graphs.iter().map(|graph| (f64::from(graph.y) - mean).powi(2)).sum::<f64>() / MANY as f64;
        let least = set.graphs.iter().map(|graph| graph.y).fold(f32::MAX, f32::min);
        println!("gap {mean} sd {} least {least}", variance.sqrt());
        assert!((mean - 5.7).abs() < 0.1, "mean {mean}");
        assert!((variance.sqrt() - 1.5).abs() < 0.1, "deviation {}", variance.sqrt());
        assert!(least > 0.5, "least {least}");
    }

    #[test]
    fn degrees_are_those_of_molecules() {
        // Shares of 1, 2, 3 and 4 neighbours among 10,000 real molecules.
        let real = [0.244, 0.467, 0.267, 0.022];
        let histogram = in_degree_histogram(&generate(3, MANY).graphs);
        let total: u64 = histogram.iter().sum();
        let shares: Vec<f64> = histogram.iter().map(|&count| count as f64 / total as f64).collect();
        println!("{shares:?}");
        assert_eq!(shares.len(), 5);
        assert_eq!(histogram[0], 0);
        for (share, real) in shares[1..].iter().zip(real) {
            assert!((share - real).abs() < 0.03, "{shares:?}");
        }
    }

    #[test]
    fn every_atom_keeps_its_valence_and_every_graph_is_connected() {
        for index in 0..3_000 {
            let mut random = StdRng::seed_from_u64(index);
            let structure = grow(&mut random, 2 + index as usize % 25);
            for (atom, described) in structure.atoms.iter().enumerate() {
                let valence = valences(described.atomic_number)[0] + i32::from(described.charge);
                assert_eq!(structure.total_valence(atom), valence, "atom {atom} of molecule {index}");
            }
            let mut reached = vec![false; structure.atoms.len()];
            let mut open = vec![0];
            while let Some(atom) = open.pop() {
                if !std::mem::replace(&mut reached[atom], true) {
                    open.extend(structure.bonds_of(atom).map(|bond| bond.other(atom)));
                }
            }
            assert!(!reached.contains(&false), "molecule {index} is not connected");
            assert_eq!(structure.atoms.len(), 2 + index as usize % 25);
        }
    }

    #[test]
    fn reading_the_smiles_back_gives_the_same_graph() {
        for index in 0..3_000 {
            let molecule = generated_molecule(4, index);
            let read = from_smiles(&molecule.smiles, molecule.graph.y);
            assert_eq!(read.as_ref(), Ok(&molecule.graph), "{}", molecule.smiles);
        }
    }

    #[test]
    fn a_seed_stands_for_its_molecules() {
        assert_eq!(generate(5, 50), generate(5, 50));
        assert_eq!(generate(5, 50).graphs[..20], generate(5, 20).graphs[..]);
        assert_ne!(generate(5, 50).graphs, generate(6, 50).graphs);
    }

    #[test]
    fn rings_hetero_atoms_and_charges_occur() {
        let set = generate(7, 2_000);
        let share = |feature: usize, holds: &dyn Fn(f32) -> bool| {
            let atoms = set.graphs.iter().flat_map(|graph| graph.features.chunks(9));
            let (held, total) =
                atoms.fold((0, 0), |(held, total), atom| (held + usize::from(holds(atom[feature])), total + 1));
            held as f64 / f64::from(total)
        };
        assert!((0.6..0.85).contains(&share(0, &|element| element == 6.0)), "carbon");
        assert!((0.3..0.6).contains(&share(7, &|aromatic| aromatic == 1.0)), "aromatic");
        assert!((0.4..0.75).contains(&share(8, &|ring| ring == 1.0)), "in a ring");
        assert!(share(3, &|charge| charge == 6.0) > 0.001, "positive");
    }
}

//! SMILES text to graphs, as PyTorch Geometric's `from_smiles` makes them from RDKit.
//!
//! The `smiles-rs` crate parses, localises aromatic bonds, and perceives aromaticity by RDKit's default model.
//! RDKit's sanitisation has more steps, written here on top: charge clean-up ([`super::cleanup`]), the valence
//! check, removal of explicit hydrogens, the orientation of stereo centres; and the features themselves in
//! [`super::features`]. Hydrogens stay implicit.
//!
//! Known differences from RDKit: wildcard atoms (`*`) are refused; bonds between metals and over-full non-metals stay
//! covalent instead of becoming dative; and since aromaticity is perceived before charges are separated, a ring with an
//! N written with five bonds (`C1=CC=CN(=O)=C1` for pyridine N-oxide) does not come out as aromatic.

use smiles_rs::atom::bracketed::chirality::Chirality;
use smiles_rs::bond::Bond as ParsedBond;
use smiles_rs::{KekulizationError, Smiles};
use thiserror::Error;

use super::cleanup::separate_charges;
use super::elements::{highest_valence, is_metal};
use super::features::graph_of;
use super::structure::{ANTICLOCKWISE, Atom, Bond, CLOCKWISE, OTHER_CHIRALITY, Structure};
use crate::graph::Graph;

/// Longest SMILES text that is read, in bytes. The longest molecule of the usual data sets is a tenth of it; the
/// bound keeps a damaged file from costing minutes in ring perception.
pub const LONGEST_SMILES_BYTES: usize = 4096;

/// Why a SMILES text is not a molecule.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SmilesError {
    /// There is no text.
    #[error("the SMILES is empty")]
    Empty,
    /// Longer than [`LONGEST_SMILES_BYTES`].
    #[error("the SMILES has {bytes} bytes; at most {LONGEST_SMILES_BYTES} are read")]
    TooLong {
        /// Length found.
        bytes: usize,
    },
    /// Not SMILES.
    #[error("not SMILES: {0}")]
    Syntax(String),
    /// Aromatic atoms that no alternation of single and double bonds satisfies.
    #[error("aromatic bonds cannot be localised: {0}")]
    Aromaticity(String),
    /// An atom with more bonds than its element and charge allow.
    #[error("atom {atom} (element {atomic_number}, charge {charge}) has valence {valence}, at most {allowed} allowed")]
    Valence {
        /// Position of the atom in the SMILES, from 0.
        atom: usize,
        /// Its atomic number.
        atomic_number: u8,
        /// Its formal charge.
        charge: i8,
        /// Sum of its bond orders, hydrogens included.
        valence: i32,
        /// Highest valence allowed.
        allowed: i32,
    },
}

/// Reads one SMILES text, surrounded by blanks or not, as a graph with [`super::ATOM_FEATURES`] features per atom and
/// target `y`.
///
/// # Errors
/// The text is empty, too long, not SMILES, or not a molecule whose valences work out; see [`SmilesError`].
pub fn from_smiles(smiles: &str, y: f32) -> Result<Graph, SmilesError> {
    let structure = structure_of(smiles.trim())?;
    Ok(graph_of(&structure, y))
}

fn structure_of(smiles: &str) -> Result<Structure, SmilesError> {
    if smiles.is_empty() {
        return Err(SmilesError::Empty);
    }
    if smiles.len() > LONGEST_SMILES_BYTES {
        return Err(SmilesError::TooLong { bytes: smiles.len() });
    }
    let parsed = Smiles::from_str(smiles).map_err(|error| SmilesError::Syntax(error.to_string()))?;
    let mut structure = localised(&parsed)?;
    separate_charges(&mut structure);
    check_valences(&structure)?;
    Ok(without_hydrogen_atoms(structure))
}

/// Atoms and Kekulé bonds, with aromatic atoms and bonds marked by RDKit's default model.
fn localised(parsed: &Smiles) -> Result<Structure, SmilesError> {
    let kekulised = if parsed.nodes().iter().any(|atom| atom.aromatic()) { kekule_form(parsed)? } else { None };
    let molecule = kekulised.as_ref().unwrap_or(parsed);
    let perceived = molecule.aromaticity_assignment();
    let mut atoms: Vec<Atom> = (0..parsed.nodes().len()).map(|index| atom_of(parsed, index)).collect();
    for &atom in perceived.atom_ids() {
        atoms[atom].aromatic = true;
    }
    let mut bonds = Vec::with_capacity(molecule.number_of_bonds());
    for atom in 0..atoms.len() {
        for edge in molecule.edges_for_node(atom) {
            let [from, to] = edge.endpoints();
            let other = if from == atom { to } else { from };
            if other > atom {
                let aromatic = atoms[atom].aromatic && atoms[other].aromatic && perceived.contains_edge(atom, other);
                bonds.push(Bond { atoms: [atom as u32, other as u32], order: order_of(edge.bond()), aromatic });
            }
        }
    }
    Ok(Structure::new(atoms, bonds))
}

/// Single and double bonds in place of aromatic ones. `None` if the molecule stays as written: no atom of it can take a
/// double bond within the ring (isocyanuric acid as `c1(=O)[nH]c(=O)[nH]c(=O)[nH]1`), so all are single.
fn kekule_form(parsed: &Smiles) -> Result<Option<Smiles>, SmilesError> {
    match parsed.kekulize() {
        Ok(kekulised) => Ok(Some(kekulised)),
        Err(KekulizationError::NoPerfectMatching { candidate_atom_count: 0 }) => Ok(None),
        Err(error) => Err(SmilesError::Aromaticity(error.to_string())),
    }
}

fn atom_of(parsed: &Smiles, index: usize) -> Atom {
    let atom = &parsed.nodes()[index];
    Atom {
        atomic_number: atom.element().map_or(0, u8::from),
        charge: atom.charge_value(),
        hydrogens: atom.hydrogen_count().saturating_add(parsed.implicit_hydrogen_count(index)),
        bracketed: atom.is_bracket_atom(),
        aromatic: false,
        chirality: atom.chirality().map_or(0, |mark| chirality_of(parsed, index, mark)),
    }
}

fn order_of(bond: ParsedBond) -> u8 {
    match bond {
        ParsedBond::Double => 2,
        ParsedBond::Triple => 3,
        ParsedBond::Quadruple => 4,
        _ => 1,
    }
}

/// Index of the mark in RDKit's chirality list; 0 where the atom is not a stereo centre after all, as RDKit removes
/// such marks.
fn chirality_of(parsed: &Smiles, index: usize, mark: Chirality) -> u8 {
    match mark {
        Chirality::At | Chirality::AtAt | Chirality::TH(_) => {
            if parsed.smarts_tetrahedral_chirality(index).is_none() {
                return 0;
            }
            match anticlockwise(parsed, index) {
                Some(true) => ANTICLOCKWISE,
                Some(false) => CLOCKWISE,
                None => 0,
            }
        }
        _ => OTHER_CHIRALITY,
    }
}

/// Orientation seen from the first neighbour in RDKit's order of bonds: bonds as the atoms were written, then ring
/// closures; a hydrogen without an atom comes second.
fn anticlockwise(parsed: &Smiles, index: usize) -> Option<bool> {
    let mut neighbours: Vec<(bool, u32, usize)> = parsed
        .edges_for_node(index)
        .map(|edge| {
            let closure = edge.ring_num();
            let [from, to] = edge.endpoints();
            (closure.is_some(), closure.map_or(0, |number| number.get()), if from == index { to } else { from })
        })
        .collect();
    neighbours.sort_unstable();
    let named: Vec<usize> = neighbours.iter().map(|&(.., neighbour)| neighbour).collect();
    let order = match named[..] {
        [a, b, c, d] => [Some(a), Some(b), Some(c), Some(d)],
        [a, b, c] => [Some(a), None, Some(b), Some(c)],
        _ => return None,
    };
    parsed.tetrahedral_neighbors_anticlockwise(index, order)
}

/// RDKit's check in `calcExplicitValence`. A non-metal beyond its valence next to a metal passes, since RDKit turns
/// that bond into a dative one first.
fn check_valences(structure: &Structure) -> Result<(), SmilesError> {
    for (index, atom) in structure.atoms.iter().enumerate() {
        let Some(allowed) = highest_valence(atom.atomic_number, atom.charge) else {
            continue;
        };
        let valence = structure.total_valence(index);
        let metal_bond =
            || structure.bonds_of(index).any(|bond| is_metal(structure.atoms[bond.other(index)].atomic_number));
        if valence > allowed && !metal_bond() {
            let Atom { atomic_number, charge, .. } = *atom;
            return Err(SmilesError::Valence { atom: index, atomic_number, charge, valence, allowed });
        }
    }
    Ok(())
}

/// Folds hydrogens that were written as atoms (`[H]C`) into the count of their only neighbour, as RDKit's `removeHs`
/// does. Charged hydrogens, bridging ones and those bound to hydrogen alone stay atoms.
fn without_hydrogen_atoms(structure: Structure) -> Structure {
    let removable: Vec<bool> = (0..structure.atoms.len()).map(|index| is_plain_hydrogen(&structure, index)).collect();
    if !removable.contains(&true) {
        return structure;
    }
    let mut atoms = structure.atoms.clone();
    let mut renumbered = vec![0; atoms.len()];
    let mut kept = 0;
    for (index, &removed) in removable.iter().enumerate() {
        renumbered[index] = kept;
        if removed {
            for bond in structure.bonds_of(index) {
                let hydrogens = &mut atoms[bond.other(index)].hydrogens;
                *hydrogens = hydrogens.saturating_add(1);
            }
        } else {
            kept += 1;
        }
    }
    let mut keep = removable.iter().map(|removed| !removed);
    atoms.retain(|_| keep.next().unwrap_or(true));
    let bonds = structure.bonds.iter().filter(|bond| bond.atoms.iter().all(|&atom| !removable[atom as usize]));
    let bonds = bonds.map(|bond| Bond { atoms: bond.atoms.map(|atom| renumbered[atom as usize]), ..*bond }).collect();
    Structure::new(atoms, bonds)
}

fn is_plain_hydrogen(structure: &Structure, index: usize) -> bool {
    let atom = &structure.atoms[index];
    let [bond] = *structure.incident(index) else {
        return false;
    };
    let neighbour = &structure.atoms[structure.bonds[bond as usize].other(index)];
    atom.atomic_number == 1 && atom.charge == 0 && atom.hydrogens == 0 && neighbour.atomic_number > 1
}

#[cfg(test)]
mod tests {
    use super::super::features::ATOM_FEATURES;
    use super::super::generate::generated_molecule;
    use super::*;
    use proptest::prelude::*;

    fn features(smiles: &str) -> Vec<[i32; ATOM_FEATURES]> {
        let graph = from_smiles(smiles, 0.0).unwrap();
        graph.features.chunks(ATOM_FEATURES).map(|atom| std::array::from_fn(|index| atom[index] as i32)).collect()
    }

    #[test]
    fn ethanol_is_spelled_out() {
        let graph = from_smiles(" CCO\t", 1.5).unwrap();
        assert_eq!((graph.nodes, graph.y), (3, 1.5));
        assert_eq!(graph.edges, [(0, 1), (1, 0), (1, 2), (2, 1)]);
        assert_eq!(
            features("CCO"),
            [[6, 0, 4, 5, 3, 0, 4, 0, 0], [6, 0, 4, 5, 2, 0, 4, 0, 0], [8, 0, 2, 5, 1, 0, 4, 0, 0]]
        );
    }

    #[test]
    fn kekule_and_aromatic_spellings_agree() {
        for (aromatic, kekule) in [
            ("c1ccccc1", "C1=CC=CC=C1"),
            ("c1ccc2[nH]ccc2c1", "C1=CC=C2NC=CC2=C1"),
            ("c1(=O)[nH]c(=O)[nH]c(=O)[nH]1", "C1(=O)NC(=O)NC(=O)N1"),
        ] {
            assert_eq!(from_smiles(aromatic, 0.0), from_smiles(kekule, 0.0), "{aromatic}");
        }
    }

    #[test]
    fn charges_are_separated_however_they_were_drawn() {
        for (drawn, separated) in
            [("CN(=O)=O", "C[N+]([O-])=O"), ("CN=N#N", "CN=[N+]=[N-]"), ("OCl(=O)(=O)=O", "O[Cl+3]([O-])([O-])[O-]")]
        {
            assert_eq!(from_smiles(drawn, 0.0), from_smiles(separated, 0.0), "{drawn}");
        }
    }

    #[test]
    fn hydrogen_atoms_are_folded_in() {
        assert_eq!(from_smiles("[H]C([H])([H])O[H]", 0.0), from_smiles("CO", 0.0));
        assert_eq!(from_smiles("[H][H]", 0.0).unwrap().nodes, 2);
        assert_eq!(from_smiles("[H+]", 0.0).unwrap().nodes, 1);
    }

    #[test]
    fn radicals_and_unusual_hybridisations_are_found() {
        assert_eq!(features("[CH3]")[0], [6, 0, 3, 5, 3, 1, 4, 0, 0]);
        assert_eq!(features("[O]")[0][5], 2);
        assert_eq!(features("[Na+]")[0], [11, 0, 0, 6, 0, 0, 1, 0, 0]);
        assert_eq!(features("C#N").iter().map(|atom| atom[6]).collect::<Vec<_>>(), [2, 2]);
        // The N of an amide and the second O of an ester are SP2.
        assert_eq!(features("CC(=O)NC")[3][6], 3);
        assert_eq!(features("CC(=O)OC")[3][6], 3);
        assert_eq!(features("FS(F)(F)(F)(F)F")[1][6], 6);
        assert_eq!(features("FP(F)(F)(F)F")[1][6], 5);
    }

    #[test]
    fn stereo_marks_stay_on_stereo_centres_only() {
        let chirality = |smiles| features(smiles).iter().map(|atom| atom[1]).max();
        // Anticlockwise from the first neighbour is index 2; the same centre written the other way round is 1.
        assert_eq!(chirality("F[C@H](Cl)Br"), Some(2));
        assert_eq!(chirality("F[C@@H](Cl)Br"), Some(1));
        assert_eq!(chirality("[C@H](F)(Cl)Br"), Some(1));
        assert_eq!(chirality("C[C@H](C)O"), Some(0));
    }

    #[test]
    fn what_is_no_molecule_is_said() {
        let refused = |smiles: &str| from_smiles(smiles, 0.0).unwrap_err();
        assert_eq!(refused("  "), SmilesError::Empty);
        assert_eq!(refused(&"C".repeat(5000)), SmilesError::TooLong { bytes: 5000 });
        assert!(matches!(refused("C(C"), SmilesError::Syntax(_)));
        assert!(matches!(refused("c1cccc1"), SmilesError::Aromaticity(_)));
        let message = refused("FBr(F)(F)(F)F").to_string();
        assert_eq!(message, "atom 1 (element 35, charge 0) has valence 5, at most 1 allowed");
    }

    #[test]
    fn the_longest_texts_are_read() {
        assert_eq!(from_smiles(&"C".repeat(LONGEST_SMILES_BYTES), 0.0).unwrap().nodes, LONGEST_SMILES_BYTES);
        let nested = format!("{}C{}", "C(".repeat(1000), ")".repeat(1000));
        assert!(from_smiles(&nested, 0.0).is_ok());
    }

    const TOKENS: [&str; 40] = [
        "C", "c", "N", "n", "O", "o", "S", "s", "P", "F", "Cl", "Br", "B", "I", "(", ")", "1", "2", "3", "%10", "=",
        "#", "$", ":", "-", "/", "\\", ".", "[", "]", "[nH]", "[N+]", "[O-]", "[C@H]", "[C@@]", "[H]", "[Fe+2]",
        "[2H]", "@", "é",
    ];

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(tokens in proptest::collection::vec(0..TOKENS.len(), 0..40)) {
            let text: String = tokens.into_iter().map(|token| TOKENS[token]).collect();
            if let Ok(graph) = from_smiles(&text, 0.0) {
                prop_assert_eq!(graph.features.len(), graph.nodes * ATOM_FEATURES);
                prop_assert!(graph.edges.is_sorted());
            }
        }

        #[test]
        fn a_molecule_with_one_token_changed_is_read_or_refused(
            index in 0u64..1000, place in 0usize..60, token in 0..TOKENS.len(), replace in any::<bool>(),
        ) {
            let mut text = generated_molecule(0, index).smiles;
            let place = place % text.len();
            text.replace_range(place..place + usize::from(replace), TOKENS[token]);
            if let Ok(graph) = from_smiles(&text, 0.0) {
                prop_assert!(graph.edges.iter().all(|&(from, to)| (from as usize) < graph.nodes && (to as usize) < graph.nodes));
            }
        }
    }
}

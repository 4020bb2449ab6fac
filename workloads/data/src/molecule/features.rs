//! Atom features of PyTorch Geometric's `from_smiles`: nine integer codes per atom, which RDKit derives from the
//! sanitised molecule. The rules of RDKit that matter here are written out where they are used, by the name of its
//! function: `assignRadicals`, `setConjugation` and `setHybridization` (files `MolOps.cpp`, `ConjugHybrid.cpp`).

use super::elements::{outer_electrons, valences};
use super::structure::Structure;
use crate::graph::Graph;

/// Number of features of an atom, in this order: atomic number, chirality index, total degree (hydrogens counted),
/// formal charge + 5, hydrogens, radical electrons, hybridisation index (unspecified, S, SP, SP2, SP3, SP3D,
/// SP3D2), is aromatic, is in a ring.
pub const ATOM_FEATURES: usize = 9;

/// Added to the formal charge, so that the code is not negative.
const CHARGE_OFFSET: i32 = 5;

/// The graph of a molecule: one node per atom with [`ATOM_FEATURES`] features, both directions of every bond.
pub(super) fn graph_of(structure: &Structure, y: f32) -> Graph {
    let nodes = structure.atoms.len();
    let perceived = Perceived::new(structure);
    let mut features = Vec::with_capacity(nodes * ATOM_FEATURES);
    let mut edges = Vec::with_capacity(structure.bonds.len() * 2);
    for atom in 0..nodes {
        features.extend(perceived.atom_features(structure, atom).map(|code| code as f32));
        let first = edges.len();
        edges.extend(structure.bonds_of(atom).map(|bond| (atom as u32, bond.other(atom) as u32)));
        edges[first..].sort_unstable();
    }
    Graph { nodes, features, edges, y }
}

/// Properties of the whole molecule that its atoms' descriptions need.
struct Perceived {
    radicals: Vec<i32>,
    conjugated: Vec<bool>,
    in_ring: Vec<bool>,
}

impl Perceived {
    fn new(structure: &Structure) -> Self {
        let atoms = 0..structure.atoms.len();
        let radicals: Vec<i32> = atoms.clone().map(|atom| radical_electrons(structure, atom)).collect();
        let conjugated_bonds = conjugated_bonds(structure, &radicals);
        let ring_bonds = structure.ring_bonds();
        let any = |bonds: &[bool], atom| structure.incident(atom).iter().any(|&bond| bonds[bond as usize]);
        Self {
            conjugated: atoms.clone().map(|atom| any(&conjugated_bonds, atom)).collect(),
            in_ring: atoms.map(|atom| any(&ring_bonds, atom)).collect(),
            radicals,
        }
    }

    fn atom_features(&self, structure: &Structure, index: usize) -> [i32; ATOM_FEATURES] {
        let atom = &structure.atoms[index];
        [
            i32::from(atom.atomic_number),
            i32::from(atom.chirality),
            structure.total_degree(index),
            i32::from(atom.charge) + CHARGE_OFFSET,
            i32::from(atom.hydrogens),
            self.radicals[index],
            self.hybridisation(structure, index),
            i32::from(atom.aromatic),
            i32::from(self.in_ring[index]),
        ]
    }

    /// RDKit's `setHybridization`: bonds plus lone pairs give the number of orbitals; four of them count as SP2 when
    /// the atom has at most three neighbours and a conjugated bond (the N of an amide, the second O of an ester).
    fn hybridisation(&self, structure: &Structure, index: usize) -> i32 {
        const FIRST_ACTINIDE: u8 = 89;
        let atom = &structure.atoms[index];
        let degree = structure.total_degree(index);
        if atom.chirality != 0 && degree == 4 {
            return 4;
        }
        let orbitals = if atom.atomic_number < FIRST_ACTINIDE {
            bonds_and_lone_pairs(structure, index, self.radicals[index])
        } else {
            degree
        };
        match orbitals {
            4 if degree <= 3 && self.conjugated[index] => 3,
            0 | 1 => 1,
            2..=6 => orbitals,
            _ => 0,
        }
    }
}

/// RDKit's `numBondsPlusLonePairs`; below an octet, unpaired electrons take an orbital each.
fn bonds_and_lone_pairs(structure: &Structure, index: usize, radicals: i32) -> i32 {
    let atom = &structure.atoms[index];
    let degree = structure.total_degree(index);
    if atom.atomic_number <= 1 {
        return degree;
    }
    let outer = outer_electrons(atom.atomic_number);
    let (valence, charge) = (structure.total_valence(index), i32::from(atom.charge));
    let free = outer - valence - charge;
    if valence + outer - charge < 8 { degree + (free - radicals) / 2 + radicals } else { degree + free / 2 }
}

/// RDKit's `assignRadicals`: only atoms in brackets can lack electrons, the others are filled with hydrogens.
fn radical_electrons(structure: &Structure, index: usize) -> i32 {
    let atom = &structure.atoms[index];
    if !atom.bracketed {
        return 0;
    }
    let (outer, charge) = (outer_electrons(atom.atomic_number), i32::from(atom.charge));
    let allowed = valences(atom.atomic_number);
    if allowed.is_empty() {
        let lone_metal = structure.incident(index).is_empty();
        return if lone_metal { (outer - charge).max(0) % 2 } else { 0 };
    }
    let valence = structure.total_valence(index);
    let shell = if atom.atomic_number <= 2 { 2 } else { 8 };
    let mut missing = shell - outer - valence + charge;
    if missing < 0 {
        let open = allowed.iter().map(|allowed| allowed - valence + charge).find(|&open| open >= 0);
        missing = open.filter(|_| allowed.len() > 1).unwrap_or(0);
    }
    // The electropositive elements never have more unpaired electrons than outer ones left.
    let left = outer - valence - charge;
    if left >= 0 { missing.min(left) } else { missing }
}

/// RDKit's `setConjugation`: aromatic bonds, and every pair of bonds at an atom of two or three neighbours of which
/// the first is multiple and both lead to atoms that can take part.
fn conjugated_bonds(structure: &Structure, radicals: &[i32]) -> Vec<bool> {
    let mut conjugated: Vec<bool> = structure.bonds.iter().map(|bond| bond.aromatic).collect();
    let takes_part: Vec<bool> =
        radicals.iter().enumerate().map(|(atom, &radicals)| can_conjugate(structure, atom, radicals)).collect();
    for atom in 0..structure.atoms.len() {
        if !takes_part[atom] || !(2..=3).contains(&structure.total_degree(atom)) {
            continue;
        }
        for &first in structure.incident(atom) {
            let bond = &structure.bonds[first as usize];
            if !bond.is_multiple() || !takes_part[bond.other(atom)] {
                continue;
            }
            for &second in structure.incident(atom) {
                let other = structure.bonds[second as usize].other(atom);
                if second != first && takes_part[other] && structure.total_degree(other) <= 3 {
                    conjugated[first as usize] = true;
                    conjugated[second as usize] = true;
                }
            }
        }
    }
    conjugated
}

/// RDKit's `isAtomConjugCand` with its `countAtomElec`: not hypervalent, no pnictogen or chalcogen beyond the second
/// row unless terminal, and at least one electron to share.
fn can_conjugate(structure: &Structure, index: usize, radicals: i32) -> bool {
    const NEON: u8 = 10;
    let atom = &structure.atoms[index];
    let Some(&default_valence) = valences(atom.atomic_number).first() else {
        return false;
    };
    let (degree, charge) = (structure.total_degree(index), i32::from(atom.charge));
    if default_valence <= 1 || degree > 3 || (charge == 0 && structure.total_valence(index) > default_valence) {
        return false;
    }
    let outer = outer_electrons(atom.atomic_number);
    let element_fits = atom.atomic_number <= NEON || !matches!(outer, 5 | 6) || (outer == 6 && degree < 2);
    let lone = (outer - default_valence - charge).max(0);
    element_fits && default_valence - degree + lone - radicals > 0
}

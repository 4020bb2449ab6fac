//! RDKit's `cleanUp` (`MolOps.cpp`): neutral atoms drawn with more bonds than they can have are rewritten with
//! separated charges, so that a nitro group is the same molecule however it was written.

use super::structure::Structure;

const NITROGEN: u8 = 7;
const OXYGEN: u8 = 8;
const PHOSPHORUS: u8 = 15;

/// Applies every rule to every atom, in RDKit's order.
pub(super) fn separate_charges(structure: &mut Structure) {
    let overfull = |structure: &Structure, index: usize| {
        let atom = &structure.atoms[index];
        atom.atomic_number == NITROGEN
            && atom.charge == 0
            && structure.bond_valence(index) + i32::from(atom.hydrogens) == 5
    };
    let nitrogens: Vec<usize> = (0..structure.atoms.len()).filter(|&index| overfull(structure, index)).collect();
    for &index in &nitrogens {
        lower_one(structure, index, OXYGEN, 2);
    }
    for &index in &nitrogens {
        lower_one(structure, index, NITROGEN, 3);
    }
    for index in 0..structure.atoms.len() {
        match structure.atoms[index].atomic_number {
            PHOSPHORUS => phosphorus(structure, index),
            17 | 35 | 53 => halogen(structure, index),
            _ => {}
        }
    }
}

/// Takes one order from the first bond of `order` to a neutral neighbour of that element, and charges both ends:
/// `CN(=O)=O` becomes `C[N+](=O)[O-]`, `CN=N#N` becomes `CN=[N+]=[N-]`.
fn lower_one(structure: &mut Structure, index: usize, element: u8, order: u8) {
    let found = structure.incident(index).iter().copied().find(|&bond| {
        let bond = &structure.bonds[bond as usize];
        let other = &structure.atoms[bond.other(index)];
        bond.order == order && other.atomic_number == element && other.charge == 0
    });
    if let Some(bond) = found {
        lower(structure, index, bond);
        structure.atoms[index].charge = 1;
    }
}

fn lower(structure: &mut Structure, index: usize, bond: u32) {
    let bond = &mut structure.bonds[bond as usize];
    bond.order -= 1;
    structure.atoms[bond.other(index)].charge = -1;
}

/// `C=P(=O)X` becomes `C=[P+]([O-])X`: three neighbours, one double bond to O and one to C or N that is not terminal.
fn phosphorus(structure: &mut Structure, index: usize) {
    let atom = structure.atoms[index];
    if atom.charge != 0 || structure.total_valence(index) != 5 || structure.incident(index).len() != 3 {
        return;
    }
    let carbon_or_nitrogen = structure.bonds_of(index).any(|bond| {
        let other = bond.other(index);
        let heavy_neighbours = structure.incident(other).len();
        bond.order == 2 && matches!(structure.atoms[other].atomic_number, 6 | 7) && heavy_neighbours >= 2
    });
    if carbon_or_nitrogen {
        lower_one(structure, index, OXYGEN, 2);
    }
}

/// `Cl(=O)(=O)(=O)O` becomes `[Cl+3]([O-])([O-])([O-])O`: a halogen bound to oxygen alone.
fn halogen(structure: &mut Structure, index: usize) {
    let all_oxygen = structure.bonds_of(index).all(|bond| structure.atoms[bond.other(index)].atomic_number == OXYGEN);
    if structure.atoms[index].charge != 0 || !matches!(structure.total_valence(index), 3 | 5 | 7) || !all_oxygen {
        return;
    }
    let double: Vec<u32> =
        structure.incident(index).iter().copied().filter(|&bond| structure.bonds[bond as usize].order == 2).collect();
    for &bond in &double {
        lower(structure, index, bond);
    }
    structure.atoms[index].charge = double.len() as i8;
}

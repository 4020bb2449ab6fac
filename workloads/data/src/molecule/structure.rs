//! A molecule as atoms and localised (Kekulé) bonds: what a SMILES reader and the generator both produce, and the
//! only thing the featuriser reads.

/// RDKit's index of a clockwise tetrahedral centre in the chirality list.
pub(super) const CLOCKWISE: u8 = 1;
/// RDKit's index of an anticlockwise tetrahedral centre.
pub(super) const ANTICLOCKWISE: u8 = 2;
/// RDKit's index of a non-tetrahedral stereo centre that the feature list has no finer word for.
pub(super) const OTHER_CHIRALITY: u8 = 3;

/// One heavy atom (or an explicit hydrogen that is kept) with the hydrogens folded into a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Atom {
    pub(super) atomic_number: u8,
    pub(super) charge: i8,
    /// Hydrogens attached that are not atoms of the structure.
    pub(super) hydrogens: u8,
    /// Written in brackets: its hydrogen count is as stated, so that missing electrons are radicals.
    pub(super) bracketed: bool,
    pub(super) aromatic: bool,
    /// Index in RDKit's chirality list; 0 is unspecified.
    pub(super) chirality: u8,
}

impl Atom {
    /// A neutral, achiral atom outside brackets, without hydrogens.
    pub(super) fn new(atomic_number: u8) -> Self {
        Self { atomic_number, charge: 0, hydrogens: 0, bracketed: false, aromatic: false, chirality: 0 }
    }
}

/// A bond between two different atoms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bond {
    pub(super) atoms: [u32; 2],
    /// Localised order, 1 to 4.
    pub(super) order: u8,
    pub(super) aromatic: bool,
}

impl Bond {
    /// The atom at the other end.
    pub(super) fn other(&self, atom: usize) -> usize {
        self.atoms[usize::from(self.atoms[0] as usize == atom)] as usize
    }

    /// Whether it joins more than single: aromatic, or localised double or higher (RDKit: contribution >= 1.5).
    pub(super) fn is_multiple(&self) -> bool {
        self.aromatic || self.order > 1
    }
}

/// Atoms, bonds and the bonds of each atom.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Structure {
    pub(super) atoms: Vec<Atom>,
    pub(super) bonds: Vec<Bond>,
    /// `incident[start[i]..start[i + 1]]` are the bonds of atom `i`, in the order of `bonds`.
    start: Vec<u32>,
    incident: Vec<u32>,
}

impl Structure {
    /// A structure of these atoms and bonds. Every bond must join two different atoms of the list.
    pub(super) fn new(atoms: Vec<Atom>, bonds: Vec<Bond>) -> Self {
        let mut start = vec![0; atoms.len() + 2];
        for atom in bonds.iter().flat_map(|bond| bond.atoms) {
            start[atom as usize + 2] += 1;
        }
        for atom in 2..start.len() {
            start[atom] += start[atom - 1];
        }
        let mut incident = vec![0; bonds.len() * 2];
        for (index, bond) in bonds.iter().enumerate() {
            for atom in bond.atoms {
                let slot = &mut start[atom as usize + 1];
                incident[*slot as usize] = index as u32;
                *slot += 1;
            }
        }
        start.truncate(atoms.len() + 1);
        Self { atoms, bonds, start, incident }
    }

    /// Indices of the bonds of an atom.
    pub(super) fn incident(&self, atom: usize) -> &[u32] {
        &self.incident[self.start[atom] as usize..self.start[atom + 1] as usize]
    }

    /// The bonds of an atom.
    pub(super) fn bonds_of(&self, atom: usize) -> impl Iterator<Item = &Bond> + '_ {
        self.incident(atom).iter().map(|&bond| &self.bonds[bond as usize])
    }

    /// Neighbours plus hydrogens.
    pub(super) fn total_degree(&self, atom: usize) -> i32 {
        self.incident(atom).len() as i32 + i32::from(self.atoms[atom].hydrogens)
    }

    /// Sum of localised bond orders, hydrogens not counted.
    pub(super) fn bond_valence(&self, atom: usize) -> i32 {
        self.bonds_of(atom).map(|bond| i32::from(bond.order)).sum()
    }

    /// Sum of localised bond orders, hydrogens counted.
    pub(super) fn total_valence(&self, atom: usize) -> i32 {
        self.bond_valence(atom) + i32::from(self.atoms[atom].hydrogens)
    }

    /// Which bonds are on a ring: those that are not bridges. One depth-first search (Tarjan's low links) with its own
    /// stack, so that a long chain costs no call depth.
    pub(super) fn ring_bonds(&self) -> Vec<bool> {
        let mut search = BridgeSearch::new(self);
        for atom in 0..self.atoms.len() {
            search.visit_component(atom);
        }
        search.on_ring
    }
}

const UNSEEN: u32 = u32::MAX;

struct BridgeSearch<'a> {
    structure: &'a Structure,
    on_ring: Vec<bool>,
    /// Order of first visit, [`UNSEEN`] before.
    seen_at: Vec<u32>,
    lowest: Vec<u32>,
    visited: u32,
    /// Atom, the bond it was entered by, and how many of its bonds were followed.
    stack: Vec<(usize, u32, usize)>,
}

impl<'a> BridgeSearch<'a> {
    fn new(structure: &'a Structure) -> Self {
        let atoms = structure.atoms.len();
        Self {
            structure,
            on_ring: vec![true; structure.bonds.len()],
            seen_at: vec![UNSEEN; atoms],
            lowest: vec![0; atoms],
            visited: 0,
            stack: Vec::new(),
        }
    }

    fn visit_component(&mut self, root: usize) {
        if self.seen_at[root] != UNSEEN {
            return;
        }
        self.enter(root, UNSEEN);
        while let Some(&mut (atom, entered_by, ref mut followed)) = self.stack.last_mut() {
            let Some(&bond) = self.structure.incident(atom).get(*followed) else {
                self.leave();
                continue;
            };
            *followed += 1;
            if bond == entered_by {
                continue;
            }
            let other = self.structure.bonds[bond as usize].other(atom);
            if self.seen_at[other] == UNSEEN {
                self.enter(other, bond);
            } else {
                self.lowest[atom] = self.lowest[atom].min(self.seen_at[other]);
            }
        }
    }

    fn enter(&mut self, atom: usize, by: u32) {
        self.seen_at[atom] = self.visited;
        self.lowest[atom] = self.visited;
        self.visited += 1;
        self.stack.push((atom, by, 0));
    }

    /// Pops the finished atom; the bond it was entered by is a bridge when nothing below it reaches higher.
    fn leave(&mut self) {
        let Some((atom, entered_by, _)) = self.stack.pop() else { return };
        let Some(&(parent, ..)) = self.stack.last() else { return };
        self.lowest[parent] = self.lowest[parent].min(self.lowest[atom]);
        if self.lowest[atom] > self.seen_at[parent] {
            self.on_ring[entered_by as usize] = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn structure(atoms: usize, pairs: &[(u32, u32)]) -> Structure {
        let bonds = pairs.iter().map(|&(a, b)| Bond { atoms: [a, b], order: 1, aromatic: false }).collect();
        Structure::new(vec![Atom::new(6); atoms], bonds)
    }

    #[test]
    fn a_bond_between_two_rings_is_a_bridge() {
        let two_rings = structure(6, &[(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (4, 5), (3, 5)]);
        assert_eq!(two_rings.ring_bonds(), [true, true, true, false, true, true, true]);
    }

    #[test]
    fn a_long_chain_needs_no_call_depth() {
        let pairs: Vec<_> = (0..200_000).map(|atom| (atom, atom + 1)).collect();
        assert!(!structure(200_001, &pairs).ring_bonds().contains(&true));
    }

    fn connected_without(structure: &Structure, removed: usize) -> bool {
        let [from, to] = structure.bonds[removed].atoms;
        let mut seen = vec![false; structure.atoms.len()];
        let mut open = vec![from as usize];
        while let Some(atom) = open.pop() {
            if std::mem::replace(&mut seen[atom], true) {
                continue;
            }
            let bonds = structure.incident(atom).iter().filter(|&&bond| bond as usize != removed);
            open.extend(bonds.map(|&bond| structure.bonds[bond as usize].other(atom)));
        }
        seen[to as usize]
    }

    proptest! {
        #[test]
        fn ring_bonds_are_those_whose_ends_stay_connected(pairs in proptest::collection::btree_set((0u32..9, 0u32..9), 0..16)) {
            let pairs: Vec<_> = pairs.into_iter().filter(|pair| pair.0 < pair.1).collect();
            let structure = structure(9, &pairs);
            for (bond, on_ring) in structure.ring_bonds().into_iter().enumerate() {
                prop_assert_eq!(on_ring, connected_without(&structure, bond));
            }
        }
    }
}

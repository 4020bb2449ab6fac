//! Writing a structure as SMILES, and renumbering it in the order of the text, so that reading the text back gives
//! the same numbers.

use std::fmt::Write;

use crate::molecule::structure::{Atom, Bond, Structure};

/// The SMILES of a connected structure, bonds localised, and the structure renumbered in its order.
pub(super) fn write(structure: &Structure) -> (String, Structure) {
    let mut walk = Walk::new(structure);
    walk.descend(0, None);
    let mut writer = Writer { walk: &walk, structure, text: String::new(), open: Vec::new() };
    writer.atom(0);
    (writer.text, renumbered(structure, &walk.position))
}

const UNSEEN: usize = usize::MAX;

/// A depth-first walk: the tree below each atom and the ring closures at it.
struct Walk<'a> {
    structure: &'a Structure,
    /// Position of each atom in the text.
    position: Vec<usize>,
    visited: usize,
    children: Vec<Vec<u32>>,
    closures: Vec<Vec<u32>>,
}

impl<'a> Walk<'a> {
    fn new(structure: &'a Structure) -> Self {
        let atoms = structure.atoms.len();
        let (children, closures) = (vec![Vec::new(); atoms], vec![Vec::new(); atoms]);
        Self { structure, position: vec![UNSEEN; atoms], visited: 0, children, closures }
    }

    /// Call depth is at most the number of atoms, which the generator bounds.
    fn descend(&mut self, atom: usize, entered_by: Option<u32>) {
        self.position[atom] = self.visited;
        self.visited += 1;
        let structure = self.structure;
        for &bond in structure.incident(atom) {
            let other = structure.bonds[bond as usize].other(atom);
            if self.position[other] == UNSEEN {
                self.children[atom].push(bond);
                self.descend(other, Some(bond));
            } else if Some(bond) != entered_by && self.position[other] < self.position[atom] {
                self.closures[other].push(bond);
                self.closures[atom].push(bond);
            }
        }
    }
}

struct Writer<'a> {
    walk: &'a Walk<'a>,
    structure: &'a Structure,
    text: String,
    /// The bond that each ring number currently stands for; number 1 comes first.
    open: Vec<Option<u32>>,
}

impl Writer<'_> {
    fn atom(&mut self, atom: usize) {
        self.symbol(&self.structure.atoms[atom]);
        let walk = self.walk;
        for &bond in &walk.closures[atom] {
            self.closure(bond);
        }
        let last = walk.children[atom].len().saturating_sub(1);
        for (index, &bond) in walk.children[atom].iter().enumerate() {
            let branch = index < last;
            self.text.push_str(if branch { "(" } else { "" });
            self.order(bond);
            self.atom(self.structure.bonds[bond as usize].other(atom));
            self.text.push_str(if branch { ")" } else { "" });
        }
    }

    fn symbol(&mut self, atom: &Atom) {
        let symbol = match atom.atomic_number {
            7 => "N",
            8 => "O",
            9 => "F",
            16 => "S",
            17 => "Cl",
            35 => "Br",
            _ => "C",
        };
        self.text.push_str(match (symbol, atom.charge) {
            ("N", 1) => "[N+]",
            ("O", -1) => "[O-]",
            _ => symbol,
        });
    }

    fn order(&mut self, bond: u32) {
        self.text.push_str(match self.structure.bonds[bond as usize].order {
            2 => "=",
            3 => "#",
            _ => "",
        });
    }

    /// Opens the ring number of a bond at its first atom and frees it at the second.
    fn closure(&mut self, bond: u32) {
        let number = match self.open.iter().position(|&held| held == Some(bond)) {
            Some(number) => {
                self.open[number] = None;
                number + 1
            }
            None => {
                let number = self.open.iter().position(Option::is_none).unwrap_or(self.open.len());
                self.open.resize(self.open.len().max(number + 1), None);
                self.open[number] = Some(bond);
                self.order(bond);
                number + 1
            }
        };
        // Writing to a string cannot fail.
        let _ = if number > 9 { write!(self.text, "%{number:02}") } else { write!(self.text, "{number}") };
    }
}

fn renumbered(structure: &Structure, position: &[usize]) -> Structure {
    let mut atoms = structure.atoms.clone();
    for (atom, &to) in structure.atoms.iter().zip(position) {
        atoms[to] = *atom;
    }
    let moved = |bond: &Bond| Bond { atoms: bond.atoms.map(|atom| position[atom as usize] as u32), ..*bond };
    Structure::new(atoms, structure.bonds.iter().map(moved).collect())
}

//! Growing a molecule: rings first, then atom by atom, never beyond a valence.

use rand::rngs::StdRng;
use rand::{Rng, RngExt};

use super::templates::{TEMPLATES, Template};
use crate::molecule::elements::valences;
use crate::molecule::structure::{Atom, Bond, Structure};

pub(super) const CARBON: u8 = 6;
pub(super) const NITROGEN: u8 = 7;
pub(super) const OXYGEN: u8 = 8;
const FLUORINE: u8 = 9;
const SULFUR: u8 = 16;
const CHLORINE: u8 = 17;
const BROMINE: u8 = 35;

/// Elements of chain atoms with their weights.
const CHAIN_ELEMENTS: [(u8, f64); 7] =
    [(CARBON, 62.0), (NITROGEN, 14.0), (OXYGEN, 18.0), (FLUORINE, 3.0), (SULFUR, 2.0), (CHLORINE, 1.2), (BROMINE, 0.4)];

/// Weights of 0, 1, 2, … rings in a molecule.
const RING_WEIGHTS: [f64; 5] = [0.11, 0.39, 0.35, 0.12, 0.03];

/// Weights of a site for a new atom by the neighbours it has already.
const SITE_WEIGHTS: [f64; 4] = [1.0, 1.0, 0.38, 0.22];

const AROMATIC_SHARE: f64 = 0.66;
const FUSED_SHARE: f64 = 0.35;
const NITRO_SHARE: f64 = 0.012;

/// A molecule of exactly `size` atoms, in the order they were added, hydrogens filled in.
pub(super) fn grow(random: &mut StdRng, size: usize) -> Structure {
    let mut molecule = Growing::default();
    molecule.add_rings(random, size);
    if molecule.atoms.is_empty() {
        molecule.add_atom(CARBON);
    }
    while molecule.atoms.len() < size {
        molecule.extend(random, size - molecule.atoms.len());
    }
    molecule.finish()
}

#[derive(Default)]
struct Growing {
    atoms: Vec<Atom>,
    /// Bonds each atom can still take; hydrogens fill them in the end.
    free: Vec<u8>,
    /// Whether an atom may take a double or triple bond: not in a ring, where it could make the ring aromatic, except
    /// at one carbon of a saturated ring; and not where it has one.
    may_double: Vec<bool>,
    neighbours: Vec<u8>,
    bonds: Vec<Bond>,
    /// Bonds of single rings, where another ring can be fused on.
    fusible: Vec<(usize, usize)>,
}

impl Growing {
    fn add_atom(&mut self, atomic_number: u8) -> usize {
        self.atoms.push(Atom::new(atomic_number));
        self.free.push(valences(atomic_number).first().map_or(0, |&valence| valence as u8));
        self.may_double.push(true);
        self.neighbours.push(0);
        self.atoms.len() - 1
    }

    fn add_bond(&mut self, a: usize, b: usize, order: u8, aromatic: bool) {
        self.bonds.push(Bond { atoms: [a as u32, b as u32], order, aromatic });
        for atom in [a, b] {
            self.free[atom] -= order;
            self.neighbours[atom] += 1;
            self.may_double[atom] &= order == 1;
        }
    }

    /// Places rings while they fit, up to a number that is drawn.
    fn add_rings(&mut self, random: &mut StdRng, size: usize) {
        let mut wanted = pick(random, RING_WEIGHTS.into_iter()).unwrap_or(0);
        while wanted > 0 {
            let room = size - self.atoms.len();
            let placed = if !self.fusible.is_empty() && random.random_bool(FUSED_SHARE) {
                self.fuse_ring(random, room)
            } else {
                self.attach_ring(random, room, wanted)
            };
            match placed {
                0 => return,
                rings => wanted -= rings,
            }
        }
    }

    /// Attaches a ring system by one bond to the existing atoms. Returns the number of its rings; 0 if none fits.
    fn attach_ring(&mut self, random: &mut StdRng, room: usize, wanted: usize) -> usize {
        let aromatic = random.random_bool(AROMATIC_SHARE);
        let fits = |template: &Template| {
            template.elements.len() <= room && template.rings <= wanted && (template.aromatic == aromatic || room < 5)
        };
        let weights = TEMPLATES.iter().map(|template| if fits(template) { template.weight } else { 0.0 });
        let Some(template) = pick(random, weights).map(|index| &TEMPLATES[index]) else {
            return 0;
        };
        let site = self.site(random);
        let first = self.place(template);
        if let Some(site) = site {
            let inside = |atom: usize| if atom >= first && self.free[atom] > 0 { 1.0 } else { 0.0 };
            let Some(joint) = pick(random, (0..self.atoms.len()).map(inside)) else { return 0 };
            self.add_bond(site, joint, 1, false);
        }
        template.rings
    }

    fn place(&mut self, template: &Template) -> usize {
        let first = self.atoms.len();
        for &element in template.elements {
            let atom = self.add_atom(element);
            self.atoms[atom].aromatic = template.aromatic;
            self.may_double[atom] = false;
        }
        for &(a, b, order) in template.bonds {
            let (a, b) = (first + usize::from(a), first + usize::from(b));
            self.add_bond(a, b, order, template.aromatic);
            if template.rings == 1 {
                self.fusible.push((a, b));
            }
        }
        if !template.aromatic && template.elements.len() > 4 {
            // One carbonyl a ring leaves at least two saturated carbons, so that the ring is never aromatic.
            self.may_double[first + 1] = true;
        }
        first
    }

    /// Closes a saturated ring of five or six over a bond of a ring. Returns 1, or 0 if it does not fit.
    fn fuse_ring(&mut self, random: &mut StdRng, room: usize) -> usize {
        let added = 3 + usize::from(random.random_bool(0.5));
        let open = |&(a, b): &(usize, usize)| if self.free[a] > 0 && self.free[b] > 0 { 1.0 } else { 0.0 };
        let chosen = pick(random, self.fusible.iter().map(open));
        let Some((start, end)) = chosen.map(|index| self.fusible[index]).filter(|_| added <= room) else {
            return 0;
        };
        let mut last = start;
        for position in 0..added {
            // The middle atom may be N or O; its neighbours are carbon.
            let hetero = position == 1 && random.random_bool(0.4);
            let element = if hetero { [NITROGEN, OXYGEN][random.random_range(0..2)] } else { CARBON };
            let atom = self.add_atom(element);
            self.may_double[atom] = false;
            self.add_bond(last, atom, 1, false);
            last = atom;
        }
        self.add_bond(last, end, 1, false);
        1
    }

    /// Adds one atom, or a nitro group.
    fn extend(&mut self, random: &mut StdRng, room: usize) {
        let Some(site) = self.site(random) else { return };
        let carbon = self.atoms[site].atomic_number == CARBON;
        if carbon && room >= 3 && random.random_bool(NITRO_SHARE) {
            self.add_nitro(site);
            return;
        }
        let element = self.next_element(random, carbon, room);
        let order = self.next_order(random, site, element, room);
        let atom = self.add_atom(element);
        self.add_bond(site, atom, order, false);
    }

    /// An atom with a free valence. Ends of chains are preferred, crowded atoms avoided.
    fn site(&self, random: &mut StdRng) -> Option<usize> {
        let weight = |atom: usize| match self.free[atom] {
            0 => 0.0,
            _ => SITE_WEIGHTS[usize::from(self.neighbours[atom]).min(SITE_WEIGHTS.len() - 1)],
        };
        pick(random, (0..self.atoms.len()).map(weight))
    }

    /// Anything on carbon, carbon on anything else; never an end while atoms are wanted and no other site is left.
    fn next_element(&self, random: &mut StdRng, on_carbon: bool, room: usize) -> u8 {
        let sites: u32 = self.free.iter().map(|&free| u32::from(free)).sum();
        if !on_carbon || (sites < 3 && room > 1) {
            return CARBON;
        }
        let chosen = pick(random, CHAIN_ELEMENTS.iter().map(|&(_, weight)| weight));
        chosen.map_or(CARBON, |index| CHAIN_ELEMENTS[index].0)
    }

    fn next_order(&self, random: &mut StdRng, site: usize, element: u8, room: usize) -> u8 {
        let carbon = self.atoms[site].atomic_number == CARBON;
        let free = self.free[site];
        let sites: u32 = self.free.iter().map(|&free| u32::from(free)).sum();
        if !carbon || !self.may_double[site] || free < 2 || (sites < 5 && room > 1) {
            return 1;
        }
        let (double, triple) = match element {
            CARBON => (0.16, 0.03),
            NITROGEN => (0.12, 0.18),
            OXYGEN => (0.50, 0.0),
            SULFUR => (0.25, 0.0),
            _ => (0.0, 0.0),
        };
        let drawn: f64 = random.random();
        if drawn < triple && free >= 3 {
            3
        } else if drawn < triple + double {
            2
        } else {
            1
        }
    }

    fn add_nitro(&mut self, site: usize) {
        let nitrogen = self.add_atom(NITROGEN);
        self.charge(nitrogen, 1, 4);
        let double = self.add_atom(OXYGEN);
        let single = self.add_atom(OXYGEN);
        self.charge(single, -1, 1);
        self.add_bond(site, nitrogen, 1, false);
        self.add_bond(nitrogen, double, 2, false);
        self.add_bond(nitrogen, single, 1, false);
    }

    fn charge(&mut self, atom: usize, charge: i8, valence: u8) {
        self.atoms[atom].charge = charge;
        self.atoms[atom].bracketed = true;
        self.free[atom] = valence;
    }

    fn finish(mut self) -> Structure {
        for (atom, free) in self.atoms.iter_mut().zip(self.free) {
            atom.hydrogens = free;
        }
        Structure::new(self.atoms, self.bonds)
    }
}

/// An index drawn with these weights; `None` where all are zero.
fn pick(random: &mut impl Rng, weights: impl Iterator<Item = f64> + Clone) -> Option<usize> {
    let total: f64 = weights.clone().sum();
    let mut left = random.random::<f64>() * total;
    let mut last = None;
    for (index, weight) in weights.enumerate().filter(|&(_, weight)| weight > 0.0) {
        if left < weight {
            return Some(index);
        }
        left -= weight;
        last = Some(index);
    }
    last
}

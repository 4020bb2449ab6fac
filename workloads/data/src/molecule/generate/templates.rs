//! The rings that generated molecules are built from, as localised bonds.

/// A ring system.
pub(super) struct Template {
    /// Atomic number of each atom.
    pub(super) elements: &'static [u8],
    /// Bonds as (atom, atom, order).
    pub(super) bonds: &'static [(u8, u8, u8)],
    /// Whether RDKit's default model calls all of it aromatic. Otherwise all bonds are single.
    pub(super) aromatic: bool,
    /// Rings in it.
    pub(super) rings: usize,
    /// How often it is drawn, relative to the others of its kind.
    pub(super) weight: f64,
}

const C: u8 = 6;
const N: u8 = 7;
const O: u8 = 8;
const S: u8 = 16;

const SIX_AROMATIC: &[(u8, u8, u8)] = &[(0, 1, 2), (1, 2, 1), (2, 3, 2), (3, 4, 1), (4, 5, 2), (5, 0, 1)];
/// Atom 0 gives two electrons to the ring.
const FIVE_AROMATIC: &[(u8, u8, u8)] = &[(0, 1, 1), (1, 2, 2), (2, 3, 1), (3, 4, 2), (4, 0, 1)];
const SIX_SIX_AROMATIC: &[(u8, u8, u8)] = &[
    (0, 1, 2),
    (1, 2, 1),
    (2, 3, 2),
    (3, 4, 1),
    (4, 9, 2),
    (9, 0, 1),
    (4, 5, 1),
    (5, 6, 2),
    (6, 7, 1),
    (7, 8, 2),
    (8, 9, 1),
];
/// Atom 7 gives two electrons to the ring.
const SIX_FIVE_AROMATIC: &[(u8, u8, u8)] =
    &[(0, 1, 2), (1, 2, 1), (2, 3, 2), (3, 4, 1), (4, 8, 2), (8, 0, 1), (4, 5, 1), (5, 6, 2), (6, 7, 1), (7, 8, 1)];
const THREE: &[(u8, u8, u8)] = &[(0, 1, 1), (1, 2, 1), (2, 0, 1)];
const FOUR: &[(u8, u8, u8)] = &[(0, 1, 1), (1, 2, 1), (2, 3, 1), (3, 0, 1)];
const FIVE: &[(u8, u8, u8)] = &[(0, 1, 1), (1, 2, 1), (2, 3, 1), (3, 4, 1), (4, 0, 1)];
const SIX: &[(u8, u8, u8)] = &[(0, 1, 1), (1, 2, 1), (2, 3, 1), (3, 4, 1), (4, 5, 1), (5, 0, 1)];

const fn aromatic(elements: &'static [u8], bonds: &'static [(u8, u8, u8)], rings: usize, weight: f64) -> Template {
    Template { elements, bonds, aromatic: true, rings, weight }
}

const fn saturated(elements: &'static [u8], bonds: &'static [(u8, u8, u8)], weight: f64) -> Template {
    Template { elements, bonds, aromatic: false, rings: 1, weight }
}

/// Every ring system, from benzene to cyclopropane.
pub(super) const TEMPLATES: &[Template] = &[
    aromatic(&[C, C, C, C, C, C], SIX_AROMATIC, 1, 30.0),
    aromatic(&[N, C, C, C, C, C], SIX_AROMATIC, 1, 7.0),
    aromatic(&[N, C, N, C, C, C], SIX_AROMATIC, 1, 4.0),
    aromatic(&[N, C, C, C, C], FIVE_AROMATIC, 1, 3.0),
    aromatic(&[O, C, C, C, C], FIVE_AROMATIC, 1, 3.0),
    aromatic(&[S, C, C, C, C], FIVE_AROMATIC, 1, 4.0),
    aromatic(&[N, N, C, C, C], FIVE_AROMATIC, 1, 4.0),
    aromatic(&[N, C, N, C, C], FIVE_AROMATIC, 1, 3.0),
    aromatic(&[S, C, N, C, C], FIVE_AROMATIC, 1, 2.0),
    aromatic(&[C, C, C, C, C, C, C, C, C, C], SIX_SIX_AROMATIC, 2, 4.0),
    aromatic(&[N, C, C, C, C, C, C, C, C, C], SIX_SIX_AROMATIC, 2, 4.0),
    aromatic(&[C, C, C, C, C, C, C, N, C], SIX_FIVE_AROMATIC, 2, 5.0),
    aromatic(&[C, C, C, C, C, C, C, O, C], SIX_FIVE_AROMATIC, 2, 2.0),
    aromatic(&[C, C, C, C, C, N, C, N, C], SIX_FIVE_AROMATIC, 2, 3.0),
    saturated(&[C, C, C], THREE, 3.0),
    saturated(&[C, C, C, C], FOUR, 2.0),
    saturated(&[C, C, C, C, C], FIVE, 4.0),
    saturated(&[N, C, C, C, C], FIVE, 5.0),
    saturated(&[O, C, C, C, C], FIVE, 3.0),
    saturated(&[C, C, C, C, C, C], SIX, 5.0),
    saturated(&[N, C, C, C, C, C], SIX, 5.0),
    saturated(&[N, C, C, O, C, C], SIX, 3.0),
];

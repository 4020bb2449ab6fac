//! The periodic table as RDKit sees it: outer electrons and allowed valences (its `atomic_data.cpp`). The features
//! of an atom follow from these two lists and its bonds.

/// Highest atomic number known.
const HIGHEST: u8 = 118;

/// Electrons in the outer shell, by atomic number; index 0 is unused.
#[rustfmt::skip]
const OUTER_ELECTRONS: [u8; HIGHEST as usize + 1] = [
    0,
    1, 2,
    1, 2, 3, 4, 5, 6, 7, 8,
    1, 2, 3, 4, 5, 6, 7, 8,
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 2, 3, 4, 5, 6, 7, 8,
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 2, 3, 4, 5, 6, 7, 8,
    1, 2, 3, 4, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
    4, 5, 6, 7, 8, 9, 10, 11, 2, 3, 4, 5, 6, 7, 8,
    1, 2, 3, 4, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
];

/// Electrons in the outer shell of the element; 0 for an unknown atomic number.
pub(super) fn outer_electrons(atomic_number: u8) -> i32 {
    OUTER_ELECTRONS.get(usize::from(atomic_number)).map_or(0, |&count| i32::from(count))
}

/// Allowed valences of the neutral element, ascending; empty where any valence is allowed (transition metals).
#[rustfmt::skip]
pub(super) fn valences(atomic_number: u8) -> &'static [i32] {
    match atomic_number {
        2 | 10 | 18 | 36 | 86 => &[0],
        1 | 3 | 9 | 11 | 17 | 19 | 35 | 37 | 55 | 87 => &[1],
        4 | 8 | 12 | 20 | 38 | 56 | 88 => &[2],
        5 | 7 | 31 | 49 | 81 => &[3],
        6 | 32 => &[4],
        13 => &[3, 6],
        14 => &[4, 6],
        15 | 33 | 51 | 83 => &[3, 5, 7],
        16 | 34 | 52 | 84 => &[2, 4, 6],
        50 | 82 => &[2, 4],
        53 | 85 => &[1, 3, 5],
        54 => &[0, 2, 4, 6],
        _ => &[],
    }
}

/// Highest valence an atom may have; `None` where any is allowed. A charged atom counts as the neutral element with
/// as many electrons (N+ as C), except that charged P, S, As and Se keep their own list where it is the longer
/// (RDKit's `getEffectiveAtomicNum` and `canBeHypervalent`).
pub(super) fn highest_valence(atomic_number: u8, charge: i8) -> Option<i32> {
    let own = valences(atomic_number).last().copied()?;
    let electrons = (i32::from(atomic_number) - i32::from(charge)).clamp(0, i32::from(HIGHEST));
    let hypervalent = match atomic_number {
        15 | 16 => electrons > 16,
        33 | 34 => electrons > 34,
        _ => false,
    };
    if hypervalent {
        return Some(own);
    }
    u8::try_from(electrons).ok().and_then(|electrons| valences(electrons).last().copied())
}

/// Whether the element is a metal in RDKit's sense: bonds of a non-metal to it may be dative.
#[rustfmt::skip]
pub(super) fn is_metal(atomic_number: u8) -> bool {
    !matches!(atomic_number, 0..=2 | 5..=10 | 14..=18 | 33..=36 | 52..=54 | 85..=86)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_aligned() {
        for (atomic_number, electrons) in [
            (1, 1),
            (6, 4),
            (8, 6),
            (17, 7),
            (26, 8),
            (30, 2),
            (35, 7),
            (53, 7),
            (57, 3),
            (71, 15),
            (78, 10),
            (83, 5),
            (92, 4),
        ] {
            assert_eq!(outer_electrons(atomic_number), electrons, "element {atomic_number}");
        }
        assert_eq!(outer_electrons(200), 0);
    }

    #[test]
    fn charge_moves_an_atom_along_its_row() {
        assert_eq!(highest_valence(7, 0), Some(3));
        assert_eq!(highest_valence(7, 1), Some(4));
        assert_eq!(highest_valence(8, -1), Some(1));
        assert_eq!(highest_valence(16, 1), Some(7));
        assert_eq!(highest_valence(16, -1), Some(6));
        assert_eq!(highest_valence(26, 2), None);
        assert_eq!(highest_valence(35, 0), Some(1));
    }
}

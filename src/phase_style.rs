//! How phases look wherever they are drawn, on the screen and in reports: a letter each, and the default colours.

use gnntop_wire::phase;

/// Colours of one background, as `0xRRGGBB`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hexes {
    /// The standard phases, in the order of [`LETTERS`].
    pub phases: [u32; 8],
    /// The gap between phases.
    pub gap: u32,
    /// A program's own phases, in the order in which they turn up.
    pub others: [u32; 5],
    /// Dim text, accent, good, warning, alarm, and the series of a reading.
    pub texts: [u32; 6],
}

/// The default colours on a dark background.
pub(crate) const DARK: Hexes = Hexes {
    phases: [0xe69f00, 0xd98cb3, 0xd8cf5a, 0xd56e2f, 0x63b3e4, 0x2f7fc1, 0xb06ac9, 0x17a37c],
    gap: 0x8a8a8a,
    others: [0x9a8cd8, 0x7fb86a, 0xe07b7b, 0x5fc4c0, 0xb5966b],
    texts: [0x949494, 0x4fa3d9, 0x33a682, 0xd99500, 0xd97a69, 0x8fa3b5],
};

/// The default colours on a light background.
pub(crate) const LIGHT: Hexes = Hexes {
    phases: [0xaf8000, 0xb06090, 0x87875f, 0xd0601a, 0x4f8fbf, 0x00427a, 0xa85fd0, 0x0a8560],
    gap: 0x808080,
    others: [0x6f68c0, 0x5a8a4a, 0xc05f5f, 0x2f8585, 0x8a6a4a],
    texts: [0x6c6c6c, 0x005f87, 0x006b4b, 0x875f00, 0xaf1f00, 0x5a6580],
};

/// The standard phases with their letters.
pub(crate) const LETTERS: [(&str, char); 8] = [
    (phase::DATA_WAIT, 'W'),
    (phase::SAMPLE, 'S'),
    (phase::GATHER, 'G'),
    (phase::TRANSFER, 'T'),
    (phase::FORWARD, 'F'),
    (phase::BACKWARD, 'B'),
    (phase::ALL_REDUCE, 'A'),
    (phase::OPTIMIZER, 'O'),
];

/// The gap's letter.
pub(crate) const GAP_LETTER: char = '.';

/// Which of the colours a phase has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hue {
    /// That of the standard phase with this place in [`LETTERS`].
    Standard(usize),
    /// That of the gap.
    Gap,
    /// That of a program's own phase, by how many of them came before.
    Other(usize),
}

/// Letter and hue of the phases with these names, `None` being the gap; each letter is used once.
pub(crate) fn assign_letters<'a>(phases: impl IntoIterator<Item = Option<&'a str>>) -> Vec<(char, Hue)> {
    let mut taken: Vec<char> = LETTERS.iter().map(|(_, letter)| *letter).collect();
    let mut others = 0;
    let look = |phase: Option<&str>| {
        let Some(name) = phase else { return (GAP_LETTER, Hue::Gap) };
        if let Some(at) = LETTERS.iter().position(|(known, _)| *known == name) {
            return (LETTERS[at].1, Hue::Standard(at));
        }
        let letter = free_letter(name, &taken);
        taken.push(letter);
        others += 1;
        (letter, Hue::Other(others - 1))
    };
    phases.into_iter().map(look).collect()
}

/// The first letter of the name that is free, else the first free one of the alphabet, else `?`.
fn free_letter(name: &str, taken: &[char]) -> char {
    let own = name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_uppercase());
    own.chain('A'..='Z').chain('a'..='z').find(|letter| !taken.contains(letter)).unwrap_or('?')
}

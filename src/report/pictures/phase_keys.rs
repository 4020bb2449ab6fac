//! How phases look in a page: a letter and a class of the style each.

use crate::phase_style::{self, Hue};
use gnntop_analysis::store::GAP;

/// A phase's letter and class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::report) struct PhaseKey {
    pub letter: char,
    pub class: String,
}

/// The keys of the phases with these names, in the report's order, which is the screen's.
pub(in crate::report) fn phase_keys<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<PhaseKey> {
    let looks = phase_style::assign_letters(names.into_iter().map(|name| (name != GAP).then_some(name)));
    let key = |(letter, hue): (char, Hue)| PhaseKey {
        letter,
        class: match hue {
            Hue::Standard(at) => format!("p{at}"),
            Hue::Gap => "gap".to_owned(),
            Hue::Other(nth) => format!("o{}", nth % phase_style::DARK.others.len()),
        },
    };
    looks.into_iter().map(key).collect()
}

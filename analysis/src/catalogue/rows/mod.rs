//! The rows of the catalogue, by what they are about. A figure is added in one of these files.

mod batches;
mod device;
pub(super) mod energy;
mod epochs;
mod findings;
mod hardware;
mod losses;
mod memory;
mod program;
mod ranks;
mod steps;
mod times;

use super::row::Row;

pub(super) use hardware::statistics as statistics_of;
pub(super) use times::NAMED;

/// The section on what sensors measure.
pub(super) const HARDWARE: &str = "Hardware";

/// A heading and the rows below it.
pub(super) struct Section {
    pub title: &'static str,
    pub rows: &'static [Row],
}

/// All rows, in the order in which figures are listed.
pub(super) const SECTIONS: [Section; 12] = [
    Section { title: "Steps", rows: steps::ROWS },
    Section { title: "Phases and spans", rows: times::ROWS },
    Section { title: "Epochs", rows: epochs::ROWS },
    Section { title: "Batches", rows: batches::ROWS },
    Section { title: "A device's own time", rows: device::ROWS },
    Section { title: "Memory", rows: memory::ROWS },
    Section { title: "The program's own numbers", rows: program::ROWS },
    Section { title: HARDWARE, rows: hardware::ROWS },
    Section { title: "Energy and carbon", rows: energy::ROWS },
    Section { title: "Ranks", rows: ranks::ROWS },
    Section { title: "Findings", rows: findings::ROWS },
    Section { title: "Losses", rows: losses::ROWS },
];

/// The rows one after the other.
pub(super) fn all() -> impl Iterator<Item = &'static Row> {
    SECTIONS.iter().flat_map(|section| section.rows)
}

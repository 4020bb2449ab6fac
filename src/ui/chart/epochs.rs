//! Where epochs begin on the axis of the bars: each of them, or every tenth where they would be too close.

/// Columns that an epoch must have on average for each to have a line...
const COLUMNS_A_LINE: u64 = 8;
/// ...and for each to have its number.
const COLUMNS_A_NUMBER: u64 = 12;

/// Epochs that begin in view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EpochBoundaries {
    /// Columns with the epoch that begins there.
    numbered: Vec<(u16, u64)>,
    lines: Vec<u16>,
}

impl EpochBoundaries {
    /// The boundaries among columns with their epochs, oldest first, in a chart of this many columns.
    pub fn new(columns: impl Iterator<Item = (u16, u64)>, width: usize) -> Self {
        let mut before = None;
        let mut begun: Vec<(u16, u64, u64)> = Vec::new();
        for (x, epoch) in columns {
            if let Some(before) = before.filter(|before| *before != epoch) {
                begun.push((x, before, epoch));
            }
            before = Some(epoch);
        }
        let are_apart = |n: usize, columns: u64| n as u64 * columns <= width as u64;
        // Of too many, those that begin a round number of epochs.
        let apart = (0..19).flat_map(|power| [1, 2, 5].map(|n| n * 10u64.pow(power)));
        let shown = |apart: u64| begun.iter().filter(move |(_, before, epoch)| before / apart != epoch / apart);
        let apart = apart.into_iter().find(|apart| are_apart(shown(*apart).count(), COLUMNS_A_NUMBER));
        let numbered = apart.map(|apart| shown(apart).map(|(x, _, epoch)| (*x, epoch - epoch % apart)).collect());
        // Where not each deserves a line, none does.
        let lines =
            if are_apart(begun.len(), COLUMNS_A_LINE) { begun.iter().map(|(x, ..)| *x).collect() } else { vec![] };
        Self { numbered: numbered.unwrap_or_default(), lines }
    }

    /// Columns with the epoch that begins there or, of several in a column, the roundest one.
    pub fn numbered(&self) -> impl Iterator<Item = (u16, u64)> {
        self.numbered.iter().copied()
    }

    /// Columns that deserve a line.
    pub fn lines(&self) -> impl Iterator<Item = u16> {
        self.lines.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boundaries(epochs: impl Iterator<Item = u64>) -> EpochBoundaries {
        EpochBoundaries::new((8..).zip(epochs), 72)
    }

    #[test]
    fn few_epochs_are_all_shown() {
        let few = boundaries((0..72).map(|step| step / 24));
        assert_eq!(few.numbered().collect::<Vec<_>>(), [(32, 1), (56, 2)]);
        assert_eq!(few.lines().collect::<Vec<_>>(), [32, 56]);
    }

    #[test]
    fn where_each_step_is_an_epoch_some_have_a_number_and_none_a_line() {
        let many = boundaries(195..267);
        assert_eq!(many.numbered().collect::<Vec<_>>(), [(13, 200), (33, 220), (53, 240), (73, 260)]);
        assert_eq!(many.lines().count(), 0);
    }

    #[test]
    fn unordered_epochs_do_not_panic() {
        assert_eq!(boundaries(std::iter::empty()), EpochBoundaries::default());
        let wild = boundaries((0..72).map(|step| if step % 2 == 0 { u64::MAX } else { 0 }));
        assert!(wild.numbered().count() <= 9);
        assert_eq!(boundaries(std::iter::repeat_n(7, 72)).numbered().count(), 0);
    }
}

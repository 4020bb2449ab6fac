//! Where epochs begin on the axis of the bars: each of them, or every tenth where they would stand too close.

/// Columns that an epoch must have on average for each to be shown.
const COLUMNS_EACH: u64 = 8;

/// Epochs that begin in view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Boundaries {
    /// Columns with the epoch that begins there.
    all: Vec<(u16, u64)>,
    /// Whether others were left out.
    is_thinned: bool,
}

impl Boundaries {
    /// The boundaries among columns with their epochs, oldest first, in a chart of so many columns.
    pub fn of(columns: impl Iterator<Item = (u16, u64)>, width: usize) -> Self {
        let mut before = None;
        let mut begun: Vec<(u16, u64, u64)> = Vec::new();
        for (x, epoch) in columns {
            if let Some(before) = before.filter(|before| *before != epoch) {
                begun.push((x, before, epoch));
            }
            before = Some(epoch);
        }
        // Of too many, those that begin a round number of epochs.
        let apart = (0..19).flat_map(|power| [1, 2, 5].map(|n| n * 10u64.pow(power)));
        let shown = |apart: u64| begun.iter().filter(move |(_, before, epoch)| before / apart != epoch / apart);
        let fits = |apart: &u64| shown(*apart).count() as u64 * COLUMNS_EACH <= width as u64;
        let Some(apart) = apart.into_iter().find(fits) else { return Self { all: Vec::new(), is_thinned: true } };
        let all: Vec<(u16, u64)> = shown(apart).map(|(x, _, epoch)| (*x, epoch - epoch % apart)).collect();
        Self { is_thinned: all.len() < begun.len(), all }
    }

    /// Columns with the epoch that begins there or, of several in a column, the roundest one.
    pub fn all(&self) -> impl Iterator<Item = (u16, u64)> {
        self.all.iter().copied()
    }

    /// Columns that deserve a line: none where others would deserve it as much.
    pub fn lines(&self) -> impl Iterator<Item = u16> {
        self.all.iter().filter(|_| !self.is_thinned).map(|(x, _)| *x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(epochs: impl Iterator<Item = u64>) -> Boundaries {
        Boundaries::of((8..).zip(epochs), 72)
    }

    #[test]
    fn few_epochs_are_all_shown() {
        let few = of((0..72).map(|step| step / 24));
        assert_eq!(few.all().collect::<Vec<_>>(), [(32, 1), (56, 2)]);
        assert_eq!(few.lines().collect::<Vec<_>>(), [32, 56]);
    }

    #[test]
    fn where_each_step_is_an_epoch_every_tenth_has_a_number_and_none_a_line() {
        let many = of(195..267);
        assert_eq!(
            many.all().collect::<Vec<_>>(),
            [(13, 200), (23, 210), (33, 220), (43, 230), (53, 240), (63, 250), (73, 260)]
        );
        assert_eq!(many.lines().count(), 0);
    }

    #[test]
    fn odd_epochs_do_no_harm() {
        assert_eq!(of(std::iter::empty()), Boundaries::default());
        let wild = of((0..72).map(|step| if step % 2 == 0 { u64::MAX } else { 0 }));
        assert!(wild.all().count() <= 9);
        assert_eq!(of(std::iter::repeat_n(7, 72)).all().count(), 0);
    }
}

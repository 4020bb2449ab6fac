//! The columns of a table of runs: their names, what a run has in them, and which run comes first by them.

use std::cmp::Ordering;

use gnntop_analysis::figures::{bytes, elapsed_time, percent, quantity};
use gnntop_analysis::many_runs::{RunFigures, RunRow, RunState};

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// The run's id, or the session's name.
    Name,
    /// Whose it is.
    User,
    /// Its machines.
    Host,
    /// Its ranks.
    Ranks,
    /// How it is.
    State,
    /// Steps a second.
    Rate,
    /// The difference from its usual steps a second.
    Usual,
    /// What bounds it.
    Bound,
    /// The finding that matters most.
    Finding,
    /// How busy its GPUs are.
    Gpu,
    /// What is in use of their memory.
    Memory,
    /// Its power.
    Watts,
    /// The time that its batch job has left.
    Left,
    /// The age of its figures.
    Age,
}

/// All there is to know of a column, but what is in it.
struct ColumnRow {
    column: Column,
    /// Its name, for `--sort`.
    name: &'static str,
    heading: &'static str,
    /// Fewest and most columns of the screen that it takes.
    width: (usize, usize),
    /// Whether it holds figures, which end at its right.
    is_figure: bool,
    /// Where there is no room for all, those with the lowest numbers stay.
    place: u8,
}

const fn row(column: Column, names: [&'static str; 2], width: (usize, usize), is_figure: bool, place: u8) -> ColumnRow {
    ColumnRow { column, name: names[0], heading: names[1], width, is_figure, place }
}

/// In the order of [`Column`] and of the table.
static ROWS: [ColumnRow; 14] = [
    row(Column::Name, ["name", "NAME"], (10, 36), false, 0),
    row(Column::User, ["user", "USER"], (6, 12), false, 10),
    row(Column::Host, ["host", "HOST"], (6, 20), false, 9),
    row(Column::Ranks, ["ranks", "RANKS"], (5, 9), true, 8),
    row(Column::State, ["state", "STATE"], (15, 20), false, 1),
    row(Column::Rate, ["rate", "STEPS/S"], (7, 9), true, 2),
    row(Column::Usual, ["usual", "USUAL"], (6, 7), true, 3),
    row(Column::Bound, ["bound", "BOUND BY"], (12, 22), false, 4),
    row(Column::Finding, ["finding", "WORST FINDING"], (13, 34), false, 5),
    row(Column::Gpu, ["gpu", "GPU"], (5, 6), true, 6),
    row(Column::Memory, ["memory", "GPU MEM"], (8, 9), true, 11),
    row(Column::Watts, ["watts", "W"], (5, 7), true, 7),
    row(Column::Left, ["left", "LEFT"], (6, 8), true, 12),
    row(Column::Age, ["age", "AGE"], (4, 7), true, 13),
];

/// Figures that are younger are as good as new.
const FRESH_S: u64 = 10;

impl Column {
    /// All columns, in the table's order.
    pub const ALL: [Self; ROWS.len()] = {
        let mut all = [Self::Name; ROWS.len()];
        let mut at = 0;
        while at < all.len() {
            all[at] = ROWS[at].column;
            at += 1;
        }
        all
    };

    fn row(self) -> &'static ColumnRow {
        &ROWS[self as usize]
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The column with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|column| column.name() == name)
    }

    /// Its heading.
    pub fn heading(self) -> &'static str {
        self.row().heading
    }

    /// Whether it holds figures, which end at its right.
    pub fn is_figure(self) -> bool {
        self.row().is_figure
    }

    pub(super) fn width(self) -> (usize, usize) {
        self.row().width
    }

    pub(super) fn place(self) -> u8 {
        self.row().place
    }

    /// Whether what it says differs between these runs, or is known of one of them.
    pub(super) fn is_worth_room(self, rows: &[&RunRow]) -> bool {
        let differs = |of: fn(&RunRow) -> &str| rows.windows(2).any(|two| of(two[0]) != of(two[1]));
        match self {
            Self::User => differs(|row| &row.user),
            Self::Host => {
                differs(|row| row.hosts.first().map_or("", String::as_str))
                    || rows.iter().any(|row| row.hosts.len() > 1)
            }
            Self::Ranks => rows.iter().any(|row| row.ranks.0 > 1),
            Self::Gpu | Self::Memory | Self::Watts | Self::Left => rows.iter().any(|row| self.text(row).is_some()),
            Self::Age => rows.iter().any(|row| row.age().is_some_and(|age| age.as_secs() >= FRESH_S)),
            _ => true,
        }
    }

    /// What a run has in it; `None` where that is not known.
    pub fn text(self, row: &RunRow) -> Option<String> {
        let figures = || row.figures.as_ref().map(|figures| &figures.value);
        match self {
            Self::Name => Some(row.name.clone()),
            Self::User => Some(row.user.clone()),
            Self::Host => match row.hosts.as_slice() {
                [] => None,
                [one] => Some(one.clone()),
                [first, others @ ..] => Some(format!("{first} +{}", others.len())),
            },
            Self::Ranks => Some(match row.ranks {
                (ranks, published) if published < ranks as usize => format!("{published}/{ranks}"),
                (ranks, _) => ranks.to_string(),
            }),
            Self::State => Some(state_text(row)),
            Self::Rate => row.steps_per_s.as_ref().map(|rate| quantity(rate.value)),
            Self::Usual => row.change().map(change_text),
            Self::Bound => figures()?.bound.as_ref().map(|(phase, share)| format!("{phase} {}", percent(*share))),
            Self::Finding => finding_text(figures()?),
            Self::Gpu => figures()?.gpu_busy.map(percent),
            Self::Memory => figures()?.gpu_memory_bytes.map(bytes),
            Self::Watts => figures()?.watts.filter(|_| row.is_live()).map(|watts| format!("{watts:.0}")),
            Self::Left => row.time_left.map(elapsed_time),
            Self::Age => row.age().map(elapsed_time),
        }
    }

    /// Whether it was not looked at yet, rather than not known.
    pub fn is_awaited(self, row: &RunRow) -> bool {
        match self {
            Self::Rate | Self::Usual => row.is_live() && row.figures.is_none(),
            Self::Bound | Self::Finding | Self::Gpu | Self::Memory | Self::Watts => row.figures.is_none(),
            _ => false,
        }
    }

    /// Which of two runs comes first by this column: what a person looks for does. A run in which it is not known comes last.
    pub(super) fn compare(self, a: &RunRow, b: &RunRow) -> Ordering {
        let by_text = |column: Self| column.text(a).cmp(&column.text(b));
        match self {
            Self::Name | Self::User | Self::Host => by_text(self),
            Self::State => state_place(a.state).cmp(&state_place(b.state)),
            // The one furthest behind its usual pace, and the one with the least time, come first.
            Self::Usual => known_first(a.change(), b.change(), f64::total_cmp),
            Self::Left => known_first(a.time_left, b.time_left, Ord::cmp),
            Self::Bound => by_text(self).then_with(|| self.most_first(a, b)),
            _ => self.most_first(a, b),
        }
    }

    fn most_first(self, a: &RunRow, b: &RunRow) -> Ordering {
        known_first(self.figure(a), self.figure(b), |a, b| b.total_cmp(a))
    }

    fn figure(self, row: &RunRow) -> Option<f64> {
        let figures = || row.figures.as_ref().map(|figures| &figures.value);
        match self {
            Self::Ranks => Some(f64::from(row.ranks.0)),
            Self::Rate => Some(row.steps_per_s.as_ref()?.value),
            Self::Bound => Some(figures()?.bound.as_ref()?.1),
            Self::Finding => Some(figures()?.finding.as_ref()?.share.unwrap_or(0.0)),
            Self::Gpu => figures()?.gpu_busy,
            Self::Memory => figures()?.gpu_memory_bytes,
            Self::Watts => figures()?.watts,
            Self::Age => Some(row.age()?.as_secs_f64()),
            _ => None,
        }
    }
}

fn known_first<T>(a: Option<T>, b: Option<T>, compare: impl Fn(&T, &T) -> Ordering) -> Ordering {
    match (&a, &b) {
        (Some(a), Some(b)) => compare(a, b),
        _ => a.is_none().cmp(&b.is_none()),
    }
}

/// What needs a look comes first. How long it has been so does not matter, so that rows stay where they are.
fn state_place(state: RunState) -> u8 {
    match state {
        RunState::Silent(_) => 0,
        RunState::Still(_) => 1,
        RunState::Partly(..) => 2,
        RunState::Live => 3,
        RunState::Ended(_) => 4,
    }
}

fn state_text(row: &RunRow) -> String {
    let has_died = row.figures.as_ref().is_some_and(|figures| figures.value.died.is_some());
    match row.state {
        RunState::Live => "live".to_owned(),
        RunState::Partly(living, published) => format!("{living} of {published} live"),
        RunState::Still(time) => format!("no step for {}", elapsed_time(time)),
        RunState::Silent(time) => format!("silent for {}", elapsed_time(time)),
        RunState::Ended(ago) => {
            let how = if has_died { "died" } else { "ended" };
            ago.map_or_else(|| how.to_owned(), |ago| format!("{how} {} ago", elapsed_time(ago)))
        }
    }
}

fn change_text(change: f64) -> String {
    match 1.0 + change {
        times if times < 10.0 => format!("{:+.0} %", change * 100.0),
        times => format!("x {}", quantity(times.round())),
    }
}

fn finding_text(figures: &RunFigures) -> Option<String> {
    let finding = figures.finding.as_ref()?;
    Some(match finding.share {
        Some(share) => format!("{} {}", finding.title, percent(share)),
        None => finding.title.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::runs_table::example::run;
    use gnntop_analysis::many_runs::Aged;

    #[test]
    fn hardware_and_time_left_have_columns_where_they_are_known() {
        let hardware = [Column::Gpu, Column::Memory, Column::Watts, Column::Left];
        let plain = run("plain", RunState::Live, None);
        assert!(hardware.iter().all(|column| !column.is_worth_room(&[&plain]) && column.text(&plain).is_none()));
        let value = RunFigures {
            gpu_busy: Some(0.934),
            gpu_memory_bytes: Some(12e9),
            watts: Some(412.4),
            ..RunFigures::default()
        };
        let busy = RunRow {
            figures: Some(Aged { value, age: Duration::ZERO }),
            time_left: Some(Duration::from_secs(5_400)),
            ..run("busy", RunState::Live, None)
        };
        let texts = hardware.map(|column| column.text(&busy).unwrap());
        assert_eq!(texts, ["93 %", "11.2 GiB", "412", "1h 30m"].map(str::to_owned));
        assert!(hardware.iter().all(|column| column.is_worth_room(&[&plain, &busy])));
        // What is over takes no power.
        let over = RunRow { state: RunState::Ended(None), ..busy };
        assert_eq!(Column::Watts.text(&over), None);
        // The least time left comes first, and a run without a limit last.
        let hurried = RunRow { time_left: Some(Duration::from_secs(60)), ..plain.clone() };
        assert_eq!(Column::Left.compare(&hurried, &over), Ordering::Less);
        assert_eq!(Column::Left.compare(&plain, &hurried), Ordering::Greater);
    }

    #[test]
    fn columns_are_in_order_and_found_by_name() {
        for (at, (column, row)) in Column::ALL.into_iter().zip(&ROWS).enumerate() {
            assert_eq!((column as usize, row.column, Column::from_name(row.name)), (at, column, Some(column)));
            assert!(row.heading.len() <= row.width.1 && row.width.0 <= row.width.1, "{}", row.name);
        }
        let mut places: Vec<u8> = ROWS.iter().map(|row| row.place).collect();
        places.sort_unstable();
        assert_eq!(places, (0..14).collect::<Vec<u8>>());
    }

    #[test]
    fn changes_read_as_percent_or_times() {
        assert_eq!([-0.151, 0.0, 0.42, 11.0].map(change_text), ["-15 %", "+0 %", "+42 %", "x 12"]);
    }
}

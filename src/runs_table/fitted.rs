//! Which columns of a table of runs fit, and how wide they are.

use unicode_width::UnicodeWidthStr;

use super::column::Column;
use gnntop_analysis::many_runs::RunRow;

/// Columns of the screen between two of the table.
const BETWEEN: usize = 2;

/// A column of the table and how many columns of the screen it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FittedColumn {
    /// The column.
    pub column: Column,
    /// Columns of the screen before it, with those between it and the one before.
    pub x: usize,
    /// Columns of the screen.
    pub width: usize,
}

/// The columns that fit into this many of the screen, in the table's order. Those that say the same of all runs, or nothing, are
/// left out, then those that matter least; the room that is left goes to those that matter most.
pub fn fit(rows: &[&RunRow], room: usize) -> Vec<FittedColumn> {
    let mut by_place: Vec<Column> = Column::ALL.into_iter().filter(|column| column.is_worth_room(rows)).collect();
    by_place.sort_by_key(|column| column.place());
    let wanted = |column: Column| {
        let texts = rows.iter().map(|row| column.text(row).map_or(1, |text| text.width()));
        texts.max().unwrap_or(0).max(column.heading().len())
    };
    let mut left = room + BETWEEN;
    let mut fitted: Vec<(Column, usize, usize)> = Vec::new();
    for column in by_place {
        let (least, most) = column.width();
        let most = wanted(column).min(most);
        // A name is shown however little room there is.
        let least = least.min(most).min(if fitted.is_empty() { room } else { usize::MAX });
        if left < least + BETWEEN {
            break;
        }
        left -= least + BETWEEN;
        fitted.push((column, least, most));
    }
    for (_, width, most) in &mut fitted {
        let more = (*most - *width).min(left);
        (*width, left) = (*width + more, left - more);
    }
    fitted.sort_by_key(|(column, ..)| *column as usize);
    let mut x = 0;
    let place = |(column, width, _)| {
        let at = x;
        x += width + BETWEEN;
        FittedColumn { column, x: at, width }
    };
    fitted.into_iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::runs_table::example::run;
    use gnntop_analysis::many_runs::{Aged, RunFigures, RunState};

    fn run_on(host: &str, name: &str) -> RunRow {
        let value = RunFigures { bound: Some(("backward".to_owned(), 0.5)), ..RunFigures::default() };
        RunRow {
            hosts: vec![host.to_owned()],
            figures: Some(Aged { value, age: Duration::ZERO }),
            ..run(name, RunState::Live, Some(12.5))
        }
    }

    #[test]
    fn columns_never_exceed_their_room() {
        let rows = [run_on("elm", &"long".repeat(20)), run_on("oak", "前向传播")];
        let rows: Vec<&RunRow> = rows.iter().collect();
        for room in 0..200 {
            let fitted = fit(&rows, room);
            assert!(fitted.last().is_none_or(|last| last.x + last.width <= room), "{room}");
            assert!(fitted.windows(2).all(|two| two[0].x + two[0].width + BETWEEN == two[1].x));
            assert!(room < 10 || fitted[0].column == Column::Name);
        }
    }

    #[test]
    fn columns_that_say_nothing_are_left_out() {
        let has = |rows: &[RunRow], column| {
            fit(&rows.iter().collect::<Vec<_>>(), 500).iter().any(|fitted| fitted.column == column)
        };
        let mut rows = [run_on("elm", "a"), run_on("elm", "b")];
        for column in [Column::User, Column::Host, Column::Ranks, Column::Gpu, Column::Left, Column::Age] {
            assert!(!has(&rows, column), "{column:?}");
        }
        rows[0].user = "bo".to_owned();
        rows[0].hosts.push("oak".to_owned());
        rows[0].ranks = (4, 3);
        rows[0].time_left = Some(Duration::from_secs(60));
        for column in [Column::User, Column::Host, Column::Ranks, Column::Left, Column::Finding] {
            assert!(has(&rows, column), "{column:?}");
        }
    }
}

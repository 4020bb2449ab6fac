//! The order of the runs in a table.

use super::column::Column;
use gnntop_analysis::many_runs::RunRow;

/// By which column runs are sorted. Those that run always come before those that are over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// The column.
    pub column: Column,
    /// Whether the other way round.
    pub is_reversed: bool,
}

impl Default for Order {
    /// What needs a look comes first.
    fn default() -> Self {
        Self { column: Column::State, is_reversed: false }
    }
}

impl Order {
    /// By the next of these columns.
    #[must_use]
    pub fn next(self, shown: &[Column]) -> Self {
        let at = shown.iter().position(|column| *column == self.column);
        let next = at.map_or(0, |at| (at + 1) % shown.len().max(1));
        Self { column: shown.get(next).copied().unwrap_or(self.column), is_reversed: false }
    }

    /// The other way round.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self { is_reversed: !self.is_reversed, ..self }
    }

    /// Sorts runs. Equal ones are in the order of their names.
    pub fn sort(self, rows: &mut [&RunRow]) {
        rows.sort_by(|a, b| {
            let ordering = self.column.compare(a, b);
            let ordering = if self.is_reversed { ordering.reverse() } else { ordering };
            let over = a.is_live().cmp(&b.is_live()).reverse();
            over.then(ordering).then_with(|| (&a.name, &a.path).cmp(&(&b.name, &b.path)))
        });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::runs_table::example::run;
    use gnntop_analysis::many_runs::RunState;

    fn sorted(order: Order) -> String {
        let second = Duration::from_secs(1);
        let all = [
            run("over", RunState::Ended(Some(second)), None),
            run("b", RunState::Live, Some(3.0)),
            run("a", RunState::Live, Some(7.0)),
            run("new", RunState::Live, None),
            run("hung", RunState::Still(second * 40), Some(0.0)),
        ];
        let mut rows: Vec<&RunRow> = all.iter().collect();
        order.sort(&mut rows);
        rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_needs_a_look_comes_first_and_what_is_over_last() {
        assert_eq!(sorted(Order::default()), "hung a b new over");
        assert_eq!(sorted(Order::default().reversed()), "a b new hung over");
        let by = |column| sorted(Order { column, is_reversed: false });
        assert_eq!(by(Column::Rate), "a b hung new over");
        assert_eq!(by(Column::Name), "a b hung new over");
    }

    #[test]
    fn next_column_is_one_of_those_shown() {
        let shown = [Column::Name, Column::State, Column::Rate];
        let next = Order::default().reversed().next(&shown);
        assert_eq!(next, Order { column: Column::Rate, is_reversed: false });
        assert_eq!(next.next(&shown).column, Column::Name);
        assert_eq!(Order { column: Column::Gpu, is_reversed: false }.next(&shown).column, Column::Name);
        assert_eq!(next.next(&[]), next);
    }
}

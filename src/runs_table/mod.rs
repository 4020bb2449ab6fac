//! How a table of runs reads, on the screen and as text: its columns, their order, and which of them fit.

mod column;
mod fitted;
mod order;

pub use column::Column;
pub use fitted::{FittedColumn, fit};
pub use order::Order;

#[cfg(test)]
pub(crate) mod example {
    use std::time::Duration;

    use gnntop_analysis::many_runs::{Aged, RunRow, RunState};

    /// A run of one rank, of which nothing was read but its pace.
    pub(crate) fn run(name: &str, state: RunState, steps_per_s: Option<f64>) -> RunRow {
        RunRow {
            path: name.into(),
            name: name.to_owned(),
            pid: 1,
            command: String::new(),
            user: "ana".to_owned(),
            hosts: vec!["elm".to_owned()],
            ranks: (1, 1),
            state,
            running_for: None,
            time_left: None,
            step: None,
            steps_per_s: steps_per_s.map(|value| Aged { value, age: Duration::ZERO }),
            figures: None,
        }
    }
}

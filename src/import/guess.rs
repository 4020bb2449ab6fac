//! What the columns of a table mean by their names, as far as that is plain.

use gnntop_wire::phase::{DATA_WAIT, STANDARD};

use super::mapping::{Mapping, Role};
use super::units::{Scale, split_unit};

/// Names of columns without a unit, whatever their case and whatever joins their words.
const PLAIN: [(&str, Role); 25] = [
    ("step", Role::Step),
    ("step_idx", Role::Step),
    ("global_step", Role::Step),
    ("iteration", Role::Step),
    ("iter", Role::Step),
    ("epoch", Role::Epoch),
    ("loss", Role::Loss),
    ("train_loss", Role::Loss),
    ("graphs", Role::Graphs),
    ("batch_num_graphs", Role::Graphs),
    ("num_graphs", Role::Graphs),
    ("batch_size", Role::Graphs),
    ("nodes", Role::Nodes),
    ("batch_num_nodes", Role::Nodes),
    ("num_nodes", Role::Nodes),
    ("edges", Role::Edges),
    ("batch_num_edges", Role::Edges),
    ("num_edges", Role::Edges),
    ("seeds", Role::Seeds),
    ("num_seeds", Role::Seeds),
    ("timestamp", Role::End),
    ("time", Role::End),
    ("datetime", Role::End),
    ("end_time", Role::End),
    ("start_time", Role::Start),
];
/// What a time is called that a step took.
const DURATIONS: [&str; 10] = [
    "step",
    "batch",
    "iteration",
    "iter",
    "duration",
    "step_time",
    "batch_time",
    "iter_time",
    "iteration_time",
    "step_duration",
];
const ENDS: [&str; 7] = ["timestamp", "end", "time", "end_time", "elapsed", "elapsed_time", "wall_time"];
const STARTS: [&str; 3] = ["start", "start_time", "begin"];
const WAITS: [&str; 3] = ["data_wait", "data", "wait"];
/// What a column of names of phases is called.
const PHASE_NAMES: [&str; 2] = ["phase", "phase_name"];

/// What each column means, where that is plain.
pub fn guess(columns: &[String]) -> Vec<Mapping> {
    let mut found: Vec<Mapping> = columns.iter().filter_map(|column| of_column(column)).collect();
    // The phases of a step in the order in which it runs through them, whatever the table's order.
    let order = |mapping: &Mapping| match &mapping.role {
        Role::Phase(name) | Role::Before(name) => STANDARD.iter().position(|standard| standard == name),
        _ => None,
    };
    found.sort_by_key(order);
    found
}

/// Whether a column is called as one that names phases.
pub(super) fn is_phase_name(column: &str) -> bool {
    PHASE_NAMES.contains(&plain(column).as_str())
}

fn plain(name: &str) -> String {
    name.trim().to_lowercase().replace([' ', '-', '.'], "_")
}

fn of_column(column: &str) -> Option<Mapping> {
    let name = plain(column);
    let made = |role, scale| Some(Mapping { role, column: column.to_owned(), scale });
    if let Some((_, role)) = PLAIN.iter().find(|(known, _)| *known == name) {
        return made(role.clone(), None);
    }
    let scale = Scale::of_column(column).filter(Scale::is_time)?;
    let stem = plain(split_unit(column)?.0);
    let stem = stem.as_str();
    let role = match stem {
        _ if DURATIONS.contains(&stem) => Role::Duration,
        _ if ENDS.contains(&stem) => Role::End,
        _ if STARTS.contains(&stem) => Role::Start,
        _ if WAITS.contains(&stem) => Role::Before(DATA_WAIT.to_owned()),
        _ => {
            let stem = stem.strip_suffix("_time").unwrap_or(stem);
            Role::Phase(STANDARD.iter().find(|name| plain(name) == stem)?.to_string())
        }
    };
    made(role, Some(scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_are_guessed_in_the_order_of_a_step() {
        let columns = [
            "run_num",
            "epoch",
            "step_idx",
            "timestamp_s",
            "step_ms",
            "optimizer_ms",
            "Forward Time (ms)",
            "batch_num_edges",
            "ram_used_mb",
        ];
        let roles: Vec<Role> = guess(&columns.map(str::to_owned)).into_iter().map(|mapping| mapping.role).collect();
        let phase = |name: &str| Role::Phase(name.into());
        let expected =
            [Role::Epoch, Role::Step, Role::End, Role::Duration, Role::Edges, phase("forward"), phase("optimizer")];
        assert_eq!(roles, expected);
    }
}

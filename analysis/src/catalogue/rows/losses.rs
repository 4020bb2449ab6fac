//! What was lost on the way from the program to the figures.

use crate::catalogue::measured::Found;
use crate::catalogue::row::{Names, Row};
use crate::catalogue::statistic::Statistic;
use crate::figures::Unit;
use crate::store::Losses;

pub(in crate::catalogue) const ROWS: &[Row] = &[Row {
    subject: "lost.KIND",
    about: "events, steps and bytes that did not arrive: dropped_events, missed_events, lost_segments, missing_steps, \
            damage, damage_bytes, broken_blocks, events_not_kept",
    names: Names::Own("dropped_events", |_| LOSSES.map(|(name, ..)| name.to_owned()).to_vec()),
    statistics: |name| {
        let unit = LOSSES.iter().find(|(of, ..)| *of == name).map(|(_, unit, _)| *unit);
        unit.into_iter().map(|unit| (Statistic::Total, unit)).collect()
    },
    get: |context, name, _| {
        let losses = LOSSES.iter().find(|(of, ..)| *of == name).map(|(.., get)| get(context.store.losses()) as f64);
        Found::in_all(losses, "it is not counted")
    },
}];

type Loss = fn(&Losses) -> u64;

const LOSSES: [(&str, Unit, Loss); 8] = [
    ("dropped_events", Unit::Count, |losses| losses.dropped_events),
    ("missed_events", Unit::Count, |losses| losses.missed_events),
    ("lost_segments", Unit::Count, |losses| losses.lost_segments),
    ("missing_steps", Unit::Count, |losses| losses.missing_steps),
    ("damage", Unit::Count, |losses| losses.damage_count),
    ("damage_bytes", Unit::Bytes, |losses| losses.damage_bytes),
    ("broken_blocks", Unit::Count, |losses| losses.broken_blocks),
    ("events_not_kept", Unit::Count, |losses| losses.events_not_kept),
];

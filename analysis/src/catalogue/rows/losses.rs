//! What was lost on the way from the program to the figures.

use crate::catalogue::measured::FoundValue;
use crate::catalogue::row::{Names, Row};
use crate::catalogue::statistic::Statistic;
use crate::figures::FigureUnit;
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
        FoundValue::from_everything(losses, "it is not counted")
    },
}];

type Loss = fn(&Losses) -> u64;

const LOSSES: [(&str, FigureUnit, Loss); 8] = [
    ("dropped_events", FigureUnit::Count, |losses| losses.dropped_events),
    ("missed_events", FigureUnit::Count, |losses| losses.missed_events),
    ("lost_segments", FigureUnit::Count, |losses| losses.lost_segments),
    ("missing_steps", FigureUnit::Count, |losses| losses.missing_steps),
    ("damage", FigureUnit::Count, |losses| losses.damage_count),
    ("damage_bytes", FigureUnit::Bytes, |losses| losses.damage_bytes),
    ("broken_blocks", FigureUnit::Count, |losses| losses.broken_blocks),
    ("events_not_kept", FigureUnit::Count, |losses| losses.events_not_kept),
];

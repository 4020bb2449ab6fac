//! What was lost on the way from the program to the figures.

use crate::catalogue::measured::FoundValue;
use crate::catalogue::row::{Names, Row};
use crate::catalogue::statistic::Statistic;
use crate::store::{Loss, Losses};

pub(in crate::catalogue) const ROWS: &[Row] = &[Row {
    subject: "lost.KIND",
    about: "what did not arrive, or was left out: dropped_events, missed_events, lost_segments, missing_steps, damage, \
            damage_bytes, broken_blocks, foreign_segments, unknown_frames, repeated_blocks, backward_times, \
            implausible_times, steps_elsewhere, names_not_kept, tracks_not_kept, signals_not_kept, events_not_kept, \
            untiled (time around missing steps)",
    names: Names::Own("dropped_events", |context| {
        context.store.losses().counts().map(|loss| loss.name.to_owned()).to_vec()
    }),
    statistics: |name| find(&Losses::default(), name).map(|loss| (Statistic::Total, loss.unit)).into_iter().collect(),
    get: |context, name, _| {
        let loss = find(context.store.losses(), name);
        FoundValue::from_everything(loss.map(|loss| loss.value as f64), "it is not counted")
    },
}];

fn find(losses: &Losses, name: &str) -> Option<Loss> {
    losses.counts().into_iter().find(|loss| loss.name == name)
}

//! What was lost on the way from the program to the report, in words.

use gnntop_analysis::figures::{count, duration};
use gnntop_analysis::store::Losses;

/// What was lost, one sentence each.
pub(in crate::report) fn in_words(losses: &Losses) -> Vec<String> {
    let counts = [
        (losses.dropped_events, "events dropped by the program because a ring was full"),
        (losses.missed_events, "events published and not read"),
        (losses.lost_segments, "segments deleted before they could be read"),
        (losses.missing_steps, "missing steps"),
        (losses.damage_count, "damaged places"),
        (losses.damage_bytes, "bytes in damaged places"),
        (losses.broken_blocks, "truncated blocks"),
        (losses.foreign_segments, "segments of other sessions, skipped"),
        (losses.unknown_frames, "frames of an unknown kind, skipped"),
        (losses.repeated_blocks, "duplicate blocks"),
        (losses.backward_times, "events out of order in time"),
        (losses.implausible_times, "events with times far in the future"),
        (losses.steps_elsewhere, "steps on tracks other than the training track"),
        (losses.names_not_kept, "names dropped because the table is full"),
        (losses.tracks_not_kept, "tracks dropped because the table is full"),
        (losses.signals_not_kept, "signals dropped because the table is full"),
        (losses.events_not_kept, "events dropped because a table is full, or a name or signal is unknown"),
    ];
    let mut all: Vec<String> =
        counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{what}: {}", count(*n))).collect();
    if losses.untiled_ns > 0 {
        all.push(format!("time around missing steps: {}", duration(losses.untiled_ns)));
    }
    all.extend(losses.newer_format.map(|major| format!("parts in the newer format {major}: update gnntop")));
    all.extend(losses.damages.first().map(|damage| format!("first damage at byte: {}", damage.offset)));
    all
}

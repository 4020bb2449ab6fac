//! What was lost on the way from the program to the report, in words.

use gnntop_analysis::figures::{count, duration};
use gnntop_analysis::store::Losses;

/// What was lost, one sentence each.
pub(in crate::report) fn in_words(losses: &Losses) -> Vec<String> {
    let counts = [
        (losses.dropped_events, "events dropped by the program because a ring was full"),
        (losses.missed_events, "events published and not read"),
        (losses.lost_segments, "segments gone before they could be read"),
        (losses.missing_steps, "steps missing between others"),
        (losses.damage_count, "places damaged"),
        (losses.damage_bytes, "bytes in damaged places"),
        (losses.broken_blocks, "blocks that end early"),
        (losses.foreign_segments, "segments of other sessions, left out"),
        (losses.unknown_frames, "frames of an unknown kind, stepped over"),
        (losses.repeated_blocks, "blocks that came twice"),
        (losses.backward_times, "events out of order in time"),
        (losses.implausible_times, "events with times far in the future"),
        (losses.steps_elsewhere, "steps on other tracks than the training's"),
        (losses.names_not_kept, "definitions of names without room"),
        (losses.tracks_not_kept, "definitions of tracks without room"),
        (losses.signals_not_kept, "definitions of signals without room"),
        (losses.events_not_kept, "events without room, or of unknown names and signals"),
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

//! What is missing: every event, segment or byte that did not arrive is counted here.

use gnntop_wire::Damage;
use serde::Serialize;

use crate::figures::{FigureUnit, count};

/// Most holes in the stream that are listed; further ones are only counted.
const DAMAGES_KEPT: usize = 1024;

/// Counts of what was lost, left out or not understood. All zero in a healthy session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Losses {
    /// Events the publisher dropped because a ring was full, over all tracks.
    pub dropped_events: u64,
    /// Events that were published but not read, by their sequence numbers, over all tracks.
    pub missed_events: u64,
    /// Segments that the source could not read in time.
    pub lost_segments: u64,
    /// Blocks that ended before their announced number of events.
    pub broken_blocks: u64,
    /// Holes in the stream.
    pub damage_count: u64,
    /// Bytes in these holes, saturating.
    pub damage_bytes: u64,
    /// The first of these holes, at most 1,024.
    #[serde(serialize_with = "damages")]
    pub damages: Vec<Damage>,
    /// Frames of a kind that this version does not know.
    pub unknown_frames: u64,
    /// Newest major format version of segments that are too new to be read.
    pub newer_format: Option<u64>,
    /// Segments of other sessions mixed in; everything up to the next segment of this session was left out.
    pub foreign_segments: u64,
    /// Events with a time before that of the previous event on the same track.
    pub backward_times: u64,
    /// Events with a time more than a day after the newest reading of the clocks.
    pub implausible_times: u64,
    /// Blocks whose sequence numbers were already seen.
    pub repeated_blocks: u64,
    /// Steps that were lost between two steps, by their ordinals.
    pub missing_steps: u64,
    /// Wall time around lost steps that cannot be assigned to any phase, in nanoseconds.
    pub untiled_ns: u64,
    /// Steps reported by tracks other than the one whose steps are shown.
    pub steps_elsewhere: u64,
    /// Definitions of names for which there was no room. Definitions are repeated in every segment.
    pub names_not_kept: u64,
    /// Definitions of tracks for which there was no room.
    pub tracks_not_kept: u64,
    /// Definitions of signals for which there was no room.
    pub signals_not_kept: u64,
    /// Events for which there was no room, or that refer to an unknown name, track or signal.
    pub events_not_kept: u64,
}

/// One of the counts of what was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Its name in figures.
    pub name: &'static str,
    /// What it counts, in words.
    pub what: &'static str,
    /// Its unit.
    pub unit: FigureUnit,
    /// How much was lost.
    pub value: u64,
}

/// Holes as objects with their offset and length in bytes.
fn damages<S: serde::Serializer>(damages: &[Damage], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Hole {
        offset_bytes: u64,
        length_bytes: u64,
    }
    serializer.collect_seq(damages.iter().map(|hole| Hole { offset_bytes: hole.offset, length_bytes: hole.len }))
}

impl Losses {
    /// Whether nothing is missing.
    pub fn is_complete(&self) -> bool {
        *self == Self::default()
    }

    /// All counts, those that say most about the session first.
    pub fn counts(&self) -> [Loss; 18] {
        use FigureUnit::{Bytes, Count, Time};
        [
            ("dropped_events", self.dropped_events, Count, "events dropped by the program because a ring was full"),
            ("missed_events", self.missed_events, Count, "events published and not read"),
            ("lost_segments", self.lost_segments, Count, "segments deleted before they could be read"),
            ("missing_steps", self.missing_steps, Count, "missing steps"),
            ("damage", self.damage_count, Count, "damaged places"),
            ("damage_bytes", self.damage_bytes, Bytes, "size of damaged places"),
            ("broken_blocks", self.broken_blocks, Count, "truncated blocks"),
            ("foreign_segments", self.foreign_segments, Count, "segments of other sessions, skipped"),
            ("unknown_frames", self.unknown_frames, Count, "frames of an unknown kind, skipped"),
            ("repeated_blocks", self.repeated_blocks, Count, "duplicate blocks"),
            ("backward_times", self.backward_times, Count, "events out of order in time"),
            ("implausible_times", self.implausible_times, Count, "events with times far in the future"),
            ("steps_elsewhere", self.steps_elsewhere, Count, "steps on tracks other than the training track"),
            ("names_not_kept", self.names_not_kept, Count, "names dropped because the table is full"),
            ("tracks_not_kept", self.tracks_not_kept, Count, "tracks dropped because the table is full"),
            ("signals_not_kept", self.signals_not_kept, Count, "signals dropped because the table is full"),
            (
                "events_not_kept",
                self.events_not_kept,
                Count,
                "events dropped because a table is full, or a name or signal is unknown",
            ),
            ("untiled", self.untiled_ns, Time, "time around missing steps"),
        ]
        .map(|(name, value, unit, what)| Loss { name, what, unit, value })
    }

    /// What people must know about missing data, a few words each; empty if nothing is missing.
    pub fn describe(&self) -> Vec<String> {
        let events = [
            (self.dropped_events, "events dropped"),
            (self.missed_events, "events missed"),
            (self.events_not_kept, "events not kept"),
        ];
        let counted = events.iter().filter(|(events, _)| *events > 0);
        let mut words: Vec<String> = counted.map(|(events, what)| format!("{} {what}", count(*events))).collect();
        if self.steps_elsewhere > 0 {
            words.push("steps of other tracks are not shown".to_owned());
        }
        words
    }

    pub(super) fn add_damage(&mut self, damage: Damage) {
        self.damage_count += 1;
        self.damage_bytes = self.damage_bytes.saturating_add(damage.len);
        if self.damages.len() < DAMAGES_KEPT {
            self.damages.push(damage);
        }
    }
}

//! Notes that every source takes of the items that it passes on.

use gnntop_wire::{ClockOffset, Definition, Fact, Item, SessionInfo, StreamReader};

use super::polling::{DamageTotal, SourceState, Status};
use crate::stream::Sink;

/// Notes that every source takes of the items that it passes on.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) session: Option<SessionInfo>,
    pub(super) damage: DamageTotal,
    pub(super) newer_format: Option<u64>,
    /// Reason of a normal end.
    pub(super) end: Option<String>,
    /// The cause of its program's death, as a keyword.
    pub(super) death_cause: Option<String>,
    /// Number of blocks passed on.
    pub(super) blocks: u64,
    /// From the session's clock to this machine's, for the copy of one whose ranks did not compare theirs.
    pub(super) clock: Option<ClockOffset>,
}

impl Tally {
    /// Passes on everything that `reader` has now.
    pub(super) fn forward(&mut self, reader: &mut StreamReader, sink: &mut dyn Sink) {
        while let Some(mut item) = reader.next() {
            if let Item::Segment(SessionInfo { place: Some(place), .. }) = &mut item {
                place.clock = place.clock.or(self.clock);
            }
            self.note(&item);
            sink.apply(item);
        }
    }

    pub(super) fn note(&mut self, item: &Item<'_>) {
        match item {
            Item::Segment(info) => self.session = Some(info.clone()),
            Item::Damage(hole) => {
                self.damage.holes += 1;
                self.damage.bytes += hole.len;
                self.damage.first.get_or_insert(*hole);
            }
            Item::Newer { major } => self.newer_format = Some(*major),
            Item::End(end) => self.end = Some(end.reason.clone()),
            Item::Block(..) => self.blocks += 1,
            Item::Definitions(definitions) => self.note_death(definitions),
            _ => (),
        }
    }

    fn note_death(&mut self, definitions: &[Definition]) {
        for definition in definitions {
            if let Definition::Fact(Fact::Died { cause, .. }) = definition {
                self.death_cause = Some(cause.clone());
            }
        }
    }

    /// The status of a source that has ended for this reason, or keeps running.
    pub(super) fn status(&self, ended: Option<&str>) -> Status {
        let state = match ended {
            Some(why) => SourceState::Ended(why.to_owned()),
            None if self.session.is_none() => SourceState::Waiting,
            None => SourceState::Running,
        };
        let (damage, newer_format) = (self.damage, self.newer_format);
        Status { title: self.title(), state, damage, newer_format, ..Status::default() }
    }

    /// `name (pid 4711)`, the name alone of an imported recording, or `unknown` before the first segment.
    pub(super) fn title(&self) -> String {
        match &self.session {
            Some(info) if info.pid == 0 => info.name.clone(),
            Some(info) => format!("{} (pid {})", info.name, info.pid),
            None => "unknown".to_owned(),
        }
    }
}

//! Continues a store with the next start of its run.

use gnntop_wire::{Fact, NameId, NameKind, SessionInfo, TrackId};

use super::attempts::{Attempt, Attempts};
use super::contents::Store;
use super::instants::StoredMark;
use super::translation::{KnownIds, Translation};
use crate::stream::{ClockEvidence, align};

/// The mark at every start except the first.
const RESTART: &str = "restart";
/// Why there are no readings between two starts.
const NOT_RUNNING: &str = "the program did not run";

impl Store {
    /// The starts of the run.
    pub fn attempts(&self) -> &Attempts {
        &self.attempts
    }

    /// Continues with another session, the next start of the same run: its items follow what is known, with the ids and the
    /// clock of the first.
    pub fn begin_attempt(&mut self, info: SessionInfo) {
        let Some(origin) = self.session.origin() else { return self.apply(gnntop_wire::Item::Segment(info)) };
        self.revision += 1;
        if !self.attempts.is_restarted() {
            self.attempts.push(Attempt::from_session(origin, origin.start.monotonic_ns, 0));
        }
        let offset_ns = self.offset_to(&info, origin);
        self.attempts.close();
        let steps = self.steps.total();
        let mut translation = Translation::new(&self.known_ids(), offset_ns, steps);
        let start = translation.anchor(info.start);
        self.attempts.push(Attempt::from_session(&info, start.monotonic_ns, steps));
        self.note_time(start.monotonic_ns);
        let reason = self.define_name(&mut translation, NOT_RUNNING);
        self.interrupt(start.monotonic_ns, reason);
        let track = self.tracks.main().map_or(TrackId(0), |track| track.id);
        let name = self.define_name(&mut translation, RESTART);
        self.marks.push(StoredMark { track, name, t_ns: start.monotonic_ns, value: None, took_ns: None });
        self.session.begin_attempt(info, start);
        (self.has_past, self.is_foreign) = (false, false);
        self.translation = Some(Box::new(translation));
    }

    /// The offset to add to a session's times. Even if a clock went back, no start precedes the end of the previous one.
    fn offset_to(&self, info: &SessionInfo, origin: &SessionInfo) -> i64 {
        let alignment = align(info, origin);
        let start_ns = info.start.monotonic_ns.saturating_add_signed(alignment.offset_ns);
        let behind_ns = self.now_ns.saturating_sub(start_ns);
        match alignment.evidence {
            ClockEvidence::SameClock => alignment.offset_ns,
            _ => alignment.offset_ns.saturating_add(i64::try_from(behind_ns).unwrap_or(i64::MAX)),
        }
    }

    fn known_ids(&self) -> KnownIds<'_> {
        let signals = self.signals.all().iter();
        KnownIds {
            names: self.names.all().collect(),
            tracks: self.tracks.all().iter().map(|track| (track.id.0, track.role, track.text.as_str())).collect(),
            signals: signals.map(|signal| (signal.id.0, &signal.metric)).collect(),
            max: [self.names.capacity(), self.tracks.capacity(), self.signals.capacity()],
        }
    }

    /// The id of one of our own names among the program's.
    fn define_name(&mut self, translation: &mut Translation, text: &str) -> NameId {
        let id = translation.define_name(text);
        if self.names.define(id, NameKind::Text, text.to_owned()) { id } else { NameId::NONE }
    }

    /// Ends everything that was in progress.
    fn interrupt(&mut self, t_ns: u64, reason: NameId) {
        self.tracks.begin_attempt();
        self.device.iter_mut().for_each(|device| device.begin_attempt());
        self.signals.interrupt(t_ns, reason);
        self.counters.interrupt(t_ns, reason);
        self.meters.interrupt();
        self.sampled.begin_attempt();
        self.memory.interrupt();
    }

    pub(super) fn set_fact(&mut self, fact: Fact) {
        if let Fact::Resumed { steps } = fact {
            self.attempts.set_resumed(steps);
        }
        if let Fact::NotRecorded { what, amount } = &fact
            && what == Fact::FIRST_STEPS
            // It is repeated in every segment.
            && self.session.facts().get(&fact.key()) != Some(&fact)
        {
            let missing = amount.parse().unwrap_or(0);
            self.losses.missing_steps = self.losses.missing_steps.saturating_add(missing);
        }
        self.session.set_fact(fact);
    }
}

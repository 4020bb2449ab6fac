//! The starts of a run that was ended and started again: one history, with the times in which it did not run.

use gnntop_wire::{NameId, NameKind, RESUMED, SessionInfo, TrackId};

use super::contents::Store;
use super::instants::Instant;
use super::translation::{Known, Translation};
use crate::stream::{Evidence, align};

/// Starts that are kept, the newest. What is left out is counted.
const MOST_ATTEMPTS: usize = 1000;
/// The mark at each start but the first.
const RESTART: &str = "restart";
/// Why there are no readings in between.
const NOT_RUNNING: &str = "the program did not run";

/// One start of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Its session.
    pub session_id: u128,
    /// Its process.
    pub pid: u32,
    /// Where it ran.
    pub host: String,
    /// When it began, on the clock of all events.
    pub start_ns: u64,
    /// Ordinal of its first step in the history of the run.
    pub first_ordinal: u64,
    /// When its first step began; `None` before that has ended.
    pub first_step_ns: Option<u64>,
    /// When its newest step ended.
    pub last_step_ns: Option<u64>,
    /// Steps of the run that were done when the checkpoint was written that it goes on from; `None` where it does not say.
    pub resumed: Option<u64>,
}

/// The starts of a run, oldest first.
#[derive(Clone, Debug, Default)]
pub struct Attempts {
    all: Vec<Attempt>,
    /// Older ones, which are no longer kept.
    left_out: u64,
    first_step_ns: Option<u64>,
    last_step_ns: Option<u64>,
    resumed: Option<u64>,
}

impl Attempts {
    /// Starts before the one that goes on now, oldest first, as far as they are kept.
    pub fn earlier(&self) -> &[Attempt] {
        self.all.split_last().map_or(&[], |(_, earlier)| earlier)
    }

    /// All starts; none where there was only one.
    pub fn all(&self) -> Vec<Attempt> {
        let mut all = self.all.clone();
        if let Some(newest) = all.last_mut() {
            (newest.first_step_ns, newest.last_step_ns) = (self.first_step_ns, self.last_step_ns);
            newest.resumed = self.resumed;
        }
        all
    }

    /// How many times the run was started, kept or not.
    pub fn count(&self) -> u64 {
        (self.all.len() as u64 + self.left_out).max(1)
    }

    /// Older starts that are no longer kept.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Ordinal of the first step of the newest start.
    pub(super) fn first_ordinal(&self) -> u64 {
        self.all.last().map_or(0, |newest| newest.first_ordinal)
    }

    pub(super) fn is_restarted(&self) -> bool {
        !self.all.is_empty()
    }

    /// Notes a step of the newest start.
    #[inline]
    pub(super) fn note_step(&mut self, start_ns: u64, end_ns: u64) {
        self.first_step_ns.get_or_insert(start_ns);
        self.last_step_ns = self.last_step_ns.max(Some(end_ns));
    }

    fn close(&mut self) {
        if let Some(newest) = self.all.last_mut() {
            (newest.first_step_ns, newest.last_step_ns) = (self.first_step_ns.take(), self.last_step_ns.take());
            newest.resumed = self.resumed.take();
        }
    }

    fn push(&mut self, attempt: Attempt) {
        if self.all.len() >= MOST_ATTEMPTS {
            self.all.remove(0);
            self.left_out += 1;
        }
        self.all.push(attempt);
    }
}

impl Attempt {
    fn of(info: &SessionInfo, start_ns: u64, first_ordinal: u64) -> Self {
        Self {
            session_id: info.session_id,
            pid: info.pid,
            host: info.host.clone(),
            start_ns,
            first_ordinal,
            first_step_ns: None,
            last_step_ns: None,
            resumed: None,
        }
    }
}

impl Store {
    /// The starts of the run.
    pub fn attempts(&self) -> &Attempts {
        &self.attempts
    }

    /// Goes on with another session, which is the next start of the same run: what comes now follows what is known, under the
    /// ids and on the clock of the first.
    pub fn begin_attempt(&mut self, info: SessionInfo) {
        let Some(origin) = self.session.origin() else { return self.apply(gnntop_wire::Item::Segment(info)) };
        self.revision += 1;
        if !self.attempts.is_restarted() {
            self.attempts.push(Attempt::of(origin, origin.start.monotonic_ns, 0));
        }
        let offset_ns = self.offset_to(&info, origin);
        self.attempts.close();
        let steps = self.steps.total();
        let mut translation = Translation::new(&self.known(), offset_ns, steps);
        let start = translation.anchor(info.start);
        self.attempts.push(Attempt::of(&info, start.monotonic_ns, steps));
        self.see(start.monotonic_ns);
        let reason = self.own_name(&mut translation, NOT_RUNNING);
        self.interrupt(start.monotonic_ns, reason);
        let track = self.tracks.main().map_or(TrackId(0), |track| track.id);
        let name = self.own_name(&mut translation, RESTART);
        self.marks.push(Instant { track, name, t_ns: start.monotonic_ns, value: None });
        self.session.begin_attempt(info, start);
        (self.has_past, self.is_foreign) = (false, false);
        self.translation = Some(Box::new(translation));
    }

    /// What to add to a session's times. A clock that went back puts no start before the end of the one before.
    fn offset_to(&self, info: &SessionInfo, origin: &SessionInfo) -> i64 {
        let alignment = align(info, origin);
        let start_ns = info.start.monotonic_ns.saturating_add_signed(alignment.offset_ns);
        let behind_ns = self.now_ns.saturating_sub(start_ns);
        match alignment.evidence {
            Evidence::SameClock => alignment.offset_ns,
            _ => alignment.offset_ns.saturating_add(i64::try_from(behind_ns).unwrap_or(i64::MAX)),
        }
    }

    fn known(&self) -> Known<'_> {
        let signals = self.signals.all().iter();
        Known {
            names: self.names.all().collect(),
            tracks: self.tracks.all().iter().map(|track| (track.id.0, track.role, track.text.as_str())).collect(),
            signals: signals.map(|signal| (signal.id.0, signal.unit, signal.kind, signal.name.as_str())).collect(),
            most: [self.names.capacity(), self.tracks.capacity(), self.signals.capacity()],
        }
    }

    /// The id of a name of ours among those of the program.
    fn own_name(&mut self, translation: &mut Translation, text: &str) -> NameId {
        let id = translation.own_name(text);
        if self.names.define(id, NameKind::Text, text.to_owned()) { id } else { NameId::NONE }
    }

    /// Whatever went on has ended.
    fn interrupt(&mut self, t_ns: u64, reason: NameId) {
        self.tracks.begin_attempt();
        self.device.iter_mut().for_each(|device| device.begin_attempt());
        self.signals.interrupt(t_ns, reason);
        self.counters.interrupt(t_ns, reason);
        self.meters.interrupt();
        self.memory.interrupt();
    }

    pub(super) fn set_fact(&mut self, key: String, text: String) {
        if key == RESUMED {
            self.attempts.resumed = text.parse().ok();
        }
        self.session.set_fact(key, text);
    }
}

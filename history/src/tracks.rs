//! The tracks of a stream: how far each was read, and on which one the training runs.

use gnntop_wire::past::{TrackEnd, Unfinished};
use gnntop_wire::{BlockInfo, NameId, TrackId, TrackRole};

use crate::tiling::Tiling;

/// Most tracks that are kept apart.
const MAX_TRACKS: usize = 4096;
/// More than any track reaches; larger numbers are clamped to this, so that no sum overflows.
const MAX_COUNT: u64 = 1 << 56;
/// Most tracks that collect phases before the training track is known.
const MAX_TILINGS: usize = 64;

/// One track.
#[derive(Debug, Default)]
pub(crate) struct Track {
    pub(crate) end: TrackEnd,
    pub(crate) role: TrackRole,
    /// Its name, if the training may run on it.
    name: String,
    pub(crate) tiling: Option<Box<Tiling>>,
}

/// All tracks, by id.
#[derive(Debug, Default)]
pub(crate) struct Tracks {
    all: Vec<Option<Box<Track>>>,
    has_training: bool,
    training: Option<TrackId>,
    /// The newest step there.
    last_step: u64,
    tilings: usize,
}

impl Tracks {
    pub(crate) fn define(&mut self, id: TrackId, role: TrackRole, name: &str) {
        let is_training = role == TrackRole::Training;
        self.has_training |= is_training;
        if let Some(track) = self.get(id) {
            track.role = role;
            track.name = if is_training { name.to_owned() } else { String::new() };
        }
    }

    /// The track with this id; `None` beyond the limit.
    pub(crate) fn get(&mut self, id: TrackId) -> Option<&mut Track> {
        let at = id.0 as usize;
        if at >= MAX_TRACKS {
            return None;
        }
        if at >= self.all.len() {
            self.all.resize_with(at + 1, || None);
        }
        let new = || Box::new(Track { end: TrackEnd { track: id, ..TrackEnd::default() }, ..Track::default() });
        Some(self.all[at].get_or_insert_with(new))
    }

    /// Follows the track's sequence numbers over a block.
    pub(crate) fn begin_block(&mut self, info: &BlockInfo) -> Option<&mut Track> {
        let end = &mut self.begin(info.track, info.first_seq, info.dropped)?.end;
        end.next_seq = info.first_seq.saturating_add(info.count);
        end.events = end.events.saturating_add(info.count);
        self.get(info.track)
    }

    /// Makes a track collect phases if it may be the training track, and notes what was lost before its event `seq`.
    pub(crate) fn begin(&mut self, id: TrackId, seq: u64, dropped: u64) -> Option<&mut Track> {
        let may_tile = self.is_training(id);
        let (has_training, has_room) = (self.has_training, self.tilings < MAX_TILINGS);
        let track = self.get(id)?;
        let may_tile = may_tile && (!has_training || track.role == TrackRole::Training);
        let is_new = may_tile && track.tiling.is_none() && has_room;
        if is_new {
            track.tiling = Some(Box::new(Tiling::new()));
        } else if !may_tile {
            track.tiling = None;
        }
        let end = &mut track.end;
        let is_whole = seq <= end.next_seq && dropped <= end.dropped;
        if let Some(tiling) = track.tiling.as_mut().filter(|_| !is_whole && end.events > 0) {
            tiling.note_loss();
        }
        end.dropped = end.dropped.max(dropped);
        self.tilings += usize::from(is_new);
        self.get(id)
    }

    /// Continues from a track's earlier state.
    pub(crate) fn resume(&mut self, end: &TrackEnd) {
        if let Some(track) = self.get(end.track) {
            let TrackEnd { events, spans, steps, .. } = *end;
            track.end = TrackEnd {
                events: events.min(MAX_COUNT),
                spans: spans.min(MAX_COUNT),
                steps: steps.min(MAX_COUNT),
                ..*end
            };
        }
    }

    /// Whether the steps of this track are the run's, may continue them, or may be them while none are known.
    pub(crate) fn is_training(&self, id: TrackId) -> bool {
        self.training.is_none_or(|training| training == id || self.may_continue(training, id))
    }

    /// Whether a step on this track is one of the run's; the first track that may have steps is the training track, until
    /// another thread continues its steps.
    pub(crate) fn claim_steps(&mut self, id: TrackId, step: u64) -> bool {
        let may_tile = self.get(id).is_some_and(|track| track.tiling.is_some());
        let is_next = match self.training {
            None => may_tile,
            Some(training) => {
                may_tile && step.checked_sub(1) == Some(self.last_step) && self.may_continue(training, id)
            }
        };
        if is_next {
            self.training = Some(id);
        }
        if self.training == Some(id) {
            self.last_step = step;
        }
        self.training == Some(id)
    }

    /// Whether a track without a step so far may be another thread's that continues this training: it has the same name.
    fn may_continue(&self, training: TrackId, id: TrackId) -> bool {
        let track = |id: TrackId| self.all.get(id.0 as usize)?.as_deref();
        let (Some(training), Some(track)) = (track(training), track(id)) else { return false };
        let is_training = |track: &Track| track.role == TrackRole::Training;
        is_training(training) && is_training(track) && track.end.steps == 0 && track.name == training.name
    }

    /// The state of all tracks.
    pub(crate) fn ends(&self) -> Vec<TrackEnd> {
        self.all.iter().flatten().map(|track| track.end).filter(|end| end.events > 0).collect()
    }

    /// The phases that wait for the end of their step, with each slot's name.
    pub(crate) fn unfinished(&self, names: &[NameId]) -> Option<Unfinished> {
        let track = self.all.get(self.training?.0 as usize)?.as_ref()?;
        let waiting = track.tiling.as_ref()?.waiting()?;
        let named = |(slot, start_ns, end_ns): (u8, u64, u64)| Some((*names.get(usize::from(slot))?, start_ns, end_ns));
        Some(Unfinished {
            track: track.end.track,
            last_end_ns: waiting.last_end_ns,
            last_step: waiting.last_step,
            phases: waiting.phases.into_iter().filter_map(named).collect(),
        })
    }
}

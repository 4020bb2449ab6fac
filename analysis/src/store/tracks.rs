//! The tracks of a session, and what is known of each: its thread, its losses, its open span.

use gnntop_history::Tiling;
use gnntop_wire::past::TrackEnd;
use gnntop_wire::{BlockInfo, Open, TrackId, TrackRole};

use super::spans::lanes::{Lane, MAX_LANES, lane_capacity};

/// Most tracks that collect phases before the training track is known.
const MAX_TILINGS: usize = 64;

/// One track.
#[derive(Clone, Debug)]
pub struct Track {
    /// Its id.
    pub id: TrackId,
    /// Its name; empty if it was never defined.
    pub text: String,
    /// What its thread is for.
    pub role: TrackRole,
    /// The system's id of its thread; 0 if unknown.
    pub thread_id: u64,
    /// Events read.
    pub events: u64,
    /// Spans read.
    pub spans: u64,
    /// Steps read.
    pub steps: u64,
    /// Events the publisher dropped because the ring was full.
    pub dropped: u64,
    /// Events that were published but not read.
    pub missed: u64,
    /// Events before the first one read, as in a recording of only the last minutes.
    pub skipped: u64,
    /// Time of the newest event; `None` before the first.
    pub last_ns: Option<u64>,
    /// The last span reported as open; [`crate::store::Store::open_spans`] knows whether it still is.
    pub(super) open: Option<Open>,
    /// Events dropped by earlier starts of the run.
    previous_dropped: u64,
    pub(super) next_seq: Option<u64>,
    pub(super) tiling: Option<Box<Tiling>>,
    pub(super) lane: Option<Box<Lane>>,
}

/// What is missing before a block, according to its header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Missing {
    pub dropped: u64,
    pub missed: u64,
    pub is_repeated: bool,
}

impl Track {
    fn new(id: TrackId) -> Self {
        Self {
            id,
            text: String::new(),
            role: TrackRole::Other,
            thread_id: 0,
            events: 0,
            spans: 0,
            steps: 0,
            dropped: 0,
            missed: 0,
            skipped: 0,
            last_ns: None,
            open: None,
            previous_dropped: 0,
            next_seq: None,
            tiling: None,
            lane: None,
        }
    }

    /// Its spans as boxes in time; `None` if it has none, or if there are too many tracks for all to have one.
    pub fn lane(&self) -> Option<&Lane> {
        self.lane.as_deref().filter(|lane| lane.first_ns().is_some())
    }

    /// Continues from the track's state at the end of the dropped past.
    pub(super) fn resume(&mut self, past: &TrackEnd) {
        self.events = self.events.saturating_add(past.events);
        self.spans = self.spans.saturating_add(past.spans);
        self.steps = self.steps.saturating_add(past.steps);
        self.dropped = self.previous_dropped.saturating_add(past.dropped);
        (self.next_seq, self.last_ns) = (Some(past.next_seq), Some(past.last_ns));
    }

    /// Follows the track's sequence numbers and drops.
    pub(super) fn begin_block(&mut self, info: &BlockInfo) -> Missing {
        let dropped_so_far = self.previous_dropped.saturating_add(info.dropped);
        let dropped = dropped_so_far.saturating_sub(self.dropped);
        self.dropped = self.dropped.max(dropped_so_far);
        let missed = match self.next_seq {
            Some(next) => info.first_seq.saturating_sub(next),
            None => {
                self.skipped = info.first_seq;
                0
            }
        };
        let is_repeated = self.next_seq.is_some_and(|next| info.first_seq < next);
        self.missed = self.missed.saturating_add(missed);
        self.next_seq = Some(info.first_seq.saturating_add(info.count));
        if let Some(tiling) = &mut self.tiling
            && (dropped > 0 || missed > 0)
        {
            tiling.note_loss();
        }
        Missing { dropped, missed, is_repeated }
    }
}

/// The tracks of a session, in the order of appearance.
#[derive(Clone, Debug)]
pub(super) struct Tracks {
    all: Vec<Track>,
    /// Index in `all` by id, plus one; 0 for none. Ids beyond the limit have no track.
    by_id: Vec<u32>,
    capacity: usize,
    /// Most boxes of all lanes together.
    boxes: usize,
    /// The track whose steps fill the step table.
    main: Option<usize>,
    /// Whether it belongs to an earlier start of the run: the current one has none yet.
    is_previous_attempt: bool,
    /// Whether any track has the role of running the training loop.
    has_training: bool,
    /// Number of tracks that were ever given room to collect phases.
    tilings: usize,
    /// Number of tracks with a lane of boxes.
    lanes: usize,
}

impl Tracks {
    pub(super) fn new(capacity: usize, boxes: usize) -> Self {
        let (all, by_id) = (Vec::new(), Vec::new());
        let (is_previous_attempt, has_training) = (false, false);
        Self { all, by_id, capacity, boxes, main: None, is_previous_attempt, has_training, tilings: 0, lanes: 0 }
    }

    /// Most tracks.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Begins another start of the run: closes open spans, and the training track must be found again.
    pub(super) fn begin_attempt(&mut self) {
        for track in &mut self.all {
            (track.open, track.next_seq, track.tiling) = (None, None, None);
            track.previous_dropped = track.dropped;
        }
        (self.is_previous_attempt, self.has_training, self.tilings) = (true, false, 0);
    }

    pub(super) fn all(&self) -> &[Track] {
        &self.all
    }

    /// The index of the track with this id, created now if needed; `None` beyond the limit.
    pub(super) fn index(&mut self, id: TrackId) -> Option<usize> {
        let at = id.0 as usize;
        if at >= self.capacity {
            return None;
        }
        if at >= self.by_id.len() {
            self.by_id.resize(at + 1, 0);
        }
        if self.by_id[at] == 0 {
            self.all.push(Track::new(id));
            self.by_id[at] = self.all.len() as u32;
        }
        Some(self.by_id[at] as usize - 1)
    }

    pub(super) fn get(&self, id: TrackId) -> Option<&Track> {
        let index = self.by_id.get(id.0 as usize)?.checked_sub(1)?;
        self.all.get(index as usize)
    }

    pub(super) fn get_mut(&mut self, index: usize) -> &mut Track {
        &mut self.all[index]
    }

    /// Defines a track; `false` if there is no room for it.
    pub(super) fn define(&mut self, id: TrackId, role: TrackRole, thread_id: u64, text: String) -> bool {
        let Some(index) = self.index(id) else { return false };
        let track = &mut self.all[index];
        (track.role, track.thread_id, track.text) = (role, thread_id, text);
        self.has_training |= role == TrackRole::Training;
        true
    }

    /// Whether phases on this track may tile steps: it runs the training loop, or may continue it, or no track claims to.
    pub(super) fn may_tile(&self, index: usize) -> bool {
        match self.main.filter(|_| !self.is_previous_attempt) {
            Some(main) => main == index || self.may_continue(main, index),
            None => !self.has_training || self.all[index].role == TrackRole::Training,
        }
    }

    /// Makes exactly the tracks that may tile steps collect phases, up to a fixed number of them.
    pub(super) fn prepare_tiling(&mut self, index: usize) {
        if !self.may_tile(index) {
            self.all[index].tiling = None;
        } else if self.all[index].tiling.is_none() && self.tilings < MAX_TILINGS {
            self.tilings += 1;
            self.all[index].tiling = Some(Box::new(Tiling::new()));
        }
    }

    /// Gives a track with spans a lane, up to a fixed number of tracks.
    pub(super) fn prepare_lane(&mut self, index: usize) {
        if self.all[index].lane.is_none() && self.lanes < MAX_LANES {
            self.lanes += 1;
            self.all[index].lane = Some(Box::default());
        }
    }

    /// Most boxes that a lane may keep.
    pub(super) fn lane_capacity(&self) -> usize {
        lane_capacity(self.lanes, self.boxes)
    }

    /// Takes the lanes from the same tracks of another store.
    pub(super) fn take_lanes_from(&mut self, other: Self) {
        self.lanes = other.lanes;
        for (own, track) in self.all.iter_mut().zip(other.all) {
            own.lane = track.lane;
        }
    }

    /// The track whose steps fill the step table.
    pub(super) fn main(&self) -> Option<&Track> {
        self.main.map(|index| &self.all[index])
    }

    /// Whether a track without a step so far may be another thread's that continues this training: it has the same name.
    fn may_continue(&self, main: usize, index: usize) -> bool {
        let (main, track) = (&self.all[main], &self.all[index]);
        let is_training = |track: &Track| track.role == TrackRole::Training;
        is_training(main) && is_training(track) && track.steps == 0 && track.text == main.text
    }

    /// Whether this step of a track goes into the step table, whose newest step is `last`: the first track that may decides
    /// for the session, until another thread continues its steps.
    pub(super) fn claim_steps(&mut self, index: usize, step: u64, last: u64) -> bool {
        let main = self.main.filter(|_| !self.is_previous_attempt);
        let is_next = match main {
            None => self.may_tile(index),
            Some(main) => step.checked_sub(1) == Some(last) && self.may_continue(main, index),
        };
        if is_next {
            (self.main, self.is_previous_attempt) = (Some(index), false);
        }
        self.main == Some(index) && !self.is_previous_attempt
    }
}

//! The drain thread's side: from the rings of workers to blocks of the stream.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use gnntop_wire::{
    BlockEncoder, Counter, Definition, DeviceMemory, Event, Fact, Mark, NameId, NameKind, Reported, Span, StepId,
    TrackId,
};

use super::ring::{self, EVENTS, EventKind, NAMES, Ring};
use quanta::Clock;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::clock::ClockMap;
use crate::names::intern;
use crate::publisher::Publisher;
use crate::source::Source;

/// How often to check whether a worker still lives.
const CHECK_AFTER: Duration = Duration::from_secs(1);
/// Ticks by which the counters of two processors may differ.
const SKEW: u64 = 1_000_000;
/// Key of the note about times that cannot be.
const CORRECTED: &str = "times of workers before their start or in the future, moved in between";

/// Rings of workers, to be taken by the drain thread.
pub(crate) struct WaitingRings(Arc<Mutex<Vec<Ring>>>);

impl WaitingRings {
    /// Makes a session drain the rings of workers.
    pub(crate) fn open(publisher: &Arc<Publisher>) -> Self {
        let waiting = Arc::default();
        let workers = ForeignTracks {
            publisher: Arc::downgrade(publisher),
            new_rings: Arc::clone(&waiting),
            waiting: Vec::new(),
            tracks: Vec::new(),
            defined: Vec::new(),
            corrected: (0, 0),
        };
        publisher.open(Box::new(workers));
        Self(waiting)
    }

    /// Adds a ring.
    pub(crate) fn push(&self, ring: &Ring) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(ring.share());
    }
}

/// The tracks of all workers so far.
struct ForeignTracks {
    publisher: Weak<Publisher>,
    /// Rings added since the last drain.
    new_rings: Arc<Mutex<Vec<Ring>>>,
    /// Rings that no worker has attached to yet.
    waiting: Vec<Ring>,
    tracks: Vec<ForeignTrack>,
    defined: Vec<Definition>,
    /// Events whose times could not be, and how many of them have been reported.
    corrected: (u64, u64),
}

/// One track. A worker restarted under the same name, as data loader workers are at each epoch, continues it.
struct ForeignTrack {
    id: TrackId,
    encoder: BlockEncoder,
    name: String,
    ring: Option<Ring>,
    /// The session's ids of the ring's names.
    names: Vec<NameId>,
    /// Events dropped by earlier workers on this track.
    previous_dropped: u64,
    last_check: Instant,
}

impl ForeignTracks {
    fn begin(&mut self, ring: Ring, writer: u32) {
        ring.close_file();
        let free = self.tracks.iter_mut().find(|track| track.ring.is_none() && track.name == ring.name());
        let track = match free {
            Some(track) => track,
            None => {
                let Some(publisher) = self.publisher.upgrade() else { return };
                let Some(id) = publisher.next_track_id() else { return };
                self.tracks.push(ForeignTrack::new(id, publisher.encoder(id), ring.name()));
                let Some(track) = self.tracks.last_mut() else { return };
                track
            }
        };
        let (role, thread_id, text) = (ring.role(), u64::from(writer), track.name.clone());
        self.defined.push(Definition::Track { id: track.id, role, thread_id, text });
        track.names.clear();
        track.ring = Some(ring);
    }
}

impl ForeignTracks {
    /// Publishes how many times were corrected, whenever they have doubled.
    fn report_corrected(&mut self) {
        let (count, reported) = self.corrected;
        if count > 0 && count >= 2 * reported {
            self.corrected.1 = count;
            let (key, text) = (CORRECTED.to_owned(), format!("{count} or more"));
            self.defined.push(Definition::Fact(Fact::Note { key, text }));
        }
    }
}

impl Source for ForeignTracks {
    fn take_definitions(&mut self) -> Vec<Definition> {
        std::mem::take(&mut self.defined)
    }

    fn drain(&mut self, map: &ClockMap, clock: &Clock, out: &mut Vec<u8>) {
        self.waiting.append(&mut self.new_rings.lock().unwrap_or_else(PoisonError::into_inner));
        for ring in std::mem::take(&mut self.waiting) {
            match ring.shared().writer() {
                Some(writer) => self.begin(ring, writer),
                None if ring.shared().is_closed() => {}
                None => self.waiting.push(ring),
            }
        }
        self.corrected.0 += self.tracks.iter_mut().map(|track| track.drain(map, clock, out)).sum::<u64>();
        self.report_corrected();
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        self.tracks.iter_mut().for_each(|track| track.finish(out));
    }

    fn begin_again(&mut self) {
        self.tracks.iter_mut().for_each(|track| track.encoder.begin_again());
    }

    /// Another worker may attach as long as the session lasts.
    fn is_over(&self) -> bool {
        false
    }
}

impl ForeignTrack {
    fn new(id: TrackId, encoder: BlockEncoder, name: &str) -> Self {
        Self {
            id,
            encoder,
            name: name.to_owned(),
            ring: None,
            names: Vec::with_capacity(NAMES),
            previous_dropped: 0,
            last_check: Instant::now(),
        }
    }

    /// Empties the ring, at most once over. Returns how many events had times that cannot be.
    fn drain(&mut self, map: &ClockMap, clock: &Clock, out: &mut Vec<u8>) -> u64 {
        let Some(ring) = self.ring.take() else { return 0 };
        let mut corrected = 0;
        // Read before the ring: once it is closed, nothing more comes.
        let is_over = ring.shared().is_closed() || self.is_dead(&ring);
        for _ in 0..EVENTS {
            let Some(event) = ring.shared().pop() else { break };
            let plausible = event.ok().map(|event| event.within(ring.made(), clock.raw()));
            corrected += u64::from(plausible.is_some_and(|(_, is_corrected)| is_corrected));
            match plausible.and_then(|(event, _)| self.event(&ring, &event, map)) {
                Some(event) => {
                    if self.encoder.is_full() {
                        self.encoder.finish(self.dropped(&ring), out);
                    }
                    self.encoder.push(&event);
                }
                None => self.previous_dropped = self.previous_dropped.saturating_add(1),
            }
        }
        if is_over {
            self.previous_dropped = self.dropped(&ring);
        } else {
            self.ring = Some(ring);
        }
        corrected
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        let dropped = self.ring.as_ref().map_or(self.previous_dropped, |ring| self.dropped(ring));
        self.encoder.finish(dropped, out);
    }

    fn dropped(&self, ring: &Ring) -> u64 {
        self.previous_dropped.saturating_add(ring.shared().dropped.load(Ordering::Relaxed))
    }

    /// Whether the worker died without closing its ring; checked from time to time.
    fn is_dead(&mut self, ring: &Ring) -> bool {
        if self.last_check.elapsed() < CHECK_AFTER {
            return false;
        }
        self.last_check = Instant::now();
        ring.shared().writer().is_some_and(|writer| !exists(writer))
    }

    fn event(&mut self, ring: &Ring, event: &ring::RingEvent, map: &ClockMap) -> Option<Event> {
        let name = self.name(ring, event.name as usize)?;
        let t_ns = map.ns(event.at);
        let value = f64::from_bits(event.other);
        Some(match event.kind {
            EventKind::Span => {
                let end_ns = map.ns(event.other).max(t_ns);
                Event::Span(Span { name, start_ns: t_ns, end_ns, step: StepId::NONE })
            }
            EventKind::Counter => Event::Counter(Counter { name, t_ns, value }),
            EventKind::Mark => Event::Mark(Mark { name, t_ns, ..Mark::default() }),
            EventKind::MarkWithValue => Event::Mark(Mark { name, t_ns, value: Some(value), took_ns: None }),
            EventKind::TimedMark => {
                let end_ns = map.ns(event.other).max(t_ns);
                Event::Mark(Mark { name, t_ns: end_ns, value: None, took_ns: Some(end_ns - t_ns) })
            }
        })
    }

    fn name(&mut self, ring: &Ring, index: usize) -> Option<NameId> {
        while self.names.len() <= index {
            let (kind, text) = ring.shared().name(self.names.len())?;
            self.names.push(intern(own_kind(kind, &text), &text).id());
        }
        self.names.get(index).copied()
    }
}

/// The kind that a worker's name has here. What a kind refers to has an id of the worker's own, which is another name's here; its
/// text says which phase it is.
fn own_kind(kind: NameKind, text: &str) -> NameKind {
    let phase = |phase: &str| intern(NameKind::Phase, phase).id();
    match kind {
        NameKind::Reported(Reported::Memory(DeviceMemory::PeakIn(_) | DeviceMemory::ReservedPeakIn(_))) => {
            Reported::from_text(text, phase).map_or(kind.plain(), NameKind::Reported)
        }
        NameKind::Path(_) => kind.plain(),
        _ => kind,
    }
}

impl ring::RingEvent {
    /// The event with its times in this range of ticks, and whether they were not. `now` is of this process, whose counter may be
    /// a moment behind the worker's.
    fn within(mut self, made: u64, now: u64) -> (Self, bool) {
        let is_plausible = |ticks: u64| ticks >= made && ticks <= now.saturating_add(SKEW);
        let has_end = matches!(self.kind, EventKind::Span | EventKind::TimedMark);
        let is_corrected = !is_plausible(self.at) || has_end && !is_plausible(self.other);
        self.at = self.at.clamp(made, now.max(made));
        if has_end {
            self.other = self.other.clamp(made, now.max(made));
        }
        (self, is_corrected)
    }
}

fn exists(process: u32) -> bool {
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    process.is_some_and(|process| test_kill_process(process) != Err(Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::after;
    use crate::clock;

    fn track(ring: &Ring) -> ForeignTrack {
        let mut track = ForeignTrack::new(TrackId(1), BlockEncoder::new(TrackId(1)), "x");
        track.ring = Some(ring.share());
        track
    }

    fn drain(track: &mut ForeignTrack) -> u64 {
        let clock = Clock::new();
        let map = ClockMap::new(clock::quoted_rate(&clock), clock::read(&clock));
        track.drain(&map, &clock, &mut Vec::new())
    }

    #[test]
    fn times_that_cannot_be_are_moved_and_counted() {
        let ring = Ring::create("x").unwrap();
        let now = after::ticks();
        let mut track = track(&ring);
        ring.shared().add_name(NameKind::Span, "fetch");
        for (at, other) in [(now, now), (0, now), (now, u64::MAX), (u64::MAX, 0)] {
            let event = ring::RingEvent { kind: EventKind::Span, name: 0, at, other };
            ring.shared().push(event);
            let (event, _) = event.within(ring.made(), after::ticks());
            for ticks in [event.at, event.other] {
                assert!(ring.made() <= ticks && ticks <= after::ticks(), "{ticks}");
            }
        }
        assert_eq!(drain(&mut track), 3);
        let value = ring::RingEvent { kind: EventKind::Counter, name: 0, at: now, other: u64::MAX };
        assert_eq!(value.within(ring.made(), now), (value, false), "bits of a value are no time");
    }

    #[test]
    fn ids_in_the_kinds_of_a_workers_names_are_not_taken_for_those_of_this_process() {
        let forward = intern(NameKind::Phase, "forward").id();
        let peak = |phase: NameId| NameKind::Reported(Reported::Memory(DeviceMemory::PeakIn(phase)));
        let foreign = NameId(forward.0 + 1000);
        assert_eq!(own_kind(peak(foreign), "device memory peak in forward"), peak(forward));
        assert_eq!(own_kind(peak(foreign), "of no phase"), NameKind::Counter);
        assert_eq!(own_kind(NameKind::Path(foreign), "frame"), NameKind::Text);
        for kind in [NameKind::Span, NameKind::Reported(Reported::MicroBatch(7))] {
            assert_eq!(own_kind(kind, "as it is"), kind);
        }
    }

    #[test]
    fn a_ring_that_fills_with_nonsense_is_left_after_a_round() {
        let ring = Ring::create("x").unwrap();
        let (other, mut track, over) = (ring.share(), track(&ring), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    other.shared().write_nonsense();
                }
            });
            while track.dropped(&ring) < 10_000 {
                drain(&mut track);
            }
            over.store(true, Ordering::Relaxed);
        });
    }
}

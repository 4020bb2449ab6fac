//! The drain thread's side: from the rings of workers to blocks of the stream.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use gnntop_wire::{BlockEncoder, Counter, Definition, Event, Mark, NameId, Span, StepId, TrackId};

use super::ring::{self, EVENTS, EventKind, NAMES, Ring};
use quanta::Clock;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::clock::ClockMap;
use crate::names::intern;
use crate::publisher::Publisher;
use crate::source::Source;

/// How often to check whether a worker still lives.
const LOOK_AFTER: Duration = Duration::from_secs(1);

/// Rings of workers, to be taken by the drain thread.
pub(crate) struct Waiting(Arc<Mutex<Vec<Ring>>>);

impl Waiting {
    /// Makes a session drain the rings of workers.
    pub(crate) fn open(publisher: &Arc<Publisher>) -> Self {
        let waiting = Arc::default();
        let workers = ForeignTracks {
            publisher: Arc::downgrade(publisher),
            given: Arc::clone(&waiting),
            waiting: Vec::new(),
            tracks: Vec::new(),
            defined: Vec::new(),
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
    given: Arc<Mutex<Vec<Ring>>>,
    /// Rings that no worker has attached to yet.
    waiting: Vec<Ring>,
    tracks: Vec<ForeignTrack>,
    defined: Vec<Definition>,
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
    dropped_before: u64,
    looked: Instant,
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

impl Source for ForeignTracks {
    fn take_definitions(&mut self) -> Vec<Definition> {
        std::mem::take(&mut self.defined)
    }

    fn drain(&mut self, map: &ClockMap, _: &Clock, out: &mut Vec<u8>) {
        self.waiting.append(&mut self.given.lock().unwrap_or_else(PoisonError::into_inner));
        for ring in std::mem::take(&mut self.waiting) {
            match ring.shared().writer() {
                Some(writer) => self.begin(ring, writer),
                None if ring.shared().is_closed() => {}
                None => self.waiting.push(ring),
            }
        }
        self.tracks.iter_mut().for_each(|track| track.drain(map, out));
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        self.tracks.iter_mut().for_each(|track| track.finish(out));
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
            dropped_before: 0,
            looked: Instant::now(),
        }
    }

    fn drain(&mut self, map: &ClockMap, out: &mut Vec<u8>) {
        let Some(ring) = self.ring.take() else { return };
        // Read before the ring: once it is closed, nothing more comes.
        let is_over = ring.shared().is_closed() || self.is_dead(&ring);
        for _ in 0..EVENTS {
            let Some(event) = ring.shared().pop() else { break };
            if let Some(event) = self.event(&ring, &event, map) {
                if self.encoder.is_full() {
                    self.encoder.finish(self.dropped(&ring), out);
                }
                self.encoder.push(&event);
            }
        }
        if is_over {
            self.dropped_before = self.dropped(&ring);
        } else {
            self.ring = Some(ring);
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        let dropped = self.ring.as_ref().map_or(self.dropped_before, |ring| self.dropped(ring));
        self.encoder.finish(dropped, out);
    }

    fn dropped(&self, ring: &Ring) -> u64 {
        self.dropped_before.saturating_add(ring.shared().dropped.load(Ordering::Relaxed))
    }

    /// Whether the worker died without closing its ring; checked from time to time.
    fn is_dead(&mut self, ring: &Ring) -> bool {
        if self.looked.elapsed() < LOOK_AFTER {
            return false;
        }
        self.looked = Instant::now();
        ring.shared().writer().is_some_and(|writer| !exists(writer))
    }

    fn event(&mut self, ring: &Ring, event: &ring::Event, map: &ClockMap) -> Option<Event> {
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
            self.names.push(intern(kind, &text).id());
        }
        self.names.get(index).copied()
    }
}

fn exists(process: u32) -> bool {
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    process.is_some_and(|process| test_kill_process(process) != Err(Errno::SRCH))
}

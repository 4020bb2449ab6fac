//! Workers: the rings that this process has made for those it starts, and the one that it records to if it is a worker itself.

use std::sync::{Mutex, PoisonError};

use gnntop_probe::foreign::{Ring, RingName, Writer};
use gnntop_probe::{NameKind, OVERFLOW, TrackRole};

use crate::early::EarlyEvent;
use crate::{names, session};

/// Most rings of a process at a time, each 128 KiB.
const MAX_RINGS: usize = 64;

/// Rings by handle. Those made before the session opens wait for it here.
static RINGS: Mutex<Vec<Option<WorkerRing>>> = Mutex::new(Vec::new());

struct WorkerRing {
    ring: Ring,
    /// The number of the session that drains it; 0 for none.
    drained_by: u32,
}

/// Makes a ring for a worker called `name`, or for another process that records; returns its handle and address.
pub(crate) fn create(name: &str, role: TrackRole) -> Option<(i32, String)> {
    if session::is_off() || session::is_forked() {
        return None;
    }
    let mut rings = RINGS.lock().unwrap_or_else(PoisonError::into_inner);
    let at = match rings.iter().position(Option::is_none) {
        Some(at) => at,
        None if rings.len() < MAX_RINGS => {
            rings.push(None);
            rings.len() - 1
        }
        None => return None,
    };
    let ring = Ring::create(name).ok()?.with_role(role);
    let address = ring.address();
    rings[at] = Some(WorkerRing { ring, drained_by: 0 });
    drop(rings);
    drain_into_session();
    Some((i32::try_from(at).ok()?, address))
}

/// Passes rings that nobody drains to the open session.
pub(crate) fn drain_into_session() {
    let (_, number) = session::state();
    session::with_session(|session| {
        let mut rings = RINGS.lock().unwrap_or_else(PoisonError::into_inner);
        for made in rings.iter_mut().flatten().filter(|made| made.drained_by != number) {
            session.worker(&made.ring);
            made.drained_by = number;
        }
    });
}

/// Closes a worker's ring.
pub(crate) fn close(handle: i32) {
    if session::is_forked() {
        return;
    }
    let mut rings = RINGS.lock().unwrap_or_else(PoisonError::into_inner);
    let made = usize::try_from(handle).ok().and_then(|at| rings.get_mut(at)).and_then(Option::take);
    if let Some(made) = made {
        made.ring.close();
    }
}

/// The workers with a Python, each with its process id and the address of its thread's state.
pub(crate) fn python_workers() -> Vec<(u32, usize)> {
    let rings = RINGS.lock().unwrap_or_else(PoisonError::into_inner);
    let workers = rings.iter().flatten().filter_map(|made| made.ring.address_in_writer());
    workers.filter_map(|(process, state)| Some((process, usize::try_from(state).ok()?))).collect()
}

/// A thread of a worker, recording to its parent's ring.
pub(crate) struct AttachedThread {
    writer: Writer,
    /// Numbers of names, with the ring's name for each; room for all is reserved.
    known: Vec<(i32, Option<RingName>)>,
    /// By kind, for further names.
    others: [Option<RingName>; NameKind::PLAIN.len()],
}

/// Most names looked up in the ring.
const MAX_KNOWN: usize = 64;

impl AttachedThread {
    /// Attaches to the ring with this address; `state` is that of the calling thread, if it is one of Python's.
    pub(crate) fn new(address: &str, state: Option<usize>) -> Option<Self> {
        let writer = Writer::attach(address).ok()?;
        if let Some(state) = state {
            writer.leave_address(state as u64);
        }
        Some(Self { writer, known: Vec::with_capacity(MAX_KNOWN), others: [None; _] })
    }

    pub(crate) fn record(&mut self, event: EarlyEvent) {
        let Some(name) = self.name(event.name()) else { return self.writer.drop_one() };
        match event {
            EarlyEvent::Span { begin, end, .. } => self.writer.span(name, begin, end),
            EarlyEvent::Counter { at, value, .. } => self.writer.counter(name, at, value),
            EarlyEvent::Mark { at, value, .. } => self.writer.mark(name, at, value),
            EarlyEvent::TimedMark { begin, end, .. } => self.writer.timed_mark(name, begin, end),
        }
    }

    fn name(&mut self, number: i32) -> Option<RingName> {
        if let Some((_, name)) = self.known.iter().find(|(known, _)| *known == number) {
            return *name;
        }
        let named = names::get(number)?;
        if self.known.len() >= MAX_KNOWN - NameKind::PLAIN.len() {
            return self.others(named.kind);
        }
        let name = self.writer.name(named.kind, &named.text);
        self.known.push((number, name));
        name
    }

    /// The name of this kind that stands for those beyond the table.
    fn others(&mut self, kind: NameKind) -> Option<RingName> {
        let kind = kind.plain();
        let place = NameKind::PLAIN.iter().position(|known| *known == kind)?;
        if self.others[place].is_none() {
            self.others[place] = self.writer.name(kind, OVERFLOW);
        }
        self.others[place]
    }
}

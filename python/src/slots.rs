//! Which of a session's training tracks a thread has. Threads that train at the same time have one each; a thread that trains
//! after another has ended, or has been idle, continues its track: same name, next step.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

use gnntop_probe::after;

/// Most threads that train at the same time.
const MOST: usize = 32;
/// A thread that has ended no step for this long leaves its slot to others.
const IDLE_NS: u64 = 10_000_000_000;

/// What threads share of a slot.
struct Shared {
    /// Who has it; 0 for nobody. A thread that takes it has a new number.
    owner: AtomicU64,
    /// The session of its steps, and how many there are.
    session: AtomicU64,
    steps: AtomicU64,
    /// When its owner last trained, in ticks; 0 for not yet.
    worked: AtomicU64,
}

static SLOTS: [Shared; MOST] = [const {
    Shared { owner: AtomicU64::new(0), session: AtomicU64::new(0), steps: AtomicU64::new(0), worked: AtomicU64::new(0) }
}; MOST];
/// The number of the newest owner. Held while a slot changes hands.
static OWNERS: Mutex<u64> = Mutex::new(0);

/// A thread's place among those that train. It is free again once this is dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    place: usize,
    owner: u64,
}

impl Slot {
    /// Takes the first slot that nobody has or whose owner is idle; `None` if too many threads train.
    pub(crate) fn take(session: u32) -> Option<Self> {
        let mut owners = OWNERS.lock().unwrap_or_else(PoisonError::into_inner);
        let place = SLOTS.iter().position(|slot| slot.owner.load(Relaxed) == 0 || slot.is_idle())?;
        *owners += 1;
        let slot = &SLOTS[place];
        if slot.session.swap(u64::from(session), Relaxed) != u64::from(session) {
            slot.steps.store(0, Relaxed);
        }
        slot.worked.store(0, Relaxed);
        slot.owner.store(*owners, Relaxed);
        Some(Self { place, owner: *owners })
    }

    /// Whether no other thread has taken it meanwhile.
    #[inline]
    pub(crate) fn is_own(&self) -> bool {
        SLOTS[self.place].owner.load(Relaxed) == self.owner
    }

    /// Steps so far, those of threads before this one included.
    pub(crate) fn steps(&self) -> u64 {
        SLOTS[self.place].steps.load(Relaxed)
    }

    /// Its owner has ended this step now, in ticks: until it is idle, nobody else gets the slot.
    #[inline]
    pub(crate) fn stepped(&self, steps: u64, now: u64) {
        if self.is_own() {
            SLOTS[self.place].steps.store(steps, Relaxed);
            SLOTS[self.place].worked.store(now, Relaxed);
        }
    }

    /// Its owner trains: nobody else gets the slot before its first step.
    #[inline]
    pub(crate) fn keep(&self) {
        if SLOTS[self.place].worked.load(Relaxed) == 0 {
            self.stepped(self.steps(), after::ticks());
        }
    }

    /// The name of its track: that of the first slot is as given, others are numbered from 2.
    pub(crate) fn name(&self, given: &str) -> String {
        if self.place == 0 { given.to_owned() } else { format!("{given} {}", self.place + 1) }
    }

    /// Its number, from 1.
    pub(crate) fn number(&self) -> usize {
        self.place + 1
    }
}

impl Shared {
    fn is_idle(&self) -> bool {
        let worked = self.worked.load(Relaxed);
        worked == 0 || after::ticks_ns(after::ticks().saturating_sub(worked)) >= IDLE_NS
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let _owners = OWNERS.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_own() {
            SLOTS[self.place].owner.store(0, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_go_to_who_trains_and_their_steps_continue() {
        const SESSION: u32 = 1 << 20; // no other test's
        let first = Slot::take(SESSION).unwrap();
        first.stepped(7, after::ticks());
        let second = Slot::take(SESSION).unwrap();
        assert_ne!(first.place, second.place, "both train");
        assert_eq!((first.steps(), second.steps()), (7, 0));
        // One that has not trained yet leaves its slot to the next.
        let third = Slot::take(SESSION).unwrap();
        assert_eq!((third.place, second.is_own(), first.is_own()), (second.place, false, true));
        second.stepped(99, after::ticks());
        drop(second);
        assert!(third.is_own() && third.steps() == 0, "what an earlier owner does changes nothing");
        // The end of a thread frees its slot, and its steps are continued.
        let place = first.place;
        drop(first);
        let next = Slot::take(SESSION).unwrap();
        assert_eq!((next.place, next.steps()), (place, 7));
        drop(next);
        assert_eq!(Slot::take(SESSION + 1).unwrap().steps(), 0, "another session");
    }
}

//! Names by number: an append-only table that is read without a lock.
//!
//! The probe has its own registry. This one exists because a forked child must not take that one's lock, which may have
//! been held by a thread that the child does not have.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, TryLockError};

use gnntop_probe::{NameId, NameKind, NameRef, OVERFLOW, Reported, intern};

use crate::session;

/// Most names. Further ones are [`OVERFLOW`], one of each kind, so that a phase beyond them stays one.
const MAX_NAMES: usize = 2048;
/// Number of kinds.
const KINDS: usize = NameKind::PLAIN.len();
/// Longest text, in bytes.
pub(crate) const MAX_TEXT: usize = 200;
/// How often a forked child tries to take the lock, in about a millisecond altogether.
const TRIES: usize = 1000;

/// A registered name.
#[derive(Debug)]
pub(crate) struct RegisteredName {
    pub(crate) kind: NameKind,
    pub(crate) text: Box<str>,
    /// The probe's name, requested when it is first recorded there.
    probe: OnceLock<NameRef>,
}

impl RegisteredName {
    /// The name as the probe knows it.
    #[inline]
    pub(crate) fn probe(&self) -> NameRef {
        *self.probe.get_or_init(|| intern(self.kind, &self.text))
    }
}

static TABLE: [OnceLock<RegisteredName>; MAX_NAMES + KINDS] = [const { OnceLock::new() }; MAX_NAMES + KINDS];
/// Number of entries taken; its lock also keeps two threads from taking the same one.
static TAKEN: Mutex<()> = Mutex::new(());
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The name with this number.
#[inline]
pub(crate) fn get(id: i32) -> Option<&'static RegisteredName> {
    TABLE.get(usize::try_from(id).ok()?.checked_sub(1)?)?.get()
}

/// The number of a name; 0, for which nothing is recorded, if a forked child cannot register it.
pub(crate) fn register(kind: NameKind, text: &str) -> i32 {
    let text = &text[..text.floor_char_boundary(MAX_TEXT)];
    let Some(_taken) = lock() else { return 0 };
    let count = COUNT.load(Ordering::Relaxed);
    let known = TABLE[..count].iter().filter_map(OnceLock::get);
    let at = match known.enumerate().find(|(_, name)| name.kind == kind && &*name.text == text) {
        Some((at, _)) => at,
        None if count == MAX_NAMES => overflow_index(kind),
        None => {
            let name = RegisteredName { kind, text: text.into(), probe: OnceLock::new() };
            TABLE[count].get_or_init(|| name);
            COUNT.store(count + 1, Ordering::Relaxed);
            count
        }
    };
    at as i32 + 1
}

/// The kind of a name of this text that is reported; a counter if readers know nothing of it.
pub(crate) fn reported(text: &str) -> NameKind {
    // A forked child must not take the probe's lock, and has no device of its own.
    let phase = |name: &str| if session::is_forked() { NameId::NONE } else { intern(NameKind::Phase, name).id() };
    Reported::from_text(text, phase).map_or(NameKind::Counter, NameKind::Reported)
}

/// The place in the table of the name of this kind that stands for others.
fn overflow_index(kind: NameKind) -> usize {
    let place = NameKind::PLAIN.iter().position(|known| *known == kind.plain()).unwrap_or(0);
    let (at, kind) = (MAX_NAMES + place, NameKind::PLAIN[place]);
    TABLE[at].get_or_init(|| RegisteredName { kind, text: OVERFLOW.into(), probe: OnceLock::new() });
    at
}

/// Takes the lock. A forked child gives up after a moment, as the lock's holder may not exist there.
fn lock() -> Option<MutexGuard<'static, ()>> {
    if !session::is_forked() {
        return Some(TAKEN.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    }
    for _ in 0..TRIES {
        match TAKEN.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_kind_and_text_are_the_same_number() {
        let forward = register(NameKind::Phase, "forward in names");
        assert!(forward > 0);
        assert_eq!(register(NameKind::Phase, "forward in names"), forward);
        assert_ne!(register(NameKind::Span, "forward in names"), forward);
        assert_eq!(&*get(forward).unwrap().text, "forward in names");
    }

    #[test]
    fn a_text_that_is_too_long_is_cut_between_characters() {
        let long = register(NameKind::Span, &"ä".repeat(500));
        assert_eq!(get(long).unwrap().text.len(), MAX_TEXT);
    }

    #[test]
    fn overflow_index_keeps_what_is_reported_a_span_or_a_counter() {
        let kind = |reported| get(overflow_index(NameKind::Reported(reported)) as i32 + 1).unwrap().kind;
        assert_eq!([kind(Reported::Denormals), kind(Reported::Wait)], [NameKind::Counter, NameKind::Span]);
    }

    #[test]
    fn unknown_number_has_no_name() {
        for id in [i32::MIN, -1, 0, i32::MAX] {
            assert!(get(id).is_none(), "{id}");
        }
    }
}

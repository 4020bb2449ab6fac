//! Names of spans, counters and marks: registered once per process, then referred to by number.
//!
//! The registry bounds its entries and bytes, so that a program that generates names without end takes no more memory than
//! any other. Names that do not fit become [`OVERFLOW`], one of each kind: a phase stays a phase, and its time outside the gap.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use gnntop_wire::{NameId, NameKind, Reported};

use crate::accounts::{self, PHASE_ACCOUNTS};

/// Most names in the registry, and besides them one of each kind that stands for the others.
const MAX_NAMES: usize = 4092;
/// Most bytes of text in the registry.
const MAX_TEXT_BYTES: usize = 256 * 1024;
/// Longest single name, in bytes; longer ones are truncated.
const MAX_NAME_BYTES: usize = 200;
/// Stands for every name beyond the registry's limits.
pub const OVERFLOW: &str = "(more names than gnntop keeps)";

const ID_BITS: u32 = 24;

/// A registered name. `Copy`; making one from a [`Name`] is a single load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameRef(u32);

impl NameRef {
    fn new(id: u32, account: u8) -> Self {
        Self(u32::from(account) << ID_BITS | id)
    }

    /// Its id in the stream.
    #[inline]
    pub fn id(self) -> NameId {
        NameId(self.0 & ((1 << ID_BITS) - 1))
    }

    /// The phase's memory account; 0 if this is not a phase.
    #[inline]
    pub(crate) fn account(self) -> u8 {
        (self.0 >> ID_BITS) as u8
    }
}

/// A name known at compile time. Make it a `static`; it is registered at its first use.
///
/// ```
/// use gnntop_probe::Name;
/// static LAYER: Name = Name::span("layer");
/// # let _span = gnntop_probe::span(&LAYER);
/// ```
#[derive(Debug)]
pub struct Name {
    /// Empty for what is reported: its kind has the text.
    text: &'static str,
    kind: NameKind,
    /// [`NameRef`]'s bits, 0 until registered.
    registered: AtomicU32,
}

impl Name {
    /// A span's name. Spans may nest anywhere.
    pub const fn span(text: &'static str) -> Self {
        Self::new(text, NameKind::Span)
    }

    /// A phase's name. Phases are the spans that tile a step.
    pub const fn phase(text: &'static str) -> Self {
        Self::new(text, NameKind::Phase)
    }

    /// A counter's name.
    pub const fn counter(text: &'static str) -> Self {
        Self::new(text, NameKind::Counter)
    }

    /// A mark's text.
    pub const fn mark(text: &'static str) -> Self {
        Self::new(text, NameKind::Text)
    }

    /// The name of a span or counter whose meaning viewers know.
    pub const fn reported(what: Reported) -> Self {
        Self::new("", NameKind::Reported(what))
    }

    /// The text.
    pub fn text(&self) -> &'static str {
        self.kind.reported().map_or(self.text, Reported::text)
    }

    const fn new(text: &'static str, kind: NameKind) -> Self {
        Self { text, kind, registered: AtomicU32::new(0) }
    }

    #[cold]
    fn register(&self) -> NameRef {
        let name = intern(self.kind, self.text());
        self.registered.store(name.0, Ordering::Relaxed);
        name
    }
}

impl From<&'static Name> for NameRef {
    #[inline]
    fn from(name: &'static Name) -> Self {
        match name.registered.load(Ordering::Relaxed) {
            0 => name.register(),
            bits => Self(bits),
        }
    }
}

/// Registers a name made at run time, such as `layer 3`. This takes a lock: call it once and keep the result. The same kind
/// and text give the same name.
pub fn intern(kind: NameKind, text: &str) -> NameRef {
    registry().intern(kind, text)
}

static REGISTRY: LazyLock<Mutex<NameRegistry>> = LazyLock::new(|| Mutex::new(NameRegistry::new()));

fn registry() -> MutexGuard<'static, NameRegistry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps names from being registered while this is held.
pub(crate) struct NamesLock(#[expect(dead_code, reason = "held, not looked at")] MutexGuard<'static, NameRegistry>);

/// See [`NamesLock`].
pub(crate) fn lock_names() -> NamesLock {
    NamesLock(registry())
}

#[derive(Debug)]
struct NameRegistry {
    /// Entry `i` has id `i + 1`; the first is [`OVERFLOW`].
    entries: Vec<RegisteredName>,
    by_text: HashMap<(NameKind, Box<str>), NameRef>,
    text_bytes: usize,
    phases: u8,
}

/// One registered name, as the stream defines it.
#[derive(Clone, Debug)]
pub(crate) struct RegisteredName {
    pub(crate) id: NameId,
    pub(crate) kind: NameKind,
    pub(crate) text: Box<str>,
    pub(crate) account: u8,
}

impl NameRegistry {
    fn new() -> Self {
        let mut registry = Self { entries: Vec::new(), by_text: HashMap::new(), text_bytes: 0, phases: 0 };
        registry.add(NameKind::Text, OVERFLOW);
        registry
    }

    fn intern(&mut self, kind: NameKind, text: &str) -> NameRef {
        let text = &text[..text.floor_char_boundary(MAX_NAME_BYTES)];
        if let Some(&name) = self.by_text.get(&(kind, Box::from(text))) {
            return name;
        }
        let fits = self.entries.len() < MAX_NAMES && self.text_bytes + text.len() <= MAX_TEXT_BYTES;
        if fits { self.add(kind, text) } else { self.overflow(kind) }
    }

    /// The name of this kind that stands for those that do not fit.
    fn overflow(&mut self, kind: NameKind) -> NameRef {
        // A stack refers to its caller's, so that there are as many kinds of them as stacks.
        let kind = kind.plain();
        let known = self.by_text.get(&(kind, Box::from(OVERFLOW))).copied();
        known.unwrap_or_else(|| self.add(kind, OVERFLOW))
    }

    fn add(&mut self, kind: NameKind, text: &str) -> NameRef {
        let is_phase = kind == NameKind::Phase && usize::from(self.phases) + 1 < PHASE_ACCOUNTS;
        self.phases += u8::from(is_phase);
        let account = if is_phase { self.phases } else { 0 };
        let id = self.entries.len() as u32 + 1;
        let name = NameRef::new(id, account);
        if account != 0 {
            accounts::set_name(account, id);
        }
        self.entries.push(RegisteredName { id: NameId(id), kind, text: text.into(), account });
        self.by_text.insert((kind, text.into()), name);
        self.text_bytes += text.len();
        name
    }
}

/// The text of a registered name; `None` if there is no name with this id.
pub(crate) fn name_text(id: u32) -> Option<String> {
    let registry = registry();
    let entry = registry.entries.get((id as usize).checked_sub(1)?)?;
    Some(entry.text.to_string())
}

/// Names registered after the first `known`.
pub(crate) fn registered_after(known: usize) -> Vec<RegisteredName> {
    let registry = registry();
    registry.entries.get(known..).unwrap_or_default().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_text_is_the_same_name() {
        static FORWARD: Name = Name::phase("forward in a test");
        let first = NameRef::from(&FORWARD);
        assert_eq!(first, NameRef::from(&FORWARD));
        assert_eq!(first, intern(NameKind::Phase, "forward in a test"));
        assert_ne!(first, intern(NameKind::Span, "forward in a test"));
        assert_ne!(first.account(), 0);
    }

    #[test]
    fn a_million_names_are_a_bounded_registry() {
        let mut registry = NameRegistry::new();
        for i in 0..1_000_000 {
            registry.intern(NameKind::Span, &format!("name {i}"));
        }
        assert_eq!(registry.entries.len(), MAX_NAMES + 1);
    }

    #[test]
    fn intern_overflow_keeps_kind() {
        let mut registry = NameRegistry::new();
        (0..MAX_NAMES).for_each(|i| _ = registry.intern(NameKind::Span, &format!("name {i}")));
        for kind in [NameKind::Text, NameKind::Span, NameKind::Phase, NameKind::Counter] {
            let name = registry.intern(kind, "one more");
            let entry = &registry.entries[name.id().0 as usize - 1];
            assert_eq!((entry.kind, &*entry.text), (kind, OVERFLOW));
            assert_eq!(registry.intern(kind, "and another"), name);
        }
        let counter = registry.intern(NameKind::Counter, "one more");
        assert_eq!(registry.intern(NameKind::Reported(Reported::Denormals), "denormals"), counter);
        let before = registry.entries.len();
        (1..100).for_each(|i| _ = registry.intern(NameKind::Path(NameId(i)), "frame"));
        assert_eq!(registry.entries.len(), before);
    }

    #[test]
    fn intern_cuts_long_name() {
        let mut registry = NameRegistry::new();
        let name = registry.intern(NameKind::Span, &"é".repeat(500_000));
        assert_eq!(registry.entries[name.id().0 as usize - 1].text.len(), MAX_NAME_BYTES);
    }

    #[test]
    fn phases_beyond_accounts_share_account_zero() {
        let mut registry = NameRegistry::new();
        let accounts: Vec<u8> = (0..40).map(|i| registry.intern(NameKind::Phase, &format!("p{i}")).account()).collect();
        assert_eq!(accounts[30], 31);
        assert_eq!(accounts[31], 0);
    }
}

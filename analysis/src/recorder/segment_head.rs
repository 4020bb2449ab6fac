//! The head of a segment, held back until something of it is recorded.

use std::collections::HashMap;

use gnntop_wire::{Definition, FactKey, SessionInfo};

/// A segment's head, with what ids mean.
pub(super) struct SegmentHead {
    pub(super) info: SessionInfo,
    definitions: Vec<Definition>,
    /// Place of each of them.
    places: HashMap<Key, usize>,
    pub(super) written: bool,
}

/// What a definition defines.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    Name(u32),
    Track(u32),
    Signal(u32),
    Fact(FactKey),
}

impl SegmentHead {
    /// The head of the segment that follows `before`. In a recording with chunks each chunk begins with a segment that repeats no
    /// definition, so those that were not written are taken over.
    pub(super) fn new(before: Option<Self>, info: SessionInfo) -> Self {
        let before = before.filter(|head| !head.written && head.info.session_id == info.session_id);
        let (definitions, places) = before.map(|head| (head.definitions, head.places)).unwrap_or_default();
        Self { info, definitions, places, written: false }
    }

    /// Adds a definition, or replaces an earlier one of the same.
    pub(super) fn define(&mut self, definition: Definition) {
        let key = match &definition {
            Definition::Name { id, .. } => Key::Name(id.0),
            Definition::Track { id, .. } => Key::Track(id.0),
            Definition::Signal { id, .. } => Key::Signal(id.0),
            Definition::Fact(fact) => Key::Fact(fact.key()),
            _ => return self.definitions.push(definition),
        };
        let place = *self.places.entry(key).or_insert(self.definitions.len());
        match self.definitions.get_mut(place) {
            Some(known) => *known = definition,
            None => self.definitions.push(definition),
        }
    }

    /// Number of definitions.
    pub(super) fn len(&self) -> usize {
        self.definitions.len()
    }

    /// The definitions, to be written now.
    pub(super) fn take_definitions(&mut self) -> Vec<Definition> {
        self.places.clear();
        std::mem::take(&mut self.definitions)
    }
}

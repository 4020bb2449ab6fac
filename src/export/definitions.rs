//! What the ids of a recording mean, and texts that a format refers to by number, in bounded memory: a hostile recording
//! defines names without end.

use std::collections::HashMap;
use std::io;

use gnntop_wire::{Definition, NameId, NameKind, TrackId, Unit};

/// Definitions of a kind that are kept; events of others are counted as left out.
const MAX_DEFINITIONS: usize = 1 << 16;
/// Bytes of text that are kept.
const MAX_TEXT: usize = 16 << 20;

/// What the ids of a recording mean.
#[derive(Default)]
pub(super) struct Definitions {
    names: HashMap<NameId, (NameKind, String)>,
    signals: HashMap<u32, (String, Unit)>,
    titles: HashMap<TrackId, String>,
    /// Bytes of all texts.
    text: usize,
}

impl Definitions {
    /// Takes in a definition, as far as there is room for it. A later one of the same id counts.
    pub(super) fn define(&mut self, definition: Definition) {
        match definition {
            Definition::Name { id, kind, text } => {
                let before = self.names.remove(&id);
                self.text -= before.map_or(0, |(_, text)| text.len());
                if self.has_room(self.names.len(), &text) {
                    self.text += text.len();
                    self.names.insert(id, (kind, text));
                }
            }
            Definition::Track { id, text, .. } => {
                self.text -= self.titles.remove(&id).map_or(0, |text| text.len());
                if self.has_room(self.titles.len(), &text) {
                    self.text += text.len();
                    self.titles.insert(id, text);
                }
            }
            Definition::Signal { id, metric, .. } => {
                let (name, unit) = (metric.to_string(), metric.unit());
                let before = self.signals.remove(&id.0);
                self.text -= before.map_or(0, |(name, _)| name.len());
                if self.has_room(self.signals.len(), &name) {
                    self.text += name.len();
                    self.signals.insert(id.0, (name, unit));
                }
            }
            _ => (),
        }
    }

    fn has_room(&self, kept: usize, text: &str) -> bool {
        kept < MAX_DEFINITIONS && self.text + text.len() <= MAX_TEXT
    }

    /// What a name is, and of which kind.
    pub(super) fn name(&self, name: NameId) -> Option<(NameKind, &str)> {
        self.names.get(&name).map(|(kind, text)| (*kind, text.as_str()))
    }

    /// A signal's name and unit.
    pub(super) fn signal(&self, signal: u32) -> Option<(&str, Unit)> {
        self.signals.get(&signal).map(|(name, unit)| (name.as_str(), *unit))
    }

    /// The name of a track.
    pub(super) fn title(&self, track: TrackId) -> String {
        self.titles.get(&track).map_or_else(|| format!("track {}", track.0), Clone::clone)
    }
}

/// Bytes of text that a form keeps. A recording that a program made has far fewer; one that is made to fill the memory is
/// refused.
const MAX_INTERNED: usize = 16 << 20;
/// What a text takes beside its bytes.
const BESIDE_TEXT: usize = 64;

/// Texts, each with the number that it got when it first came.
#[derive(Default)]
pub(super) struct Interner {
    numbers: HashMap<String, u32>,
    bytes: usize,
}

impl Interner {
    /// The number of a text, and whether it is new.
    ///
    /// # Errors
    /// When there are too many.
    pub(super) fn intern(&mut self, text: &str) -> io::Result<(u32, bool)> {
        if let Some(number) = self.numbers.get(text) {
            return Ok((*number, false));
        }
        self.bytes += text.len() + BESIDE_TEXT;
        if self.bytes > MAX_INTERNED {
            let words =
                "the recording has too many different names for this format: export a part with --steps or --from";
            return Err(io::Error::other(words));
        }
        let number = self.numbers.len() as u32;
        self.numbers.insert(text.to_owned(), number);
        Ok((number, true))
    }

    /// The number of a text.
    pub(super) fn get(&self, text: &str) -> Option<u32> {
        self.numbers.get(text).copied()
    }

    /// All texts in the order of their numbers.
    pub(super) fn all(&self) -> Vec<&str> {
        let mut all: Vec<(&String, &u32)> = self.numbers.iter().collect();
        all.sort_by_key(|(_, number)| **number);
        all.into_iter().map(|(text, _)| text.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bounded_and_can_be_redefined() {
        let mut definitions = Definitions::default();
        let name = |id, text: String| Definition::Name { id: NameId(id), kind: NameKind::Span, text };
        (0..100_000).for_each(|id| definitions.define(name(id, "x".repeat(1024))));
        assert_eq!((definitions.text, definitions.names.len()), (MAX_TEXT, MAX_TEXT / 1024));
        (0..100_000).for_each(|n| definitions.define(name(7, format!("name {n}"))));
        assert_eq!(definitions.name(NameId(7)), Some((NameKind::Span, "name 99999")));
        assert!(definitions.text <= MAX_TEXT);
        assert_eq!(definitions.name(NameId(99_999)), None);
    }

    #[test]
    fn text_beyond_the_limit_is_refused() {
        let mut texts = Interner::default();
        assert_eq!((texts.intern("a").unwrap(), texts.intern("a").unwrap()), ((0, true), (0, false)));
        let refused = (0..1_000_000).find_map(|n| texts.intern(&format!("name {n}")).err()).unwrap();
        assert!(refused.to_string().contains("too many different names"));
        assert_eq!((texts.get("name 0"), texts.all()[1]), (Some(1), "name 0"));
    }
}

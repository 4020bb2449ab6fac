//! What the ids of a recording mean, in bounded memory: a hostile one defines names without end.

use std::collections::HashMap;

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
}

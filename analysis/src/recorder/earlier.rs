//! Marks from before the window of a recording. They are not in it, as they would stretch its time, but it says how many of each
//! there were.

use std::collections::{BTreeMap, HashMap};

use gnntop_wire::{Definition, Event, NameId, NameKind};

use crate::figures::count;

/// Texts that are counted apart.
const MOST_TEXTS: usize = 256;
/// Names that are remembered.
const MOST_NAMES: usize = 1 << 16;
/// Texts that are named, the most frequent first.
const NAMED: usize = 8;
/// What the fact is called.
const KEY: &str = "marks before this part";

/// Counts marks that are left out.
#[derive(Default)]
pub(super) struct EarlierMarks {
    names: HashMap<NameId, String>,
    counts: BTreeMap<String, u64>,
    total: u64,
    told: u64,
}

impl EarlierMarks {
    /// Remembers what marks are called.
    pub(super) fn define(&mut self, definitions: &[Definition]) {
        for definition in definitions {
            if let Definition::Name { id, kind: NameKind::Text, text } = definition
                && self.names.len() < MOST_NAMES
            {
                self.names.insert(*id, text.clone());
            }
        }
    }

    /// Counts an event that is left out, if it is a mark.
    pub(super) fn note(&mut self, event: &Event) {
        let Event::Mark(mark) = event else { return };
        self.total += 1;
        let text = self.names.get(&mark.name).map_or("(unknown name)", String::as_str);
        if let Some(known) = self.counts.get_mut(text) {
            *known += 1;
        } else if self.counts.len() < MOST_TEXTS {
            self.counts.insert(text.to_owned(), 1);
        }
    }

    /// How many there were.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// What to say of them, where that is more than was said before.
    pub(super) fn news(&mut self) -> Option<Definition> {
        if self.total == std::mem::replace(&mut self.told, self.total) {
            return None;
        }
        let mut texts: Vec<(&String, &u64)> = self.counts.iter().collect();
        texts.sort_by_key(|(text, times)| (std::cmp::Reverse(**times), *text));
        let named: Vec<String> =
            texts.iter().take(NAMED).map(|(text, times)| format!("{text}: {}", count(**times))).collect();
        let rest = self.total - texts.iter().take(NAMED).map(|(_, times)| **times).sum::<u64>();
        let rest = if rest > 0 { format!(", others: {}", count(rest)) } else { String::new() };
        Some(Definition::Fact { key: KEY.to_owned(), text: named.join(", ") + &rest })
    }
}

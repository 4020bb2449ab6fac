//! Marks from before a recording's window. They are not recorded, because they would stretch its time, but the
//! recording reports how many of each there were, and how long before the window the newest ones were.

use std::collections::{BTreeMap, HashMap};

use gnntop_wire::{Definition, Event, Fact, NameId, NameKind};

use crate::figures::{count, duration};

/// Most texts that are counted separately.
const MAX_TEXTS: usize = 256;
/// Most names that are remembered.
const MAX_NAMES: usize = 1 << 16;
/// Texts that are reported: the most frequent ones, and those of the newest marks.
const NAMED: usize = 8;
/// Key of the note with the counts...
const KEY: &str = "marks before this part";
/// ...and of the note with the newest ones, each text once.
const NEWEST_KEY: &str = "newest marks before this part";

/// Counts marks that are left out.
#[derive(Default)]
pub(super) struct SkippedMarks {
    names: HashMap<NameId, String>,
    texts: BTreeMap<String, MarkCount>,
    total: u64,
    reported: u64,
}

/// Marks of one text.
struct MarkCount {
    times: u64,
    newest_ns: u64,
}

impl SkippedMarks {
    /// Remembers the text of marks.
    pub(super) fn define(&mut self, definitions: &[Definition]) {
        for definition in definitions {
            if let Definition::Name { id, kind: NameKind::Text | NameKind::Reported(_), text } = definition
                && self.names.len() < MAX_NAMES
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
        if let Some(known) = self.texts.get_mut(text) {
            *known = MarkCount { times: known.times + 1, newest_ns: known.newest_ns.max(mark.t_ns) };
        } else if self.texts.len() < MAX_TEXTS {
            self.texts.insert(text.to_owned(), MarkCount { times: 1, newest_ns: mark.t_ns });
        }
    }

    /// Number of marks.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Facts about them for a recording that begins at `start_ns`, if they are news.
    pub(super) fn take_facts(&mut self, start_ns: u64) -> Vec<Definition> {
        if self.total == std::mem::replace(&mut self.reported, self.total) {
            return Vec::new();
        }
        let note = |key: &str, text| Definition::Fact(Fact::Note { key: key.to_owned(), text });
        vec![note(KEY, self.most_frequent()), note(NEWEST_KEY, self.newest(start_ns))]
    }

    fn most_frequent(&self) -> String {
        let mut texts: Vec<(&String, u64)> = self.texts.iter().map(|(text, counted)| (text, counted.times)).collect();
        texts.sort_by_key(|(text, times)| (std::cmp::Reverse(*times), *text));
        let named: Vec<String> =
            texts.iter().take(NAMED).map(|(text, times)| format!("{text}: {}", count(*times))).collect();
        let rest = self.total - texts.iter().take(NAMED).map(|(_, times)| *times).sum::<u64>();
        let rest = if rest > 0 { format!(", others: {}", count(rest)) } else { String::new() };
        named.join(", ") + &rest
    }

    fn newest(&self, start_ns: u64) -> String {
        let mut texts: Vec<(&String, u64)> = self.texts.iter().map(|(text, at)| (text, at.newest_ns)).collect();
        texts.sort_by_key(|(text, newest_ns)| (std::cmp::Reverse(*newest_ns), *text));
        let before = |(text, newest_ns): &(&String, u64)| {
            format!("{text}: {} before", duration(start_ns.saturating_sub(*newest_ns)))
        };
        texts.iter().take(NAMED).map(before).collect::<Vec<String>>().join(", ")
    }
}

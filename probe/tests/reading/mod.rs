//! Reads sessions and recordings back.
#![allow(dead_code)] // each test binary uses a part

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gnntop_sessions::layout;
use gnntop_wire::{
    BlockInfo, Damage, Definition, Event, Fact, FactKey, Item, NameId, NameKind, Sample, SessionInfo, SignalId, Span,
    Step, StreamReader, TrackId,
};

/// Everything that a stream says.
#[derive(Default)]
pub struct RecordedStream {
    pub sessions: Vec<SessionInfo>,
    pub names: HashMap<NameId, String>,
    pub phases: HashSet<NameId>,
    pub tracks: HashMap<TrackId, String>,
    pub signals: HashMap<SignalId, String>,
    pub facts: HashMap<FactKey, Fact>,
    pub blocks: Vec<(BlockInfo, Vec<Event>)>,
    pub damage: Vec<Damage>,
    pub ended: bool,
}

impl RecordedStream {
    pub fn from_session(dir: &Path) -> Self {
        Self::from_files(segments(dir))
    }

    pub fn from_files(files: impl IntoIterator<Item = impl AsRef<Path>>) -> Self {
        let mut stream = Self::default();
        let mut reader = StreamReader::new();
        for file in files {
            reader.fill(&fs::read(file).unwrap());
            while let Some(item) = reader.next() {
                stream.push(item);
            }
        }
        stream
    }

    fn push(&mut self, item: Item<'_>) {
        match item {
            Item::Segment(info) => self.sessions.push(info),
            Item::Definitions(all) => all.into_iter().for_each(|definition| self.define(definition)),
            Item::Block(info, events) => self.blocks.push((info, events.collect())),
            Item::End(_) => self.ended = true,
            Item::Damage(damage) => self.damage.push(damage),
            _ => {}
        }
    }

    fn define(&mut self, definition: Definition) {
        match definition {
            Definition::Name { id, text, kind } => {
                self.names.insert(id, text);
                if kind == NameKind::Phase {
                    self.phases.insert(id);
                }
            }
            Definition::Track { id, text, .. } => drop(self.tracks.insert(id, text)),
            Definition::Fact(fact) => drop(self.facts.insert(fact.key(), fact)),
            Definition::Signal { id, metric, .. } => drop(self.signals.insert(id, metric.to_string())),
            _ => {}
        }
    }

    /// How much of this is not recorded, if the stream says so.
    pub fn not_recorded(&self, of: &str) -> Option<&str> {
        self.facts.values().find_map(|fact| match fact {
            Fact::NotRecorded { what, amount } if what == of => Some(amount.as_str()),
            _ => None,
        })
    }

    pub fn name(&self, id: NameId) -> String {
        self.names.get(&id).cloned().unwrap_or_default()
    }

    /// Names of the phases that have spans.
    pub fn phases(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .events()
            .filter_map(|e| if let Event::Span(s) = e { Some(s.name) } else { None })
            .filter(|name| self.phases.contains(name))
            .map(|name| self.name(name))
            .collect();
        names.dedup();
        names
    }

    pub fn events(&self) -> impl Iterator<Item = Event> + '_ {
        self.blocks.iter().flat_map(|(_, events)| events.iter().copied())
    }

    pub fn spans(&self, name: &str) -> Vec<Span> {
        self.events()
            .filter_map(|e| if let Event::Span(s) = e { Some(s) } else { None })
            .filter(|s| self.name(s.name) == name)
            .collect()
    }

    pub fn steps(&self) -> Vec<Step> {
        self.events().filter_map(|e| if let Event::Step(s) = e { Some(s) } else { None }).collect()
    }

    pub fn samples(&self, signal: &str) -> Vec<Sample> {
        self.events()
            .filter_map(|e| if let Event::Sample(s) = e { Some(s) } else { None })
            .filter(|s| self.signals.get(&s.signal).is_some_and(|name| name == signal))
            .collect()
    }

    /// Events lost on all tracks.
    pub fn dropped(&self) -> u64 {
        let mut by_track = HashMap::new();
        for (info, _) in &self.blocks {
            by_track.insert(info.track, info.dropped);
        }
        by_track.values().sum()
    }
}

/// The segment files of a session, oldest first.
pub fn segments(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(dir).map_or(Vec::new(), |entries| {
        entries.map(|entry| entry.unwrap().path()).filter(|p| layout::segment_number(&file_name(p)).is_some()).collect()
    });
    files.sort();
    files
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

/// Tries until there is something, for at most a minute.
pub fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "nothing after a minute");
    }
}

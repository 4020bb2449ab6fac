//! Reads a trace in Chrome's JSON format, event by event. An event takes 24 bytes here; names are kept once.

use std::collections::HashMap;
use std::fmt;
use std::io::Read;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Events that are read at the most: 240 MB of memory.
const MAX_EVENTS: usize = 10_000_000;
/// Different names that are kept; later ones are called `other`.
const MAX_NAMES: usize = (1 << 16) - 1;
/// Threads and streams that are kept apart.
const MAX_TRACKS: usize = 1024;
/// Bytes of a name that are kept.
const NAME_LEN: usize = 512;
/// What torch calls a step.
pub(super) const STEP: &str = "ProfilerStep#";
/// Numbers beyond this many microseconds are not times.
const LATEST_US: f64 = 9e15;

/// One complete event.
#[derive(Clone, Copy)]
pub(super) struct CompleteEvent {
    pub(super) name: u16,
    pub(super) track: u16,
    pub(super) start_us: f64,
    pub(super) end_us: f64,
    pub(super) sort: CompleteKind,
}

/// What an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CompleteKind {
    /// What the program itself has named: with `record_function`, or by the profiler's schedule.
    Annotation,
    /// A GPU computes.
    Kernel,
    /// A GPU copies memory or fills it.
    Copy,
    /// Anything else.
    Other,
}

impl CompleteKind {
    /// Whether a GPU does it.
    pub(super) fn is_of_gpu(self) -> bool {
        matches!(self, Self::Kernel | Self::Copy)
    }

    /// By the category that torch writes; 1.11 and older call annotations operators too, and write with capitals.
    fn from_category(category: &str, name: &str) -> Self {
        match category {
            "user_annotation" => Self::Annotation,
            "Operator" if !name.contains("::") => Self::Annotation,
            "kernel" | "Kernel" => Self::Kernel,
            "gpu_memcpy" | "Memcpy" | "gpu_memset" | "Memset" => Self::Copy,
            _ if name.starts_with(STEP) => Self::Annotation,
            _ => Self::Other,
        }
    }
}

/// Which rank a trace is of, as torch writes it where its ranks are connected.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
pub(super) struct DistributedInfo {
    pub(super) rank: Option<u32>,
    #[serde(default)]
    pub(super) world_size: Option<u32>,
}

/// What was read of a trace.
#[derive(Default)]
pub(super) struct Trace {
    pub(super) names: Vec<String>,
    name_ids: HashMap<String, u16>,
    /// Threads and streams by process and thread, which may be numbers or texts.
    pub(super) tracks: Vec<(String, String)>,
    track_ids: HashMap<(String, String), u16>,
    /// What metadata call them.
    pub(super) titles: HashMap<(String, String), String>,
    pub(super) events: Vec<CompleteEvent>,
    /// Events that found no room.
    pub(super) left_out: u64,
    pub(super) distributed: DistributedInfo,
    /// What times count from, in nanoseconds since 1970.
    pub(super) base_ns: f64,
}

/// The fields of an event that matter here.
#[derive(Deserialize)]
struct RawTraceEvent {
    #[serde(default)]
    ph: String,
    #[serde(default)]
    cat: String,
    #[serde(default)]
    name: String,
    #[serde(default, deserialize_with = "number")]
    ts: Option<f64>,
    #[serde(default, deserialize_with = "number")]
    dur: Option<f64>,
    #[serde(default)]
    pid: Id,
    #[serde(default)]
    tid: Id,
    #[serde(default)]
    args: Args,
}

/// A number of a process or thread, or its name.
#[derive(Deserialize, Default)]
#[serde(untagged)]
enum Id {
    #[default]
    None,
    Number(i64),
    Text(String),
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("0"),
            Self::Number(n) => n.fmt(f),
            Self::Text(text) => f.write_str(&text.chars().take(64).collect::<String>()),
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Args {
    name: Option<Lenient<String>>,
}

/// A value of the expected kind; any other value is skipped.
#[derive(Deserialize)]
#[serde(untagged)]
enum Lenient<T> {
    Value(T),
    Other(IgnoredAny),
}

/// A number, also one that is written as text.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum NumberOrText {
        Number(f64),
        Text(String),
        Other(IgnoredAny),
    }
    Ok(match NumberOrText::deserialize(deserializer)? {
        NumberOrText::Number(number) => Some(number),
        NumberOrText::Text(text) => text.parse().ok(),
        NumberOrText::Other(_) => None,
    })
}

/// Reads a trace, event by event.
struct TraceSeed<'a>(&'a mut Trace);

impl<'de> DeserializeSeed<'de> for TraceSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for TraceSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a trace: an object with traceEvents, or an array of events")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "traceEvents" => map.next_value_seed(TraceSeed(self.0))?,
                "distributedInfo" => match map.next_value::<Lenient<DistributedInfo>>()? {
                    Lenient::Value(info) => self.0.distributed = info,
                    Lenient::Other(_) => (),
                },
                "baseTimeNanoseconds" => match map.next_value::<Lenient<f64>>()? {
                    Lenient::Value(base_ns) => self.0.base_ns = base_ns,
                    Lenient::Other(_) => (),
                },
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut events: A) -> Result<(), A::Error> {
        while let Some(raw) = events.next_element::<RawTraceEvent>()? {
            self.0.add(raw);
        }
        Ok(())
    }
}

impl Trace {
    pub(super) fn read(input: impl Read) -> serde_json::Result<Self> {
        let mut trace = Self::default();
        let mut deserializer = serde_json::Deserializer::from_reader(input);
        TraceSeed(&mut trace).deserialize(&mut deserializer)?;
        Ok(trace)
    }

    fn add(&mut self, raw: RawTraceEvent) {
        let key = (raw.pid.to_string(), raw.tid.to_string());
        match (raw.ph.as_str(), raw.args.name) {
            ("M", Some(Lenient::Value(title))) if raw.name == "thread_name" && self.titles.len() < MAX_TRACKS => {
                self.titles.insert(key, title.chars().take(NAME_LEN).collect());
            }
            // Every Python call is far too much to look at; the GPU's copies of annotations say nothing new, nor does the one
            // event that is as long as the profiler ran.
            ("X", _) if !["python_function", "gpu_user_annotation", "Trace"].contains(&raw.cat.as_str()) => {
                let time = raw
                    .ts
                    .zip(raw.dur)
                    .filter(|(ts, dur)| (0.0..LATEST_US).contains(ts) && (0.0..LATEST_US).contains(dur));
                let sort = CompleteKind::from_category(&raw.cat, &raw.name);
                let (Some((ts, dur)), true) = (time, self.events.len() < MAX_EVENTS) else {
                    self.left_out += 1;
                    return;
                };
                let (name, Some(track)) = (self.name(raw.name), self.track(key)) else {
                    self.left_out += 1;
                    return;
                };
                self.events.push(CompleteEvent { name, track, start_us: ts, end_us: ts + dur, sort });
            }
            _ => (),
        }
    }

    fn name(&mut self, text: String) -> u16 {
        if let Some(id) = self.name_ids.get(&text) {
            return *id;
        }
        let text =
            if self.names.len() < MAX_NAMES { text.chars().take(NAME_LEN).collect() } else { "other".to_owned() };
        let (names, fresh) = (&mut self.names, text.clone());
        *self.name_ids.entry(text).or_insert_with(|| {
            names.push(fresh);
            (names.len() - 1) as u16
        })
    }

    fn track(&mut self, key: (String, String)) -> Option<u16> {
        if let Some(id) = self.track_ids.get(&key) {
            return Some(*id);
        }
        if self.tracks.len() >= MAX_TRACKS {
            return None;
        }
        self.track_ids.insert(key.clone(), self.tracks.len() as u16);
        self.tracks.push(key);
        Some((self.tracks.len() - 1) as u16)
    }
}

//! From a trace in Chrome's JSON format to a recording: what `torch.profiler` exports.
//!
//! Complete events (`"ph": "X"`) become spans of their thread or GPU stream. Annotations `ProfilerStep#N` are steps;
//! annotations of the training thread with a phase's name are phases, as are torch's own for the loader and the
//! optimizer. The format is described in "Trace Event Format" (Chromium project); torch adds its categories in `cat`.
//!
//! Events are read one by one and kept in 24 bytes each; names once.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufReader, Read, Write};
use std::path::Path;

use gnntop_wire::phase::{DATA_WAIT, OPTIMIZER, STANDARD};
use gnntop_wire::{Event, NameKind, Span, Step, StepId, TrackRole};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::error::ImportError;
use super::steps::Imported;
use super::writer::{Head, START_NS, Writer};

const PUBLISHER: &str = "gnntop import chrome";
/// Events that are read at the most: 240 MB of memory.
const MAX_EVENTS: usize = 10_000_000;
/// Steps whose spans are told apart: 16 MB of memory.
const MAX_STEPS: usize = 1_000_000;
/// Different names that are kept; later ones are called `other`.
const MAX_NAMES: usize = (1 << 16) - 1;
/// Threads and streams that are kept apart.
const MAX_TRACKS: usize = 1024;
/// Bytes of a name that are kept.
const NAME_LEN: usize = 512;
/// What torch calls a step.
const STEP: &str = "ProfilerStep#";
/// Times beyond this many microseconds are no times.
const LATEST_US: f64 = 9e15;

/// One complete event.
#[derive(Clone, Copy)]
struct Complete {
    name: u16,
    track: u16,
    start_us: f64,
    end_us: f64,
    is_annotation: bool,
}

/// What was read of a trace.
#[derive(Default)]
struct Trace {
    names: Vec<String>,
    name_ids: HashMap<String, u16>,
    /// Threads and streams by process and thread, which may be numbers or texts.
    tracks: Vec<(String, String)>,
    track_ids: HashMap<(String, String), u16>,
    /// What metadata call them.
    titles: HashMap<(String, String), String>,
    events: Vec<Complete>,
    /// Events that found no room.
    left_out: u64,
}

/// The fields of an event that matter here.
#[derive(Deserialize)]
struct Raw {
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
    name: Option<NameArg>,
}

/// The name that metadata give; whatever else stands there is passed over.
#[derive(Deserialize)]
#[serde(untagged)]
enum NameArg {
    Text(String),
    Other(IgnoredAny),
}

/// A number, also one that is written as text.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Number(f64),
        Text(String),
        Other(IgnoredAny),
    }
    Ok(match Written::deserialize(deserializer)? {
        Written::Number(number) => Some(number),
        Written::Text(text) => text.parse().ok(),
        Written::Other(_) => None,
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
            if key == "traceEvents" {
                map.next_value_seed(TraceSeed(self.0))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut events: A) -> Result<(), A::Error> {
        while let Some(raw) = events.next_element::<Raw>()? {
            self.0.add(raw);
        }
        Ok(())
    }
}

impl Trace {
    fn read(input: impl Read) -> serde_json::Result<Self> {
        let mut trace = Self::default();
        let mut deserializer = serde_json::Deserializer::from_reader(input);
        TraceSeed(&mut trace).deserialize(&mut deserializer)?;
        Ok(trace)
    }

    fn add(&mut self, raw: Raw) {
        let key = (raw.pid.to_string(), raw.tid.to_string());
        match (raw.ph.as_str(), raw.args.name) {
            ("M", Some(NameArg::Text(title))) if raw.name == "thread_name" && self.titles.len() < MAX_TRACKS => {
                self.titles.insert(key, title.chars().take(NAME_LEN).collect());
            }
            // Every Python call is far too much to look at, and the GPU's copies of annotations say nothing new.
            ("X", _) if raw.cat != "python_function" && raw.cat != "gpu_user_annotation" => {
                let time = raw
                    .ts
                    .zip(raw.dur)
                    .filter(|(ts, dur)| (0.0..LATEST_US).contains(ts) && (0.0..LATEST_US).contains(dur));
                let is_annotation = raw.cat == "user_annotation" || raw.name.starts_with(STEP);
                let (Some((ts, dur)), true) = (time, self.events.len() < MAX_EVENTS) else {
                    self.left_out += 1;
                    return;
                };
                let (name, Some(track)) = (self.name(raw.name), self.track(key)) else {
                    self.left_out += 1;
                    return;
                };
                self.events.push(Complete { name, track, start_us: ts, end_us: ts + dur, is_annotation });
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

/// Imports the trace at `path`. `phases` are pairs of a phase and the annotation that is it.
///
/// # Errors
/// When the file cannot be read, is no trace or holds no complete event, or the recording cannot be written.
pub fn trace(path: &Path, phases: &[(String, String)], out: impl Write) -> Result<Imported, ImportError> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|error| ImportError::Io { path: name.clone(), error })?;
    let mut trace = Trace::read(BufReader::new(file))
        .map_err(|error| ImportError::Nothing { path: name.clone(), reason: format!("is no trace: {error}") })?;
    let Some(first_us) = trace.events.iter().map(|event| event.start_us).min_by(f64::total_cmp) else {
        let reason = "no complete event (\"ph\": \"X\") is in it".to_owned();
        return Err(ImportError::Nothing { path: name, reason });
    };
    // Outer spans end last: at the same time they come after what lies inside them.
    let order = |a: &Complete, b: &Complete| a.end_us.total_cmp(&b.end_us).then(b.start_us.total_cmp(&a.start_us));
    // In place: what keeps the order of equals takes half as much memory again. Names are numbered as they come.
    trace.events.sort_unstable_by(|a, b| order(a, b).then((a.track, a.name).cmp(&(b.track, b.name))));
    let session = path.file_stem().map_or_else(|| "trace".to_owned(), |stem| stem.to_string_lossy().into_owned());
    let head = Head {
        name: session,
        command: format!("imported from {name}"),
        publisher: PUBLISHER,
        session_id: session_id(path, &trace),
        wall_ns: 0,
        place: None,
    };
    let (steps, events) = write(Writer::new(out, head), &trace, phases, first_us)?;
    let mut notes = Vec::new();
    if steps == 0 {
        notes.push(format!("no annotation {STEP}N: call profiler.step() in the loop to get steps"));
    }
    if steps > MAX_STEPS as u64 {
        notes.push(format!("spans are said to belong to the first {MAX_STEPS} steps only"));
    }
    if trace.left_out > 0 {
        notes.push(format!("{} events were left out", trace.left_out));
    }
    Ok(Imported { steps, events, notes })
}

fn session_id(path: &Path, trace: &Trace) -> u128 {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, path, trace.events.len()).hash(&mut hasher);
        trace.events.iter().take(1000).for_each(|event| event.end_us.to_bits().hash(&mut hasher));
        u128::from(hasher.finish())
    };
    half(0) << 64 | half(1)
}

/// The number in `ProfilerStep#12`.
fn step_number(name: &str) -> Option<u64> {
    name.strip_prefix(STEP)?.parse().ok()
}

/// The phase that an annotation of the training thread is, if any.
fn phase_of<'a>(name: &'a str, given: &'a [(String, String)]) -> Option<&'a str> {
    let plain = name.trim_matches(|c: char| c == '#' || c.is_whitespace());
    let of_torch = || match name {
        _ if name.starts_with("enumerate(DataLoader)") => Some(DATA_WAIT),
        _ if name.starts_with("Optimizer.step") => Some(OPTIMIZER),
        _ => None,
    };
    let standard = || STANDARD.into_iter().find(|phase| plain.to_ascii_lowercase().replace('_', " ") == *phase);
    given.iter().find(|(_, text)| text == name).map(|(phase, _)| phase.as_str()).or_else(standard).or_else(of_torch)
}

fn write<W: Write>(
    mut writer: Writer<W>,
    trace: &Trace,
    phases: &[(String, String)],
    first_us: f64,
) -> Result<(u64, u64), ImportError> {
    let t_ns = |us: f64| START_NS + ((us - first_us) * 1e3) as u64;
    let is_step =
        |event: &Complete| event.is_annotation.then(|| step_number(&trace.names[event.name as usize])).flatten();
    let training = trace.events.iter().find(|event| is_step(event).is_some()).map(|event| event.track);
    // Steps by their start, so that every span finds the one it lies in.
    let steps = trace.events.iter().filter_map(|event| Some((t_ns(event.start_us), is_step(event)?.saturating_add(1))));
    let mut starts: Vec<(u64, u64)> = steps.take(MAX_STEPS).collect();
    starts.sort_by_key(|(start_ns, _)| *start_ns);
    let step_at = |ns: u64| {
        let after = starts.partition_point(|(start_ns, _)| *start_ns <= ns);
        StepId(after.checked_sub(1).and_then(|at| starts.get(at)).map_or(0, |(_, step)| *step))
    };
    let tracks: Vec<_> = (0u16..)
        .zip(&trace.tracks)
        .map(|(index, key)| {
            let role = if Some(index) == training { TrackRole::Training } else { TrackRole::Other };
            let title = trace.titles.get(key).map_or_else(|| format!("thread {} of {}", key.1, key.0), Clone::clone);
            writer.track(role, &title)
        })
        .collect();
    let mut steps = 0;
    for event in &trace.events {
        let (track, text) = (tracks[event.track as usize], &trace.names[event.name as usize]);
        let (start_ns, end_ns) = (t_ns(event.start_us), t_ns(event.end_us));
        if let Some(number) = is_step(event) {
            steps += 1;
            let step = Step { step: StepId(number.saturating_add(1)), start_ns, end_ns, ..Step::default() };
            writer.event(track, &Event::Step(step))?;
            continue;
        }
        let phase = phase_of(text, phases).filter(|_| event.is_annotation && Some(event.track) == training);
        let name = match phase {
            Some(phase) => writer.name(NameKind::Phase, phase),
            None => writer.name(NameKind::Span, text),
        };
        writer.event(track, &Event::Span(Span { name, start_ns, end_ns, step: step_at(start_ns) }))?;
    }
    Ok((steps, writer.finish()?))
}

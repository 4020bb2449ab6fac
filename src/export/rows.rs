//! One event a line, as CSV and as JSON, with the same fields.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Write};

use gnntop_wire::TrackId;

use super::format::{Entry, FormatWriter, json, json_number};

const HEAD: &str = "kind,track,name,step,start_ns,end_ns,value,unit\n";

/// The fields of a line; what an event does not have is `None`.
pub(super) struct Fields<'a> {
    pub(super) kind: &'static str,
    pub(super) name: &'a str,
    pub(super) step: Option<u64>,
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) value: Option<f64>,
    /// Values of sensors are whole numbers, which not every `f64` holds.
    pub(super) whole: Option<i64>,
    pub(super) unit: &'static str,
}

impl<'a> Fields<'a> {
    pub(super) fn new(entry: &Entry<'a>) -> Self {
        let (start_ns, end_ns) = entry.time_ns();
        let none = Self { kind: "", name: "", step: None, start_ns, end_ns, value: None, whole: None, unit: "" };
        match entry {
            Entry::Span { name, is_phase, span } => {
                let kind = if *is_phase { "phase" } else { "span" };
                Self { kind, name, step: Some(span.step.0).filter(|step| *step > 0), ..none }
            }
            Entry::Step { step } => Self { kind: "step", step: Some(step.step.0), value: step.loss, ..none },
            Entry::Counter { name, value, .. } => Self { kind: "counter", name, value: Some(*value), ..none },
            Entry::Mark { name, value, .. } => Self { kind: "mark", name, value: *value, ..none },
            Entry::Sample { name, unit, value, .. } => {
                Self { kind: "sample", name, whole: Some(*value), unit: unit.symbol(), ..none }
            }
        }
    }

    fn value(&self) -> Option<String> {
        self.whole.map(|whole| whole.to_string()).or_else(|| self.value.map(|value| value.to_string()))
    }
}

/// CSV.
pub(super) struct EventCsv<W: Write> {
    out: W,
    titles: HashMap<TrackId, String>,
    has_head: bool,
}

impl<W: Write> EventCsv<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, titles: HashMap::new(), has_head: false }
    }

    fn head(&mut self) -> io::Result<()> {
        if !self.has_head {
            self.has_head = true;
            self.out.write_all(HEAD.as_bytes())?;
        }
        Ok(())
    }
}

impl<W: Write> FormatWriter for EventCsv<W> {
    fn track(&mut self, track: TrackId, title: &str) -> io::Result<()> {
        self.titles.insert(track, quoted(title).into_owned());
        Ok(())
    }

    fn entry(&mut self, track: TrackId, entry: &Entry<'_>) -> io::Result<()> {
        self.head()?;
        let fields = Fields::new(entry);
        let title = self.titles.get(&track).map_or("", String::as_str);
        let step = fields.step.map(|step| step.to_string()).unwrap_or_default();
        let value = fields.value().unwrap_or_default();
        let Fields { kind, name, start_ns, end_ns, unit, .. } = fields;
        writeln!(self.out, "{kind},{title},{},{step},{start_ns},{end_ns},{value},{unit}", quoted(name))
    }

    fn end(&mut self) -> io::Result<()> {
        self.head()?;
        self.out.flush()
    }
}

/// A cell that no sheet takes for a formula.
pub(super) fn quoted(text: &str) -> Cow<'_, str> {
    let is_formula = text.starts_with(['=', '+', '-', '@']);
    let clean = if is_formula { Cow::Owned(format!("'{text}")) } else { Cow::Borrowed(text) };
    let is_cut = clean.bytes().any(|byte| matches!(byte, b',' | b'"' | b'\n'));
    if is_cut { Cow::Owned(format!("\"{}\"", clean.replace('"', "\"\""))) } else { clean }
}

/// JSON, one object a line.
pub(super) struct Ndjson<W: Write> {
    out: W,
    titles: HashMap<TrackId, String>,
}

impl<W: Write> Ndjson<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, titles: HashMap::new() }
    }
}

impl<W: Write> FormatWriter for Ndjson<W> {
    fn track(&mut self, track: TrackId, title: &str) -> io::Result<()> {
        self.titles.insert(track, json(title));
        Ok(())
    }

    fn entry(&mut self, track: TrackId, entry: &Entry<'_>) -> io::Result<()> {
        let fields = Fields::new(entry);
        let title = self.titles.get(&track).map_or("null", String::as_str);
        let mut line = format!("{{\"kind\":\"{}\",\"track\":{title}", fields.kind);
        if !fields.name.is_empty() {
            line += &format!(",\"name\":{}", json(fields.name));
        }
        line.extend(fields.step.map(|step| format!(",\"step\":{step}")));
        line += &format!(",\"start_ns\":{},\"end_ns\":{}", fields.start_ns, fields.end_ns);
        line.extend(fields.whole.map(|whole| format!(",\"value\":{whole},\"unit\":{}", json(fields.unit))));
        line.extend(fields.value.map(|value| format!(",\"value\":{}", json_number(value))));
        if let Entry::Step { step } = entry {
            let batch = step.batch;
            let sizes =
                [("graphs", batch.graphs), ("nodes", batch.nodes), ("edges", batch.edges), ("seeds", batch.seeds)];
            line += &format!(",\"epoch\":{}", step.epoch);
            line.extend(sizes.iter().filter_map(|(name, n)| Some(format!(",\"{name}\":{}", (*n)?))));
        }
        writeln!(self.out, "{line}}}")
    }

    fn end(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

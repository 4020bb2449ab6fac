//! Chrome's JSON: an array of events, see "Trace Event Format" (Chromium project).

use std::io::{self, Write};

use gnntop_wire::TrackId;

use super::format::{Entry, FormatWriter, json, json_number, micros};

pub(super) struct Chrome<W> {
    out: W,
    is_empty: bool,
}

impl<W: Write> Chrome<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, is_empty: true }
    }

    fn event(&mut self, track: TrackId, fields: &str) -> io::Result<()> {
        let before = if self.is_empty { "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" } else { ",\n" };
        self.is_empty = false;
        write!(self.out, "{before}{{\"pid\":1,\"tid\":{},{fields}}}", track.0)
    }
}

impl<W: Write> FormatWriter for Chrome<W> {
    fn track(&mut self, track: TrackId, title: &str) -> io::Result<()> {
        let fields = format!("\"ph\":\"M\",\"name\":\"thread_name\",\"args\":{{\"name\":{}}}", json(title));
        self.event(track, &fields)
    }

    fn entry(&mut self, track: TrackId, entry: &Entry<'_>) -> io::Result<()> {
        let complete = |name: &str, category: &str, start_ns: u64, end_ns: u64, step: u64| {
            let (ts, dur) = (micros(start_ns), micros(end_ns.saturating_sub(start_ns)));
            let name = json(name);
            format!(
                "\"ph\":\"X\",\"name\":{name},\"cat\":\"{category}\",\"ts\":{ts},\"dur\":{dur},\"args\":{{\"step\":{step}}}"
            )
        };
        let counted = |name: &str, t_ns: u64, value: &str| {
            let name = json(name);
            format!("\"ph\":\"C\",\"name\":{name},\"ts\":{},\"args\":{{\"value\":{value}}}", micros(t_ns))
        };
        let fields = match entry {
            Entry::Span { name, is_phase, span } => {
                let category = if *is_phase { "phase" } else { "span" };
                complete(name, category, span.start_ns, span.end_ns, span.step.0)
            }
            Entry::Step { step } => {
                complete(&format!("step {}", step.step.0), "step", step.start_ns, step.end_ns, step.step.0)
            }
            Entry::Counter { name, t_ns, value } => counted(name, *t_ns, &json_number(*value)),
            Entry::Sample { name, unit, t_ns, value } => {
                counted(&format!("{name} [{}]", unit.symbol()), *t_ns, &value.to_string())
            }
            Entry::Mark { name, t_ns, .. } => {
                format!("\"ph\":\"i\",\"s\":\"t\",\"name\":{},\"ts\":{}", json(name), micros(*t_ns))
            }
        };
        self.event(track, &fields)
    }

    fn end(&mut self) -> io::Result<()> {
        let text = if self.is_empty { "{\"traceEvents\":[]}\n" } else { "\n]}\n" };
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}

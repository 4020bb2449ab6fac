//! The way of a trace: read it, find its steps, measure its GPUs, write it.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::Path;

use gnntop_analysis::figures::{count, counted, percent};
use gnntop_wire::{
    Event, NameId, NameKind, Origin, Place, Quantity, Reported, Sample, SignalId, SignalSource, Span, Step, StepId,
    TrackId, TrackRole,
};

use super::options::ChromeOptions;
use super::read::{CompleteEvent, CompleteKind, STEP, Trace};
use super::steps::{Busy, TraceSteps, gpu_busy, parse_gpu};
use crate::import::input::Input;
use crate::import::outcome::{ImportError, ImportSummary};
use crate::import::steps::Imported;
use crate::import::writer::{RecordingHead, START_NS, Writer};

const PUBLISHER: &str = "gnntop import chrome";
/// Times from 2001 on, in nanoseconds since 1970.
const WALL_NS: f64 = 1e18;

/// Imports the trace at `path`, which may be compressed with gzip.
///
/// # Errors
/// When the file cannot be read, is not a trace or holds no complete event, or the recording cannot be written.
pub fn trace(path: &Path, said: &ChromeOptions, out: impl Write) -> Result<Imported, ImportError> {
    let input = Input::open(path)?;
    let mut trace = Trace::read(input.text()?).map_err(|error| input.useless(format!("is not a trace: {error}")))?;
    // In place: what keeps the order of equals takes half as much memory again.
    trace.events.sort_unstable_by(|a, b| a.start_us.total_cmp(&b.start_us).then(b.end_us.total_cmp(&a.end_us)));
    let Some(first_us) = trace.events.first().map(|event| event.start_us) else {
        return Err(input.useless("has no complete event (\"ph\": \"X\")"));
    };
    let steps = TraceSteps::new(&trace, said);
    end_phases_with_their_step(&mut trace, &steps, said);
    // Without steps the kernels are reported over time.
    let parts = steps.all.is_empty().then(|| TraceSteps::parts(&trace));
    let busy = gpu_busy(&trace, parts.as_ref().unwrap_or(&steps));
    // Outer spans end last: at equal times they come after what is inside them.
    let order =
        |a: &CompleteEvent, b: &CompleteEvent| a.end_us.total_cmp(&b.end_us).then(b.start_us.total_cmp(&a.start_us));
    trace.events.sort_unstable_by(|a, b| order(a, b).then((a.track, a.name).cmp(&(b.track, b.name))));
    let mut account = ImportSummary::default();
    let wall_ns = trace.base_ns.max(0.0) + first_us * 1e3;
    let head = RecordingHead {
        name: path.file_stem().map_or_else(|| "trace".to_owned(), |stem| stem.to_string_lossy().into_owned()),
        command: format!("imported from {}", path.display()),
        publisher: PUBLISHER,
        origin: Origin::Trace,
        session_id: session_id(path, &trace),
        wall_ns: if (WALL_NS..1e19).contains(&wall_ns) { wall_ns as u64 } else { 0 },
        place: place(&trace, said, &mut account),
    };
    summarize(&trace, &steps, &busy, said, &mut account);
    let recording = TraceRecording { trace: &trace, steps: &steps, parts: parts.as_ref(), options: said, first_us };
    let events = recording.write(Writer::new(out, head), &busy)?;
    Ok(Imported { steps: steps.all.len() as u64, events, account })
}

/// Ends phases that outlast the step they began in at its end. So does the optimizer's where a step ends in one of its hooks.
fn end_phases_with_their_step(trace: &mut Trace, steps: &TraceSteps, said: &ChromeOptions) {
    let Trace { events, names, .. } = trace;
    let is_of_training =
        |event: &&mut CompleteEvent| event.sort == CompleteKind::Annotation && Some(event.track) == steps.track;
    for event in events.iter_mut().filter(is_of_training) {
        let name = &names[usize::from(event.name)];
        let step = steps.at(event.start_us).map(|at| &steps.all[at]);
        if let Some(step) = step.filter(|step| event.start_us < step.end_us && said.phase(name).is_some()) {
            event.end_us = event.end_us.min(step.end_us);
        }
    }
}

/// The rank's place in its run, as given, or else the trace's.
fn place(trace: &Trace, said: &ChromeOptions, account: &mut ImportSummary) -> Option<Place> {
    if said.place.is_some() {
        return said.place.clone();
    }
    match (trace.distributed.rank, trace.distributed.world_size) {
        (Some(rank), Some(ranks)) if rank < ranks && ranks > 1 => {
            account.used.push(format!("distributedInfo: rank {rank} of {ranks}, run {}", said.run));
            let (run, copy, copies) = (said.run.clone(), rank, ranks);
            Some(Place { run, rank, ranks, stages: 1, copy, copies, ..Place::default() })
        }
        (Some(rank), None) => {
            account.warnings.push(format!(
                "distributedInfo says rank {rank}, but not of how many: give --rank {rank}/N, so that the ranks' files become one run"
            ));
            None
        }
        _ => None,
    }
}

fn summarize(trace: &Trace, steps: &TraceSteps, busy: &Busy, said: &ChromeOptions, account: &mut ImportSummary) {
    account.used.extend(said.step.as_ref().map(|name| format!("{name} as step")));
    account.used.extend(busy.iter().map(|(gpu, shares)| match steps.all.is_empty() {
        true => format!("kernels of GPU {gpu}: it was busy for {} of the trace", percent(mean(shares))),
        false => format!("kernels of GPU {gpu}: how much of each step it was busy"),
    }));
    account.left_out.push("Python calls, flows and memory events".to_owned());
    if steps.is_shifted {
        account.guessed.push("steps are counted from 0 in the trace: here their numbers are 1 higher".to_owned());
    }
    if steps.all.is_empty() {
        account.warnings.push(match &said.step {
            Some(name) => format!("no annotation is called {name}: there are no steps"),
            None => format!(
                "no annotation {STEP}N: call profiler.step() in the loop to get steps, or name your own annotation with --step NAME"
            ),
        });
    }
    if steps.left_out > 0 {
        let steps = counted(steps.left_out, "step", "steps");
        account.warnings.push(format!("left out, as the table is full: {steps}"));
    }
    if trace.left_out > 0 {
        account.warnings.push(format!(
            "{} events were left out: their time is impossible, or a table is full",
            count(trace.left_out)
        ));
    }
}

fn mean(shares: &[f64]) -> f64 {
    shares.iter().sum::<f64>() / shares.len().max(1) as f64
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

/// A trace that is being written.
struct TraceRecording<'a> {
    trace: &'a Trace,
    steps: &'a TraceSteps,
    /// What GPUs are measured by where there are no steps.
    parts: Option<&'a TraceSteps>,
    options: &'a ChromeOptions,
    first_us: f64,
}

impl TraceRecording<'_> {
    fn t_ns(&self, us: f64) -> u64 {
        START_NS + ((us - self.first_us) * 1e3) as u64
    }

    fn write<W: Write>(&self, mut writer: Writer<W>, busy: &Busy) -> Result<u64, ImportError> {
        let tracks = self.tracks(&mut writer);
        let mut gpus = Gpus::define(&mut writer, busy);
        let mut graphs = GraphRecordings::default();
        for (at, part) in self.parts.iter().flat_map(|parts| &parts.all).enumerate() {
            gpus.write(&mut writer, Some(at), self.t_ns(part.start_us))?;
        }
        for event in &self.trace.events {
            let track = tracks[event.track as usize];
            let (start_ns, end_ns) = (self.t_ns(event.start_us), self.t_ns(event.end_us));
            let is_of_training = event.sort == CompleteKind::Annotation && Some(event.track) == self.steps.track;
            let text = &self.trace.names[event.name as usize];
            let step = self.steps.find(event.start_us, event.end_us);
            if let Some(step) = step.filter(|_| is_of_training && self.options.step(text).is_some()) {
                gpus.write(&mut writer, self.steps.at(event.start_us), start_ns)?;
                let step = Step { step: StepId(step.number), start_ns, end_ns, ..Step::default() };
                writer.event(track, &Event::Step(step))?;
                continue;
            }
            let name = match self.options.phase(text).filter(|_| is_of_training) {
                Some(phase) => writer.name(NameKind::Phase, phase),
                None if event.sort == CompleteKind::Copy => writer.name(NameKind::Reported(Reported::DeviceCopy), text),
                None if waits_for_device(text) => writer.name(NameKind::Reported(Reported::DeviceWait), text),
                None => writer.reported(NameKind::Span, text),
            };
            let step = self.steps.id_at(event.start_us);
            writer.event(track, &Event::Span(Span { name, start_ns, end_ns, step }))?;
            if let Some(start_ns) = graphs.recorded(event.track, text, start_ns) {
                let name = recorded_graph(&mut writer);
                writer.event(track, &Event::Span(Span { name, start_ns, end_ns, step }))?;
            }
        }
        Ok(writer.finish()?)
    }

    /// A track for each thread, and for each stream of a GPU.
    fn tracks<W: Write>(&self, writer: &mut Writer<W>) -> Vec<TrackId> {
        let mut has_kernels = vec![false; self.trace.tracks.len()];
        for event in self.trace.events.iter().filter(|event| event.sort.is_of_gpu()) {
            has_kernels[event.track as usize] = true;
        }
        let track = |(index, key): (u16, &(String, String))| {
            let gpu = parse_gpu(key).filter(|_| has_kernels[index as usize]);
            let title = match gpu {
                Some(gpu) => format!("GPU {gpu} stream {}", key.1.trim_start_matches("stream").trim()),
                None => {
                    let title = self.trace.titles.get(key).cloned();
                    title.unwrap_or_else(|| format!("thread {} of {}", key.1, key.0))
                }
            };
            let role = match Some(index) == self.steps.track {
                true => TrackRole::Training,
                false if gpu.is_some() || title.to_lowercase().contains("stream") => TrackRole::Stream,
                false => TrackRole::Other,
            };
            writer.track(role, &title)
        };
        (0u16..).zip(&self.trace.tracks).map(track).collect()
    }
}

/// Whether a call of CUDA's or HIP's runtime waits until a device is done.
fn waits_for_device(name: &str) -> bool {
    let waits = ["StreamSynchronize", "DeviceSynchronize", "EventSynchronize", "Memcpy"];
    runtime_call(name).is_some_and(|call| waits.contains(&call))
}

/// A call of CUDA's or HIP's runtime, without whose it is.
fn runtime_call(name: &str) -> Option<&str> {
    name.strip_prefix("cuda").or_else(|| name.strip_prefix("hip"))
}

/// Graphs that are being recorded: since when, by track.
#[derive(Default)]
struct GraphRecordings(HashMap<u16, u64>);

impl GraphRecordings {
    /// When the graph began whose recording ends with this call.
    fn recorded(&mut self, track: u16, call: &str, start_ns: u64) -> Option<u64> {
        match runtime_call(call)? {
            "StreamBeginCapture" => {
                self.0.insert(track, start_ns);
                None
            }
            "StreamEndCapture" => self.0.remove(&track),
            _ => None,
        }
    }
}

/// The name of the time in which a graph is recorded.
fn recorded_graph<W: Write>(writer: &mut Writer<W>) -> NameId {
    let what = Reported::Recompilation;
    writer.name(NameKind::Reported(what), &format!("{}{}", what.text(), Reported::CUDA_GRAPH))
}

/// How busy GPUs were, as signals.
struct Gpus<'a> {
    track: Option<TrackId>,
    signals: Vec<(SignalId, &'a [f64])>,
}

impl<'a> Gpus<'a> {
    fn define<W: Write>(writer: &mut Writer<W>, busy: &'a Busy) -> Self {
        if busy.values().all(Vec::is_empty) {
            return Self { track: None, signals: Vec::new() };
        }
        let track = writer.track(TrackRole::Sensors, "GPUs by their kernels");
        let mut signal = |(gpu, shares): (&u32, &'a Vec<f64>)| {
            (writer.signal(Quantity::GpuUtil.with_instance(*gpu).into(), SignalSource::Kernels), shares.as_slice())
        };
        Self { track: Some(track), signals: busy.iter().map(&mut signal).collect() }
    }

    /// Writes how busy the GPUs were in a step, at its start: a reading holds until the next one.
    fn write<W: Write>(&mut self, writer: &mut Writer<W>, step: Option<usize>, t_ns: u64) -> Result<(), ImportError> {
        let (Some(track), Some(step)) = (self.track, step) else { return Ok(()) };
        for (signal, shares) in &self.signals {
            let share = shares.get(step).copied().unwrap_or(0.0);
            let value = (share * 1e5).round() as i64;
            writer.event(track, &Event::Sample(Sample { signal: *signal, t_ns, value }))?;
        }
        Ok(())
    }
}

//! Writes a history as a recording: steps, values as counters, readings of hardware as signals.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::Path;

use gnntop_analysis::figures::{count, counted};
use gnntop_wire::{
    Counter, Event, Fact, NameId, NameKind, Origin, Sample, SignalId, SignalKind, SignalSource, Step, StepId, TrackId,
    TrackRole,
};

use super::axis::{self, Axis, Stretch};
use super::options::{HistoryOptions, Tracker};
use super::places::useless;
use super::series::{History, Point};
use super::{mlflow, signals, tensorboard, trackio, wandb};
use crate::import::mapping::column_metric;
use crate::import::outcome::ImportError;
use crate::import::steps::Imported;
use crate::import::writer::{RecordingHead, START_NS, Writer};

/// Names of readings that are listed.
const NAMES_SHOWN: usize = 5;

/// Imports the history that a tracker has kept at `path`.
///
/// # Errors
/// If nothing can be read there, no step has a time, or the recording cannot be written.
pub fn import(tracker: Tracker, path: &Path, said: &HistoryOptions, out: impl Write) -> Result<Imported, ImportError> {
    let (mut history, publisher) = match tracker {
        Tracker::TensorBoard => (tensorboard::read(path, said)?, "gnntop import tensorboard"),
        Tracker::Wandb => (wandb::read(path, said)?, "gnntop import wandb"),
        Tracker::MlFlow => (mlflow::read(path, said)?, "gnntop import mlflow"),
        Tracker::Trackio => (trackio::read(path, said)?, "gnntop import trackio"),
    };
    let mut account = std::mem::take(&mut history.account);
    let name = axis::choose(&history, said.steps.as_deref()).map_err(|reason| useless(path, reason))?;
    let points = history.series.get(name).map(Vec::as_slice).unwrap_or_default();
    let steps = Axis::new(name, points, &mut account).map_err(|reason| useless(path, reason))?;
    let (readings, unknown) = sort_readings(&history);
    if !unknown.is_empty() {
        account.left_out.push(format!("readings that gnntop has no name for: {}", some_of(&unknown)));
    }
    account.used.push(format!("{} as counters", counted(history.series.len() as u64, "name", "names")));
    if !readings.is_empty() {
        let names: Vec<&str> = readings.iter().map(|reading| reading.name.as_str()).collect();
        account.used.push(names.join(", "));
    }
    if history.other_entries > 0 {
        account.left_out.push(format!("{} that are no numbers", counted(history.other_entries, "entry", "entries")));
    }
    if history.left_out > 0 {
        account.warnings.push(format!("{} values were left out: no time, or too many", count(history.left_out)));
    }
    let all = history.series.values().chain(history.readings.values()).flatten();
    let first_ns = all.map(|point| point.wall_ns).min().unwrap_or_default();
    let note = match steps.interval {
        0 | 1 => String::new(),
        several => format!("; a value every {several} steps: times of steps are means of these"),
    };
    let head = RecordingHead {
        name: history.name.clone(),
        command: format!("imported from {}{note}", path.display()),
        publisher,
        origin: Origin::Table,
        session_id: session_id(path, points),
        wall_ns: first_ns,
        place: said.place.clone(),
    };
    let recording = HistoryRecording { history: &history, steps: &steps, first_ns };
    let events = recording.write(Writer::new(out, head), &readings)?;
    Ok(Imported { steps: steps.steps, events, account })
}

fn session_id(path: &Path, points: &[Point]) -> u128 {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, path, points.len()).hash(&mut hasher);
        points.iter().take(1000).for_each(|point| (point.wall_ns, point.value.to_bits()).hash(&mut hasher));
        u128::from(hasher.finish())
    };
    half(0) << 64 | half(1)
}

/// Readings that have a name here.
struct Reading<'a> {
    name: String,
    theirs: &'a str,
    unit: gnntop_wire::Unit,
    factor: f64,
    points: &'a [Point],
}

/// The readings that have a name here, and the names of the others.
fn sort_readings(history: &History) -> (Vec<Reading<'_>>, Vec<&str>) {
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for (theirs, points) in &history.readings {
        match signals::signal(theirs) {
            Some((name, scale)) => {
                known.push(Reading { name, theirs, unit: scale.unit, factor: scale.factor, points });
            }
            None => unknown.push(theirs.as_str()),
        }
    }
    (known, unknown)
}

/// The first names of a list, and how many more there are.
fn some_of(names: &[&str]) -> String {
    let shown = names.len().min(NAMES_SHOWN);
    let more = if shown < names.len() { format!(" and {} more", names.len() - shown) } else { String::new() };
    names[..shown].join(", ") + &more
}

struct HistoryRecording<'a> {
    history: &'a History,
    steps: &'a Axis,
    first_ns: u64,
}

/// What a value is written as.
#[derive(Clone, Copy)]
enum Sink {
    Counter(TrackId, NameId),
    Signal(TrackId, SignalId, f64),
}

impl Sink {
    fn event(self, t_ns: u64, value: f64) -> (TrackId, Event) {
        match self {
            Self::Counter(track, name) => (track, Event::Counter(Counter { name, t_ns, value })),
            Self::Signal(track, signal, factor) => {
                (track, Event::Sample(Sample { signal, t_ns, value: (value * factor).round() as i64 }))
            }
        }
    }
}

impl HistoryRecording<'_> {
    fn t_ns(&self, wall_ns: u64) -> u64 {
        START_NS + (wall_ns - self.first_ns)
    }

    fn write<W: Write>(&self, mut writer: Writer<W>, readings: &[Reading<'_>]) -> Result<u64, ImportError> {
        if self.steps.interval > 1 {
            writer.fact(Fact::MeanOfSteps(self.steps.interval));
        }
        let track = writer.track(TrackRole::Training, "steps");
        let sinks = self.sinks(&mut writer, track, readings);
        let mut values: Vec<(u64, u32, f64)> = Vec::new();
        for ((_, points), at) in sinks.iter().zip(0..) {
            values.extend(points.iter().map(|point| (self.t_ns(point.wall_ns), at, point.value)));
        }
        values.sort_by_key(|(t_ns, at, _)| (*t_ns, *at));
        let event = |(t_ns, at, value): (u64, u32, f64)| sinks[at as usize].0.event(t_ns, value);
        let mut values = values.into_iter().peekable();
        for stretch in &self.steps.stretches {
            for at in 0..stretch.steps {
                let step = self.step(stretch, at);
                // A value is logged when its step has ended.
                while let Some(value) = values.next_if(|(t_ns, _, _)| *t_ns < step.end_ns) {
                    let (track, event) = event(value);
                    writer.event(track, &event)?;
                }
                writer.event(track, &Event::Step(step))?;
            }
        }
        for value in values {
            let (track, event) = event(value);
            writer.event(track, &event)?;
        }
        Ok(writer.finish()?)
    }

    /// Where the values of each name go.
    fn sinks<'p, W: Write>(
        &'p self,
        writer: &mut Writer<W>,
        track: TrackId,
        readings: &[Reading<'p>],
    ) -> Vec<(Sink, &'p [Point])> {
        let series = self.history.series.iter();
        let mut sinks: Vec<(Sink, &[Point])> = series
            .map(|(name, points)| (Sink::Counter(track, writer.name(NameKind::Counter, name)), points.as_slice()))
            .collect();
        let sensors = if readings.is_empty() { track } else { writer.track(TrackRole::Sensors, "readings") };
        for Reading { name, theirs, unit, factor, points } in readings {
            let metric = column_metric(name, Some(*unit), SignalKind::Gauge);
            let signal = writer.signal(metric, SignalSource::Column((*theirs).to_owned()));
            sinks.push((Sink::Signal(sensors, signal, *factor), points));
        }
        sinks
    }

    fn step(&self, stretch: &Stretch, at: u64) -> Step {
        let took_ns = u128::from(stretch.end_ns - stretch.start_ns);
        let begin = |at: u64| {
            let part_ns = took_ns * u128::from(at) / u128::from(stretch.steps);
            self.t_ns(stretch.start_ns + part_ns as u64)
        };
        Step { step: StepId(stretch.first + at), start_ns: begin(at), end_ns: begin(at + 1), ..Step::default() }
    }
}

//! Writes a training event by event, for runs of which spans, marks with durations and signals matter.

use gnntop_fixtures::{START_NS, StreamBuilder};
use gnntop_wire::{
    AnyMetric, BatchShape, Definition, Event, SignalId, SignalKind, SignalSource, Step, StepId, ThreadUsage, TrackId,
    TrackRole, Unit,
};

use super::random::Random;

/// Sensors are read so often.
const READING_NS: u64 = 93_000_000;
/// Durations vary by this share of themselves.
const SPREAD: f64 = 0.02;

/// A training that is being written.
pub struct TrainingLoop {
    pub random: Random,
    stream: StreamBuilder,
    main: TrackId,
    sensors: TrackId,
    t_ns: u64,
    next_reading_ns: u64,
    step: u64,
    step_start_ns: u64,
    epoch: u64,
    /// Each signal with its value now.
    signals: Vec<(SignalId, f64)>,
    involuntary_switches: u64,
}

impl TrainingLoop {
    pub fn new(seed: u64) -> Self {
        let mut stream = StreamBuilder::new("corpus");
        let main = stream.track(TrackRole::Training, "main");
        let sensors = stream.track(TrackRole::Sensors, "sensors");
        Self {
            random: Random::new(seed),
            stream,
            main,
            sensors,
            t_ns: START_NS,
            next_reading_ns: START_NS,
            step: 0,
            step_start_ns: START_NS,
            epoch: 0,
            signals: Vec::new(),
            involuntary_switches: 0,
        }
    }

    /// A signal that a sensor reads ten times a second.
    pub fn signal(&mut self, name: &str, unit: Unit, kind: SignalKind) -> usize {
        let id = self.stream.signal(name, unit, kind);
        self.signals.push((id, 0.0));
        self.signals.len() - 1
    }

    /// A column of a table, which has a value for each step.
    pub fn column(&mut self, id: u32, name: &str, unit: Unit, kind: SignalKind) -> SignalId {
        let (id, source) = (SignalId(id), SignalSource::Column("values".to_owned()));
        let metric = AnyMetric::from_name(name.to_owned(), unit, kind);
        self.stream.define(Definition::Signal { id, metric, source, device: String::new() });
        id
    }

    pub fn set(&mut self, signal: usize, value: f64) {
        self.signals[signal].1 = value;
    }

    pub fn count(&mut self, signal: usize, more: f64) {
        self.signals[signal].1 += more;
    }

    /// A row's value in a column, at the end of the step.
    pub fn cell(&mut self, column: SignalId, value: f64) {
        self.stream.sample(self.sensors, column, self.t_ns, value.round() as i64);
    }

    /// Lets about so much time pass.
    pub fn pass(&mut self, ms: f64) {
        self.pause(ms);
    }

    /// The same, and gives how many milliseconds it was.
    pub fn pause(&mut self, ms: f64) -> f64 {
        let ms = self.random.about(ms, SPREAD);
        self.pass_exactly(ms);
        ms
    }

    pub fn pass_exactly(&mut self, ms: f64) {
        let end_ns = self.t_ns + (ms * 1e6) as u64;
        while self.next_reading_ns <= end_ns {
            for (id, value) in &self.signals {
                self.stream.sample(self.sensors, *id, self.next_reading_ns, *value as i64);
            }
            self.next_reading_ns += READING_NS;
        }
        self.t_ns = end_ns;
    }

    pub fn phase(&mut self, text: &str, ms: f64) {
        let start_ns = self.t_ns;
        self.pass(ms);
        self.stream.phase(self.main, self.step, text, start_ns, self.t_ns);
    }

    /// A span that is no phase, around what `inside` does.
    pub fn span(&mut self, text: &str, inside: impl FnOnce(&mut Self)) {
        let start_ns = self.t_ns;
        inside(self);
        self.stream.span(self.main, self.step, text, start_ns, self.t_ns);
    }

    pub fn mark(&mut self, text: &str) {
        self.stream.mark(self.main, text, self.t_ns);
    }

    pub fn timed_mark(&mut self, text: &str, took_ms: f64) {
        self.stream.timed_mark(self.main, text, self.t_ns, (took_ms * 1e6) as u64);
    }

    pub fn valued_mark(&mut self, text: &str, value: f64) {
        self.stream.valued_mark(self.main, text, self.t_ns, value);
    }

    pub fn counter(&mut self, text: &str, value: f64) {
        self.stream.counter(self.main, text, self.t_ns, value);
    }

    /// The CPU is taken from the training thread so many times in this step.
    pub fn preempt(&mut self, times: u64) {
        self.involuntary_switches += times;
    }

    pub fn next_epoch(&mut self) {
        self.epoch += 1;
    }

    /// A step around what `inside` does.
    pub fn step(&mut self, inside: impl FnOnce(&mut Self)) {
        self.step += 1;
        self.step_start_ns = self.t_ns;
        inside(self);
        let usage = ThreadUsage {
            minor_faults: 3,
            voluntary_switches: 2,
            involuntary_switches: std::mem::take(&mut self.involuntary_switches),
            ..ThreadUsage::default()
        };
        let batch = BatchShape { graphs: Some(256), nodes: Some(3584), edges: Some(7168), seeds: None };
        let (step, epoch) = (StepId(self.step), self.epoch);
        let (start_ns, end_ns, usage) = (self.step_start_ns, self.t_ns, Some(usage));
        let step = Step { step, epoch, start_ns, end_ns, batch, usage, ..Step::default() };
        self.stream.event(self.main, Event::Step(step));
    }

    /// A step of 60 ms in three phases.
    pub fn usual_step(&mut self) {
        self.step(|run| run.usual_phases());
    }

    /// The same, and gives how many milliseconds it took.
    pub fn timed_step(&mut self) -> f64 {
        self.usual_step();
        (self.t_ns - self.step_start_ns) as f64 / 1e6
    }

    pub fn usual_phases(&mut self) {
        self.phase("forward", 20.0);
        self.phase("backward", 36.0);
        self.phase("optimizer", 4.0);
    }

    pub fn stream(mut self) -> Vec<u8> {
        self.stream.flush();
        self.stream.bytes()
    }
}

//! Makes the stream of a generated training: what each step does, and what the sensors read meanwhile.

use gnntop_fixtures::{START_NS, StreamBuilder};
use gnntop_wire::{BatchShape, Event, SignalId, SignalKind, Step, StepId, ThreadUsage, TrackId, TrackRole, Unit};

use super::random::Random;

/// What one step does. Times in milliseconds.
#[derive(Clone)]
pub struct Plan {
    pub phases: Vec<(&'static str, f64)>,
    /// Inside the step's own timer, but in no phase.
    pub unnamed_ms: f64,
    /// Between the step before and this one.
    pub gap_ms: f64,
    pub epoch: u64,
    pub batch: BatchShape,
    pub usage: Option<ThreadUsage>,
    /// In the middle of the gap before the step.
    pub mark_before: Option<&'static str>,
    /// Set as the step ends.
    pub counter: Option<(&'static str, f64)>,
}

impl Default for Plan {
    /// 34 ms of a graph neural network on batches of 256 graphs.
    fn default() -> Self {
        Self {
            phases: vec![("data wait", 1.0), ("forward", 10.0), ("backward", 20.0), ("optimizer", 3.0)],
            unnamed_ms: 0.0,
            gap_ms: 0.5,
            epoch: 0,
            batch: BatchShape { graphs: Some(256), nodes: Some(3584), edges: Some(7168), seeds: None },
            usage: Some(ThreadUsage { minor_faults: 3, voluntary_switches: 2, ..ThreadUsage::default() }),
            mark_before: None,
            counter: None,
        }
    }
}

impl Plan {
    /// A step of which nothing but its time is known.
    pub fn bare(ms: f64) -> Self {
        Self {
            phases: Vec::new(),
            unnamed_ms: ms,
            gap_ms: 0.0,
            batch: BatchShape::default(),
            usage: None,
            ..Self::default()
        }
    }

    /// The same step with all its phases so many times as long.
    pub fn times(mut self, factor: f64) -> Self {
        self.phases.iter_mut().for_each(|phase| phase.1 *= factor);
        self.unnamed_ms *= factor;
        self
    }

    /// The same step with more in one phase.
    pub fn with_phase(mut self, text: &str, ms: f64) -> Self {
        self.phases.iter_mut().filter(|phase| phase.0 == text).for_each(|phase| phase.1 += ms);
        self
    }

    /// The same step without its batch's size.
    pub fn unsized_batch(mut self) -> Self {
        self.batch = BatchShape::default();
        self
    }
}

/// A signal, worked out from the seconds that have passed.
pub struct Reading {
    name: &'static str,
    unit: Unit,
    kind: SignalKind,
    value: Box<dyn Fn(f64) -> f64>,
}

pub fn gauge(name: &'static str, unit: Unit, value: impl Fn(f64) -> f64 + 'static) -> Reading {
    Reading { name, unit, kind: SignalKind::Gauge, value: Box::new(value) }
}

pub fn counted(name: &'static str, unit: Unit, value: impl Fn(f64) -> f64 + 'static) -> Reading {
    Reading { name, unit, kind: SignalKind::Counter, value: Box::new(value) }
}

/// A generated training.
pub struct Training {
    pub steps: u64,
    pub seed: u64,
    /// By how much phases and gaps vary, as a share of themselves.
    pub spread: f64,
    /// How often sensors are read.
    pub reading_ms: f64,
    pub readings: Vec<Reading>,
}

impl Training {
    pub fn new(steps: u64, seed: u64) -> Self {
        Self { steps, seed, spread: 0.02, reading_ms: 93.0, readings: Vec::new() }
    }

    pub fn spread(self, spread: f64) -> Self {
        Self { spread, ..self }
    }

    pub fn reads(mut self, reading: Reading) -> Self {
        self.readings.push(reading);
        self
    }

    /// The stream of steps 1 to `steps`, each as planned.
    pub fn stream(self, mut plan: impl FnMut(u64, &mut Random) -> Plan) -> Vec<u8> {
        let mut random = Random::new(self.seed);
        let mut stream = StreamBuilder::new("corpus");
        let main = stream.track(TrackRole::Training, "main");
        let sensors = stream.track(TrackRole::Sensors, "sensors");
        let signals: Vec<SignalId> =
            self.readings.iter().map(|reading| stream.signal(reading.name, reading.unit, reading.kind)).collect();
        let (mut t_ns, mut next_reading_ns) = (START_NS, START_NS);
        for step in 1..=self.steps {
            let plan = plan(step, &mut random);
            t_ns = put_step(&mut stream, main, step, t_ns, &plan, |ms| random.about(ms, self.spread));
            while next_reading_ns < t_ns {
                for (id, reading) in signals.iter().zip(&self.readings) {
                    let seconds = (next_reading_ns - START_NS) as f64 / 1e9;
                    stream.sample(sensors, *id, next_reading_ns, (reading.value)(seconds) as i64);
                }
                next_reading_ns += ns(self.reading_ms);
            }
        }
        stream.bytes()
    }
}

pub fn ns(ms: f64) -> u64 {
    (ms * 1e6) as u64
}

/// Writes one step after `t_ns` and returns when it ends.
fn put_step(
    stream: &mut StreamBuilder,
    main: TrackId,
    step: u64,
    t_ns: u64,
    plan: &Plan,
    mut noisy: impl FnMut(f64) -> f64,
) -> u64 {
    let gap_ns = ns(noisy(plan.gap_ms));
    if let Some(text) = plan.mark_before {
        stream.mark(main, text, t_ns + gap_ns / 2);
    }
    let start_ns = t_ns + gap_ns;
    let mut end_ns = start_ns;
    for (text, ms) in &plan.phases {
        let phase_ns = ns(noisy(*ms));
        stream.phase(main, step, text, end_ns, end_ns + phase_ns);
        end_ns += phase_ns;
    }
    end_ns += ns(noisy(plan.unnamed_ms));
    if let Some((text, value)) = plan.counter {
        stream.counter(main, text, end_ns - 1, value);
    }
    let Plan { epoch, batch, usage, .. } = *plan;
    stream.event(
        main,
        Event::Step(Step { step: StepId(step), epoch, start_ns, end_ns, batch, usage, ..Step::default() }),
    );
    end_ns
}

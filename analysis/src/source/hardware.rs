//! A process that publishes nothing, seen from outside: the viewer itself reads the sensors and puts the readings into the
//! same frames that a run would publish.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, atomic::AtomicBool, atomic::Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use gnntop_sensors::{MachineInfo, Reading, SensorOptions, SensorSet, SignalInfo, monotonic_ns};
use gnntop_wire::{
    Absent, Anchor, BlockEncoder, Definition, End, Event, Mark, NameId, NameKind, Origin, Sample, SessionInfo,
    SignalId, SignalSource, StreamReader, TrackId, TrackRole, put_anchor, put_definitions, put_end, put_segment,
};

use super::polling::{Progress, Source, SourceState, Status};
use super::process::Process;
use super::program_name::is_shell;
use super::tally::Tally;
use crate::stream::Sink;

/// Time between two passes over the sensors.
const PASS_INTERVAL: Duration = Duration::from_millis(100);
/// Passes between two anchors: one a second.
const PASSES_PER_ANCHOR: u64 = 10;
/// The only track.
const TRACK: TrackId = TrackId(1);

/// Who started a process that is seen from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// `gnntop run`, which reaches the Pythons in it.
    Gnntop,
    /// Anything else.
    Other,
}

/// Shown when there are no steps: what to do in the program's language, if its command line shows which that is.
fn hint(command: &str, launcher: Launcher) -> String {
    let mut words = command.split_whitespace();
    let is_interpreter = |word: &str| word.rsplit('/').next().is_some_and(|name| name.starts_with("python"));
    let shell = words.clone().next().and_then(|word| word.rsplit('/').next()).unwrap_or_default();
    let is_python = words.any(|word| is_interpreter(word) || word.ends_with(".py"));
    if launcher == Launcher::Gnntop {
        let how = if is_python {
            "they appear from the first backward pass on"
        } else {
            "Pythons that it starts show theirs, and others if they link gnntop-probe"
        };
        return format!("hardware only: this program publishes no steps; {how}");
    }
    let how = match is_python {
        true => "start it with `gnntop run -- python ...` to see them",
        false if is_shell(shell) => "nor does a program that it has started",
        false => {
            "a Python program does under `gnntop run`, another if it links gnntop-probe (Rust) or gnntop.h (C, C++)"
        }
    };
    format!("hardware only: this program publishes no steps; {how}")
}

/// The hardware side of one process.
pub struct Hardware {
    process: Process,
    hint: String,
    frames: Receiver<Vec<u8>>,
    reader: StreamReader,
    tally: Tally,
    has_ended: bool,
    stop: Arc<AtomicBool>,
}

impl Hardware {
    /// Starts reading the sensors for `process` on a separate thread, since a GPU may answer late.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn observe(process: Process, launcher: Launcher) -> std::io::Result<Self> {
        let (sender, frames) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let (observed, stopped) = (process.clone(), Arc::clone(&stop));
        thread::Builder::new()
            .name("gnntop sensors".to_owned())
            .spawn(move || sample_until_gone(&observed, launcher, &sender, &stopped))?;
        let (reader, tally) = (StreamReader::new(), Tally::default());
        let hint = hint(&process.command(), launcher);
        Ok(Self { process, hint, frames, reader, tally, has_ended: false, stop })
    }
}

impl Drop for Hardware {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Source for Hardware {
    fn poll(&mut self, sink: &mut dyn Sink, _budget: Duration) -> Progress {
        let mut changed = false;
        loop {
            match self.frames.try_recv() {
                Ok(bytes) => {
                    self.reader.fill(&bytes);
                    self.tally.forward(&mut self.reader, sink);
                    changed = true;
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    changed |= !self.has_ended;
                    self.has_ended = true;
                    break;
                }
            }
        }
        Progress { changed, more: false }
    }

    fn status(&self) -> Status {
        let state = match (self.has_ended, &self.tally.session) {
            (true, _) => SourceState::Ended(format!("process {} ended", self.process.pid())),
            (false, None) => SourceState::Waiting,
            (false, Some(_)) => SourceState::Running,
        };
        Status {
            title: self.tally.title(),
            state,
            live: !self.has_ended,
            hint: Some(self.hint.clone()),
            ..Status::default()
        }
    }
}

/// Sends frames until the process ends or the receiver is gone.
fn sample_until_gone(process: &Process, launcher: Launcher, sender: &Sender<Vec<u8>>, stopped: &AtomicBool) {
    let mut publisher = HardwarePublisher::open(process);
    let mut bytes = publisher.head(process, launcher);
    let mut next = Instant::now();
    for pass in 1_u64.. {
        publisher.pass(&mut bytes);
        if pass.is_multiple_of(PASSES_PER_ANCHOR) {
            put_anchor(&mut bytes, &read_clocks());
        }
        let gone = !process.is_alive();
        if gone {
            put_end(&mut bytes, &End { t_ns: monotonic_ns(), reason: "the process ended".to_owned() });
        }
        if sender.send(std::mem::take(&mut bytes)).is_err() || gone || stopped.load(Ordering::Relaxed) {
            return;
        }
        // A pass that took too long is not made up for: the next one comes an interval later.
        next = (next + PASS_INTERVAL).max(Instant::now());
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}

/// Encodes readings as a run's own sensor thread would.
struct HardwarePublisher {
    sensors: SensorSet,
    block: BlockEncoder,
    /// Reasons for absences that have an id; the first ids belong to the hint.
    reasons: HashMap<String, NameId>,
}

impl HardwarePublisher {
    fn open(process: &Process) -> Self {
        let options = SensorOptions { pid: process.pid(), descendants: true, ..SensorOptions::default() };
        Self { sensors: SensorSet::open(&options), block: BlockEncoder::new(TRACK), reasons: HashMap::new() }
    }

    /// The frames at the start of the session.
    fn head(&mut self, process: &Process, launcher: Launcher) -> Vec<u8> {
        let mut bytes = Vec::new();
        let start = read_clocks();
        put_segment(&mut bytes, &self.session(process, start));
        let hint = hint(&process.command(), launcher);
        let hint_name = self.name(&hint);
        let mut definitions = vec![
            Definition::Track { id: TRACK, role: TrackRole::Sensors, thread_id: 0, text: "sensors".to_owned() },
            Definition::Name { id: hint_name, kind: NameKind::Text, text: hint },
        ];
        definitions.extend(self.sensors.signals().iter().enumerate().map(|(at, info)| signal(at, info)));
        put_definitions(&mut bytes, &definitions);
        put_anchor(&mut bytes, &start);
        self.block.push(&Event::Mark(Mark { name: hint_name, t_ns: start.monotonic_ns, ..Mark::default() }));
        bytes
    }

    fn session(&self, process: &Process, start: Anchor) -> SessionInfo {
        SessionInfo {
            // Distinguishes this observation of the process from any other session.
            session_id: u128::from(start.wall_ns) << 32 | u128::from(process.pid()),
            name: process.program_name(),
            pid: process.pid(),
            host: MachineInfo::from_sensors(&self.sensors).host_name.unwrap_or_default(),
            command: process.command(),
            publisher: concat!("gnntop ", env!("CARGO_PKG_VERSION"), ", from outside").to_owned(),
            origin: Origin::Outside,
            boot_id: boot_id(),
            start,
            segment: 0,
            place: None,
        }
    }

    /// The id of a text, counted from 1.
    fn name(&mut self, text: &str) -> NameId {
        let next = NameId(u32::try_from(self.reasons.len() + 1).unwrap_or(u32::MAX));
        *self.reasons.entry(text.to_owned()).or_insert(next)
    }

    /// Reads every sensor once and appends a block of the readings, preceded by the names it needs.
    fn pass(&mut self, bytes: &mut Vec<u8>) {
        let mut readings = Vec::new();
        self.sensors.read(&mut |reading| readings.push(reading));
        for reading in readings {
            let event = match reading {
                Reading::Value { signal, t_ns, value } => {
                    Event::Sample(Sample { signal: SignalId(signal.0), t_ns, value })
                }
                Reading::Absent { signal, t_ns, reason } => {
                    let known = self.reasons.len();
                    let name = self.name(&reason);
                    if self.reasons.len() > known {
                        put_definitions(bytes, &[Definition::Name { id: name, kind: NameKind::Text, text: reason }]);
                    }
                    Event::Absent(Absent { signal: SignalId(signal.0), t_ns, reason: name })
                }
            };
            if !self.block.push(&event) {
                self.block.finish(0, bytes);
                self.block.push(&event);
            }
        }
        self.block.finish(0, bytes);
    }
}

fn signal(at: usize, info: &SignalInfo) -> Definition {
    Definition::Signal {
        id: SignalId(u32::try_from(at).unwrap_or(u32::MAX)),
        metric: info.metric.into(),
        source: SignalSource::Sensor(info.source.to_owned()),
        device: info.device.clone().unwrap_or_default(),
    }
}

fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Reads the clocks one after another.
fn read_clocks() -> Anchor {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let monotonic_ns = monotonic_ns();
    Anchor { monotonic_ns, wall_ns: u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX), boot_ns: boot_ns(monotonic_ns) }
}

/// Time since boot including suspension, or `otherwise` if the system has no such clock.
#[cfg(target_os = "linux")]
fn boot_ns(otherwise: u64) -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let (seconds, nanos) = (u64::try_from(now.tv_sec), u64::try_from(now.tv_nsec));
    seconds.ok().zip(nanos.ok()).map_or(otherwise, |(s, ns)| s.saturating_mul(1_000_000_000).saturating_add(ns))
}

#[cfg(not(target_os = "linux"))]
fn boot_ns(otherwise: u64) -> u64 {
    otherwise
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{self, CollectedItems};
    use super::*;

    fn poll_until(
        hardware: &mut Hardware,
        heard: &mut CollectedItems,
        enough: impl Fn(&CollectedItems, &Status) -> bool,
    ) {
        while !enough(heard, &hardware.status()) {
            hardware.poll(heard, Duration::from_millis(10));
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn hardware_follows_process_until_end() {
        let (mut child, process) = fixture::sleeper();
        let mut hardware = Hardware::observe(process, Launcher::Other).unwrap();
        let mut heard = CollectedItems::default();
        poll_until(&mut hardware, &mut heard, |heard, _| heard.events.len() > 3);
        assert_eq!((heard.segments[0].name.as_str(), heard.segments[0].pid), ("sleep", child.id()));
        assert!(heard.segments[0].command.contains("1000"));
        assert!(heard.events.iter().any(|event| matches!(event, Event::Sample(_))));
        assert!(matches!(heard.events[0], Event::Mark(Mark { name: NameId(1), .. })));
        assert!(hardware.status().live && hardware.status().hint.is_some());
        child.kill().unwrap();
        child.wait().unwrap();
        poll_until(&mut hardware, &mut heard, |_, status| matches!(status.state, SourceState::Ended(_)));
        assert_eq!((heard.ends.len(), heard.gaps, heard.damages), (1, 0, 0));
    }

    #[test]
    fn hint_follows_program_language() {
        for command in ["python train.py", "/usr/bin/python3.12 -m train", "uv run train.py"] {
            let [own, other] = [Launcher::Gnntop, Launcher::Other].map(|launcher| hint(command, launcher));
            assert!(other.ends_with("start it with `gnntop run -- python ...` to see them"), "{command}");
            assert!(own.ends_with("they appear from the first backward pass on"), "that is what a person did: {own}");
        }
        assert!(hint("bash train.sh", Launcher::Other).contains("nor does a program that it has started"));
        assert!(hint("./train --fast", Launcher::Other).contains("gnntop-probe (Rust) or gnntop.h (C, C++)"));
    }

    #[test]
    fn absence_reasons_are_named() {
        let hardware = Hardware::observe(Process::find(std::process::id()).unwrap(), Launcher::Other);
        let (mut hardware, mut heard) = (hardware.unwrap(), CollectedItems::default());
        poll_until(&mut hardware, &mut heard, |heard, _| heard.events.len() > 10);
        let named = |id| heard.definitions.iter().any(|d| matches!(d, Definition::Name { id: at, .. } if *at == id));
        for event in &heard.events {
            if let Event::Absent(absent) = event {
                assert!(named(absent.reason), "{absent:?}");
            }
        }
    }
}

//! The views of memory, hardware, energy and tracks on a run that tells everything, and on one that tells hardly anything.

use crate::pictures::{RandomNumbers, app_of, picture, press, screen, text_of};
use gnntop::app::keys::Key;
use gnntop::app::{Action, App, update};
use gnntop::report::EnergySnapshot;
use gnntop::ui::theme::{ColorDepth, Theme};
use gnntop_analysis::energy::Assumptions;
use gnntop_fixtures::{MS, SECOND, START_NS, StreamBuilder, TrainingRun, each_item};
use gnntop_wire::{
    Allocation, BatchShape, Event, NameId, NameKind, PhaseMemory, SignalId, SignalKind, Step, StepId, ThreadUsage,
    TrackId, TrackRole, Unit,
};

const MIB: u64 = 1 << 20;

/// A signal's raw value by the time since the start, in nanoseconds.
type RawValue = Box<dyn Fn(u64) -> i64>;

/// A run on a machine with a GPU and four cores that publishes all there is: steps of 50 ms with nested spans, two loaders,
/// allocations that leak 96 KiB a step, sensors ten times a second.
struct FullRun {
    stream: StreamBuilder,
    main: TrackId,
    loaders: [TrackId; 2],
    sensors: TrackId,
    signals: Vec<(SignalId, RawValue)>,
    live_bytes: u64,
}

/// What of the machine can be read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Machine {
    /// No counter of energy and no GPU: all is modelled.
    NoCounter,
    /// A GPU with its counter; processor and memory are modelled.
    Full,
    /// Counters of everything, and a GPU of the program's own.
    EveryCounter,
}

/// Steps of the run.
const STEPS: u64 = 160;
const STEP_NS: u64 = 50 * MS;

impl FullRun {
    fn bytes() -> Vec<u8> {
        Self::bytes_with(Machine::Full)
    }

    fn bytes_with(machine: Machine) -> Vec<u8> {
        let mut stream = StreamBuilder::new("sage");
        let main = stream.track(TrackRole::Training, "main");
        let loaders = [stream.track(TrackRole::Loader, "loader 0"), stream.track(TrackRole::Loader, "loader 1")];
        let sensors = stream.track(TrackRole::Sensors, "sensors");
        let mut run = Self { stream, main, loaders, sensors, signals: Vec::new(), live_bytes: 200 * MIB };
        run.define_signals();
        if machine != Machine::NoCounter {
            run.define_gpu();
        }
        if machine == Machine::EveryCounter {
            run.define_counters();
        }
        for step in 1..=STEPS {
            run.step(step);
        }
        run.stream.anchor(START_NS + STEPS * STEP_NS);
        run.stream.bytes()
    }

    fn define_signals(&mut self) {
        use SignalKind::{Counter, Gauge};
        let s = |t: u64| t as i64;
        self.signal("process.cpu_time", Unit::Nanoseconds, Counter, move |t| s(t) * 17 / 10);
        self.signal("process.rss", Unit::Bytes, Gauge, move |t| (700 << 20) + s(t) / 500);
        self.signal("process.rss.peak", Unit::Bytes, Gauge, move |_| 900 << 20);
        self.signal("process.faults.minor", Unit::Count, Counter, move |t| s(t) / 1_000_000);
        self.signal("process.faults.major", Unit::Count, Counter, |t| (t / SECOND / 3) as i64);
        self.signal("process.io.read_bytes", Unit::Bytes, Counter, move |t| s(t) / 100);
        self.signal("machine.cpu.busy", Unit::Nanoseconds, Counter, move |t| s(t) * 5 / 2);
        self.signal("machine.cpu.steal", Unit::Nanoseconds, Counter, |t| t.saturating_sub(5 * SECOND) as i64 / 5);
        self.signal("machine.cpu.iowait", Unit::Nanoseconds, Counter, |_| 0);
        for core in 0..4i64 {
            self.signal(&format!("machine.cpu.{core}.busy"), Unit::Nanoseconds, Counter, move |t| {
                s(t) * (core + 1) / 4
            });
            self.signal(&format!("machine.cpu.{core}.steal"), Unit::Nanoseconds, Counter, move |t| {
                if core == 2 { t.saturating_sub(5 * SECOND) as i64 / 5 } else { 0 }
            });
        }
        self.signal("machine.memory.total", Unit::Bytes, Gauge, |_| 32 << 30);
        self.signal("machine.memory.used", Unit::Bytes, Gauge, move |t| (9 << 30) + s(t) / 10);
        self.signal("machine.memory.available", Unit::Bytes, Gauge, move |t| (23 << 30) - s(t) / 10);
        self.signal("machine.swap.total", Unit::Bytes, Gauge, |_| 0);
        for (at, resource) in (1i64..).zip(["cpu", "memory", "io"]) {
            let name = format!("machine.pressure.{resource}.some");
            self.signal(&name, Unit::Nanoseconds, Counter, move |t| s(t) / (at * 8));
        }
    }

    fn define_gpu(&mut self) {
        use SignalKind::{Counter, Gauge};
        self.signal("gpu.count", Unit::Count, Gauge, |_| 1);
        self.signal("gpu.0.util", Unit::MilliPercent, Gauge, |t| {
            if (t / (STEP_NS * 2)).is_multiple_of(3) { 35_000 } else { 91_000 }
        });
        self.signal("gpu.0.memory.total", Unit::Bytes, Gauge, |_| 139 << 30);
        self.signal("gpu.0.memory.used", Unit::Bytes, Gauge, |_| 41 << 30);
        self.signal("gpu.0.power.limit", Unit::Milliwatts, Gauge, |_| 700_000);
        self.signal("gpu.0.power.instant", Unit::Milliwatts, Gauge, |t| {
            300_000 + (t / 100_000_000 % 7) as i64 * 20_000
        });
        self.signal("gpu.0.temperature", Unit::MilliCelsius, Gauge, |_| 61_000);
        self.signal("gpu.0.energy", Unit::Millijoules, Counter, |t| (t / 100 / MS) as i64 * 31_200);
        self.signal("gpu.0.throttle", Unit::Bits, Gauge, |_| 0x4);
    }

    /// What tells that the GPU is the program's own, and counters of processor and memory: 65 W, and 4 W.
    fn define_counters(&mut self) {
        use SignalKind::{Counter, Gauge};
        self.signal("gpu.0.processes", Unit::Count, Gauge, |_| 1);
        self.signal("gpu.0.process.memory", Unit::Bytes, Gauge, |_| 40 << 30);
        self.signal("cpu.0.energy", Unit::Microjoules, Counter, |t| (t / 1000 * 65) as i64);
        self.signal("dram.0.energy", Unit::Microjoules, Counter, |t| (t / 1000 * 4) as i64);
    }

    fn signal(&mut self, name: &str, unit: Unit, kind: SignalKind, value: impl Fn(u64) -> i64 + 'static) {
        let id = self.stream.signal(name, unit, kind);
        self.signals.push((id, Box::new(value)));
    }

    fn step(&mut self, step: u64) {
        let start_ns = START_NS + (step - 1) * STEP_NS;
        let (main, stream) = (self.main, &mut self.stream);
        let at = |ms: u64| start_ns + ms * MS;
        let slow = if step == 120 { 9 * MS } else { 0 };
        stream.phase(main, step, "data wait", start_ns, at(4));
        stream.phase(main, step, "transfer", at(4), at(5));
        stream.span(main, step, "matmul", at(6), at(9));
        stream.span(main, step, "layer 0", at(5), at(11));
        stream.span(main, step, "layer 1", at(11), at(16));
        stream.phase(main, step, "forward", at(5), at(17));
        stream.phase(main, step, "backward", at(17), at(39) + slow);
        self.allocate(step, start_ns);
        let stream = &mut self.stream;
        stream.phase(main, step, "optimizer", at(39) + slow, at(40) + slow);
        for (at_ms, loader) in [(0, self.loaders[0]), (22, self.loaders[1])] {
            stream.phase(loader, step, "sample", at(at_ms), at(at_ms + 12));
            stream.phase(loader, step, "gather", at(at_ms + 12), at(at_ms + 20));
            stream.counter(loader, "queue depth", at(at_ms + 20), (step % 4) as f64);
        }
        let batch = BatchShape { seeds: Some(1024), nodes: Some(30_000), edges: Some(90_000), graphs: None };
        let usage =
            ThreadUsage { minor_faults: 12 + step % 3, major_faults: u64::from(step == 120), ..ThreadUsage::default() };
        let event = Step {
            step: StepId(step),
            epoch: (step - 1) / 40,
            start_ns,
            end_ns: start_ns + STEP_NS - MS,
            batch,
            loss: None,
            usage: Some(usage),
            is_traced: false,
        };
        stream.event(main, Event::Step(event));
        // Every second step: ten times a second.
        if step.is_multiple_of(2) {
            let t_ns = start_ns + STEP_NS;
            for (signal, value) in &self.signals {
                self.stream.sample(self.sensors, *signal, t_ns, value(t_ns - START_NS));
            }
        }
        self.stream.flush();
    }

    /// What the step takes and gives back: it keeps 96 KiB each time, and takes more in step 120.
    fn allocate(&mut self, step: u64, start_ns: u64) {
        let forward = self.stream.name(NameKind::Phase, "forward");
        let backward = self.stream.name(NameKind::Phase, "backward");
        let more = if step == 120 { 300 * MIB } else { 0 };
        let changes = [
            (forward, 7, 64 * MIB as i64),
            (forward, 12, 32 * MIB as i64),
            (backward, 20, (128 * MIB + more) as i64),
            (backward, 36, -((128 * MIB + more) as i64)),
            (backward, 37, -(32 * MIB as i64)),
            (backward, 38, -(64 * MIB as i64)),
        ];
        // Too small for an event of its own.
        self.live_bytes += 96 * 1024;
        for (phase, ms, bytes) in changes {
            self.live_bytes = self.live_bytes.saturating_add_signed(bytes);
            let event = Allocation { phase, t_ns: start_ns + ms * MS, bytes, live_bytes: self.live_bytes };
            self.stream.event(self.main, Event::Allocation(event));
        }
        if step.is_multiple_of(20) {
            let t_ns = start_ns + STEP_NS - 2 * MS;
            for (at, phase) in (1u64..).zip([forward, backward, NameId::NONE]) {
                let memory = PhaseMemory {
                    phase,
                    t_ns,
                    allocated_bytes: step * at * 96 * MIB,
                    allocated_count: step * at * 900,
                    freed_bytes: step * at * 95 * MIB,
                    freed_count: step * at * 890,
                    live_bytes: self.live_bytes,
                    peak_bytes: 800 * MIB,
                };
                self.stream.event(self.main, Event::PhaseMemory(memory));
            }
        }
    }
}

/// Pictures of a view at the two sizes on file.
fn snapshots(app: &mut App, name: &str) {
    insta::assert_snapshot!(format!("{name}_80x24"), screen(app, 80, 24));
    insta::assert_snapshot!(format!("{name}_120x40"), screen(app, 120, 40));
}

/// The views of this file.
const VIEWS: [(char, &str); 5] = [('4', "memory"), ('5', "hardware"), ('6', "energy"), ('7', "tracks"), ('m', "marks")];

#[test]
fn tracks_view_is_drawn() {
    let mut app = app_of(&FullRun::bytes());
    press(&mut app, &[Key::Char('7')]);
    snapshots(&mut app, "tracks");
    press(&mut app, &[Key::Left, Key::Left, Key::Char('+')]);
    snapshots(&mut app, "tracks_in_a_step");
    press(&mut app, &[Key::Char('w')]);
    snapshots(&mut app, "tracks_whole_run");
}

#[test]
fn tracks_and_bars_show_the_same_step() {
    let mut app = app_of(&FullRun::bytes());
    screen(&mut app, 80, 24);
    press(&mut app, &[Key::Left; 41]);
    press(&mut app, &[Key::Char('7')]);
    let shown = screen(&mut app, 80, 24);
    assert!(shown.contains("▲ step 120 after 25.0 ms · main: backward"), "{shown}");
    press(&mut app, &[Key::Right; 3]);
    assert!(screen(&mut app, 80, 24).contains("step 121"));
    press(&mut app, &[Key::Enter]);
    assert!(screen(&mut app, 80, 24).contains("step 121  epoch 3"), "its detail");
    press(&mut app, &[Key::Esc, Key::Char('2')]);
    assert!(screen(&mut app, 80, 24).contains("step 121"));
    press(&mut app, &[Key::Char('7'), Key::Esc]);
    assert!(!screen(&mut app, 80, 24).contains('▲'), "follows again");
}

#[test]
fn marks_are_grouped_by_text_with_step_times() {
    let mut stream = StreamBuilder::new("marked");
    let main = stream.track(TrackRole::Training, "main");
    let mut t_ns = START_NS;
    for step in 1..=100 {
        let pause_ns = if step % 20 == 0 { 70 * MS } else { 0 };
        stream.phase(main, step, "forward", t_ns, t_ns + 60 * MS + pause_ns);
        if pause_ns > 0 {
            stream.mark(main, "gc", t_ns + pause_ns);
        }
        t_ns += 60 * MS + pause_ns;
        stream.step(main, step, t_ns - 60 * MS - pause_ns, t_ns);
    }
    stream.mark(main, "checkpoint \u{202e}saved", t_ns - MS);
    let mut app = app_of(&stream.bytes());
    press(&mut app, &[Key::Char('m')]);
    snapshots(&mut app, "marks");
    insta::assert_snapshot!("marks_40x10", screen(&mut app, 40, 10));
    press(&mut app, &[Key::Esc]);
    assert!(!screen(&mut app, 80, 24).contains("step with it"), "Esc leaves it");
    let mut without = app_of(&FullRun::bytes());
    press(&mut without, &[Key::Char('m')]);
    assert!(screen(&mut without, 80, 24).contains("no marks yet"));
}

#[test]
fn timed_marks_show_durations() {
    let mut stream = StreamBuilder::new("collected");
    let main = stream.track(TrackRole::Training, "main");
    let mut t_ns = START_NS;
    for step in 1..=100 {
        if step % 2 == 0 {
            t_ns += 8 * MS;
            stream.timed_mark(main, "gc", t_ns, 8 * MS);
        }
        t_ns += MS;
        stream.phase(main, step, "forward", t_ns, t_ns + 60 * MS);
        stream.step(main, step, t_ns, t_ns + 60 * MS);
        t_ns += 60 * MS;
    }
    let mut app = app_of(&stream.bytes());
    press(&mut app, &[Key::Char('2')]);
    let steps = screen(&mut app, 120, 40);
    assert!(steps.contains("\"gc\" 50 times, 400 ms in all"), "{steps}");
    press(&mut app, &[Key::Char('m')]);
    snapshots(&mut app, "marks_timed");
}

#[test]
fn memory_view_is_drawn() {
    let mut app = app_of(&FullRun::bytes());
    press(&mut app, &[Key::Char('4')]);
    snapshots(&mut app, "memory");
    let shown = screen(&mut app, 120, 40);
    assert!(shown.contains("grows by 96.0 KiB a step") && shown.contains("428 MiB"), "{shown}");
}

#[test]
fn hardware_view_is_drawn() {
    let mut app = app_of(&FullRun::bytes());
    press(&mut app, &[Key::Char('5')]);
    snapshots(&mut app, "hardware");
    press(&mut app, &[Key::Down; 16]);
    snapshots(&mut app, "hardware_scrolled");
}

#[test]
fn energy_view_is_drawn() {
    let mut app = app_of(&FullRun::bytes());
    press(&mut app, &[Key::Char('6')]);
    snapshots(&mut app, "energy");
    press(&mut app, &[Key::Left; 41]);
    snapshots(&mut app, "energy_of_a_step");
}

#[test]
fn modelled_energy_is_labelled_with_band() {
    let mut app = app_of(&FullRun::bytes_with(Machine::NoCounter));
    press(&mut app, &[Key::Char('6')]);
    snapshots(&mut app, "energy_modelled");
    insta::assert_snapshot!("energy_modelled_60x15", screen(&mut app, 60, 15));
    let shown = screen(&mut app, 120, 60);
    let numbers: Vec<&str> = shown.lines().filter(|line| line.contains(" J ")).collect();
    assert!(numbers.len() >= 5 && numbers.iter().all(|line| line.contains("modelled")), "{shown}");
    assert!(numbers.iter().all(|line| line.contains(" to ")), "each has its band: {shown}");
    assert!(shown.contains("0 % from counters") && !shown.contains(" 0 J"), "{shown}");
    press(&mut app, &[Key::Char('1')]);
    let overview = screen(&mut app, 120, 40);
    assert!(overview.contains(" W job modelled, "), "{overview}");
}

#[test]
fn counted_energy_has_both_scopes_and_idle_apart() {
    let mut app = app_of(&FullRun::bytes_with(Machine::EveryCounter));
    press(&mut app, &[Key::Char('6')]);
    snapshots(&mut app, "energy_counted");
    insta::assert_snapshot!("energy_counted_60x15", screen(&mut app, 60, 15));
    let shown = screen(&mut app, 120, 90);
    for words in ["power of the job", "whole devices", "idle", "changes every 100 ms"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    // 65 W for 7.9 s; the process has 1.7 of 4 threads.
    assert!(
        shown.contains("the device      514 J ± 5.0 %") && shown.contains("the job         218 J ± 5.0 % modelled"),
        "{shown}"
    );
    press(&mut app, &[Key::Left; 41]);
    assert!(screen(&mut app, 120, 60).contains("measured~"), "a step is shorter than ten periods");
    press(&mut app, &[Key::Enter]);
    assert!(screen(&mut app, 120, 60).contains(" of the job"), "its detail tells it too");
}

#[test]
fn missing_sensors_and_allocator_are_reported() {
    let run = TrainingRun { has_hardware: false, ends: false, ..TrainingRun::default() };
    let mut app = app_of(&run.bytes());
    for (digit, words) in [('4', "not reported: the program does not use"), ('6', "not recorded")] {
        press(&mut app, &[Key::Char(digit)]);
        let shown = screen(&mut app, 80, 24);
        assert!(shown.contains(words), "{shown}");
    }
    // The only quantity there is.
    press(&mut app, &[Key::Char('5')]);
    let shown = screen(&mut app, 120, 40);
    assert!(shown.contains("queue") && shown.contains("— not recorded"), "{shown}");
}

#[test]
fn gpu_energy_is_integrated_from_power() {
    let mut stream = StreamBuilder::new("pna");
    let track = stream.track(TrackRole::Sensors, "sensors");
    let power = stream.signal("gpu.0.power", Unit::Milliwatts, SignalKind::Gauge);
    let energy = stream.signal("gpu.0.energy", Unit::Millijoules, SignalKind::Counter);
    let cpu = stream.signal("cpu.0.energy", Unit::Microjoules, SignalKind::Counter);
    for second in 0..20 {
        let t_ns = START_NS + second * SECOND;
        stream.sample(track, power, t_ns, 61_000);
        stream.absent(track, energy, t_ns, "this NVIDIA driver has no nvmlDeviceGetTotalEnergyConsumption");
        stream.absent(track, cpu, t_ns, "only root may read /sys/class/powercap/intel-rapl:0/energy_uj");
    }
    let mut app = app_of(&stream.bytes());
    press(&mut app, &[Key::Char('6')]);
    let shown = screen(&mut app, 100, 50);
    assert!(shown.contains("61 W  ") && shown.contains("1.16 kJ ± 5.0 % measured~"), "19 s of 61 W: {shown}");
    assert!(shown.contains("a mean over a second, added up"), "{shown}");
    assert!(shown.contains("— only root may read") && shown.contains("— this NVIDIA driver has no"), "{shown}");
    assert!(shown.contains("not included    cpu, memory"), "{shown}");
}

#[test]
fn components_are_added_up() {
    let mut stream = StreamBuilder::new("pna");
    let track = stream.track(TrackRole::Sensors, "sensors");
    let gpus = ["gpu.0.energy", "gpu.1.energy"].map(|name| stream.signal(name, Unit::Millijoules, SignalKind::Counter));
    let cpu = stream.signal("cpu.0.energy", Unit::Microjoules, SignalKind::Counter);
    for second in 0..=20 {
        let (t_ns, s) = (START_NS + second * SECOND, second as i64);
        gpus.iter().for_each(|gpu| stream.sample(track, *gpu, t_ns, 1_000_000 + s * 250_000));
        stream.sample(track, cpu, t_ns, s * 100_000_000);
    }
    let mut app = app_of(&stream.bytes());
    press(&mut app, &[Key::Char('6')]);
    let shown = screen(&mut app, 120, 40);
    insta::assert_snapshot!("energy_of_three_120x40", shown);
}

#[test]
fn energy_of_ranks_counts_machine_once() {
    let mut app = App::new(false);
    for rank in 0..2u32 {
        let mut info = gnntop_fixtures::session_info("pna");
        (info.session_id, info.pid) = (700 + u128::from(rank), 50 + rank);
        info.place = Some(Box::new(gnntop_wire::Place {
            run: "job".to_owned(),
            rank,
            ranks: 2,
            stage: 0,
            stages: 1,
            copy: rank,
            copies: 2,
            engine: gnntop_wire::Engine::Mpi,
            kind: gnntop_wire::RankKind::Process,
            device: "CPU".to_owned(),
            threads: 1,
            host_ranks: 2,
            host_cores: 2,
            clock: None,
            attempt: None,
        }));
        let mut stream = StreamBuilder::from_info(&info);
        let track = stream.track(TrackRole::Sensors, "sensors");
        let names = ["machine.cpu.busy", "process.cpu_time", "machine.cpu.0.busy", "machine.cpu.1.busy"];
        for (name, ns_per_s) in names.into_iter().zip([2_000_000_000, 1_000_000_000, 1_000_000_000, 1_000_000_000]) {
            let signal = stream.signal(name, Unit::Nanoseconds, SignalKind::Counter);
            (0..=20).for_each(|s| stream.sample(track, signal, START_NS + s * SECOND, s as i64 * ns_per_s));
        }
        each_item(&stream.bytes(), |item| app.run.apply(item));
    }
    let told = EnergySnapshot::for_run(&app.run, &Assumptions { ram_watts: Some(1.0), ..Assumptions::default() });
    update(&mut app, Action::EnergyUpdated(Box::new(told)));
    press(&mut app, &[Key::Char('6')]);
    let shown = screen(&mut app, 100, 40);
    // 8 W of TDP, of which both ranks use 6, and 1 W of memory, for 20 s.
    assert!(shown.contains("the run         70.0 J") || shown.contains("the run         70 J"), "{shown}");
    assert!(shown.contains("all ranks       140 J") && shown.contains("2 processes"), "{shown}");
    assert!(shown.contains("their machines  140 J") && shown.contains("1 machine"), "{shown}");
}

#[test]
fn names_of_any_script_are_drawn_in_views() {
    let long = "x".repeat(200);
    let names = [
        "forward",
        "前向传播の時間とメモリ使用量",
        "התקדמות",
        "👩‍💻 decode 🚀🚀🚀🚀",
        long.as_str(),
        "e\u{301}\u{301}\u{301}",
    ];
    let mut stream = StreamBuilder::new("names");
    let tracks = names.map(|name| stream.track(TrackRole::Other, name));
    for step in 0..30 {
        let start_ns = START_NS + step * 60 * MS;
        for ((at, name), track) in (0..).zip(names).zip(tracks) {
            let from = start_ns + at * 10 * MS;
            stream.span(track, step + 1, name, from, from + 4 * MS);
            stream.phase(track, step + 1, name, from, from + 9 * MS);
            stream.counter(track, &format!("queue {name}"), from, at as f64);
            let phase = stream.name(NameKind::Phase, name);
            let live_bytes = MIB * (50 + at);
            stream.event(track, Event::Allocation(Allocation { phase, t_ns: from, bytes: 5 << 20, live_bytes }));
        }
        stream.step(tracks[0], step + 1, start_ns, start_ns + 60 * MS);
    }
    let mut app = app_of(&stream.bytes());
    press(&mut app, &[Key::Char('7')]);
    insta::assert_snapshot!("tracks_names_80x24", screen(&mut app, 80, 24));
    press(&mut app, &[Key::Left, Key::Char('4'), Key::Down, Key::Down, Key::Down, Key::Down]);
    insta::assert_snapshot!("memory_names_80x24", screen(&mut app, 80, 24));
}

#[test]
fn hung_phase_is_drawn_on_its_track_and_series() {
    let mut bytes = FullRun::bytes();
    let last_ns = START_NS + STEPS * STEP_NS;
    let mut stream = StreamBuilder::new("sage");
    let main = stream.track(TrackRole::Training, "main");
    stream.name(NameKind::Phase, "data wait");
    stream.open(main, STEPS + 1, "data wait", last_ns, last_ns + 3 * SECOND);
    bytes.extend(stream.bytes());
    let mut app = app_of(&bytes);
    press(&mut app, &[Key::Char('7'), Key::Char('-'), Key::Char('-'), Key::Char('-'), Key::Char('-'), Key::Char('-')]);
    let shown = screen(&mut app, 120, 40);
    assert!(shown.contains("data wait open for 3.00 s"), "{shown}");
}

#[test]
fn every_size_is_drawn_with_and_without_colour() {
    let mut app = app_of(&FullRun::bytes());
    for (digit, _) in VIEWS {
        press(&mut app, &[Key::Char(digit)]);
        for (width, height) in [(20, 6), (30, 6), (31, 9), (60, 15), (300, 100), (80, 10), (200, 12)] {
            let plain = text_of(&picture(&mut app, width, height, Theme::new(ColorDepth::None, true)));
            assert!(plain.is_ascii(), "{plain}");
            picture(&mut app, width, height, Theme::new(ColorDepth::True, false));
        }
        press(&mut app, &[Key::Left; 7]);
        for width in 0..70 {
            for height in 0..20 {
                picture(&mut app, width, height, Theme::new(ColorDepth::Ansi, false));
            }
        }
    }
    press(&mut app, &[Key::Char('7')]);
    insta::assert_snapshot!("tracks_60x15", screen(&mut app, 60, 15));
    press(&mut app, &[Key::Char('4')]);
    insta::assert_snapshot!("memory_60x15", screen(&mut app, 60, 15));
    let ascii = text_of(&picture(&mut app, 80, 24, Theme::new(ColorDepth::None, true)));
    insta::assert_snapshot!("memory_ascii_80x24", ascii);
}

/// A time mostly near the run, sometimes absurd.
fn time(numbers: &mut RandomNumbers) -> u64 {
    match numbers.next(30) {
        0 => numbers.next(u64::MAX),
        1 => u64::MAX,
        2 => 0,
        _ => START_NS + numbers.next(3 * SECOND),
    }
}

/// Names of any script and length, on tracks, spans, counters and signals, with events of every kind at any time.
fn hostile_stream(numbers: &mut RandomNumbers) -> Vec<u8> {
    let long = "x".repeat(200);
    let names = ["forward", "前向传播の時間", "התקדמות", "👩‍💻🚀🚀", &long, "", "e\u{301}\u{301}", "gap"];
    let mut stream = StreamBuilder::new(names[numbers.next(8) as usize]);
    let roles = [TrackRole::Training, TrackRole::Loader, TrackRole::Other, TrackRole::Sensors];
    let tracks: Vec<TrackId> = (0..3).map(|n| stream.track(roles[numbers.next(4) as usize], names[n])).collect();
    let of_signals =
        ["gpu.0.energy", "gpu.0.util", "machine.cpu.0.busy", "cpu.0.energy", "process.rss", "machine.memory.total"];
    let kinds = [SignalKind::Gauge, SignalKind::Counter];
    let units = [Unit::Millijoules, Unit::Bytes, Unit::Microjoules, Unit::MilliPercent];
    let signals =
        of_signals.map(|name| stream.signal(name, units[numbers.next(4) as usize], kinds[numbers.next(2) as usize]));
    for _ in 0..numbers.next(600) {
        let (track, name) = (tracks[numbers.next(3) as usize], names[numbers.next(8) as usize]);
        let (one, other) = (time(numbers), time(numbers));
        let (from, to) = (one.min(other), one.max(other));
        let (signal, raw) = (signals[numbers.next(6) as usize], numbers.next(u64::MAX) as i64 >> numbers.next(64));
        match numbers.next(10) {
            0 | 1 => stream.phase(track, 1, name, from, to),
            2 | 3 => stream.span(track, 1, name, from, to),
            4 => stream.step(track, numbers.next(u64::MAX), from, to),
            5 => stream.counter(track, name, one, f64::from_bits(numbers.next(u64::MAX))),
            6 => stream.sample(track, signal, one, raw),
            7 => stream.absent(track, signal, one, name),
            8 => stream.open(track, 1, name, from, to),
            _ => {
                let phase = stream.name(NameKind::Phase, name);
                let event = Allocation { phase, t_ns: one, bytes: raw, live_bytes: numbers.next(u64::MAX) };
                stream.event(track, Event::Allocation(event));
                let memory =
                    PhaseMemory { phase, t_ns: one, allocated_bytes: other, allocated_count: 1, ..Default::default() };
                stream.event(track, Event::PhaseMemory(memory));
            }
        }
    }
    stream.bytes()
}

#[test]
fn random_streams_do_not_panic_any_view() {
    let mut numbers = RandomNumbers(11);
    let keys = [
        Key::Left,
        Key::Right,
        Key::PageUp,
        Key::PageDown,
        Key::Home,
        Key::End,
        Key::Up,
        Key::Down,
        Key::Char('+'),
        Key::Char('-'),
        Key::Char('w'),
        Key::Char('x'),
        Key::Esc,
        Key::Enter,
    ];
    for round in 0..150 {
        let mut app = app_of(&hostile_stream(&mut numbers));
        for _ in 0..16 {
            press(&mut app, &[Key::Char(VIEWS[numbers.next(5) as usize].0), keys[numbers.next(14) as usize]]);
            press(&mut app, &[keys[numbers.next(14) as usize]; 3]);
            let theme = Theme::new(ColorDepth::True, round % 3 == 0);
            picture(&mut app, numbers.next(140) as u16, numbers.next(50) as u16, theme);
        }
        picture(&mut app, 300, 100, Theme::new(ColorDepth::Indexed, false));
    }
}

#[test]
fn a_view_of_an_hour_says_what_was_reduced() {
    // 100 spans a second for an hour and a half, as much as 10 MB of a stream.
    let mut stream = StreamBuilder::new("long");
    let main = stream.track(TrackRole::Training, "main");
    let mut app = App::new(false);
    for step in 0..27_000u64 {
        let start_ns = START_NS + step * 200 * MS;
        for part in 0..19 {
            let from = start_ns + part * 10 * MS;
            stream.span(main, step, "layer", from, from + 8 * MS);
        }
        stream.phase(main, step, "forward", start_ns, start_ns + 190 * MS);
        stream.step(main, step, start_ns, start_ns + 195 * MS);
    }
    each_item(&stream.bytes(), |item| app.run.apply(item));
    let lane = app.run.store().tracks()[0].lane().unwrap();
    assert!(lane.len() <= 1 << 16 && lane.len() as u64 + lane.reduced() == 27_000 * 20);
    press(&mut app, &[Key::Char('7'), Key::Char('w')]);
    insta::assert_snapshot!("tracks_of_an_hour_80x24", screen(&mut app, 80, 24));
}

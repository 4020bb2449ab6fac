//! Energy from the files of a kernel to joules: a tree of counters that a known power drives, with wraps, twins and a counter
//! that goes away, read by the sensors, published, and told by the store. Times are the test's own, so that nothing sleeps.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use gnntop_analysis::energy::{Assumptions, EnergyBook, EnergyScope, GapReason, Label};
use gnntop_analysis::store::Store;
use gnntop_fixtures::{MS, SECOND, START_NS, StreamBuilder, each_item};
use gnntop_sensors::{Reading, SensorOptions, SensorSet};
use gnntop_wire::{Metric, TrackRole};

const POLL_NS: u64 = 250 * MS;
const SECONDS: u64 = 60;
const PACKAGE_RANGE: u64 = 262_143_328_850;
const DRAM_RANGE: u64 = 65_712_999_613;

/// A zone as the kernel has it: in a tree of devices, and flat beside it as a link.
struct Zone {
    path: &'static str,
    name: &'static str,
    range: u64,
    /// What it shows at the start, and watts between which its power swings.
    start: u64,
    watts: (f64, f64),
}

const ZONES: [Zone; 6] = [
    Zone {
        path: "intel-rapl:0",
        name: "package-0",
        range: PACKAGE_RANGE,
        start: PACKAGE_RANGE - 900_000_000,
        watts: (60.0, 140.0),
    },
    Zone {
        path: "intel-rapl:0/intel-rapl:0:0",
        name: "dram",
        range: DRAM_RANGE,
        start: DRAM_RANGE - 33_000_000,
        watts: (2.0, 9.0),
    },
    Zone { path: "intel-rapl:0/intel-rapl:0:1", name: "core", range: PACKAGE_RANGE, start: 5, watts: (50.0, 120.0) },
    Zone {
        path: "intel-rapl:1",
        name: "package-1",
        range: PACKAGE_RANGE,
        start: PACKAGE_RANGE - 2_100_000_000,
        watts: (40.0, 90.0),
    },
    Zone { path: "intel-rapl:2", name: "psys", range: PACKAGE_RANGE, start: 0, watts: (200.0, 300.0) },
    // The same package once more by another way.
    Zone {
        path: "intel-rapl-mmio:0",
        name: "package-0",
        range: PACKAGE_RANGE,
        start: PACKAGE_RANGE - 900_000_000,
        watts: (60.0, 140.0),
    },
];

impl Zone {
    /// True energy after a time, in microjoules: power is half a sine over seven seconds, of which the integral is known.
    fn truth_uj(&self, ns: u64) -> f64 {
        let (low, high) = self.watts;
        let (seconds, turn) = (ns as f64 / 1e9, std::f64::consts::TAU / 7.0);
        1e6 * ((low + high) / 2.0 * seconds + (high - low) / 2.0 * (1.0 - (turn * seconds).cos()) / turn)
    }

    fn shown(&self, ns: u64) -> u64 {
        (self.start + self.truth_uj(ns) as u64) % (self.range + 1)
    }
}

struct Tree {
    root: tempfile::TempDir,
}

impl Tree {
    fn new() -> Self {
        let tree = Self { root: tempfile::tempdir().unwrap() };
        fs::create_dir_all(tree.class()).unwrap();
        for zone in &ZONES {
            let folder = tree.folder(zone);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("name"), format!("{}\n", zone.name)).unwrap();
            fs::write(folder.join("max_energy_range_uj"), format!("{}\n", zone.range)).unwrap();
            symlink(&folder, tree.class().join(Path::new(zone.path).file_name().unwrap())).unwrap();
            tree.show(zone, &zone.shown(0).to_string());
        }
        tree
    }

    fn class(&self) -> PathBuf {
        self.root.path().join("class/powercap")
    }

    fn folder(&self, zone: &Zone) -> PathBuf {
        self.root.path().join("devices/virtual/powercap").join(zone.path)
    }

    fn show(&self, zone: &Zone, text: &str) {
        fs::write(self.folder(zone).join("energy_uj"), format!("{text}\n")).unwrap();
    }
}

/// Reads the tree for a minute, `shown` being what a zone's file holds at a time, into a session.
fn session(tree: &Tree, shown: impl Fn(&Zone, u64) -> String) -> Store {
    let options = SensorOptions {
        proc_root: tree.root.path().join("proc"),
        sys_root: tree.root.path().join("sys"),
        powercap_root: Some(tree.class()),
        gpu: false,
        ..SensorOptions::default()
    };
    let mut set = SensorSet::open(&options);
    let mut stream = StreamBuilder::new("counters");
    let track = stream.track(TrackRole::Sensors, "sensors");
    let is_energy =
        |metric: Metric| matches!(metric.quantity().scope(), gnntop_wire::Scope::Package | gnntop_wire::Scope::Dram);
    let known = set.signals().iter().enumerate().filter(|(_, signal)| is_energy(signal.metric));
    let signals: HashMap<u32, _> = known
        .map(|(at, signal)| (at as u32, stream.signal(&signal.metric.to_string(), signal.unit(), signal.kind())))
        .collect();
    for poll in 0..=SECONDS * SECOND / POLL_NS {
        let ns = poll * POLL_NS;
        ZONES.iter().for_each(|zone| tree.show(zone, &shown(zone, ns)));
        let mut take = |reading: Reading| match reading {
            Reading::Value { signal, value, .. } => {
                signals.get(&signal.0).into_iter().for_each(|id| stream.sample(track, *id, START_NS + ns, value));
            }
            Reading::Absent { signal, reason, .. } => {
                signals.get(&signal.0).into_iter().for_each(|id| stream.absent(track, *id, START_NS + ns, &reason));
            }
        };
        // Ranges come with the first full read.
        if poll == 0 { set.read(&mut take) } else { set.read_energy(&mut take) }
    }
    let mut store = Store::new();
    each_item(&stream.bytes(), |item| store.apply(item));
    store
}

fn names(book: &EnergyBook) -> Vec<&str> {
    book.components.iter().filter(|component| component.device.is_ok()).map(|one| one.name.as_str()).collect()
}

#[test]
fn energy_of_packages_and_memory_is_integral_of_power() {
    let tree = Tree::new();
    let store = session(&tree, |zone, ns| zone.shown(ns).to_string());
    let book = store.energy(&Assumptions::default());
    assert_eq!(names(&book), ["cpu 0", "cpu 1", "dram 0"], "no core, psys or second way to a package");
    let run = START_NS..START_NS + SECONDS * SECOND;
    for (component, zone) in book.components[1..].iter().zip([&ZONES[0], &ZONES[3], &ZONES[1]]) {
        let truth = zone.truth_uj(SECONDS * SECOND);
        assert!(zone.start + truth as u64 > zone.range, "{} wraps in that time", zone.path);
        let uj = component.device.as_ref().unwrap().line().total_uj();
        assert!((uj as f64 - truth).abs() <= 2.0, "{}: {uj} of {truth}", component.name);
        let figure = book.figure(component, EnergyScope::Device, run.clone()).unwrap();
        assert_eq!((figure.label, figure.coverage()), (Label::Measured, 1.0), "{}", component.name);
        let within =
            book.figure(component, EnergyScope::Device, START_NS + 10 * SECOND..START_NS + 17 * SECOND).unwrap();
        let truth = (zone.truth_uj(17 * SECOND) - zone.truth_uj(10 * SECOND)) / 1e6;
        assert!(within.lo <= truth && truth <= within.hi && (within.joules / truth - 1.0).abs() < 0.01, "{within:?}");
    }
}

#[test]
fn restarted_counter_leaves_one_gap() {
    let tree = Tree::new();
    let away = 30 * SECOND..33 * SECOND;
    let store = session(&tree, |zone, ns| match zone.name {
        "package-1" if away.contains(&ns) => String::new(),
        // It was loaded again: it counts from nothing on.
        "package-1" if ns >= away.end => (zone.truth_uj(ns) - zone.truth_uj(away.end)).round().to_string(),
        _ => zone.shown(ns).to_string(),
    });
    let book = store.energy(&Assumptions::default());
    let cpu = book.components.iter().find(|component| component.name == "cpu 1").unwrap();
    let line = cpu.device.as_ref().unwrap().line();
    assert_eq!(line.gaps(), [(GapReason::Absent, 1)]);
    assert!(line.knots().windows(2).all(|pair| pair[0].uj <= pair[1].uj));
    let figure = book.figure(cpu, EnergyScope::Device, START_NS..START_NS + SECONDS * SECOND).unwrap();
    let truth = ZONES[3].truth_uj(SECONDS * SECOND) / 1e6;
    assert!(figure.coverage() < 0.97 && figure.lo <= truth && truth <= figure.hi, "{figure:?}, {truth}");
    let other = book.components.iter().find(|component| component.name == "cpu 0").unwrap();
    assert!(other.device.as_ref().unwrap().line().gaps().is_empty());
}

#[test]
fn garbage_in_counter_is_a_gap() {
    const NONSENSE: [&str; 5] = ["", "garbage", "-7", "1000000000000000", "99999999999999999999999999"];
    let tree = Tree::new();
    // One of them every ten seconds.
    let nonsense =
        |ns: u64| NONSENSE.get((ns / SECOND / 10).checked_sub(1)? as usize).filter(|_| ns.is_multiple_of(10 * SECOND));
    let store = session(&tree, |zone, ns| match nonsense(ns) {
        Some(text) if zone.name == "dram" => (*text).to_owned(),
        _ => zone.shown(ns).to_string(),
    });
    let book = store.energy(&Assumptions::default());
    let dram = book.components.iter().find(|component| component.name == "dram 0").unwrap();
    let line = dram.device.as_ref().unwrap().line();
    let gaps: u64 = line.gaps().iter().map(|(_, count)| count).sum();
    // A jump is two breaks: there, and back.
    assert_eq!(gaps, NONSENSE.len() as u64 + 1, "{:?}", line.gaps());
    let truth = ZONES[1].truth_uj(SECONDS * SECOND);
    assert!((line.total_uj() as f64 / truth - 1.0).abs() < 0.02, "{} of {truth}", line.total_uj());
}

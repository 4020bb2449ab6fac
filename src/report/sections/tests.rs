//! Every number in a report's JSON is a figure of the catalogue with the same value, or is listed here with the reason why not.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use gnntop_analysis::catalogue::Catalogue;
use gnntop_analysis::energy::Assumptions;
use gnntop_analysis::ranks::Run;
use gnntop_fixtures::device::DeviceRun;
use gnntop_fixtures::{MS, ParallelRun, SECOND, START_NS, StreamBuilder, TrainingRun, each_item};
use gnntop_wire::{
    Definition, Event, Fact, Metric, NameKind, PhaseMemory, Quantity as Q, Sampling, SignalId, SignalKind, TrackRole,
    put_definitions,
};
use serde_json::Value;

use super::Report;
use crate::report::Options;

/// Places in JSON, each with what they have.
type Table = &'static [(&'static str, &'static str)];

/// The numbers of durations in JSON, and the statistics that they are: `<` and `>` are the ends of its interval, `~` half of
/// its width. In all these tables, a `*` stands for the same on both sides.
const DURATIONS: Table = &[
    ("count", "count"),
    ("mean_ns", "mean"),
    ("mean_ci_ns", "mean~"),
    ("sd_ns", "sd"),
    ("min_ns", "min"),
    ("max_ns", "max"),
    ("total_ns", "total"),
    ("share", "share"),
    ("per_*_ns", "per_*"),
    ("p*_ci_ns/0", "p*<"),
    ("p*_ci_ns/1", "p*>"),
    ("p*_ns", "p*"),
];
/// The same of readings, of the program's counters, and of energy.
const READINGS: Table = &[("mean_percent", "mean"), ("max_percent", "max"), ("mean_*", "mean"), ("max_*", "peak")];
const VALUES: Table = &[("count", "count"), ("last", "last"), ("mean", "mean"), ("min", "min"), ("max", "max")];
const ENERGY: Table = &[("joules", "total"), ("lo_joules", "total<"), ("hi_joules", "total>"), ("watt_hours", "total")];

/// Where JSON has the figures of a subject.
const SUBJECTS: &[(&str, &str, Table)] = &[
    ("phases/period", "period", DURATIONS),
    ("phases/step", "step", DURATIONS),
    ("phases/*", "\"*\"", DURATIONS),
    ("device/phases/period", "device.period", DURATIONS),
    ("device/phases/step", "device.step", DURATIONS),
    ("device/phases/*", "device.\"*\"", DURATIONS),
    ("classes/warm-up", "warm_up", DURATIONS),
    ("classes/full batch", "full_batch", DURATIONS),
    ("classes/step", "full_batch", DURATIONS),
    ("classes/partial batch", "partial_batch", DURATIONS),
    ("spans/*", "span.\"*\"", DURATIONS),
    ("marks/*", "mark.\"*\"", DURATIONS),
    ("counters/*", "counter.\"*\"", VALUES),
    ("hardware/process_rss", "process.rss", READINGS),
    ("hardware/machine_memory_used", "machine.memory.used", READINGS),
    ("hardware/gpus/*/utilisation", "gpu.*.util", READINGS),
    ("hardware/gpus/*/memory_used", "gpu.*.memory.used", READINGS),
    ("hardware/gpus/*/power", "gpu.*.power", &[("mean_watts", "mean"), ("max_watts", "max")]),
    ("hardware/gpus/*/temperature", "gpu.*.temperature", &[("mean_celsius", "mean"), ("max_celsius", "max")]),
    ("energy/total/*", "energy.*.all", ENERGY),
    ("energy/components/*/phases/*", "energy.phase.\"*.*\"", &[("joules", "total"), ("watts", "mean")]),
    ("energy/components/*/device", "energy.device.*", ENERGY),
    ("energy/components/*/job", "energy.job.*", ENERGY),
    ("energy/components/*/idle", "energy.idle.*", ENERGY),
    ("energy/epochs/*/energy", "energy.epoch.*", ENERGY),
];

/// Where it has a single figure.
const FIGURES: Table = &[
    ("session/covered_ns", "recording.total"),
    ("steps/reported", "steps.count"),
    ("steps/epochs", "epochs.count"),
    ("steps/tiled_ns", "period.total"),
    ("steps/before_first_step_ns", "before_steps.total"),
    ("steps/after_last_step_ns", "after_steps.total"),
    ("steps/first_loss", "loss.first"),
    ("steps/last_loss", "loss.last"),
    ("steps/*", "*.total"),
    ("throughput/*_per_s", "*.per_s"),
    ("restarts/count", "restarts.count"),
    ("restarts/lost_ns", "restarts.total"),
    ("restarts/repeated_steps", "repeated_steps.count"),
    ("run/throughput/*_per_s", "run.*.per_s"),
    ("run/one_rank_per_s", "run.one_rank.per_s"),
    ("run/efficiency", "run.efficiency.share"),
    ("run/common_steps", "run.skew.count"),
    ("run/skew_*_ns", "run.skew.*"),
    ("run/ranks/*/steps", "rank.*.steps.count"),
    ("run/ranks/*/*_p50_ns", "rank.*.*.p50"),
    ("run/ranks/*/*_share", "rank.*.*.share"),
    ("run/ranks/*/phases/*/1", "rank.\"*.*\".share"),
    ("device/error_ns", "device.clock_error.last"),
    ("device/largest_error_ns", "device.clock_error.max"),
    ("device/steps", "device.steps.count"),
    ("device/untimed", "device.untimed.count"),
    ("sampled_stacks/taken", "sampled_stacks.count"),
    ("sampled_stacks/cost_share", "sampled_stacks.share"),
    ("memory/peak_live_bytes", "heap.peak"),
    ("memory/last_live_bytes", "heap.last"),
    ("memory/large_allocations", "heap.large.count"),
    ("memory/phases/*/allocated_bytes", "allocated.\"*\".total"),
    ("memory/phases/*/allocations", "allocated.\"*\".count"),
    ("memory/phases/*/freed_bytes", "freed.\"*\".total"),
    ("memory/phases/*/releases", "freed.\"*\".count"),
    ("memory/phases/*/peak_live_bytes", "heap.\"*\".peak"),
    ("memory/device/peak_bytes", "device.memory.peak"),
    ("memory/device/used_bytes", "device.memory.last"),
    ("memory/device/reserved_bytes", "device.reserved.last"),
    ("memory/device/reserved_peak_bytes", "device.reserved.peak"),
    ("memory/device/fragmentation", "device.reserved.share"),
    ("memory/device/least_free_bytes", "device.free.min"),
    ("memory/device/total_bytes", "device.capacity.last"),
    ("memory/device/allocations_per_step", "device.allocations.mean"),
    ("memory/device/phases/*/mean_peak_bytes", "device.memory.\"*\".mean"),
    ("memory/device/phases/*/peak_bytes", "device.memory.\"*\".peak"),
    ("memory/device/phases/*/reserved_peak_bytes", "device.reserved.\"*\".peak"),
    ("memory/device/kinds/*/bytes", "device.memory_of.*.last"),
    ("memory/device/kinds/*/peak_bytes", "device.memory_of.*.peak"),
    ("hardware/process_cpu/mean_cores", "process.cpu_time.per_s"),
    ("hardware/main_thread_cpu_wait/mean_percent", "process.main_thread.cpu_wait.per_s"),
    ("hardware/machine_cpu/mean_cores", "machine.cpu.busy.per_s"),
    ("hardware/machine_steal/mean_cores", "machine.cpu.steal.per_s"),
    ("energy/step/joules", "energy.per_step"),
    ("energy/step/lo_joules", "energy.per_step<"),
    ("energy/step/hi_joules", "energy.per_step>"),
    ("energy/step/watt_hours", "energy.per_step"),
    ("energy/carbon/kilograms/0", "carbon.total"),
    ("energy/carbon/kilograms/1", "carbon.total<"),
    ("energy/carbon/kilograms/2", "carbon.total>"),
    ("losses/damage_count", "lost.damage.total"),
    ("losses/untiled_ns", "lost.untiled.total"),
    ("losses/*", "lost.*.total"),
];

/// What says how well an energy is known.
const HOW_SURE: &str = "how well an energy is known";

/// What is no figure, with all below it, and why.
const NO_FIGURES: Table = &[
    ("schema_version", "a version"),
    ("session/pid", "an id"),
    ("session/begin_unix_ns", "the time of an event"),
    ("restarts/starts/*", "one of the starts, with when it was"),
    ("findings", "numbers of findings, which have names of their own"),
    ("steps/total", "how many steps there are to choose from"),
    ("steps/skipped", "a choice of the reader"),
    ("steps/from_summaries", "how many rows the tables lack"),
    ("steps/summaries_until_unix_ns", "the time of an event"),
    ("logged/*/*_step", "where values are"),
    ("logged/*/not_finite", "values that are no figures"),
    ("marks/*/in_steps", "where marks are"),
    ("marks/*/between_steps", "where marks are"),
    ("stacks", "counts of rows: stacks"),
    ("sampled_stacks/known", "counts of rows: stacks"),
    ("sampled_stacks/unread", "counts of rows: stacks"),
    ("sampled_stacks/a_second", "a choice of the reader"),
    ("sampled_stacks/phases", "counts of rows: stacks"),
    ("sampled_stacks/places", "counts of rows: stacks"),
    ("sampled_stacks/stacks", "counts of rows: stacks"),
    ("run/ranks_expected", "how many ranks there are"),
    ("run/rank_reported", "an id"),
    ("run/ranks/*/rank", "an id"),
    ("run/ranks/*/stage", "an id"),
    ("run/ranks/*/copy", "an id"),
    ("run/ranks/*/pid", "an id"),
    ("run/ranks/*/clock_offset_ns", "what was added to times"),
    ("run/ranks/*/clock_error_ns", "what was added to times"),
    ("hardware/gpus/*/index", "an id"),
    ("energy/total/*/pm95_joules", HOW_SURE),
    ("energy/total/*/coverage", HOW_SURE),
    ("energy/total/*/unknown_share", HOW_SURE),
    ("energy/components/*/*/pm95_joules", HOW_SURE),
    ("energy/components/*/*/coverage", HOW_SURE),
    ("energy/components/*/*/unknown_share", HOW_SURE),
    ("energy/epochs/*/energy/pm95_joules", HOW_SURE),
    ("energy/epochs/*/energy/coverage", HOW_SURE),
    ("energy/epochs/*/energy/unknown_share", HOW_SURE),
    ("energy/step/pm95_joules", HOW_SURE),
    ("energy/step/coverage", HOW_SURE),
    ("energy/step/unknown_share", HOW_SURE),
    ("energy/components/*/period_ns", "how the sensor works"),
    ("energy/components/*/window_ns", "how the sensor works"),
    ("energy/components/*/gaps", "how the sensor works"),
    ("energy/components/*/doubt", "a number of a finding"),
    ("energy/epochs/*/epoch", "an id"),
    ("energy/carbon/intensity", "an assumption"),
    ("energy/carbon/pue", "an assumption"),
    ("losses/damages", "the places of damage"),
    ("losses/newer_format", "a version"),
];

/// A session with what the recordings lack: a GPU and a processor with counters, a heap, and where its time goes.
fn equipped() -> Vec<u8> {
    let mut stream = StreamBuilder::new("equipped");
    let (main, sensors) = (stream.track(TrackRole::Training, "main"), stream.track(TrackRole::Sensors, "sensors"));
    let samples = stream.track(TrackRole::Samples, "stacks of main, sampled");
    let gpu =
        [Q::GpuUtil, Q::GpuMemoryUsed, Q::GpuPower, Q::GpuTemperature, Q::GpuEnergy].map(|of| of.with_instance(0));
    let others = [Q::CpuEnergy.with_instance(0), Q::MachineCpuBusy.into(), Q::ProcessCpuTime.into()];
    let all = gpu.into_iter().chain(others).chain([Q::MainThreadCpuWait.into(), Q::MachineCpuThreads.into()]);
    let signals: Vec<(Metric, SignalId)> = all.map(|metric| (metric, stream.metric(metric))).collect();
    let forward = stream.name(NameKind::Phase, "forward");
    let mut end_ns = START_NS;
    for step in 0..200 {
        let (from_ns, slow_ns) = (end_ns + 50 * MS, if step < 10 { 400 * MS } else { 0 });
        end_ns = from_ns + 50 * MS + slow_ns;
        stream.phase(main, step, "forward", from_ns, from_ns + 20 * MS + step % 7 * MS + slow_ns);
        stream.step(main, step, from_ns, end_ns);
        stream.timed_mark(main, "gc", from_ns + 45 * MS, 2 * MS);
        for (metric, id) in &signals {
            let value = 40_000 + step * if metric.quantity().kind() == SignalKind::Counter { 7_000_000 } else { 10 };
            stream.sample(sensors, *id, from_ns + 30 * MS, value as i64);
        }
        let (t_ns, allocated_bytes) = (from_ns + 40 * MS, step << 20);
        let (live_bytes, peak_bytes) = (1 << 20, 2 << 20);
        let totals =
            PhaseMemory { phase: forward, t_ns, allocated_bytes, live_bytes, peak_bytes, ..Default::default() };
        stream.event(main, Event::PhaseMemory(totals));
        stream.counter(main, "device memory allocations", t_ns, 12.0);
    }
    let path = stream.path(&["forward", "main (train.py:20)"]);
    stream.stack_sample(samples, path, START_NS + SECOND, 30);
    for figure in Sampling::ALL {
        let name = stream.name(NameKind::Sampling(figure), figure.text());
        stream.stack_sample(samples, name, START_NS + SECOND, 40);
    }
    stream.bytes()
}

/// Every number below a value, with its path: the items of a list by their names, else by their index.
fn numbers(value: &Value, path: &str, all: &mut Vec<(String, f64)>) {
    let inside = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}/{key}") };
    match value {
        Value::Number(number) => all.push((path.to_owned(), number.as_f64().unwrap())),
        Value::Object(fields) => fields.iter().for_each(|(key, value)| numbers(value, &inside(key), all)),
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                let named = ["name", "text", "rank", "index", "epoch"].iter().find_map(|key| item.get(key));
                let named = named.or_else(|| item.get(0)).filter(|name| name.is_string() || name.is_u64());
                let name = named.map_or_else(|| at.to_string(), |name| name.to_string().trim_matches('"').to_owned());
                numbers(item, &inside(&name), all);
            }
        }
        _ => (),
    }
}

/// What the stars of a pattern stand for in the first words of a path, and whether these are all.
fn matched<'p>(pattern: &str, path: &'p str) -> Option<(Vec<&'p str>, bool)> {
    let mut words = path.split('/');
    let mut stars = Vec::new();
    for part in pattern.split('/') {
        let (before, after) = part.split_once('*').unwrap_or((part, ""));
        let rest = words.next()?.strip_prefix(before)?;
        match part.contains('*') {
            true => stars.push(rest.strip_suffix(after)?),
            false if rest.is_empty() => (),
            false => return None,
        }
    }
    Some((stars, words.next().is_none()))
}

/// A figure that JSON has: where its row of the tables has it, the whole pattern, and the figure's text.
fn places() -> impl Iterator<Item = (&'static str, String, String)> {
    let of_subjects = SUBJECTS.iter().flat_map(|(path, subject, all)| {
        all.iter().map(move |(leaf, statistic)| (*path, format!("{path}/{leaf}"), format!("{subject}.{statistic}")))
    });
    of_subjects.chain(FIGURES.iter().map(|(path, figure)| (*path, (*path).to_owned(), (*figure).to_owned())))
}

/// The figure that a path has, with the sign of what of it, and its row of the tables.
fn figure(path: &str) -> Option<(String, &'static str)> {
    let is_whole = |pattern: &str| matched(pattern, path).is_some_and(|(_, is_whole)| is_whole);
    let (row, pattern, figure) = places().find(|(_, pattern, _)| is_whole(pattern))?;
    let (stars, _) = matched(&pattern, path)?;
    let mut parts = figure.split('*');
    let first = parts.next().unwrap_or_default().to_owned();
    Some((parts.zip(stars).fold(first, |all, (part, star)| all + star + part), row))
}

/// What the catalogue says of a figure, in the unit that the path's last word names.
fn expected(figures: &Catalogue<'_>, figure: &str, path: &str) -> Option<f64> {
    let measured = figures.get(&figure.trim_end_matches(['<', '>', '~']).parse().ok()?).ok()?;
    let interval = measured.interval.unwrap_or((f64::NAN, f64::NAN));
    let value = match figure.chars().last()? {
        '<' => interval.0,
        '>' => interval.1,
        '~' => (interval.1 - interval.0) / 2.0,
        _ => measured.value,
    };
    Some(match path {
        _ if path.ends_with("_percent") => value * 100.0,
        _ if path.ends_with("watt_hours") => value / 3600.0,
        _ if path.contains("/kilograms/") => value / 1e3,
        _ => value,
    })
}

/// The numbers of a report that are neither; notes which rows of the tables were used.
fn unexplained(bytes: &[Vec<u8>], used: &mut BTreeSet<&'static str>) -> Vec<String> {
    let mut run = Run::default();
    bytes.iter().for_each(|session| each_item(session, |item| run.apply(item)));
    let assumptions = Assumptions { cpu_watts: Some(65.0), g_per_kwh: Some(300.0), ..Assumptions::default() };
    let (skip_steps, one_rank_per_s) = (3, Some(1000.0));
    let options = Options { skip_steps, top_spans: 100, assumptions, one_rank_per_s, ..Options::default() };
    let figures = options.catalogue(&run);
    let json = serde_json::from_str(&Report::new(&figures, &options).to_json().unwrap()).unwrap();
    let mut all = Vec::new();
    numbers(&json, "", &mut all);
    let is_wrong = |(path, value): (String, f64)| {
        if NO_FIGURES.iter().any(|(pattern, _)| matched(pattern, &path).is_some()) {
            return None;
        }
        let Some((figure, row)) = figure(&path) else { return Some(format!("{path} is no figure")) };
        used.insert(row);
        let said = expected(&figures, &figure, &path);
        // What is whole in JSON is cut.
        let is_same = said.is_some_and(|said| (said - value).abs() <= 1e-9 * said.abs() || said.trunc() == value);
        (!is_same).then(|| format!("{path}: {value}, and {figure} is {said:?}"))
    };
    all.into_iter().filter_map(is_wrong).collect()
}

#[test]
fn every_number_in_json_is_a_figure_or_has_a_reason() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("recordings/labelled");
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let recordings = paths.filter(|path| path.extension().is_some_and(|extension| extension == "gnntop"));
    let recorded = recordings.map(|path| (path.display().to_string(), vec![fs::read(&path).unwrap()]));
    let [first, mut again] =
        [(0, 0), (1, 60)].map(|(number, later_s)| ParallelRun::restarted(number, later_s).session(0));
    put_definitions(&mut again, [&Definition::Fact(Fact::Resumed { steps: 50 })]);
    let made_up = [
        ("a training", vec![TrainingRun::default().bytes()]),
        ("a device", vec![DeviceRun::default().bytes()]),
        ("ranks", ParallelRun::default().sessions()),
        ("restarts", vec![first, again]),
        ("all that is measured", vec![equipped()]),
    ];
    let mut used = BTreeSet::new();
    let all = recorded.chain(made_up.map(|(name, bytes)| (name.to_owned(), bytes)));
    let wrong = all.map(|(name, bytes)| (name, unexplained(&bytes, &mut used)));
    let wrong: Vec<_> = wrong.filter(|(_, numbers)| !numbers.is_empty()).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let unused: BTreeSet<&str> = places().map(|(row, ..)| row).filter(|row| !used.contains(row)).collect();
    assert_eq!(unused, BTreeSet::from(["classes/warm-up", "energy/components/*/idle"]), "what no recording here has");
}

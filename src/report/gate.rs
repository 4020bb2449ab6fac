//! Rules that a recording must satisfy, such as `forward.p99=12ms`: the limits of `gnntop check`.

use gnntop_wire::phase::STANDARD;

use super::sections::Report;
use gnntop_analysis::comparison::Compared;
use gnntop_analysis::figures::counted;
use gnntop_analysis::store::{Distribution, Store};

/// Samples beyond a percentile that are needed to decide a rule on it.
const BEYOND: f64 = 1.0;
/// Samples needed for a mean, an extreme or a share.
const ENOUGH: u64 = 10;
/// Prefix of the names of a device's figures.
const ON_DEVICE: &str = "device.";

/// The allowed side of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// At most the limit.
    Max,
    /// At least the limit.
    Min,
}

/// One rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Its text, for messages.
    pub text: String,
    /// The side.
    pub bound: Bound,
    /// The name, such as `forward`.
    name: String,
    statistic: Statistic,
    /// In nanoseconds, shares, bytes or per second.
    limit: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Statistic {
    Percentile(f64),
    Mean,
    Max,
    Min,
    Sd,
    Share,
    PerSecond,
    Bytes,
}

/// The outcome of a rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ruling {
    /// It is satisfied.
    Kept,
    /// It is broken.
    Broken,
    /// There is too little data to decide.
    NotEnough,
}

/// The figure that a rule is compared with.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The number; `None` if there is too little data.
    pub value: Option<f64>,
    /// 95 % interval of a percentile or a mean, assuming independent durations.
    pub interval: Option<(f64, f64)>,
    /// What it is computed from, such as `400 steps`.
    pub population: String,
}

impl Rule {
    /// Reads `NAME.STATISTIC=LIMIT`: durations as `12ms`, shares as `5%`, rates as plain numbers, memory as `2GiB`.
    ///
    /// # Errors
    /// If it is not such a rule; the text says what is wrong.
    pub fn parse(text: &str, bound: Bound) -> Result<Self, String> {
        let (what, limit) = text.split_once('=').ok_or("give NAME.STATISTIC=LIMIT, such as forward.p99=12ms")?;
        let (name, statistic) = split(what.trim()).ok_or("give NAME.STATISTIC, such as forward.p99")?;
        let statistic = match statistic {
            "mean" => Statistic::Mean,
            "max" => Statistic::Max,
            "min" => Statistic::Min,
            "sd" => Statistic::Sd,
            "share" => Statistic::Share,
            "per_s" => Statistic::PerSecond,
            "peak" => Statistic::Bytes,
            other => other
                .strip_prefix('p')
                .and_then(|p| p.parse().ok())
                .filter(|p| (0.0..=100.0).contains(p))
                .map(Statistic::Percentile)
                .ok_or("unknown statistic: use p50 (any percentile), mean, max, min, sd, share, per_s or peak")?,
        };
        let limit = limit_of(limit.trim(), statistic)?;
        Ok(Self { text: text.to_owned(), bound, name: name.to_owned(), statistic, limit })
    }

    /// The limit.
    pub fn limit(&self) -> f64 {
        self.limit
    }

    /// Finds the name among those of the recording: exactly, or with spaces, `_` and `-` treated alike.
    ///
    /// # Errors
    /// If the recording has no such name and could not have it; the text says which name is nearest.
    pub fn resolve(&mut self, store: &Store) -> Result<(), String> {
        let (prefix, name) =
            self.name.strip_prefix(ON_DEVICE).map_or(("", self.name.as_str()), |name| (ON_DEVICE, name));
        let known = names(self.statistic, !prefix.is_empty(), store);
        let found = known.iter().find(|of| *of == name).or(known.iter().find(|of| loose(of) == loose(name)));
        if let Some(found) = found {
            self.name = format!("{prefix}{found}");
            return Ok(());
        }
        if is_standard(name) && !matches!(self.statistic, Statistic::PerSecond | Statistic::Bytes) {
            return Ok(());
        }
        let nearest = known.iter().map(|of| (strsim::damerau_levenshtein(&loose(of), &loose(name)), of)).min();
        let hint = match nearest.filter(|(edits, of)| *edits <= (of.chars().count() / 3).max(1)) {
            Some((_, of)) => format!("did you mean {prefix}{}?", of.replace(' ', "_")),
            None => format!("there are {}", known.iter().map(|of| of.replace(' ', "_")).collect::<Vec<_>>().join(", ")),
        };
        Err(format!("{}: the recording has no {:?}; {hint}", self.text, self.name))
    }

    /// Compares a number with the limit.
    pub fn ruling(&self, measured: &Measured) -> Ruling {
        match (measured.value, self.bound) {
            (None, _) => Ruling::NotEnough,
            (Some(value), Bound::Max) if value <= self.limit => Ruling::Kept,
            (Some(value), Bound::Min) if value >= self.limit => Ruling::Kept,
            _ => Ruling::Broken,
        }
    }

    /// The number that the rule is about.
    pub fn measured(&self, store: &Store, report: &Report) -> Measured {
        let (name, is_on_device) = match self.name.strip_prefix(ON_DEVICE) {
            Some(name) => (name, true),
            None => (self.name.as_str(), false),
        };
        let of_all = |steps: u64| counted(steps, "step", "steps");
        let (value, population) = match self.statistic {
            Statistic::PerSecond => (per_s(name, report).filter(|_| !is_on_device), of_all(report.steps.reported)),
            Statistic::Bytes if is_on_device => (device_bytes(name, report), "the whole recording".to_owned()),
            Statistic::Bytes => (host_bytes(name, report), "the whole recording".to_owned()),
            Statistic::Share if is_on_device => {
                let steps = report.device.as_ref().map_or(0, |device| device.steps);
                (device_share(name, report), of_all(steps))
            }
            Statistic::Share => (share(name, report), of_all(report.steps.reported)),
            _ if is_on_device => return self.of_durations(device_durations(name, store), ["step", "steps"]),
            _ => {
                let is_phase = store.phase(name).is_some() || is_standard(name);
                let is_of_steps = matches!(name, "step" | "period") || is_phase;
                let durations = store.distribution(name);
                return self.of_durations(durations, if is_of_steps { ["step", "steps"] } else { ["span", "spans"] });
            }
        };
        Measured { value, interval: None, population }
    }

    fn of_durations(&self, durations: Option<&Distribution>, [one, many]: [&str; 2]) -> Measured {
        let population = counted(durations.map_or(0, Distribution::count), one, many);
        let value = durations.and_then(|durations| duration_of(durations, self.statistic));
        let interval = durations.filter(|_| value.is_some()).and_then(|all| interval_of(all, self.statistic));
        Measured { value, interval, population }
    }

    /// A value or limit of this rule, for people.
    pub fn written(&self, value: f64) -> String {
        match self.statistic {
            Statistic::Share => gnntop_analysis::figures::percent(value),
            Statistic::PerSecond => format!("{}/s", gnntop_analysis::figures::quantity(value)),
            Statistic::Bytes => gnntop_analysis::figures::bytes(value),
            _ => gnntop_analysis::figures::duration(value.max(0.0) as u64),
        }
    }
}

/// The names in a recording that a rule with this statistic may have.
fn names(statistic: Statistic, on_device: bool, store: &Store) -> Vec<String> {
    let fixed = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
    let phases = store.phases().iter().map(|phase| phase.text.clone());
    match statistic {
        Statistic::PerSecond => fixed(&["steps", "graphs", "nodes", "edges", "seeds"]),
        Statistic::Bytes if on_device => fixed(&["memory", "reserved"]),
        Statistic::Bytes => fixed(&["memory", "rss"]),
        Statistic::Share => phases.chain(fixed(&["step", "period"])).collect(),
        _ if on_device => phases.chain(fixed(&["step", "period"])).collect(),
        _ => {
            let spans = store.spans().iter().map(|span| store.name(span.name).to_owned());
            phases.chain(fixed(&["step", "period"])).chain(spans).collect()
        }
    }
}

/// A name with its variants of spelling unified.
fn loose(name: &str) -> String {
    name.replace(['_', '-'], " ").to_lowercase()
}

/// Whether it is a phase that a program may have, although this recording does not.
fn is_standard(name: &str) -> bool {
    STANDARD.iter().any(|phase| loose(phase) == loose(name))
}

fn per_s(name: &str, report: &Report) -> Option<f64> {
    let t = &report.throughput;
    let rates = [("steps", t.steps_per_s), ("graphs", t.graphs_per_s), ("nodes", t.nodes_per_s)];
    let more = [("edges", t.edges_per_s), ("seeds", t.seeds_per_s)];
    let rate = rates.into_iter().chain(more).find(|(of, _)| *of == name)?.1;
    rate.filter(|_| report.steps.reported >= ENOUGH)
}

fn share(name: &str, report: &Report) -> Option<f64> {
    let line = report.phases.iter().find(|line| line.name == name)?;
    line.share.filter(|_| report.steps.reported >= ENOUGH)
}

fn host_bytes(name: &str, report: &Report) -> Option<f64> {
    match name {
        "memory" => report.memory.peak_live_bytes.map(|bytes| bytes as f64),
        "rss" => report.hardware.process_rss.max,
        _ => None,
    }
}

/// Memory of the device, by its user.
fn device_bytes(name: &str, report: &Report) -> Option<f64> {
    let memory = report.memory.device.as_ref()?;
    let bytes = match name {
        "memory" => memory.peak_bytes,
        "reserved" => memory.reserved_peak_bytes,
        _ => None,
    };
    bytes.map(|bytes| bytes as f64)
}

fn device_share(name: &str, report: &Report) -> Option<f64> {
    let device = report.device.as_ref()?;
    let line = device.phases.iter().find(|line| line.name == name)?;
    line.share.filter(|_| device.steps >= ENOUGH)
}

/// Durations by the device's own clock.
fn device_durations<'a>(name: &str, store: &'a Store) -> Option<&'a Distribution> {
    let statistics = store.device()?.statistics();
    match name {
        "step" => Some(statistics.step()),
        "period" => Some(statistics.period()),
        _ => statistics.phase(store.phase(name)?.slot),
    }
}

fn interval_of(all: &Distribution, statistic: Statistic) -> Option<(f64, f64)> {
    match statistic {
        Statistic::Percentile(p) => {
            let (low, high) = all.percentile_interval(p / 100.0)?;
            Some((low as f64, high as f64))
        }
        Statistic::Mean => {
            let half = 1.96 * all.sd_ns()? / (all.count() as f64).sqrt();
            all.mean_ns().map(|mean| (mean - half, mean + half))
        }
        _ => None,
    }
}

/// Name and statistic; the point in `p99.9` does not separate them.
fn split(what: &str) -> Option<(&str, &str)> {
    let (name, statistic) = what.rsplit_once('.')?;
    if !statistic.is_empty() && statistic.bytes().all(|byte| byte.is_ascii_digit()) {
        let at = name.rfind(".p")?;
        return Some((&what[..at], &what[at + 1..]));
    }
    Some((name, statistic))
}

fn duration_of(distribution: &Distribution, statistic: Statistic) -> Option<f64> {
    let n = distribution.count();
    match statistic {
        Statistic::Percentile(p) => {
            // p100 is the largest of all; other percentiles need samples beyond them.
            let has_enough = n >= ENOUGH && (p >= 100.0 || n as f64 * (1.0 - p / 100.0) >= BEYOND);
            distribution.percentile(p / 100.0).filter(|_| has_enough).map(|ns| ns as f64)
        }
        _ if n < ENOUGH => None,
        Statistic::Mean => distribution.mean_ns(),
        Statistic::Max => distribution.max_ns().map(|ns| ns as f64),
        Statistic::Min => distribution.min_ns().map(|ns| ns as f64),
        Statistic::Sd => distribution.sd_ns(),
        Statistic::Share | Statistic::PerSecond | Statistic::Bytes => None,
    }
}

fn limit_of(text: &str, statistic: Statistic) -> Result<f64, String> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (text[..split].parse::<f64>(), text[split..].trim());
    let number = number.map_err(|_| format!("{text:?} does not begin with a number"))?;
    let factor = match (statistic, unit) {
        (Statistic::Share, "%") => 0.01,
        (Statistic::Share | Statistic::PerSecond, "") | (Statistic::Bytes, "B" | "") => 1.0,
        (Statistic::Share, _) => return Err("a share's limit is a percentage such as 5%".to_owned()),
        (Statistic::PerSecond, _) => return Err("a rate's limit is a plain number".to_owned()),
        (Statistic::Bytes, "K" | "KiB") => 1024.0,
        (Statistic::Bytes, "M" | "MiB") => 1_048_576.0,
        (Statistic::Bytes, "G" | "GiB") => 1_073_741_824.0,
        (Statistic::Bytes, _) => return Err("a size such as 500M or 2GiB".to_owned()),
        (_, "ns") => 1.0,
        (_, "us" | "µs") => 1e3,
        (_, "ms") => 1e6,
        (_, "s") => 1e9,
        _ => return Err("a duration needs its unit, such as 12ms".to_owned()),
    };
    Ok(number * factor)
}

/// Whether a compared number got slower by more than `allowed`, a share of the first. Broken if it did and chance
/// cannot explain it; undecided if it did and chance may explain it.
pub fn ruling_of(compared: &Compared, allowed: f64) -> Ruling {
    match compared.interval {
        None => Ruling::NotEnough,
        Some(_) if compared.change <= allowed => Ruling::Kept,
        Some((low, _)) if low > 0.0 => Ruling::Broken,
        Some(_) => Ruling::NotEnough,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Options;
    use gnntop_fixtures::device::DeviceRun;
    use gnntop_fixtures::{TrainingRun, each_item};

    fn ruling(text: &str, bound: Bound) -> Ruling {
        let mut store = Store::new();
        each_item(&TrainingRun::default().bytes(), |item| store.apply(item));
        held(text, bound, &store)
    }

    fn held(text: &str, bound: Bound, store: &Store) -> Ruling {
        let mut rule = Rule::parse(text, bound).unwrap();
        rule.resolve(store).unwrap();
        rule.ruling(&rule.measured(store, &Report::of(store, &Options::default())))
    }

    #[test]
    fn rules_are_kept_broken_or_undecided() {
        let is_kept = |text| ruling(text, Bound::Max) == Ruling::Kept;
        let is_broken = |text| ruling(text, Bound::Max) == Ruling::Broken;
        assert!(is_kept("backward.p50=23ms") && is_broken("backward.p50=21ms"));
        assert!(is_kept("gap.share=5%") && is_broken("gap.share=1%"));
        assert!(is_kept("rss.peak=1GiB") && is_broken("rss.peak=100M"));
        assert!(is_kept("period.max=41ms") && is_kept("period.mean=41ms") && is_broken("period.mean=0.03s"));
        assert_eq!(ruling("steps.per_s=20", Bound::Min), Ruling::Kept);
        assert_eq!(ruling("edges.per_s=1000000", Bound::Min), Ruling::Broken);
        assert_eq!(ruling("backward.p99.9=1s", Bound::Max), Ruling::NotEnough);
        assert_eq!(ruling("all-reduce.p50=1s", Bound::Max), Ruling::NotEnough, "a phase that this run does not have");
        // The gap of a millisecond is before the step, and in its period.
        assert!(is_kept("step.p50=39.1ms") && is_broken("period.p50=39.1ms"));
    }

    #[test]
    fn names_may_be_written_without_spaces_and_typing_errors_are_told() {
        let mut store = Store::new();
        each_item(&TrainingRun::default().bytes(), |item| store.apply(item));
        let resolved = |text| {
            let mut rule = Rule::parse(text, Bound::Max).unwrap();
            rule.resolve(&store).map(|()| rule.name)
        };
        for text in ["data_wait.p50=1ms", "data-wait.p50=1ms", "data wait.p50=1ms", "Data_Wait.p50=1ms"] {
            assert_eq!(resolved(text).unwrap(), "data wait");
        }
        let refused = |text| resolved(text).unwrap_err();
        assert!(refused("foward.p99=12ms").contains("did you mean forward?"), "{}", refused("foward.p99=12ms"));
        assert!(refused("dta_wait.p99=12ms").contains("did you mean data_wait?"));
        assert!(refused("step.per_s=12").contains("did you mean steps?"));
        assert!(refused("nowhere.p50=1s").contains("there are data_wait, forward"), "{}", refused("nowhere.p50=1s"));
        assert!(refused("device.foward.p50=1s").contains("did you mean device.forward?"));
    }

    #[test]
    fn a_number_has_a_population_and_an_interval() {
        let mut store = Store::new();
        each_item(&TrainingRun { steps: 400, ..TrainingRun::default() }.bytes(), |item| store.apply(item));
        let report = Report::of(&store, &Options::default());
        let of = |text| Rule::parse(text, Bound::Max).unwrap().measured(&store, &report);
        let p50 = of("backward.p50=1s");
        let (low, high) = p50.interval.unwrap();
        assert!(p50.population == "400 steps" && low <= p50.value.unwrap() && p50.value.unwrap() <= high, "{p50:?}");
        assert!(of("backward.mean=1s").interval.is_some() && of("gap.share=5%").interval.is_none());
        assert_eq!(of("layer 0.p50=1s").population, "400 spans");
    }

    #[test]
    fn a_change_is_broken_where_it_is_too_large_and_no_chance() {
        let change = |change, low, high| Compared {
            name: "step".to_owned(),
            statistic: "p50".to_owned(),
            first_ns: 1e6,
            second_ns: 1e6 * (1.0 + change),
            change,
            interval: Some((low, high)),
            verdict: gnntop_analysis::comparison::Change::NoEvidence,
        };
        assert_eq!(ruling_of(&change(0.0, 0.0, 0.0), 0.05), Ruling::Kept, "the same");
        assert_eq!(ruling_of(&change(0.01, -0.2, 0.2), 0.05), Ruling::Kept);
        assert_eq!(ruling_of(&change(1.03, 0.02, 1.6), 0.05), Ruling::Broken, "however wide the interval is");
        assert_eq!(ruling_of(&change(0.08, -0.1, 0.2), 0.05), Ruling::NotEnough);
        assert_eq!(ruling_of(&Compared { interval: None, ..change(1.0, 0.0, 0.0) }, 0.05), Ruling::NotEnough);
    }

    #[test]
    fn a_device_is_held_to_rules_of_its_own() {
        let mut store = Store::new();
        each_item(&DeviceRun::default().bytes(), |item| store.apply(item));
        let max = |text| held(text, Bound::Max, &store);
        // The host hands forward over in 0.6 ms, the device takes 6 ms for it.
        assert_eq!(max("forward.p50=1ms"), Ruling::Kept);
        assert_eq!(max("device.forward.p50=7ms"), Ruling::Kept);
        assert_eq!(max("device.forward.p50=1ms"), Ruling::Broken);
        assert_eq!(max("device.step.max=19ms"), Ruling::Broken);
        assert_eq!(max("device.gap.share=11%"), Ruling::Kept);
        assert_eq!(max("device.memory.peak=1GiB"), Ruling::Broken);
        assert_eq!(max("device.reserved.peak=80GiB"), Ruling::Kept);
        assert_eq!(max("device.steps.per_s=1"), Ruling::NotEnough);
        assert_eq!(ruling("device.forward.p50=1s", Bound::Max), Ruling::NotEnough, "without a device");
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        for text in [
            "forward",
            "forward=1ms",
            "forward.p999=1ms",
            "forward.p50=1",
            "forward.p50=ms",
            "gap.share=5ms",
            "steps.per_s=5%",
            "rss.peak=5ms",
        ] {
            assert!(Rule::parse(text, Bound::Max).is_err(), "{text}");
        }
    }
}

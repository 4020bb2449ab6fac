//! Rules that a recording must keep, such as `forward.p99=12ms`: what `gnntop check` holds a run to.

use super::compare::{Change, Compared};
use super::contents::Report;
use super::sections::hardware::Figure;
use gnntop_analysis::store::{Distribution, Store};

/// Samples beyond a percentile that must be there before a rule on it can be decided.
const BEYOND: f64 = 1.0;
/// Samples that a mean, an extreme or a share needs.
const ENOUGH: u64 = 10;
/// What the names of a device's figures begin with.
const ON_DEVICE: &str = "device.";

/// Which side of the limit is allowed.
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
    /// As it was written, for messages.
    pub text: String,
    /// The side.
    pub bound: Bound,
    /// What is looked at, such as `forward`.
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

/// What came of a rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ruling {
    /// It is kept; the value.
    Kept(f64),
    /// It is broken; the value.
    Broken(f64),
    /// There is not enough to decide it by.
    NotEnough,
}

impl Rule {
    /// Reads `NAME.STATISTIC=LIMIT`: durations as `12ms`, shares as `5%`, rates as plain numbers, memory as `2GiB`.
    ///
    /// # Errors
    /// When it is no such rule; the text says what is wrong.
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
                .ok_or("the statistic is none of p50 (any percentile), mean, max, min, sd, share, per_s, peak")?,
        };
        let limit = limit_of(limit.trim(), statistic)?;
        Ok(Self { text: text.to_owned(), bound, name: name.to_owned(), statistic, limit })
    }

    /// The limit.
    pub fn limit(&self) -> f64 {
        self.limit
    }

    /// Holds a recording to the rule. A name that nothing was recorded under leaves it undecided.
    pub fn ruling(&self, store: &Store, report: &Report) -> Ruling {
        let Some(value) = self.value(store, report) else { return Ruling::NotEnough };
        let is_kept = match self.bound {
            Bound::Max => value <= self.limit,
            Bound::Min => value >= self.limit,
        };
        if is_kept { Ruling::Kept(value) } else { Ruling::Broken(value) }
    }

    fn value(&self, store: &Store, report: &Report) -> Option<f64> {
        if let Some(name) = self.name.strip_prefix(ON_DEVICE) {
            return self.value_on_device(name, store, report);
        }
        match self.statistic {
            Statistic::PerSecond => {
                let t = &report.throughput;
                let rates = [("steps", t.steps_per_s), ("graphs", t.graphs_per_s), ("nodes", t.nodes_per_s)];
                let more = [("edges", t.edges_per_s), ("seeds", t.seeds_per_s)];
                let rate = rates.into_iter().chain(more).find(|(name, _)| *name == self.name)?.1;
                rate.filter(|_| report.steps.reported >= ENOUGH)
            }
            Statistic::Bytes => match self.name.as_str() {
                "memory" => report.memory.peak_live_bytes.map(|bytes| bytes as f64),
                "rss" => most(&report.hardware.process_rss),
                _ => None,
            },
            Statistic::Share => {
                let line = report.phases.iter().find(|line| line.name == self.name)?;
                line.share.filter(|_| report.steps.reported >= ENOUGH)
            }
            _ => duration_of(store.distribution(&self.name)?, self.statistic),
        }
    }

    /// The same by the device's own clock, and of its memory.
    fn value_on_device(&self, name: &str, store: &Store, report: &Report) -> Option<f64> {
        match self.statistic {
            Statistic::PerSecond => None,
            Statistic::Bytes => {
                let memory = report.memory.device.as_ref()?;
                let bytes = match name {
                    "memory" => memory.peak_bytes,
                    "reserved" => memory.reserved_peak_bytes,
                    _ => None,
                };
                bytes.map(|bytes| bytes as f64)
            }
            Statistic::Share => {
                let device = report.device.as_ref()?;
                let line = device.phases.iter().find(|line| line.name == name)?;
                line.share.filter(|_| device.steps >= ENOUGH)
            }
            _ => {
                let statistics = store.device()?.statistics();
                let phase = || statistics.phase(store.phase(name)?.slot);
                let distribution = if name == "step" { Some(statistics.period()) } else { phase() };
                duration_of(distribution?, self.statistic)
            }
        }
    }

    /// A value or limit of this rule as people read it.
    pub fn written(&self, value: f64) -> String {
        match self.statistic {
            Statistic::Share => gnntop_analysis::figures::percent(value),
            Statistic::PerSecond => format!("{}/s", gnntop_analysis::figures::quantity(value)),
            Statistic::Bytes => gnntop_analysis::figures::bytes(value),
            _ => gnntop_analysis::figures::duration(value.max(0.0) as u64),
        }
    }
}

/// Name and statistic; the point of `p99.9` does not part them.
fn split(what: &str) -> Option<(&str, &str)> {
    let (name, statistic) = what.rsplit_once('.')?;
    if !statistic.is_empty() && statistic.bytes().all(|byte| byte.is_ascii_digit()) {
        let at = name.rfind(".p")?;
        return Some((&what[..at], &what[at + 1..]));
    }
    Some((name, statistic))
}

fn most(figure: &Figure) -> Option<f64> {
    figure.max
}

fn duration_of(distribution: &Distribution, statistic: Statistic) -> Option<f64> {
    let n = distribution.count();
    match statistic {
        Statistic::Percentile(p) => {
            // p100 is the largest of all there are; the others need something beyond them.
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
    let number = number.map_err(|_| format!("{text:?} begins with no number"))?;
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

/// Whether a compared number got slower by more than `allowed`, a share of the first: broken where its whole interval
/// lies above, kept where it lies below, else undecided.
pub fn ruling_of(compared: &Compared, allowed: f64) -> Ruling {
    match compared.interval {
        _ if compared.verdict == Change::TooFew => Ruling::NotEnough,
        Some((low, _)) if low > allowed => Ruling::Broken(compared.change),
        Some((_, high)) if high <= allowed => Ruling::Kept(compared.change),
        _ => Ruling::NotEnough,
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
        Rule::parse(text, bound).unwrap().ruling(&store, &Report::of(&store, &Options::default()))
    }

    #[test]
    fn rules_are_kept_broken_or_undecided() {
        let is_kept = |text| matches!(ruling(text, Bound::Max), Ruling::Kept(_));
        let is_broken = |text| matches!(ruling(text, Bound::Max), Ruling::Broken(_));
        assert!(is_kept("backward.p50=23ms") && is_broken("backward.p50=21ms"));
        assert!(is_kept("gap.share=5%") && is_broken("gap.share=1%"));
        assert!(is_kept("rss.peak=1GiB") && is_broken("rss.peak=100M"));
        assert!(is_kept("step.max=41ms") && is_kept("step.mean=41ms") && is_broken("step.mean=0.03s"));
        assert!(matches!(ruling("steps.per_s=20", Bound::Min), Ruling::Kept(_)));
        assert!(matches!(ruling("edges.per_s=1000000", Bound::Min), Ruling::Broken(_)));
        assert_eq!(ruling("backward.p99.9=1s", Bound::Max), Ruling::NotEnough);
        assert_eq!(ruling("nowhere.p50=1s", Bound::Max), Ruling::NotEnough);
    }

    #[test]
    fn a_device_is_held_to_rules_of_its_own() {
        let mut store = Store::new();
        each_item(&DeviceRun::default().bytes(), |item| store.apply(item));
        let report = Report::of(&store, &Options::default());
        let max = |text| Rule::parse(text, Bound::Max).unwrap().ruling(&store, &report);
        // The host hands forward over in 0.6 ms, the device takes 6 ms for it.
        assert!(matches!(max("forward.p50=1ms"), Ruling::Kept(_)));
        assert!(matches!(max("device.forward.p50=7ms"), Ruling::Kept(_)));
        assert!(matches!(max("device.forward.p50=1ms"), Ruling::Broken(_)));
        assert!(matches!(max("device.step.max=19ms"), Ruling::Broken(_)));
        assert!(matches!(max("device.gap.share=11%"), Ruling::Kept(_)));
        assert!(matches!(max("device.memory.peak=1GiB"), Ruling::Broken(_)));
        assert!(matches!(max("device.reserved.peak=80GiB"), Ruling::Kept(_)));
        for text in ["device.nowhere.p50=1s", "device.steps.per_s=1", "device.rss.peak=1G"] {
            assert_eq!(max(text), Ruling::NotEnough, "{text}");
        }
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

//! Rules that a recording must satisfy, such as `forward.p99=12ms`: the limits of `gnntop check`.

use gnntop_analysis::catalogue::{Catalogue, FigureId, Measured, Population, Statistic, UnknownName};
use gnntop_analysis::comparison::Compared;

/// Samples beyond a percentile that are needed to decide a rule on it.
const BEYOND: f64 = 1.0;
/// Samples needed for a mean, an extreme or a share.
const ENOUGH: u64 = 10;

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
    /// What is limited.
    pub figure: FigureId,
    /// In the figure's unit.
    limit: f64,
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

impl Rule {
    /// Reads `FIGURE=LIMIT`: durations as `12ms`, shares as `5%`, rates as plain numbers, memory as `2GiB`.
    ///
    /// # Errors
    /// If it is not such a rule; the text says what is wrong.
    pub fn parse(text: &str, bound: Bound) -> Result<Self, String> {
        let (figure, limit) = text.rsplit_once('=').ok_or("give FIGURE=LIMIT, such as forward.p99=12ms")?;
        let figure: FigureId = figure.parse().map_err(|error| format!("{error}"))?;
        let limit = figure.unit().parse(limit.trim()).map_err(|error| error.to_string())?;
        Ok(Self { text: text.to_owned(), bound, figure, limit })
    }

    /// The same rule with the name that the recording has.
    ///
    /// # Errors
    /// If the recording has no such name and could not have it.
    pub fn resolved(self, catalogue: &Catalogue<'_>) -> Result<Self, UnknownName> {
        Ok(Self { figure: catalogue.resolve(&self.figure)?, ..self })
    }

    /// Compares a number with the limit.
    pub fn ruling(&self, measured: &Measured) -> Ruling {
        match self.bound {
            _ if !is_enough(self.figure.statistic(), measured.population) => Ruling::NotEnough,
            Bound::Max if measured.value <= self.limit => Ruling::Kept,
            Bound::Min if measured.value >= self.limit => Ruling::Kept,
            _ => Ruling::Broken,
        }
    }
}

/// Whether a rule on a statistic can be decided by this many samples.
fn is_enough(statistic: Statistic, population: Population) -> bool {
    let Population::Samples { count, .. } = population else { return true };
    let needs_many = !matches!(
        statistic,
        Statistic::Count | Statistic::Total | Statistic::Peak | Statistic::First | Statistic::Last
    );
    // p100 is the largest of all; other percentiles need samples beyond them.
    let beyond =
        statistic.quantile().filter(|quantile| *quantile < 1.0).map(|quantile| count as f64 * (1.0 - quantile));
    !needs_many || count >= ENOUGH && beyond.is_none_or(|beyond| beyond >= BEYOND)
}

/// Whether a compared number got slower by more than `allowed`, a share of the first. Broken if it did and chance
/// cannot explain it; undecided if it did and chance may explain it.
pub fn rule_change(compared: &Compared, allowed: f64) -> Ruling {
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
    use gnntop_analysis::store::Store;
    use gnntop_fixtures::device::DeviceRun;
    use gnntop_fixtures::{TrainingRun, each_item};

    fn ruling_on(text: &str, bound: Bound, bytes: &[u8]) -> Ruling {
        let mut store = Store::new();
        each_item(bytes, |item| store.apply(item));
        let catalogue = Catalogue::new(&store);
        let rule = Rule::parse(text, bound).unwrap().resolved(&catalogue).unwrap();
        catalogue.get(&rule.figure).map_or(Ruling::NotEnough, |measured| rule.ruling(&measured))
    }

    #[test]
    fn rules_are_ruled_kept_broken_or_undecided() {
        let bytes = TrainingRun::default().bytes();
        let is_kept = |text| ruling_on(text, Bound::Max, &bytes) == Ruling::Kept;
        let is_broken = |text| ruling_on(text, Bound::Max, &bytes) == Ruling::Broken;
        assert!(is_kept("backward.p50=23ms") && is_broken("backward.p50=21ms"));
        assert!(is_kept("gap.share=5%") && is_broken("gap.share=1%"));
        assert!(is_kept("process.rss.peak=1GiB") && is_broken("process.rss.peak=100M"));
        assert!(is_kept("period.max=41ms") && is_kept("period.mean=41ms") && is_broken("period.mean=0.03s"));
        assert_eq!(ruling_on("steps.per_s=20", Bound::Min, &bytes), Ruling::Kept);
        assert_eq!(ruling_on("edges.per_s=1000000", Bound::Min, &bytes), Ruling::Broken);
        assert_eq!(ruling_on("backward.p99.9=1s", Bound::Max, &bytes), Ruling::NotEnough);
        assert_eq!(ruling_on("all-reduce.p50=1s", Bound::Max, &bytes), Ruling::NotEnough, "a phase it does not have");
        assert_eq!(ruling_on("device.forward.p50=1s", Bound::Max, &bytes), Ruling::NotEnough, "without a device");
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
        assert_eq!(rule_change(&change(0.0, 0.0, 0.0), 0.05), Ruling::Kept, "the same");
        assert_eq!(rule_change(&change(0.01, -0.2, 0.2), 0.05), Ruling::Kept);
        assert_eq!(rule_change(&change(1.03, 0.02, 1.6), 0.05), Ruling::Broken, "however wide the interval is");
        assert_eq!(rule_change(&change(0.08, -0.1, 0.2), 0.05), Ruling::NotEnough);
        assert_eq!(rule_change(&Compared { interval: None, ..change(1.0, 0.0, 0.0) }, 0.05), Ruling::NotEnough);
    }

    #[test]
    fn device_figures_can_be_gated() {
        let bytes = DeviceRun::default().bytes();
        let max = |text| ruling_on(text, Bound::Max, &bytes);
        // The host hands forward over in 0.6 ms, the device takes 6 ms for it.
        assert_eq!(max("forward.p50=1ms"), Ruling::Kept);
        assert_eq!(max("device.forward.p50=7ms"), Ruling::Kept);
        assert_eq!(max("device.forward.p50=1ms"), Ruling::Broken);
        assert_eq!(max("device.step.max=19ms"), Ruling::Broken);
        assert_eq!(max("device.gap.share=11%"), Ruling::Kept);
        assert_eq!(max("device.memory.peak=1GiB"), Ruling::Broken);
        assert_eq!(max("device.reserved.peak=80GiB"), Ruling::Kept);
    }

    #[test]
    fn invalid_rule_is_refused() {
        for text in [
            "forward",
            "forward=1ms",
            "forward.p999=1ms",
            "forward.p50=1",
            "forward.p50=ms",
            "gap.share=5ms",
            "steps.per_s=5%",
            "step.per_s=12",
            "process.rss.peak=5ms",
        ] {
            assert!(Rule::parse(text, Bound::Max).is_err(), "{text}");
        }
    }
}

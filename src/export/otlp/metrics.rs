//! Metrics as JSON: sums, gauges and exponential histograms over one stretch of time, each name once.

use serde_json::{Value, json};

use gnntop_analysis::store::{Distribution, SessionState, Store};

use super::exponential::ExponentialHistogram;

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: u64 = 2;

/// Some readers know milliseconds.
const AFTER_THE_END_NS: u64 = 1_000_000;

/// Names with their values, which are texts or whole numbers.
pub(super) type Attributes = Vec<(String, Value)>;

/// One value with what tells it apart from others of the same metric.
pub(super) type Sample = (Attributes, Number);

/// A value of a sum or gauge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Whole(u64),
    Real(f64),
}

/// What a metric's values mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// It only grows.
    Counter,
    /// It goes up and down, and values of several sources can be added.
    UpDown,
    /// Values that are not added.
    Gauge,
}

/// The metrics of one resource.
pub(super) struct Metrics {
    /// Since when sums and histograms count, and up to when, in nanoseconds since 1970.
    start_ns: u64,
    time_ns: u64,
    all: Vec<Value>,
}

impl Metrics {
    /// None yet, over the time of this session. The start is what its first opening says, so that it stays the same when
    /// the clock is set: another start would mean that counting began again.
    pub(super) fn new(store: &Store) -> Self {
        let session = store.session();
        let start_ns = session.origin().map_or(0, |info| info.start.wall_ns);
        // That it has ended is news without an event. At the same time another value would be taken for a mistake.
        let is_over = matches!(session.state(), SessionState::Ended(_) | SessionState::Gone);
        let now_ns = store.now_ns() + if is_over { AFTER_THE_END_NS } else { 0 };
        let time_ns = session.wall_ns(now_ns).unwrap_or(start_ns).max(start_ns + 1);
        Self { start_ns, time_ns, all: Vec::new() }
    }

    /// Adds a metric, unless it has no value that JSON can have.
    pub(super) fn add(&mut self, name: &str, unit: &str, shape: Shape, samples: impl IntoIterator<Item = Sample>) {
        let points: Vec<Value> = samples.into_iter().filter_map(|sample| self.point(shape, sample)).collect();
        if points.is_empty() {
            return;
        }
        let (kind, data) = match shape {
            Shape::Gauge => ("gauge", json!({ "dataPoints": points })),
            Shape::Counter | Shape::UpDown => {
                let is_monotonic = shape == Shape::Counter;
                let temporality = CUMULATIVE;
                let sum =
                    json!({ "aggregationTemporality": temporality, "isMonotonic": is_monotonic, "dataPoints": points });
                ("sum", sum)
            }
        };
        self.all.push(json!({ "name": name, "unit": unit, kind: data }));
    }

    /// Adds durations in seconds; those without percentiles are left out.
    pub(super) fn add_durations<'d>(
        &mut self,
        name: &str,
        durations: impl IntoIterator<Item = (Attributes, &'d Distribution)>,
    ) {
        let points: Vec<Value> = durations.into_iter().filter_map(|one| self.histogram_point(one)).collect();
        if !points.is_empty() {
            let data = json!({ "aggregationTemporality": CUMULATIVE, "dataPoints": points });
            self.all.push(json!({ "name": name, "unit": "s", "exponentialHistogram": data }));
        }
    }

    /// All of them.
    pub(super) fn into_json(self) -> Vec<Value> {
        self.all
    }

    fn point(&self, shape: Shape, (of, value): Sample) -> Option<Value> {
        let mut point = json!({ "attributes": attributes(&of), "timeUnixNano": self.time_ns.to_string() });
        if shape != Shape::Gauge {
            point["startTimeUnixNano"] = self.start_ns.to_string().into();
        }
        match value {
            Number::Whole(value) => point["asInt"] = i64::try_from(value).unwrap_or(i64::MAX).to_string().into(),
            Number::Real(value) if value.is_finite() => point["asDouble"] = value.into(),
            Number::Real(_) => return None,
        }
        Some(point)
    }

    fn histogram_point(&self, (of, durations): (Attributes, &Distribution)) -> Option<Value> {
        let (min_ns, max_ns) = (durations.min_ns()?, durations.max_ns()?);
        let histogram = ExponentialHistogram::new(durations.histogram()?);
        let counts: Vec<String> = histogram.counts.iter().map(u64::to_string).collect();
        Some(json!({
            "attributes": attributes(&of),
            "startTimeUnixNano": self.start_ns.to_string(),
            "timeUnixNano": self.time_ns.to_string(),
            "count": histogram.count().to_string(),
            "sum": durations.total_ns() as f64 / 1e9,
            "min": min_ns as f64 / 1e9,
            "max": max_ns as f64 / 1e9,
            "scale": histogram.scale,
            "zeroCount": histogram.zeros.to_string(),
            "positive": { "offset": histogram.offset, "bucketCounts": counts },
        }))
    }
}

/// A value without attributes.
pub(super) fn alone(value: Option<Number>) -> Option<Sample> {
    value.map(|value| (Attributes::new(), value))
}

/// A value with one attribute.
pub(super) fn labelled(name: &str, text: &str, value: Number) -> Sample {
    (vec![(name.to_owned(), text.into())], value)
}

/// Attributes as the protocol's list of keys and values.
pub(super) fn attributes(all: &Attributes) -> Vec<Value> {
    let value = |value: &Value| match value {
        Value::Number(number) => json!({ "intValue": number.to_string() }),
        text => json!({ "stringValue": text }),
    };
    all.iter().map(|(name, of)| json!({ "key": name, "value": value(of) })).collect()
}

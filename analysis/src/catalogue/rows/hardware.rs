//! What sensors measured, over the whole session.

use gnntop_wire::{Metric, Quantity, SignalKind, Unit as RawUnit};

use crate::catalogue::context::Catalogue;
use crate::catalogue::measured::{AbsentFigure, FigureResult, FoundValue};
use crate::catalogue::row::{Names, Row};
use crate::catalogue::statistic::Statistic;
use crate::figures::FigureUnit;
use crate::store::Absence;

pub(in crate::catalogue) const ROWS: &[Row] = &[
    Row {
        subject: "gpu.busiest.util",
        about: "the use of the GPU that is used most",
        names: Names::None,
        statistics: |_| vec![(Statistic::Mean, FigureUnit::Share)],
        get: |context, _, statistic| {
            let gpus = context.store.hardware().gpus().into_iter();
            let used = gpus.map(|gpu| measured(context, Quantity::GpuUtil.with_instance(gpu), statistic));
            let most = used.filter_map(Result::ok).max_by(|a, b| a.value.total_cmp(&b.value));
            most.ok_or_else(|| AbsentFigure("no GPU was measured".to_owned()))
        },
    },
    Row {
        subject: "QUANTITY",
        about: "a measured quantity, such as `process.rss` or `gpu.0.util`; of counters, the total and the rate per second",
        names: Names::Own(Quantity::ProcessRss.text(), |context| {
            let metrics = context.store.signals().all().iter().filter_map(|signal| signal.metric.metric());
            metrics.map(|metric| metric.to_string()).collect()
        }),
        statistics: |name| name.parse().map(|metric: Metric| statistics(metric.quantity())).unwrap_or_default(),
        get: |context, name, statistic| match name.parse() {
            Ok(metric) => measured(context, metric, statistic),
            Err(_) => AbsentFigure::because("nothing measured has this name"),
        },
    },
];

/// The statistics of a gauge or of a counter, in the unit that people use.
pub(in crate::catalogue) fn statistics(quantity: Quantity) -> Vec<(Statistic, FigureUnit)> {
    if quantity.kind() == SignalKind::Counter {
        let (total, each_second) = match quantity.unit() {
            RawUnit::Nanoseconds if is_core_time(quantity) => (FigureUnit::Time, FigureUnit::Cores),
            RawUnit::Nanoseconds => (FigureUnit::Time, FigureUnit::Share),
            RawUnit::Bytes => (FigureUnit::Bytes, FigureUnit::BytesPerSecond),
            RawUnit::Millijoules | RawUnit::Microjoules => (FigureUnit::Energy, FigureUnit::Power),
            _ => (FigureUnit::Count, FigureUnit::Rate),
        };
        return vec![(Statistic::PerS, each_second), (Statistic::Total, total)];
    }
    let (unit, most) = match quantity.unit() {
        // A mean of flags is nothing.
        RawUnit::Bits => return Vec::new(),
        RawUnit::Nanoseconds => (FigureUnit::Time, Statistic::Max),
        RawUnit::Bytes => (FigureUnit::Bytes, Statistic::Peak),
        RawUnit::BytesPerSecond => (FigureUnit::BytesPerSecond, Statistic::Max),
        RawUnit::MilliPercent => (FigureUnit::Share, Statistic::Max),
        RawUnit::Milliwatts => (FigureUnit::Power, Statistic::Max),
        RawUnit::Millijoules | RawUnit::Microjoules => (FigureUnit::Energy, Statistic::Max),
        RawUnit::Megahertz => (FigureUnit::Frequency, Statistic::Max),
        RawUnit::MilliCelsius => (FigureUnit::Temperature, Statistic::Max),
        _ => (FigureUnit::Count, Statistic::Max),
    };
    [Statistic::Mean, most, Statistic::Min, Statistic::Last].map(|statistic| (statistic, unit)).to_vec()
}

/// Whether a time is worked by cores, of which there may be several, and not waited.
fn is_core_time(quantity: Quantity) -> bool {
    use Quantity as Q;
    let of_process = [Q::ProcessCpuTime, Q::ProcessCpuTimeUser, Q::ProcessCpuTimeSystem, Q::SensorsCpuTime];
    let of_machine = [Q::MachineCpuBusy, Q::MachineCpuIowait, Q::MachineCpuSteal];
    let of_core = [Q::CoreBusy, Q::CoreIowait, Q::CoreSteal];
    of_process.contains(&quantity) || of_machine.contains(&quantity) || of_core.contains(&quantity)
}

/// How much of the unit for people a raw value of 1 is.
fn scale(unit: RawUnit, statistic: Statistic) -> f64 {
    match unit {
        RawUnit::Nanoseconds if statistic == Statistic::PerS => 1e-9,
        RawUnit::MilliPercent => 1e-5,
        RawUnit::Milliwatts | RawUnit::Millijoules | RawUnit::MilliCelsius => 1e-3,
        RawUnit::Microjoules => 1e-6,
        RawUnit::Megahertz => 1e6,
        _ => 1.0,
    }
}

fn measured(context: &Catalogue<'_>, metric: Metric, statistic: Statistic) -> FigureResult {
    let Some(signal) = context.store.signals().find(metric) else {
        return AbsentFigure::because("not recorded");
    };
    let found = FoundValue::from_readings(&signal.series, statistic, scale(metric.quantity().unit(), statistic));
    // The sensor knows better than we why there is nothing.
    found.or_else(|absent| match context.store.hardware().value(signal) {
        Err(reason @ Absence::Reason(_)) => AbsentFigure::because(reason.to_string()),
        _ => Err(absent),
    })
}

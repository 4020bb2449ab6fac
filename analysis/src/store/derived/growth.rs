//! Whether the program's memory grows from step to step: the figures that show it best, and their trend.
//!
//! The best figures are the bytes live at the ends of steps. If too few steps make large allocations, readings of live
//! bytes are used, or else of resident memory, at arbitrary moments within steps. The first tenth is left out, as buffers
//! are still being filled.

use gnntop_wire::Quantity;

use crate::store::contents::Store;
use crate::store::memory::trend::{FEWEST_POINTS, Trend};
use crate::store::signals::series::{Series, Value};

/// The share of steps left out at the start: one in this many.
const WARM_UP: u64 = 10;
/// Most readings in a trend.
const MAX_READINGS: u64 = 256;
/// A reading is repeated when it changes, or after five seconds, so an older one is no longer valid.
const VALID_NS: u64 = 6_000_000_000;
/// Interval between sensor reads; a second reading within this time is no further evidence.
const SENSED_EVERY_NS: u64 = 100_000_000;
/// Interval between reads of the allocator's totals.
const REPORTED_EVERY_NS: u64 = 1_000_000_000;

/// The readings that show a growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrowthSource {
    /// Bytes live after the last large allocation or release of a step.
    StepEnds,
    /// Bytes live when they were read, once a second.
    LiveReadings,
    /// Resident memory when it was read.
    ResidentReadings,
}

/// A growth of memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// Bytes per step.
    pub bytes_per_step: Trend,
    /// The readings that show it.
    pub source: GrowthSource,
}

impl Store {
    /// The growth of the program's memory from step to step; `None` if fewer than [`FEWEST_POINTS`] steps have a figure,
    /// which is no evidence either way. Takes up to a millisecond.
    pub fn memory_growth(&self) -> Option<Growth> {
        let ends = self.memory().step_ends();
        let ends = &ends[ends.len() / WARM_UP as usize..];
        let points: Vec<(f64, f64)> = ends.iter().map(|end| (end.ordinal as f64, end.live_bytes as f64)).collect();
        let growth = |of| move |bytes_per_step| Growth { bytes_per_step, source: of };
        let of_ends = Trend::fit(&points).map(growth(GrowthSource::StepEnds));
        let live =
            || self.growth_in(self.memory().readings(), REPORTED_EVERY_NS).map(growth(GrowthSource::LiveReadings));
        let resident = || {
            let signal = self.signals().find(self.without_mapped_files(Quantity::ProcessRss))?;
            self.growth_in(&signal.series, SENSED_EVERY_NS).map(growth(GrowthSource::ResidentReadings))
        };
        of_ends.or_else(live).or_else(resident)
    }

    /// The readings of resident memory by which to tell whether it grows: those without the pages of mapped files, where there are
    /// any. The system takes these pages back when it needs them, and the more of a file is read, the more there are.
    pub(crate) fn without_mapped_files(&self, resident: Quantity) -> Quantity {
        let own = match resident {
            Quantity::ProcessRss => Quantity::ProcessRssOwn,
            Quantity::ChildrenRss => Quantity::ChildrenRssOwn,
            other => return other,
        };
        let is_read = self.signals().find(own).is_some_and(|signal| signal.series.summary().count > 0);
        if is_read { own } else { resident }
    }

    /// How long the machine's free memory lasts while the program's grows by this many bytes a step, in nanoseconds; `None` if one of them
    /// is unknown, or nothing grows.
    pub fn free_memory_lasts_ns(&self, bytes_per_step: f64) -> Option<f64> {
        let free = self.hardware().reading(Quantity::MachineMemoryAvailable).ok()?;
        let seconds = free / (bytes_per_step * self.statistics().steps_per_s()?);
        (bytes_per_step > 0.0 && seconds.is_finite()).then_some(seconds * 1e9)
    }

    /// The growth per step in readings that come `every_ns`.
    fn growth_in<T: Value>(&self, series: &Series<T>, every_ns: u64) -> Option<Trend> {
        let kept = self.steps().kept_ordinals();
        let first = kept.start + (kept.end - kept.start) / WARM_UP;
        let stride = (kept.end - first).div_ceil(MAX_READINGS).max(1);
        if kept.end - first < FEWEST_POINTS as u64 {
            return None;
        }
        let mut points: Vec<(f64, f64)> = Vec::new();
        let mut last_ns: Option<u64> = None;
        for row in (first..kept.end).step_by(stride as usize).filter_map(|ordinal| self.steps().row(ordinal)) {
            let end_ns = row.end_ns();
            let is_news = last_ns.is_none_or(|last_ns| end_ns >= last_ns.saturating_add(every_ns));
            let reading = series.last_before(end_ns).filter(|(t_ns, _)| is_news && end_ns - t_ns <= VALID_NS);
            if let Some((_, value)) = reading {
                last_ns = Some(end_ns);
                points.push((row.ordinal() as f64, value.as_f64()));
            }
        }
        Trend::fit(&points)
    }
}

#[cfg(test)]
mod tests {
    use gnntop_wire::{Allocation, Event, NameKind, PhaseMemory, SignalKind, TrackRole, Unit};

    use super::*;
    use gnntop_fixtures::{MS, START_NS, StreamBuilder, each_item};

    /// 400 steps of 50 ms; `tell` adds what is known of memory at the end of each.
    fn store(mut tell: impl FnMut(&mut StreamBuilder, u64, u64)) -> Store {
        let mut stream = StreamBuilder::new("pna");
        let main = stream.track(TrackRole::Training, "main");
        stream.track(TrackRole::Sensors, "sensors");
        stream.name(NameKind::Phase, "forward");
        stream.signal("process.rss", Unit::Bytes, SignalKind::Gauge);
        for step in 0..400 {
            let end_ns = START_NS + (step + 1) * 50 * MS;
            tell(&mut stream, step, end_ns - MS);
            stream.step(main, step + 1, end_ns - 50 * MS, end_ns);
        }
        let mut store = Store::new();
        each_item(&stream.bytes(), |item| store.apply(item));
        store
    }

    const MAIN: gnntop_wire::TrackId = gnntop_wire::TrackId(1);
    const SENSORS: gnntop_wire::TrackId = gnntop_wire::TrackId(2);
    const PHASE: gnntop_wire::NameId = gnntop_wire::NameId(1);

    #[test]
    fn growth_uses_step_ends() {
        let growth = store(|stream, step, t_ns| {
            let event = Allocation { phase: PHASE, t_ns, bytes: 5 << 20, live_bytes: 1000 + step * 7 };
            stream.event(MAIN, Event::Allocation(event));
            stream.sample(SENSORS, gnntop_wire::SignalId(0), t_ns, 5000);
        });
        let growth = growth.memory_growth().unwrap();
        assert_eq!(growth.source, GrowthSource::StepEnds);
        assert!((growth.bytes_per_step.slope - 7.0).abs() < 1e-9 && growth.bytes_per_step.grows());
    }

    #[test]
    fn growth_falls_back_to_readings() {
        let growth = store(|stream, step, t_ns| {
            let memory = PhaseMemory { phase: PHASE, t_ns, live_bytes: 1000 + step * 3, ..Default::default() };
            stream.event(MAIN, Event::PhaseMemory(memory));
        });
        // Once a second: 18 of 20 seconds are too few.
        assert_eq!(growth.memory_growth(), None);
        let growth = store(|stream, step, t_ns| {
            // Only what changes is published.
            if step % 40 == 0 {
                stream.sample(SENSORS, gnntop_wire::SignalId(0), t_ns, 5000 + step as i64 / 200);
            }
        });
        let growth = growth.memory_growth().unwrap();
        assert_eq!(growth.source, GrowthSource::ResidentReadings);
        assert!(growth.bytes_per_step.slope.abs() < 0.02, "{growth:?}");
    }

    #[test]
    fn constant_memory_is_no_growth() {
        let flat = store(|stream, step, t_ns| {
            let event = Allocation { phase: PHASE, t_ns, bytes: 5 << 20, live_bytes: 1000 + (step * 37) % 11 };
            stream.event(MAIN, Event::Allocation(event));
        });
        let growth = flat.memory_growth().unwrap().bytes_per_step;
        assert!(!growth.grows() && !growth.shrinks(), "{growth:?}");
        assert_eq!(Store::new().memory_growth(), None);
    }
}

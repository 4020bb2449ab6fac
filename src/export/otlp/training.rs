//! What a training does: its steps, phases and work, its own counters, what was found and what is missing.

use gnntop_analysis::catalogue::Catalogue;
use gnntop_analysis::findings::FindingKind;
use gnntop_analysis::store::{SessionState, Store};
use gnntop_wire::NameId;

use super::metrics::{Attributes, Metrics, Number, Shape, alone, labelled};

/// Adds the figures of one rank; its findings, which are over all ranks too, only where they are known.
pub(super) fn add(out: &mut Metrics, catalogue: &Catalogue<'_>, has_findings: bool) {
    let store = catalogue.store();
    let is_live = match store.session().state() {
        SessionState::Unknown => None,
        SessionState::Running => Some(Number::Whole(1)),
        SessionState::Ended(_) | SessionState::Gone => Some(Number::Whole(0)),
    };
    out.add("gnntop.live", "1", Shape::Gauge, alone(is_live));
    out.add("gnntop.steps", "{step}", Shape::Counter, alone(Some(Number::Whole(store.statistics().steps()))));
    add_durations(out, store);
    add_work(out, catalogue);
    add_counters(out, store);
    if has_findings && store.statistics().steps() > 0 {
        add_findings(out, catalogue);
    }
    let losses = [
        ("gnntop.events.dropped", "{event}", "lost.dropped_events.total"),
        ("gnntop.events.missed", "{event}", "lost.missed_events.total"),
        ("gnntop.segments.lost", "{segment}", "lost.lost_segments.total"),
    ];
    for (name, unit, figure) in losses {
        let lost = catalogue.value(figure).unwrap_or(0.0);
        out.add(name, unit, Shape::Counter, alone(Some(Number::Whole(lost as u64))));
    }
}

fn add_durations(out: &mut Metrics, store: &Store) {
    let statistics = store.statistics();
    out.add_durations("gnntop.step.duration", [(Attributes::new(), statistics.step())]);
    out.add_durations("gnntop.step.period", [(Attributes::new(), statistics.period())]);
    out.add_durations("gnntop.gap.duration", [(Attributes::new(), statistics.gap())]);
    let phases = store.phases().iter().filter(|phase| !phase.is_gap());
    let phases = phases.filter_map(|phase| {
        let name = vec![("gnntop.phase".to_owned(), phase.text.as_str().into())];
        Some((name, statistics.phase(phase.slot)?))
    });
    out.add_durations("gnntop.phase.duration", phases);
}

fn add_work(out: &mut Metrics, catalogue: &Catalogue<'_>) {
    for (name, unit) in [("graphs", "{graph}"), ("nodes", "{node}"), ("edges", "{edge}"), ("seeds", "{seed}")] {
        let total = catalogue.value(&format!("{name}.total")).map(|total| Number::Whole(total as u64));
        out.add(&format!("gnntop.{name}"), unit, Shape::Counter, alone(total));
    }
    let epoch = catalogue.store().statistics().last_epoch().map(Number::Whole);
    out.add("gnntop.epoch", "1", Shape::Gauge, alone(epoch));
    let newest = |figure: &str| alone(catalogue.value(figure).map(Number::Real));
    out.add("gnntop.loss", "1", Shape::Gauge, newest("loss.last"));
    out.add("gnntop.goal.share", "1", Shape::Gauge, newest("goal.share"));
    let left_s = catalogue.value("time_left.total").map(|ns| Number::Real(ns / 1e9));
    out.add("gnntop.time_left", "s", Shape::Gauge, alone(left_s));
    out.add("gnntop.heap.usage", "By", Shape::UpDown, newest("heap.last"));
    out.add("gnntop.heap.peak", "By", Shape::Gauge, newest("heap.peak"));
}

/// The program's own counters, whose names are its own.
fn add_counters(out: &mut Metrics, store: &Store) {
    let text = |name: NameId| store.name(name);
    let newest = store.counters().iter().filter_map(|counter| {
        let value = counter.series.last()?.value()?;
        Some(labelled("gnntop.name", text(counter.name), Number::Real(value)))
    });
    out.add("gnntop.value", "1", Shape::Gauge, newest);
}

/// Kinds that could not be decided have no value.
fn add_findings(out: &mut Metrics, catalogue: &Catalogue<'_>) {
    for (name, unit, statistic) in
        [("gnntop.finding.count", "{finding}", "count"), ("gnntop.finding.share", "1", "share")]
    {
        let values = FindingKind::ALL.iter().filter_map(|kind| {
            let value = catalogue.value(&format!("finding.{}.{statistic}", kind.id()))?;
            Some(labelled("gnntop.finding", kind.id(), Number::Real(value)))
        });
        out.add(name, unit, Shape::Gauge, values);
    }
}

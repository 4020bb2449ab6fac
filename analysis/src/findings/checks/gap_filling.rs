//! What fills the gap: spans of the training track that are not phases and not in one, such as `evaluate`.

use std::collections::BTreeMap;
use std::ops::Range;

use gnntop_wire::NameId;

use crate::findings::evidence::StepEvidence;
use crate::store::{LaneBox, Store};

/// Spans of one name in the gap.
pub(super) struct GapFilling {
    /// Their name.
    pub name: String,
    /// Number of spans.
    pub count: u64,
    /// Their total time, without the phases in them.
    pub total_ns: f64,
    /// Share (0 to 1) of the gap that they fill.
    pub share: f64,
}

/// What fills the gap of the steps looked at, the largest part first. Of nested spans the outermost one counts that
/// contains no step: one around a whole epoch does not explain the gap.
pub(super) fn gap_fillings(evidence: &StepEvidence<'_>) -> Vec<GapFilling> {
    let store = evidence.store;
    let Some(lane) = store.training_track().and_then(|track| track.lane()) else { return Vec::new() };
    let Some(span) = evidence.span_ns() else { return Vec::new() };
    // Older spans are not kept individually.
    let from_ns = span.start.max(lane.full_from_ns());
    let rows = evidence.rows.iter().filter(|row| row.period_start_ns() >= from_ns);
    let gap_ns: f64 = rows.map(|row| row.gap_ns() as f64).sum();
    let mut walk = LaneWalk { store, range: from_ns..span.end, around: None, by_name: BTreeMap::new() };
    lane.each_box(walk.range.clone(), |inner, depth| walk.push(inner, depth));
    walk.close();
    let filling = |(name, (count, total_ns)): (NameId, (u64, f64))| {
        let name = store.name(name).to_owned();
        GapFilling { name, count, total_ns, share: if gap_ns > 0.0 { (total_ns / gap_ns).min(1.0) } else { 0.0 } }
    };
    let mut all: Vec<GapFilling> = walk.by_name.into_iter().map(filling).collect();
    all.sort_by(|a, b| b.total_ns.total_cmp(&a.total_ns));
    all
}

/// A walk through a lane's boxes, the newest first and each before those inside it.
struct LaneWalk<'a> {
    store: &'a Store,
    range: Range<u64>,
    /// The outermost box that may contain the next ones.
    around: Option<EnclosingSpan>,
    by_name: BTreeMap<NameId, (u64, f64)>,
}

/// A box that contains others.
struct EnclosingSpan {
    depth: usize,
    start_ns: u64,
    /// Its name and how much of it is outside every phase; `None` for a phase.
    fills: Option<(NameId, f64)>,
    /// Nesting depth of the phase in it that may contain the next boxes.
    phase_depth: Option<usize>,
}

impl LaneWalk<'_> {
    fn push(&mut self, inner: &LaneBox, depth: usize) {
        let is_phase = self.store.phase_text(inner.name).is_some();
        if let Some(around) = self.around.as_mut().filter(|around| depth > around.depth) {
            around.phase_depth = around.phase_depth.filter(|phase| depth > *phase);
            if let (true, None, Some((_, left_ns))) = (is_phase, around.phase_depth, &mut around.fills) {
                *left_ns -= length(inner, &self.range);
                around.phase_depth = Some(depth);
            }
            return;
        }
        if is_phase {
            self.leave_out_crossing(inner);
        }
        self.close();
        if is_phase || !self.contains_step(inner) {
            let fills = (!is_phase).then(|| (inner.name, length(inner, &self.range)));
            self.around = Some(EnclosingSpan { depth, start_ns: inner.start_ns, fills, phase_depth: None });
        }
    }

    /// A phase and the span around it may begin at the same moment: the one that is read first then seems to begin before the other, and
    /// is not inside it.
    fn leave_out_crossing(&mut self, phase: &LaneBox) {
        let Some(around) = &mut self.around else { return };
        if let Some((_, left_ns)) = &mut around.fills {
            let common = around.start_ns.max(self.range.start)..self.range.end;
            *left_ns -= length(phase, &common);
        }
    }

    /// Counts the box: all boxes inside it have been seen.
    fn close(&mut self) {
        if let Some((name, ns)) = self.around.take().and_then(|around| around.fills) {
            let (count, total_ns) = self.by_name.entry(name).or_default();
            *count += 1;
            *total_ns += ns.max(0.0);
        }
    }

    fn contains_step(&self, outer: &LaneBox) -> bool {
        let steps = self.store.steps();
        let first = steps.row_at(outer.start_ns).map_or(steps.kept_ordinals().start, |row| row.ordinal());
        let mut rows = steps.rows(first..first.saturating_add(2));
        rows.any(|row| row.start_ns() >= outer.start_ns && row.end_ns() <= outer.end_ns)
    }
}

/// How much of a box is within a range of time.
fn length(of: &LaneBox, range: &Range<u64>) -> f64 {
    of.end_ns.min(range.end).saturating_sub(of.start_ns.max(range.start)) as f64
}

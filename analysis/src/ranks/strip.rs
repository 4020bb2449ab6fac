//! A timeline of a rank's training thread in columns: which phase takes most of each, and whether it is waiting for others.

use std::ops::Range;

use gnntop_wire::{NameId, Reported, phase};

use super::rank::Rank;

/// What takes most of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity<'a> {
    /// A phase.
    Phase(&'a str),
    /// The part of an all-reduce in which the rank waits for the others.
    Wait,
    /// A phase that is still open.
    Open(&'a str),
}

/// One column of a strip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StripColumn<'a> {
    /// What takes most of it.
    pub what: Activity<'a>,
    /// The share (0 to 1) of the column in any phase.
    pub share: f64,
}

/// Most phases kept apart in a column.
const SLOTS: usize = 4;

/// Time by phase in one column.
#[derive(Clone, Copy, Default)]
struct ColumnTimes {
    phases: [(NameId, u64); SLOTS],
    wait_ns: u64,
}

impl ColumnTimes {
    fn add(&mut self, name: NameId, ns: u64) {
        let known = self.phases.iter().position(|(known, has)| *known == name && *has > 0);
        let least = || (0..SLOTS).min_by_key(|at| self.phases[*at].1).unwrap_or(0);
        let at = known.unwrap_or_else(least);
        if known.is_some() {
            self.phases[at].1 = self.phases[at].1.saturating_add(ns);
        } else if ns > self.phases[at].1 {
            self.phases[at] = (name, ns);
        }
    }

    /// Moves the time of a phase out of the span around it.
    fn move_into(&mut self, outer: NameId, phase: NameId, ns: u64) {
        if let Some((_, has)) = self.phases.iter_mut().find(|(known, _)| *known == outer) {
            *has = has.saturating_sub(ns);
        }
        self.add(phase, ns);
    }

    /// Moves waiting time out of the phase around it.
    fn wait(&mut self, name: NameId, ns: u64) {
        if let Some(phase) = self.phases.iter_mut().find(|(known, _)| *known == name) {
            phase.1 = phase.1.saturating_sub(ns);
            self.wait_ns = self.wait_ns.saturating_add(ns);
        }
    }

    fn column<'a>(&self, column_ns: f64, rank: &Rank<'a>) -> Option<StripColumn<'a>> {
        let most = self.phases.iter().max_by_key(|(_, ns)| *ns)?;
        let all_ns = self.phases.iter().fold(self.wait_ns, |sum, (_, ns)| sum.saturating_add(*ns));
        let what = if self.wait_ns > most.1 { Activity::Wait } else { Activity::Phase(rank.store.name(most.0)) };
        (all_ns > 0).then(|| StripColumn { what, share: (all_ns as f64 / column_ns).min(1.0) })
    }
}

/// A rank's columns over a range of the run's clock; `None` for columns in which no activity is known.
pub fn strip<'a>(rank: &Rank<'a>, run_ns: &Range<u64>, columns: usize) -> Vec<Option<StripColumn<'a>>> {
    let range = rank.own_ns(run_ns.start)..rank.own_ns(run_ns.end);
    if range.is_empty() || columns == 0 {
        return vec![None; columns];
    }
    let column_ns = ((range.end - range.start) as f64 / columns as f64).max(1.0);
    let mut filled = vec![ColumnTimes::default(); columns];
    let training = rank.training();
    if let Some(lane) = training.and_then(|track| track.lane()) {
        let each =
            |time: Range<u64>, take: &mut dyn FnMut(usize, u64)| each_column(&range, column_ns, columns, time, take);
        for (start_ns, end_ns, left) in lane.older(range.clone()) {
            let busy = left.busy_ns as f64 / end_ns.saturating_sub(start_ns).max(1) as f64;
            each(start_ns..end_ns, &mut |at, ns| filled[at].add(left.longest, (ns as f64 * busy.min(1.0)) as u64));
        }
        let is_phase = |name| rank.store.phase_text(name).is_some();
        let (mut outer, mut around, mut around_depth) = (NameId::NONE, NameId::NONE, 0);
        lane.each_box(range.clone(), |inner, depth| {
            let time = inner.start_ns..inner.end_ns;
            if depth == 0 {
                (outer, around, around_depth) = (inner.name, inner.name, 0);
                each(time, &mut |at, ns| filled[at].add(outer, ns));
            } else if depth == 1 && !is_phase(outer) && is_phase(inner.name) {
                (around, around_depth) = (inner.name, 1);
                each(time, &mut |at, ns| filled[at].move_into(outer, around, ns));
            } else if depth == around_depth + 1
                && rank.store.reported(inner.name) == Some(Reported::Wait)
                && rank.store.phase_text(around) == Some(phase::ALL_REDUCE)
            {
                each(time, &mut |at, ns| filled[at].wait(around, ns));
            }
        });
    }
    let mut strip: Vec<_> = filled.iter().map(|filling| filling.column(column_ns, rank)).collect();
    let open = rank.store.open_spans().find(|(track, _)| training.is_none_or(|training| training.id == track.id));
    if let Some((_, open)) = open {
        let what = Activity::Open(rank.store.name(open.name));
        let to_now = open.since_ns..rank.store.now_ns();
        each_column(&range, column_ns, columns, to_now, &mut |at, _| {
            strip[at].get_or_insert(StripColumn { what, share: 1.0 });
        });
    }
    strip
}

/// Calls `take` with each column that a time overlaps, and the overlap.
fn each_column(range: &Range<u64>, column_ns: f64, columns: usize, time: Range<u64>, take: &mut dyn FnMut(usize, u64)) {
    let (start, end) = (time.start.max(range.start), time.end.min(range.end));
    if start >= end {
        return;
    }
    let (start, end) = ((start - range.start) as f64, (end - range.start) as f64);
    let column = |at: f64| ((at / column_ns) as usize).min(columns - 1);
    for at in column(start)..=column(end - 1.0) {
        let from = at as f64 * column_ns;
        take(at, (end.min(from + column_ns) - start.max(from)).max(0.0) as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Run;
    use super::*;
    use gnntop_fixtures::{MS, ParallelRun, SECOND, START_NS, StreamBuilder, each_item};
    use gnntop_wire::TrackRole;

    /// One step of two ranks as text, a millisecond a column: a letter a phase, `w` waiting, `?` open.
    fn drawn(run: &Run, rank: u32, range: Range<u64>) -> String {
        let columns = ((range.end - range.start) / MS) as usize;
        let ranks = run.ranks();
        let letter = |column: &Option<StripColumn<'_>>| match column.map(|column| column.what) {
            None => ' ',
            Some(Activity::Wait) => 'w',
            Some(Activity::Open(_)) => '?',
            Some(Activity::Phase(name)) => name.chars().next().unwrap(),
        };
        strip(ranks.get(rank).unwrap(), &range, columns).iter().map(letter).collect()
    }

    #[test]
    fn strip_distinguishes_waiting_and_reducing() {
        let slow = vec![(1, 0..100, "backward", 5 * MS)];
        let elsewhere = vec![(1, 7 * SECOND as i64, Some(MS))];
        let parallel = ParallelRun { slow, elsewhere, ..ParallelRun::default() };
        let mut run = Run::default();
        parallel.sessions().iter().for_each(|stream| each_item(stream, |item| run.apply(item)));
        let start = START_NS + 100 * MS;
        let range = start..start + 45 * MS;
        assert_eq!(drawn(&run, 0, range.clone()), "dddffffffffffbbbbbbbbbbbbbbbbbbbbwwwwwaaaaoo ");
        assert_eq!(drawn(&run, 1, range), "dddffffffffffbbbbbbbbbbbbbbbbbbbbbbbbbaaaaoo ");
        // Many steps in a column: shows what takes most of it.
        let whole = start..start + 2000 * MS;
        let ranks = run.ranks();
        let strip = strip(ranks.get(0).unwrap(), &whole, 4);
        assert!(strip.iter().all(|column| column.unwrap().what == Activity::Phase("backward")), "{strip:?}");
    }

    #[test]
    fn strip_shows_the_phases_in_a_span_that_is_none() {
        let mut stream = StreamBuilder::from_info(&ParallelRun::default().info(0));
        let main = stream.track(TrackRole::Training, "main");
        stream.phase(main, 1, "all-reduce", START_NS + 4 * MS, START_NS + 9 * MS);
        stream.span(main, 1, "backward and all-reduce", START_NS, START_NS + 10 * MS);
        stream.step(main, 1, START_NS, START_NS + 10 * MS);
        stream.end(START_NS + 10 * MS);
        let mut run = Run::default();
        each_item(&stream.bytes(), |item| run.apply(item));
        assert_eq!(drawn(&run, 0, START_NS..START_NS + 10 * MS), "bbbbaaaaab");
    }

    #[test]
    fn strip_shows_open_span_up_to_now() {
        let parallel = ParallelRun::default();
        let mut stream = StreamBuilder::from_info(&parallel.info(0));
        let main = stream.track(gnntop_wire::TrackRole::Training, "main");
        stream.phase(main, 1, "forward", START_NS, START_NS + 2 * MS);
        stream.open(main, 1, "all-reduce", START_NS + 2 * MS, START_NS + 6 * MS);
        let mut run = Run::default();
        each_item(&stream.bytes(), |item| run.apply(item));
        assert_eq!(drawn(&run, 0, START_NS..START_NS + 8 * MS), "ff????  ");
        assert_eq!(drawn(&run, 0, START_NS + 8 * MS..START_NS + 8 * MS), "");
    }
}

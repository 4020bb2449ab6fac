//! Watches whether a run advances. If it does not, reports which rank holds it up, in what, since when, and who waits for it.
//!
//! A run advances as long as any of its ranks ends a span or a step on its training track or on one of its loaders. When
//! none does, the open spans show which ranks wait (in an all-reduce, or for a neighbour's activations) and for which. A
//! rank that waits for others is never the cause; one that is gone, waits for data or is in the middle of its work is. How
//! long that must last depends on what is usual: k times the usual step, or k times the longest so far for work that has
//! taken long before. Evaluations, checkpoints and anything else between steps get the most patience, since their duration
//! is unknown.

use std::collections::BTreeSet;

use gnntop_wire::phase::{ALL_REDUCE, DATA_WAIT, RECEIVE, SEND};
use gnntop_wire::{Open, Reported, TrackRole};

use super::hang::{Hang, RankActivity, StuckRank};
use super::rank::{Presence, Rank, Ranks};
use crate::figures::duration;
use crate::store::{Distribution, Store};

/// A run hangs after this many usual steps without an advance...
pub(super) const USUAL_STEPS: u64 = 10;
/// ...and never before this.
pub(super) const FLOOR_NS: u64 = 3_000_000_000;
/// Patience before the duration of a step is known.
const START_FLOOR_NS: u64 = 60_000_000_000;
/// Work may take this many times its longest duration so far.
pub(super) const LONGEST_TIMES: u64 = 3;
/// Work outside of steps gets at least this much if it was seen before...
const OUTSIDE_FLOOR_NS: u64 = 60_000_000_000;
/// ...and this much the first time.
const FIRST_FLOOR_NS: u64 = 600_000_000_000;
/// Number of steps after which the usual one is known.
pub(super) const KNOWN_STEPS: u64 = 5;

/// Checks whether a run of several ranks advances; `None` if it does or has ended. A run whose recordings simply stop is
/// judged as of its last moment.
pub fn find_hang(ranks: &Ranks<'_>) -> Option<Hang> {
    if ranks.expected() <= 1 {
        return None;
    }
    let mut all: Vec<StuckRank> = ranks.all().iter().map(|rank| stuck_rank(ranks, rank)).collect();
    let here = || ranks.all().iter().filter(|rank| ranks.presence(rank) == Presence::Here);
    let living = if here().next().is_some() { here().collect::<Vec<_>>() } else { gone_ranks(ranks) };
    let for_ns = living.iter().map(|rank| idle_ns(rank.store)).min()?;
    if for_ns < FLOOR_NS {
        return None;
    }
    all.extend(missing(ranks));
    let (mut waiting, mut holding): (Vec<StuckRank>, Vec<StuckRank>) =
        all.into_iter().partition(|stuck| stuck.activity.waits());
    let someone_waits = !waiting.is_empty();
    // A rank that has left, or does something that nobody waits for, does not hold up anybody.
    if !someone_waits {
        holding.retain(|stuck| matches!(stuck.activity, RankActivity::Data(_) | RankActivity::In(_)));
    }
    if holding.is_empty() {
        (holding, waiting) = split_blocking(ranks, waiting);
    }
    let usual_step_ns = usual_step_ns(ranks);
    let patience_ns = |stuck: &StuckRank| patience_ns(ranks, stuck, usual_step_ns, someone_waits);
    // A rank that is gone for good is blamed before one that may return.
    if holding.iter().any(|stuck| stuck.activity.is_absent()) {
        let (absent, present) = holding.into_iter().partition(|stuck| stuck.activity.is_absent());
        holding = absent;
        waiting.extend(present);
    }
    let patience_ns = holding.iter().map(patience_ns).max()?;
    let machines = machines(ranks, holding.iter().chain(&waiting));
    (for_ns >= patience_ns).then_some(Hang { for_ns, usual_step_ns, blocking: holding, waiting, machines })
}

/// The machines of these ranks, each once; none unless all ranks wait for others.
fn machines<'s>(ranks: &Ranks<'_>, mut all: impl Iterator<Item = &'s StuckRank> + Clone) -> Vec<String> {
    let host = |stuck: &StuckRank| Some(ranks.get(stuck.rank)?.store.session().info()?.host.clone());
    let hosts: BTreeSet<String> = all.clone().filter_map(host).collect();
    if all.all(|stuck| stuck.activity.waits()) { hosts.into_iter().collect() } else { Vec::new() }
}

/// Splits ranks that all wait into those that hold up and those held up. A rank skipped the all-reduce in which another
/// rank of its stage waits if it is elsewhere. If none has, all hold up all.
fn split_blocking(ranks: &Ranks<'_>, all: Vec<StuckRank>) -> (Vec<StuckRank>, Vec<StuckRank>) {
    let stage = |stuck: &StuckRank| ranks.get(stuck.rank).map(|rank| rank.place.stage);
    let is_there = |stuck: &StuckRank| stuck.activity == RankActivity::Together(ALL_REDUCE.to_owned());
    let stages: Vec<Option<u32>> = all.iter().filter(|stuck| is_there(stuck)).map(stage).collect();
    let (absent, mut rest): (Vec<StuckRank>, Vec<StuckRank>) =
        all.into_iter().partition(|stuck| !is_there(stuck) && stages.contains(&stage(stuck)));
    if absent.is_empty() {
        return (rest, absent);
    }
    rest.sort_by_key(|stuck| !is_there(stuck));
    (absent, rest)
}

/// The ranks whose processes are gone, if all are: what was open then is still reported.
fn gone_ranks<'a, 'r>(ranks: &'r Ranks<'a>) -> Vec<&'r Rank<'a>> {
    ranks.all().iter().filter(|rank| ranks.presence(rank) == Presence::Gone).collect()
}

/// Time since the newest span or step of a training or loader track ended.
pub(super) fn idle_ns(store: &Store) -> u64 {
    let works = |role: TrackRole| matches!(role, TrackRole::Training | TrackRole::Loader);
    let main = store.training_track().map(|track| track.id);
    let tracks = store.tracks().iter().filter(|track| works(track.role) || Some(track.id) == main);
    let spans = tracks.filter_map(|track| track.lane()?.last_end_ns());
    let step = store.steps().last().map(|row| row.end_ns());
    let last_ns = spans.chain(step).max().or(store.first_ns()).unwrap_or(0);
    store.now_ns().saturating_sub(last_ns)
}

/// The open span of the training track.
pub(super) fn open(store: &Store) -> Option<&Open> {
    let main = store.training_track().map(|track| track.id);
    let is_main = |id, role| main.map_or(role == TrackRole::Training, |main| main == id);
    store.open_spans().find(|(track, _)| is_main(track.id, track.role)).map(|(_, open)| open)
}

fn stuck_rank(ranks: &Ranks<'_>, rank: &Rank<'_>) -> StuckRank {
    let store = rank.store;
    let next = store.steps().last().map_or(0, |row| row.step().0.saturating_add(1));
    let (open, idle_ns) = (open(store), idle_ns(store));
    let silent = |doing: RankActivity, ns: u64| (doing, idle_ns.saturating_add(ns));
    let late_ns = ranks.now_ns().saturating_sub(rank.run_ns(store.now_ns()));
    let was = || match open {
        Some(open) => (rank_activity(store, open), store.now_ns().saturating_sub(open.since_ns)),
        None => (RankActivity::Between, idle_ns),
    };
    let (doing, for_ns) = match ranks.presence(rank) {
        Presence::Ended => silent(RankActivity::Ended, late_ns),
        Presence::Gone if late_ns > FLOOR_NS / 3 => silent(RankActivity::Gone, late_ns),
        Presence::Silent(ns) => silent(RankActivity::Silent, ns),
        Presence::Gone | Presence::Here => was(),
    };
    let step = open.map(|open| open.step.0).filter(|step| *step > 0).unwrap_or(next);
    let step = if doing.is_absent() { next } else { step };
    StuckRank { rank: rank.place.rank, place: stack_place(store, for_ns), activity: doing, for_ns: Some(for_ns), step }
}

/// Where in the program a rank has been for this long.
fn stack_place(store: &Store, for_ns: u64) -> Option<String> {
    newest_stack_place(store, store.now_ns().saturating_sub(for_ns), false)
}

/// The place in the newest stack since then, of the training thread or of a loader's worker process.
fn newest_stack_place(store: &Store, since_ns: u64, is_of_loader: bool) -> Option<String> {
    let mut newest = store.stacks().iter().rev().take_while(|stack| stack.t_ns >= since_ns);
    store.stack_place(newest.find(|stack| store.is_loader_stack(stack) == is_of_loader)?)
}

/// What an open span says about what its rank is doing.
pub(super) fn rank_activity(store: &Store, open: &Open) -> RankActivity {
    let name = store.name(open.name);
    match store.reported(open.name) {
        // Of an all-reduce, only the innermost part is reported as open.
        Some(Reported::Wait | Reported::Reduce) => return RankActivity::Together(ALL_REDUCE.to_owned()),
        Some(Reported::Barrier | Reported::Broadcast) => return RankActivity::Together(name.to_owned()),
        _ => (),
    }
    match store.phase_text(open.name) {
        Some(DATA_WAIT) => RankActivity::Data(describe_loader(store).or_else(|| describe_worker(store, open.since_ns))),
        Some(RECEIVE | SEND) => RankActivity::Neighbour(name.to_owned()),
        Some(ALL_REDUCE) => RankActivity::Together(name.to_owned()),
        _ => RankActivity::In(name.to_owned()),
    }
}

/// The open span of the loader that has been in its span longest.
fn describe_loader(store: &Store) -> Option<String> {
    let loaders = store.open_spans().filter(|(track, _)| track.role == TrackRole::Loader);
    let (track, open) = loaders.min_by_key(|(_, open)| open.since_ns)?;
    let for_ns = store.now_ns().saturating_sub(open.since_ns);
    Some(format!("its loader \"{}\" has been in {} for {}", track.text, store.name(open.name), duration(for_ns)))
}

/// Where a loader's worker process is, by the newest stack since then.
fn describe_worker(store: &Store, since_ns: u64) -> Option<String> {
    Some(format!("its loader's worker was in {}", newest_stack_place(store, since_ns, true)?))
}

/// Ranks that the run should have but that have never published; the first few.
fn missing(ranks: &Ranks<'_>) -> Vec<StuckRank> {
    const MAX_ITEMS: usize = 64;
    let unheard = (0..ranks.expected()).filter(|rank| ranks.get(*rank).is_none()).take(MAX_ITEMS);
    unheard
        .map(|rank| StuckRank { rank, activity: RankActivity::Missing, for_ns: None, step: 0, place: None })
        .collect()
}

/// The usual step of the rank with the longest one; `None` if none has done enough steps.
fn usual_step_ns(ranks: &Ranks<'_>) -> Option<u64> {
    let known = ranks.all().iter().filter(|rank| rank.store.statistics().steps() >= KNOWN_STEPS);
    known.filter_map(|rank| rank.store.statistics().period().percentile(0.5)).max()
}

/// How long this may last before it counts as a hang.
fn patience_ns(ranks: &Ranks<'_>, stuck: &StuckRank, usual_step_ns: Option<u64>, someone_waits: bool) -> u64 {
    let floor_ns = usual_step_ns.map_or(START_FLOOR_NS, |ns| ns.saturating_mul(USUAL_STEPS).max(FLOOR_NS));
    let seen = ranks.get(stuck.rank).and_then(|rank| rank.store.durations(open(rank.store)?.name));
    let longest_ns = seen.and_then(Distribution::max_ns);
    match &stuck.activity {
        RankActivity::Data(_) => longest_ns.unwrap_or(0).saturating_mul(LONGEST_TIMES).max(floor_ns),
        // A span seen every few steps is part of a step.
        RankActivity::In(_) => match seen.filter(|seen| seen.count() >= KNOWN_STEPS) {
            Some(seen) => seen.max_ns().unwrap_or(0).saturating_mul(LONGEST_TIMES).max(floor_ns),
            None if someone_waits => outside_ns(longest_ns).max(floor_ns),
            None => u64::MAX,
        },
        RankActivity::Between => {
            let periods = ranks.get(stuck.rank).map(|rank| rank.store.statistics().period());
            // Pauses between steps show as periods much longer than a step.
            let pause_ns = periods.and_then(Distribution::max_ns);
            let pause_ns =
                pause_ns.filter(|ns| usual_step_ns.is_some_and(|usual| *ns > usual.saturating_mul(USUAL_STEPS)));
            outside_ns(pause_ns).max(floor_ns)
        }
        RankActivity::Missing => START_FLOOR_NS.max(floor_ns),
        RankActivity::Together(_)
        | RankActivity::Neighbour(_)
        | RankActivity::Ended
        | RankActivity::Gone
        | RankActivity::Silent => floor_ns,
    }
}

/// Patience with work outside of steps, given its longest duration so far.
pub(super) fn outside_ns(longest_ns: Option<u64>) -> u64 {
    longest_ns.map_or(FIRST_FLOOR_NS, |ns| ns.saturating_mul(LONGEST_TIMES).max(OUTSIDE_FLOOR_NS))
}

#[cfg(test)]
mod tests {
    use gnntop_wire::{TrackId, TrackRole};

    use super::*;
    use crate::ranks::Run;
    use crate::ranks::fixture::run;
    use gnntop_fixtures::uneven::{RankStepPlan, UnevenRun, rank_session};
    use gnntop_fixtures::{MS, SECOND, START_NS, StreamBuilder, each_item};

    /// What stays open on a rank's training track: name, and for how long it has been open at the end.
    type LeftPhase = fn(u32) -> Option<&'static str>;

    /// A run that stops after its last step, as its streams show `after_ns` later: the drain threads continue.
    fn stopped_run(planned: &UnevenRun, left: LeftPhase, after_ns: u64) -> Run {
        let streams = planned.builders().into_iter().zip(0..).map(|((mut stream, track, t_ns), rank)| {
            let now_ns = t_ns + after_ns;
            if let Some(name) = left(rank) {
                stream.open_span(track, planned.steps + 1, name, t_ns + MS, now_ns);
            }
            finish(stream, track, now_ns)
        });
        run(&streams.collect::<Vec<_>>())
    }

    fn finish(mut stream: StreamBuilder, _: TrackId, now_ns: u64) -> Vec<u8> {
        stream.anchor(now_ns);
        stream.bytes()
    }

    fn sentence(run: &Run) -> Option<String> {
        find_hang(&run.ranks()).map(|hang| hang.sentence())
    }

    #[test]
    fn rank_skipping_all_reduce_is_named_within_five_seconds() {
        let planned = UnevenRun::default();
        let left: LeftPhase = |rank| Some(if rank == 2 { "backward" } else { "wait" });
        assert_eq!(sentence(&stopped_run(&planned, left, 2 * SECOND)), None, "too early to say");
        let said = sentence(&stopped_run(&planned, left, 4 * SECOND)).unwrap();
        assert!(said.starts_with("no progress for 4.00 s (a step usually takes 34."), "{said}");
        assert!(
            said.contains(
                "rank 2 has been in backward for 4.00 s, at step 61; ranks 0, 1, 3 wait for it in all-reduce"
            ),
            "{said}"
        );
    }

    #[test]
    fn where_all_wait_on_several_machines_the_connection_is_suspected() {
        let planned = UnevenRun { host: |rank| if rank < 2 { "elm" } else { "oak" }, ..UnevenRun::default() };
        let said = sentence(&stopped_run(&planned, |_| Some("wait"), 4 * SECOND)).unwrap();
        let words = "they wait for each other; or the connection between their machines is gone (elm, oak)";
        assert!(said.ends_with(words), "{said}");
        let computes: LeftPhase = |rank| Some(if rank == 2 { "backward" } else { "wait" });
        let said = sentence(&stopped_run(&planned, computes, 4 * SECOND)).unwrap();
        assert!(!said.contains("connection"), "that rank has it in hand: {said}");
        let said = sentence(&stopped_run(&UnevenRun::default(), |_| Some("wait"), 4 * SECOND)).unwrap();
        assert!(said.ends_with("they wait for each other"), "all are on one machine: {said}");
    }

    #[test]
    fn all_waiting_names_rank_at_other_step() {
        let streams = UnevenRun::default().builders().into_iter().zip(0..).map(|((mut stream, track, t_ns), rank)| {
            // Rank 3 did not join the others at step 61 and now waits for them at step 62.
            let step = if rank == 3 { 62 } else { 61 };
            stream.open_span(track, step, "wait", t_ns + MS, t_ns + 4 * SECOND);
            finish(stream, track, t_ns + 4 * SECOND)
        });
        let said = sentence(&run(&streams.collect::<Vec<_>>())).unwrap();
        assert!(said.contains("rank 3 is at step 62 and the others at step 61"), "{said}");
    }

    #[test]
    fn all_waiting_names_rank_outside_all_reduce() {
        let left: LeftPhase = |rank| Some(if rank == 1 { "broadcast" } else { "wait" });
        let said = sentence(&stopped_run(&UnevenRun::default(), left, 4 * SECOND)).unwrap();
        assert!(
            said.contains(
                "rank 1 has waited in broadcast for 4.00 s, at step 61; ranks 0, 2, 3 wait for it in all-reduce"
            ),
            "{said}"
        );
        // Two copies of two stages: rank 3 skipped the all-reduce of the second stages, and the first stages wait for those.
        let stages: fn(&mut gnntop_wire::Place) = |place| {
            (place.stage, place.stages, place.copy, place.copies) = (place.rank % 2, 2, place.rank / 2, 2);
        };
        let left: LeftPhase = |rank| Some(["receive", "wait", "broadcast", "broadcast"][rank as usize]);
        let said =
            sentence(&stopped_run(&UnevenRun { place: stages, ..UnevenRun::default() }, left, 4 * SECOND)).unwrap();
        assert!(said.contains("rank 3 has waited in broadcast"), "{said}");
        let whole = "; rank 1 waits for it in all-reduce; rank 0 waits in receive; rank 2 waits in broadcast";
        assert!(said.ends_with(whole), "{said}");
    }

    #[test]
    fn blocked_loader_is_named_with_span() {
        let streams = UnevenRun::default().builders().into_iter().zip(0..).map(|((mut stream, track, t_ns), rank)| {
            let now_ns = t_ns + 4 * SECOND;
            let loader = stream.track(TrackRole::Loader, "loader 0");
            stream.span(loader, 60, "sample", t_ns - MS, t_ns);
            if rank == 1 {
                stream.open_span(loader, 62, "sample", t_ns, now_ns);
            }
            stream.open_span(track, 61, if rank == 1 { "data wait" } else { "wait" }, t_ns, now_ns);
            finish(stream, track, now_ns)
        });
        let said = sentence(&run(&streams.collect::<Vec<_>>())).unwrap();
        assert!(said.contains("rank 1 has waited for data for 4.00 s, at step 61 (its loader \"loader 0\" has been in sample for 4.00 s)"), "{said}");
        assert!(said.ends_with("ranks 0, 2, 3 wait for it in all-reduce"), "{said}");
    }

    #[test]
    fn dead_rank_is_named_after_end() {
        let streams = UnevenRun::default().builders().into_iter().zip(0..).map(|((mut stream, track, t_ns), rank)| {
            if rank == 2 {
                return finish(stream, track, t_ns);
            }
            stream.open_span(track, 61, "wait", t_ns + MS, t_ns + 4 * SECOND);
            finish(stream, track, t_ns + 4 * SECOND)
        });
        let streams: Vec<Vec<u8>> = streams.collect();
        let said = sentence(&run(&streams)).unwrap();
        assert!(
            said.contains("rank 2 has published nothing for 4.00 s, at step 61; ranks 0, 1, 3 wait for it"),
            "{said}"
        );
        let said = sentence(&run(&streams[..2])).unwrap_or_default();
        assert_eq!(said, "", "ranks that nobody has heard of may yet come");
    }

    #[test]
    fn slow_loader_is_no_hang() {
        let streams = UnevenRun::default().builders().into_iter().map(|(mut stream, track, t_ns)| {
            let now_ns = t_ns + 20 * SECOND;
            let loader = stream.track(TrackRole::Loader, "loader 0");
            stream.span(loader, 62, "sample", t_ns, now_ns - SECOND);
            stream.open_span(track, 61, "data wait", t_ns, now_ns);
            finish(stream, track, now_ns)
        });
        assert_eq!(sentence(&run(&streams.collect::<Vec<_>>())), None);
    }

    #[test]
    fn a_pause_for_evaluation_or_a_checkpoint_is_no_hang() {
        let lefts: [LeftPhase; 4] = [
            |rank| Some(if rank == 0 { "evaluation" } else { "wait" }),
            |rank| (rank > 0).then_some("wait"),
            |_| None,
            |_| Some("checkpoint"),
        ];
        for (at, left) in lefts.into_iter().enumerate() {
            assert_eq!(sentence(&stopped_run(&UnevenRun::default(), left, 50 * SECOND)), None, "{at}");
        }
        let said = sentence(&stopped_run(&UnevenRun::default(), lefts[0], 700 * SECOND)).unwrap();
        assert!(said.contains("rank 0 has been in evaluation for 11m 39s"), "it has an end, though: {said}");
        assert_eq!(sentence(&stopped_run(&UnevenRun::default(), lefts[2], 7000 * SECOND)), None, "nobody waits for it");
    }

    #[test]
    fn ended_run_is_no_hang() {
        assert_eq!(sentence(&run(&UnevenRun::default().sessions())), None);
        assert_eq!(sentence(&Run::default()), None);
    }

    /// Passes what was published since the last time to the run.
    fn feed(run: &mut Run, streams: &mut [(StreamBuilder, TrackId)]) {
        for (rank, (stream, _)) in (0..).zip(streams) {
            run.select_session(rank_session(rank));
            each_item(&stream.take_bytes(), |item| run.apply(item));
        }
    }

    #[test]
    fn noisy_hour_gives_no_false_hang() {
        let own: fn(u32, u64) -> RankStepPlan = |rank, step| match (rank, step % 200) {
            (0, 1) => RankStepPlan::with_phase("data wait", 2600 * MS),
            (1, n) if n % 7 == 0 => RankStepPlan::with_phase("backward", 400 * MS),
            (_, n) if n % 50 == 3 => RankStepPlan::with_phase("data wait", 700 * MS),
            _ => RankStepPlan::with_phase("forward", 150 * MS),
        };
        let planned = UnevenRun { ranks: 2, epoch_steps: 200, work: own, ..UnevenRun::default() };
        let mut streams: Vec<(StreamBuilder, TrackId)> = (0..2).map(|rank| planned.begin(rank)).collect();
        let (mut run, mut t_ns, mut step) = (Run::default(), START_NS, 0);
        while t_ns < START_NS + 3600 * SECOND {
            step += 1;
            t_ns = planned.step(&mut streams, step, t_ns);
            // Rank 0 evaluates every second epoch and writes a checkpoint after the others; rank 1 waits for it.
            let pause = if step.is_multiple_of(400) { Some(("evaluation", 9)) } else { None };
            let pause = pause.or(step.is_multiple_of(200).then_some(("checkpoint", 5)));
            for second in 1..=pause.map_or(0, |pause| pause.1) {
                let now_ns = t_ns + second * SECOND;
                for ((stream, track), name) in streams.iter_mut().zip([pause.map_or("", |p| p.0), "wait"]) {
                    stream.open_span(*track, step + 1, name, t_ns, now_ns);
                }
                feed(&mut run, &mut streams);
                assert_eq!(sentence(&run), None, "in {pause:?} after step {step}");
            }
            if let Some((name, seconds)) = pause {
                let (stream, track) = &mut streams[0];
                stream.span(*track, step + 1, name, t_ns, t_ns + seconds * SECOND);
                t_ns += seconds * SECOND;
            }
            if step.is_multiple_of(10) {
                feed(&mut run, &mut streams);
                assert_eq!(sentence(&run), None, "after step {step}");
            }
        }
        assert!(step > 10_000, "{step}");
    }
}

//! A run that is ended and started again is one history.

use gnntop_fixtures::{MS, ParallelRun, SECOND, StreamBuilder, each_item};
use gnntop_history::Digest;
use gnntop_wire::{Definition, Fact, Item, Place, TrackRole, put_definitions};

use super::Run;
use crate::store::{Restarts, Store};

/// Duration of a step of the fixture with a single rank, including the gap before it.
const STEP_NS: u64 = 36 * MS;

fn start(number: u32, later_s: u64) -> ParallelRun {
    ParallelRun::restarted(number, later_s)
}

fn resumed(mut stream: Vec<u8>, steps: u64) -> Vec<u8> {
    put_definitions(&mut stream, [&Definition::Fact(Fact::Resumed { steps })]);
    stream
}

fn run_of(streams: &[Vec<u8>]) -> Run {
    let mut run = Run::default();
    streams.iter().for_each(|stream| each_item(stream, |item| run.apply(item)));
    run
}

fn restarts(run: &Run) -> Restarts {
    run.store().restarts().unwrap()
}

#[test]
fn restart_continues_history_and_outage_is_no_step() {
    let run = run_of(&[start(0, 0).session(0), start(1, 60).session(0)]);
    assert_eq!((run.members().len(), run.is_parallel()), (1, false));
    let store = run.store();
    assert_eq!((store.steps().total(), store.attempts().count()), (120, 2));
    assert_eq!(store.session().info().unwrap().pid, start(1, 60).info(0).pid);
    let longest_ns = store.statistics().period().max_ns().unwrap();
    assert!(longest_ns <= STEP_NS, "{longest_ns}: no step waited for the restart");
    assert_eq!(store.phases().len(), 5, "phases of one name are one: four and the gap");
    assert_eq!(store.tracks().len(), 1);
    let found = restarts(&run);
    let outage = found.outages[0];
    assert_eq!((found.count, found.outages.len(), outage.ordinal, outage.is_over), (1, 1, 60, true));
    let [before, after] = [59, 60].map(|ordinal| store.steps().row(ordinal).unwrap());
    assert_eq!((outage.from_ns, outage.to_ns), (before.end_ns(), after.period_start_ns()));
    assert_eq!(found.lost_ns, 60 * SECOND - 60 * STEP_NS + MS);
    assert_eq!(found.repeated_steps, None, "where it resumed is not recorded");
    let marks: Vec<&str> = store.marks().iter().map(|mark| store.name(mark.name)).collect();
    assert_eq!(marks, ["restart"]);
}

#[test]
fn repeated_steps_are_counted_with_resumed_fact() {
    let again = resumed(start(1, 60).session(0), 50);
    let third = resumed(start(2, 120).session(0), 100);
    let found = restarts(&run_of(&[start(0, 0).session(0), again, third]));
    // 60 steps, then 51 to 110, then 101 and on.
    assert_eq!(found.outages.iter().map(|outage| outage.repeated_steps).collect::<Vec<_>>(), [Some(10), Some(10)]);
    assert_eq!(found.repeated_steps, Some(20));
    let idle_ns = 60 * SECOND - 60 * STEP_NS + MS;
    assert_eq!(found.outages[0].lost_ns(), idle_ns + 10 * STEP_NS - MS);
    let unsaid =
        restarts(&run_of(&[start(0, 0).session(0), start(1, 60).session(0), resumed(start(2, 120).session(0), 100)]));
    assert_eq!(unsaid.repeated_steps, None);
}

#[test]
fn start_without_steps_lengthens_outage() {
    let failed = ParallelRun { steps: 0, ..start(1, 60) };
    let found = restarts(&run_of(&[start(0, 0).session(0), failed.session(0), start(2, 120).session(0)]));
    assert_eq!((found.count, found.outages.len()), (2, 1));
    assert!(found.lost_ns > 115 * SECOND);
    let going_on = restarts(&run_of(&[start(0, 0).session(0), failed.session(0)]));
    assert_eq!((going_on.outages.len(), going_on.outages[0].is_over), (1, false));
}

#[test]
fn restart_translates_ids() {
    let info = start(1, 60).info(0);
    let mut stream = StreamBuilder::from_info(&info);
    // Another order of names and tracks than before.
    let loader = stream.track(TrackRole::Loader, "loader");
    let main = stream.track(TrackRole::Training, "main");
    let from_ns = info.start.monotonic_ns;
    stream.span(loader, 0, "read", from_ns, from_ns + MS);
    stream.phase(main, 1, "backward", from_ns, from_ns + 7 * MS);
    stream.step(main, 1, from_ns, from_ns + 7 * MS);
    let run = run_of(&[start(0, 0).session(0), stream.bytes()]);
    let store = run.store();
    assert_eq!(store.steps().total(), 61);
    assert_eq!(store.tracks().iter().map(|track| track.text.as_str()).collect::<Vec<_>>(), ["main", "loader"]);
    let backward = store.statistics().phase(store.phase("backward").unwrap().slot).unwrap();
    assert_eq!((backward.count(), backward.min_ns()), (61, Some(7 * MS)));
}

/// The stream of a session that has dropped all its segments.
fn dropped(stream: &[u8]) -> Vec<Item<'static>> {
    let mut digest = Digest::new();
    each_item(stream, |item| digest.apply(item));
    let closed = digest.take_closed();
    let definitions = Item::Definitions(digest.definitions().cloned().collect());
    let segment = Item::Segment(digest.info().unwrap().clone());
    vec![
        segment,
        definitions,
        Item::Past(digest.past_entries(Vec::new())),
        Item::Past([closed.minutes, closed.seconds].concat()),
    ]
}

#[test]
fn start_with_only_past_is_in_history() {
    let (first, second) = (start(0, 0).session(0), start(1, 60).session(0));
    let exact = run_of(&[first.clone(), second.clone()]);
    for which in 0..4 {
        let mut run = Run::default();
        for (at, stream) in [&first, &second].into_iter().enumerate() {
            if which >> at & 1 == 1 {
                dropped(stream).into_iter().for_each(|item| run.apply(item));
            } else {
                each_item(stream, |item| run.apply(item));
            }
        }
        let figures = |store: &Store| {
            let period = store.statistics().period();
            (store.steps().total(), period.count(), period.max_ns(), store.attempts().count())
        };
        assert_eq!(figures(run.store()), figures(exact.store()), "{which}");
        let apart_ns = restarts(&run).lost_ns.abs_diff(restarts(&exact).lost_ns);
        assert!(apart_ns < 2 * SECOND, "{which}: {apart_ns}");
        assert_eq!(restarts(&run).outages[0].ordinal, 60);
    }
}

#[test]
fn restart_with_earlier_clock_stays_in_order() {
    // Another boot of the machine, whose clock is an hour behind.
    let info = gnntop_wire::SessionInfo { boot_id: "later".to_owned(), ..start(1, 3600).info(0) };
    let mut stream = StreamBuilder::from_info(&info);
    let main = stream.track(TrackRole::Training, "main");
    let from_ns = info.start.monotonic_ns + MS;
    stream.step(main, 1, from_ns, from_ns + 7 * MS);
    let run = run_of(&[start(0, 7200).session(0), stream.bytes()]);
    let rows: Vec<u64> = run.store().steps().all().map(|row| row.end_ns()).collect();
    assert_eq!(rows.len(), 61);
    assert!(rows.is_sorted());
    assert!(restarts(&run).lost_ns < SECOND);
}

#[test]
fn hundred_starts_share_names() {
    let mut run = Run::default();
    for number in 0..100 {
        let short = ParallelRun { steps: 20, ..start(number, u64::from(number) * 10) };
        each_item(&short.session(0), |item| run.apply(item));
    }
    let store = run.store();
    assert_eq!((run.members().len(), store.steps().total(), store.attempts().count()), (1, 2000, 100));
    assert_eq!((store.tracks().len(), store.spans().len()), (1, 4));
    assert_eq!(restarts(&run).outages.len(), 99);
}

#[test]
fn restarted_ranks_each_continue() {
    let first = ParallelRun { ranks: 2, ..start(0, 0) };
    let again = ParallelRun { ranks: 2, ..start(1, 60) };
    let run = run_of(&[first.sessions(), again.sessions()].concat());
    assert_eq!((run.members().len(), run.ranks().all().len()), (2, 2));
    assert!(run.ranks().all().iter().all(|rank| rank.store.steps().total() == 120));
    assert!(run.notes().is_empty(), "{:?}", run.notes());
    assert_eq!(run.ranks().common_steps().next().unwrap().step.0, 60);
}

#[test]
fn overlapping_sessions_are_rivals() {
    let named = |number: u32, ms: u64| {
        let attempt = Some(Place::attempt_number(1_700_000_000_000 + ms, 0, 0));
        ParallelRun { steps: 200, attempt, ..start(number, u64::from(number)) }
    };
    let run = run_of(&[named(0, 0).session(0), named(1, 1000).session(0)]);
    assert!(run.notes()[0].starts_with("TWO RUNS SHARE THE ID"), "{:?}", run.notes());
    let once = run_of(&[named(0, 0).session(0), ParallelRun { later_ns: 60 * SECOND, ..named(1, 60_000) }.session(0)]);
    assert_eq!(once.store().steps().total(), 400);
}

#[test]
fn other_program_of_job_is_no_restart() {
    let info = gnntop_wire::SessionInfo { command: "sage --seed 2".to_owned(), ..start(1, 60).info(0) };
    let run = run_of(&[start(0, 0).session(0), StreamBuilder::from_info(&info).bytes()]);
    assert_eq!(run.store().attempts().count(), 1);
}

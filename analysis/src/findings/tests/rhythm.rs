//! Steps that are slow every hour, in the steps that are kept, and in those that only have a past.

use super::slower::{store_of_stream, with_past};
use super::*;
use gnntop_fixtures::SECOND;

/// Steps of a second: six hours.
const STEPS: u64 = 21_600;
const HOUR: u64 = 3600;

/// The stream of a run whose backward takes that much longer, and its validation that long, after some seconds.
fn stream(backward_ns: impl Fn(u64) -> u64, validation_ns: impl Fn(u64) -> u64) -> Vec<u8> {
    let mut stream = StreamBuilder::new("rhythm");
    let main = stream.track(TrackRole::Training, "main");
    let mut t_ns = START_NS;
    for step in 1..=STEPS {
        let start_ns = t_ns;
        let seconds = (start_ns - START_NS) / SECOND;
        let backward_ns = 600 * MS + backward_ns(seconds);
        let phases = [("forward", 400 * MS), ("backward", backward_ns), ("validation", validation_ns(seconds))];
        for (at, (text, ns)) in phases.into_iter().enumerate().filter(|(_, (_, ns))| *ns > 0) {
            let ns = noisy(ns, step * 31 + at as u64);
            stream.phase(main, step, text, t_ns, t_ns + ns);
            t_ns += ns;
        }
        stream.step(main, step, start_ns, t_ns);
        if step.is_multiple_of(50) {
            stream.flush();
        }
    }
    stream.bytes()
}

fn rhythm_of(store: &Store) -> Option<Finding> {
    all_findings(store).found.into_iter().find(|finding| finding.kind == FindingKind::SlowRhythm)
}

#[track_caller]
fn assert_no_finding(backward_ns: impl Fn(u64) -> u64, validation_ns: impl Fn(u64) -> u64) {
    let bytes = stream(backward_ns, validation_ns);
    for store in [store_of_stream(&bytes), with_past(&bytes, 0.9)] {
        assert_eq!(rhythm_of(&store), None);
    }
}

/// An unpredictable number.
fn chance(of: u64) -> u64 {
    (of + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(31).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 32
}

#[test]
fn hourly_slow_steps_report_period() {
    let is_on = |seconds: u64| seconds % HOUR < 150 && (HOUR..6 * HOUR - 60).contains(&seconds);
    let backup = |seconds: u64| if is_on(seconds) { 500 * MS } else { 0 };
    let bytes = stream(backup, |_| 0);
    for store in [store_of_stream(&bytes), with_past(&bytes, 0.5), with_past(&bytes, 0.95)] {
        let found = rhythm_of(&store).unwrap();
        let times = ["first at 2026-01-02 04:04:0", "last at 2026-01-02 08:04:0", "about 2026-01-02 09:04:0"];
        assert_contains(&found, FindingKind::SlowRhythm, &times);
        assert_facts(&found, FindingKind::SlowRhythm, &[(Number::EveryTime, 3600e9), (Number::Times, 5.0)]);
        assert_states_of(&found, "backward", &[(Number::Usual, 1.1e9), (Number::Otherwise, 0.6e9)]);
        assert_eq!(found.places.len(), 5);
        let apart_ns = found.places[4].start_ns - found.places[0].start_ns;
        assert!(apart_ns.abs_diff(4 * HOUR * SECOND) < 60 * SECOND, "{apart_ns}");
    }
}

#[test]
fn rhythm_tolerates_late_and_missed_periods() {
    let late = |seconds: u64| chance(seconds / 1200) % 20;
    let is_on = |seconds: u64| seconds % 1200 >= late(seconds) && seconds % 1200 < 60 + late(seconds);
    let upload = |seconds: u64| if is_on(seconds) && seconds / 1200 != 7 { 400 * MS } else { 0 };
    let found = rhythm_of(&with_past(&stream(upload, |_| 0), 0.6)).unwrap();
    assert_facts(&found, FindingKind::SlowRhythm, &[(Number::EveryTime, 1200e9), (Number::Times, 18.0)]);
}

#[test]
fn irregular_slow_steps_are_no_rhythm() {
    assert_no_finding(|_| 0, |_| 0);
    assert_no_finding(|seconds| chance(seconds) % 300 * MS, |_| 0);
    assert_no_finding(|seconds| if (2 * HOUR..3 * HOUR).contains(&seconds) { 500 * MS } else { 0 }, |_| 0);
    assert_no_finding(|seconds| if chance(seconds / 60).is_multiple_of(12) { 500 * MS } else { 0 }, |_| 0);
    assert_no_finding(|seconds| if seconds > 3 * HOUR { 500 * MS } else { 0 }, |_| 0);
    assert_no_finding(|seconds| if seconds < 600 { 900 * MS } else { 0 }, |_| 0);
}

#[test]
fn validation_and_single_slow_steps_are_no_rhythm() {
    assert_no_finding(|_| 0, |seconds| if seconds % 1200 < 60 { 500 * MS } else { 0 });
    assert_no_finding(|seconds| if seconds.is_multiple_of(600) { 8000 * MS } else { 0 }, |_| 0);
}

//! Steps that a deep trace has slowed down: they are shown, and are in no figure.

use gnntop_wire::TrackRole;

use crate::store::*;
use gnntop_fixtures::{MS, START_NS, StreamBuilder, each_item};

/// Steps of 10 ms, of which those with these numbers are traced and take 50 ms.
fn run(steps: u64, traced: &[u64]) -> Vec<u8> {
    let mut stream = StreamBuilder::new("test");
    let main = stream.track(TrackRole::Training, "main");
    let mut begin_ns = START_NS;
    for number in 1..=steps {
        let end_ns = begin_ns + if traced.contains(&number) { 50 * MS } else { 10 * MS };
        stream.phase(main, number, "forward", begin_ns + MS, end_ns - MS);
        match traced.contains(&number) {
            true => stream.traced_step(main, number, begin_ns, end_ns),
            false => stream.step(main, number, begin_ns, end_ns),
        }
        begin_ns = end_ns;
        if number % 7 == 0 {
            stream.flush();
        }
    }
    stream.anchor(begin_ns);
    stream.bytes()
}

fn store(bytes: &[u8]) -> Store {
    let mut store = Store::new();
    each_item(bytes, |item| store.apply(item));
    store
}

#[test]
fn traced_steps_are_rows_but_in_no_percentile() {
    let store = store(&run(100, &[50, 51, 52]));
    assert_eq!((store.steps().total(), store.statistics().steps()), (100, 97));
    let traced: Vec<u64> = store.steps().all().filter(StepRow::is_traced).map(|row| row.step().0).collect();
    assert_eq!(traced, [50, 51, 52]);
    assert_eq!(store.percentile("period", 1.0), Some(10 * MS));
    assert_eq!(store.percentile("forward", 1.0), Some(8 * MS));
    assert_eq!(store.percentile("gap", 1.0), Some(2 * MS));
}

#[test]
fn mark_named_deep_trace_does_not_trace_step() {
    let bytes = run(100, &[50]);
    let mut other = StreamBuilder::new("test");
    let main = other.track(TrackRole::Training, "main");
    other.mark(main, "deep trace", START_NS + 1);
    other.step(main, 1, START_NS, START_NS + 50 * MS);
    assert_eq!(store(&other.bytes()).percentile("period", 1.0), Some(50 * MS));
    assert_eq!(store(&bytes).percentile("period", 1.0), Some(10 * MS));
}

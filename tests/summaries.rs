//! Reports on a recording that is long by its events: from its summaries, and of every event.

use std::fs::File;

use crate::sessions::Sessions;
use gnntop_analysis::recorder::{RecorderOptions, RunRecorder};
use gnntop_analysis::stream::Sink;
use gnntop_fixtures::{MS, START_NS, each_item, session_info};
use gnntop_wire::{
    BlockEncoder, Definition, End, Event, NameId, NameKind, Span, Step, StepId, TrackId, TrackRole, put_definitions,
    put_end, put_segment,
};
use serde_json::Value;

/// With so many spans and its own record each, they are more than ten million events.
const STEPS: u64 = 110_000;
const SPANS_A_STEP: u64 = 99;
const STEP_NS: u64 = 20 * MS;

/// A phase of nearly the whole step around spans of one name, which end one after the other.
fn put_step(block: &mut BlockEncoder, out: &mut Vec<u8>, step: u64) {
    let start_ns = START_NS + step * STEP_NS;
    let mut put = |event: Event| {
        if !block.push(&event) {
            block.finish(0, out);
            assert!(block.push(&event));
        }
    };
    let span = |name: u32, from: u64, to: u64| {
        let (start_ns, end_ns) = (start_ns + from, start_ns + to);
        Event::Span(Span { name: NameId(name), start_ns, end_ns, step: StepId(step) })
    };
    for inner in 0..SPANS_A_STEP - 1 {
        put(span(2, inner * MS / 10, inner * MS / 10 + MS / 20));
    }
    put(span(1, 0, STEP_NS - MS));
    put(Event::Step(Step { step: StepId(step), start_ns, end_ns: start_ns + STEP_NS, ..Step::default() }));
}

/// Records all steps, some hundred at a time.
fn record(file: &File) {
    let mut recorder = RunRecorder::new(file, RecorderOptions::default());
    let mut out = Vec::new();
    put_segment(&mut out, &session_info("long"));
    let role = TrackRole::Training;
    put_definitions(
        &mut out,
        &[
            Definition::Track { id: TrackId(1), role, thread_id: 1, text: "main".to_owned() },
            Definition::Name { id: NameId(1), kind: NameKind::Phase, text: "forward".to_owned() },
            Definition::Name { id: NameId(2), kind: NameKind::Span, text: "layer".to_owned() },
        ],
    );
    let mut block = BlockEncoder::new(TrackId(1));
    for step in 1..=STEPS {
        put_step(&mut block, &mut out, step);
        if step % 500 == 0 {
            block.finish(0, &mut out);
            each_item(&std::mem::take(&mut out), |item| recorder.apply(item));
        }
    }
    put_end(&mut out, &End { t_ns: START_NS + (STEPS + 1) * STEP_NS, reason: String::new() });
    each_item(&out, |item| recorder.apply(item));
    recorder.flush().unwrap();
}

#[test]
fn report_from_summaries_equals_report_from_events() {
    let sessions = Sessions::new();
    let path = sessions.path().join("long.gnntop");
    record(&File::create(&path).unwrap());
    assert!(path.metadata().unwrap().len() < 96 << 20, "long by its events alone");
    let report = |options: &[&str]| {
        let ran = sessions.run([&["report", "long.gnntop", "--json"], options].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        (serde_json::from_str::<Value>(&ran.out).unwrap(), ran.err)
    };
    let ((summed, said), (exact, nothing)) = (report(&[]), report(&["--exact"]));
    let from_summaries = summed["steps"]["from_summaries"].as_u64().unwrap();
    assert!(from_summaries > STEPS / 2 && from_summaries < STEPS, "{from_summaries}");
    let steps = gnntop_analysis::figures::count(from_summaries);
    let expected = format!("its first {steps} steps are taken from its summaries; --exact reads every event");
    assert!(said.contains(&expected), "{said}");
    assert!(!nothing.contains("summaries"), "{nothing}");
    assert_eq!(exact["steps"]["from_summaries"], 0);
    assert_eq!(exact["steps"]["total"], STEPS);
    for counted in ["total", "reported", "tiled_ns", "epochs"] {
        assert_eq!(summed["steps"][counted], exact["steps"][counted], "{counted}");
    }
    for table in ["phases", "spans"] {
        assert_eq!(counts(&summed[table]), counts(&exact[table]), "{table}");
        assert!(!counts(&exact[table]).is_empty(), "{table} of {exact:#}");
    }
}

#[test]
fn parts_of_a_long_recording_compare_as_with_every_event() {
    let sessions = Sessions::new();
    record(&File::create(sessions.path().join("long.gnntop")).unwrap());
    let compared = |options: &[&str]| {
        let arguments = ["compare", "long.gnntop", "--json", "--from", "step 60000", "--until", "step 80000"];
        let ran = sessions.run([&arguments, options].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let mut compared: Value = serde_json::from_str(&ran.out).unwrap();
        let summed = compared["steps_from_summaries"].take();
        let steps = [0, 1].map(|side: usize| compared["sides"][side]["steps"].take().as_i64().unwrap());
        (compared, summed, steps)
    };
    for baseline in [&[][..], &["--baseline-from", "step 1000", "--baseline-until", "step 30000"]] {
        let (found, summed, steps) = compared(baseline);
        let (exact, none, all) = compared(&[baseline, &["--exact"]].concat());
        assert_eq!(found, exact, "{baseline:?}");
        // At the ends of a part that only summaries cover, seconds or minutes are whole.
        let differ = steps.iter().zip(all).map(|(steps, all)| (steps - all).abs()).max();
        assert!(differ < Some(60 * 1_000_000_000 / STEP_NS as i64), "{steps:?} {all:?}");
        let summed = [&summed[0][0], &summed[1][0]].map(|steps| steps.as_u64().unwrap());
        assert!(summed[0] > 10_000 && summed[1] > 4000, "{summed:?}");
        assert_eq!(none, serde_json::json!([[0], [0]]));
    }
}

#[test]
fn a_bounded_recording_counts_what_every_event_does() {
    let sessions = Sessions::new();
    record(&File::create(sessions.path().join("long.gnntop")).unwrap());
    let ran = sessions.run(["record", "long.gnntop", "-o", "small.gnntop", "--keep", "16MiB"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(sessions.path().join("small.gnntop").metadata().unwrap().len() <= 16 << 20);
    let report = |name: &str| {
        let ran = sessions.run(["report", name, "--json", "--exact"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        serde_json::from_str::<Value>(&ran.out).unwrap()
    };
    let (small, all) = (report("small.gnntop"), report("long.gnntop"));
    assert_eq!(small["steps"]["total"], STEPS);
    for table in ["phases", "spans"] {
        assert_eq!(counts(&small[table]), counts(&all[table]), "{table}");
    }
    for (out, keep, why) in [("b.gnntop", "1M", "give 16.0 MiB or more"), ("-", "1G", "--keep and --slow cannot write")]
    {
        let ran = sessions.run(["record", "long.gnntop", "-o", out, "--keep", keep]);
        assert!(ran.code == Some(2) && ran.err.contains(why), "{ran:?}");
    }
}

/// Names with how often they came and their share of the time.
fn counts(table: &Value) -> Vec<[Value; 3]> {
    let rows = table.as_array().map_or(&[][..], Vec::as_slice);
    rows.iter().map(|row| ["name", "count", "share"].map(|key| row[key].clone())).collect()
}

//! `gnntop demo`: what it shows has the fault that it names, and the screen says where to look.

use std::path::Path;

use serde_json::Value;

use crate::sessions::Sessions;
use crate::terminal::Terminal;

#[test]
fn the_first_finding_of_each_demo_is_its_fault() {
    let sessions = Sessions::new();
    let demos = Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings/demo");
    for (fault, kind) in [
        ("loader", "data-bound"),
        ("gc", "stall"),
        ("leak", "memory-growth"),
        ("straggler", "straggler"),
        ("hang", "hang"),
    ] {
        let recording = demos.join(fault).with_extension("gnntop");
        let report = sessions.run(["report".as_ref(), recording.as_os_str(), "--json".as_ref()]);
        let report: Value = serde_json::from_str(&report.out).unwrap();
        assert_eq!(report["findings"]["found"][0]["kind"], kind, "{fault}: {}", report["findings"]["found"]);
        assert_eq!(report["session"]["host"], "workstation", "the name of no machine");
    }
}

#[test]
fn demo_shows_the_training_and_where_to_look() {
    let mut screen = Terminal::gnntop(&["demo", "straggler"], &[]);
    screen.wait_for("compares the ranks");
    screen.wait_for("train.py");
    screen.press("q");
    assert!(screen.wait_for_end().success());
}

#[test]
fn an_unknown_fault_lists_those_that_there_are() {
    let refused = Sessions::new().run(["demo", "loder"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("a similar value exists: 'loader'"), "{refused:?}");
}

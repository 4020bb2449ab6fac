//! Eleven prepared runs, each with one cause: whoever has read nothing but the README sees it in the first view of a terminal of 80
//! columns and 24 rows, without a key.

use std::path::Path;

use crate::terminal::Terminal;

/// A recording, and what the line below its name says.
const RUNS: [(&str, &str); 11] = [
    ("demo/loader", "data-bound ("),
    ("demo/gc", "gc-bound ("),
    ("demo/straggler", "straggler: rank 1 ("),
    ("demo/hang", "in wait_for_save (train.py:37)"),
    ("labelled/drift", "getting slower ("),
    ("labelled/gap", "gap 18 %"),
    ("labelled/gpu-throttled", "GPU throttled"),
    ("labelled/leak", "memory grows "),
    ("demo/leak", "memory grows "),
    ("labelled/ranks-starved", "rank 1 starves ("),
    ("labelled/spike", "4 spikes ("),
];

#[test]
fn the_first_view_of_each_prepared_run_names_its_cause() {
    let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings");
    for (recording, words) in RUNS {
        let path = recordings.join(recording).with_extension("gnntop");
        let mut terminal = Terminal::gnntop(&["replay", path.to_str().unwrap(), "--speed", "100"], &[]);
        terminal.wait_for("end of the recording");
        terminal.wait_until(&format!("{words:?} for {recording}"), |screen| {
            screen.contents().lines().nth(1).is_some_and(|verdict| verdict.contains(words))
        });
        terminal.press("q");
        assert!(terminal.wait_for_end().success());
    }
}

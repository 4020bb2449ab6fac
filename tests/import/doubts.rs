//! Tables that contradict themselves: each kind has a table of its own, made here, and is told with its line and what to do.

use std::fmt::Write as _;
use std::fs;

use super::store_of;
use crate::sessions::{Ran, Sessions};
use gnntop_analysis::store::Store;

/// A table of its own, and what became of it.
struct ImportedTable {
    sessions: Sessions,
    ran: Ran,
}

impl ImportedTable {
    fn import(text: &str, arguments: &[&str]) -> Self {
        let sessions = Sessions::new();
        sessions.file("t.csv", text.as_bytes());
        Self::beside(sessions, arguments)
    }

    fn beside(sessions: Sessions, arguments: &[&str]) -> Self {
        let ran = sessions.run([&["import", "csv", "t.csv", "-o", "t.gnntop"], arguments].concat());
        Self { sessions, ran }
    }

    #[track_caller]
    fn assert_warns(&self, words: &[&str]) -> Store {
        assert_eq!(self.ran.code, Some(0), "{:?}", self.ran);
        let warning = self.ran.err.lines().find(|line| line.starts_with("warning: ")).unwrap_or_default();
        for words in words {
            assert!(warning.contains(words), "no {words:?} in {}", self.ran.err);
        }
        self.store()
    }

    #[track_caller]
    fn assert_no_warnings(&self) -> Store {
        assert_eq!(self.ran.code, Some(0), "{:?}", self.ran);
        assert!(!self.ran.err.contains("warning"), "{}", self.ran.err);
        self.store()
    }

    #[track_caller]
    fn assert_refused(&self, words: &[&str]) {
        words.iter().for_each(|words| self.ran.assert_refused(words));
        assert!(!self.sessions.path().join("t.gnntop").exists(), "nothing is left behind");
    }

    fn store(&self) -> Store {
        store_of(&fs::read(self.sessions.path().join("t.gnntop")).unwrap())
    }
}

/// A table of 40 steps of 30 ms, 50 ms apart, whose rows are written by `row` from the step's number, its end in
/// seconds since 1970, and its duration in milliseconds.
fn steps(head: &str, row: impl Fn(u64, f64, f64) -> String) -> String {
    let mut text = format!("{head}\n");
    for step in 1..=40 {
        let end_s = 1_770_000_000.0 + step as f64 * 0.05;
        writeln!(text, "{}", row(step, end_s, 30.0)).unwrap();
    }
    text
}

fn numbers(store: &Store) -> Vec<u64> {
    store.steps().all().map(|row| row.step().0).collect()
}

#[test]
fn consistent_table_has_no_warnings() {
    let text = steps("step,timestamp_s,data_wait_ms,step_ms,forward_ms,backward_ms", |step, end_s, ms| {
        format!("{step},{end_s:.3},10,{ms},12.5,17.5")
    });
    let store = ImportedTable::import(&text, &[]).assert_no_warnings();
    assert_eq!(numbers(&store), (1..=40).collect::<Vec<u64>>());
}

#[test]
fn durations_in_another_unit_than_their_name_says_are_refused() {
    let text = steps("step,timestamp_s,step_s", |step, end_s, ms| format!("{step},{end_s:.3},{ms}"));
    ImportedTable::import(&text, &[]).assert_refused(&[
        "units contradict each other",
        "from line 3",
        "--column duration=step_s:ms",
        "--ignore timestamp_s",
    ]);
    ImportedTable::import(&text, &["--column", "duration=step_s:ms"]).assert_no_warnings();
    ImportedTable::import(&text, &["--ignore", "timestamp_s"]).assert_no_warnings();
    let text = steps("step,timestamp_s,step_ms", |step, end_s, ms| format!("{step},{end_s:.3},{}", ms * 1e3));
    ImportedTable::import(&text, &[]).assert_refused(&["--column duration=step_ms:us"]);
    let text = steps("step,timestamp_s,step_ms", |step, end_s, ms| format!("{step},{end_s:.3},{}", ms / 1e3));
    ImportedTable::import(&text, &[]).assert_warns(&["step_ms adds up to", "--column duration=step_ms:s"]);
}

#[test]
fn overlapping_steps_are_reported() {
    let text = steps("step,timestamp_s,step_ms", |step, end_s, ms| {
        format!("{step},{end_s:.3},{}", if step % 10 == 0 { 90.0 } else { ms })
    });
    ImportedTable::import(&text, &[])
        .assert_warns(&["line 11 and 3 more", "longer than the time since the row before"]);
}

#[test]
fn phases_longer_than_step_are_reported_or_refused() {
    let text = steps("step,step_ms,forward_ms,backward_ms", |step, _, ms| {
        format!("{step},{ms},12,{}", if step == 7 { 25.0 } else { 18.0 })
    });
    ImportedTable::import(&text, &[]).assert_warns(&["line 8:", "37.0 ms", "30.0 ms", "cut off"]);
    let text = steps("step,step_ms,forward_ms", |step, _, ms| format!("{step},{ms},12000"));
    ImportedTable::import(&text, &[]).assert_refused(&["line 2 and 39 more", "Check the units", "before:NAME"]);
}

#[test]
fn unordered_rows_are_sorted_and_keep_their_numbers() {
    let shuffled = |text: String| {
        let mut rows: Vec<&str> = text.lines().collect();
        rows[5..30].reverse();
        rows.join("\n") + "\n"
    };
    let text = shuffled(steps("step,timestamp_s,step_ms", |step, end_s, ms| format!("{step},{end_s:.3},{ms}")));
    let store =
        ImportedTable::import(&text, &[]).assert_warns(&["line 7 is the first that is out of order", "time stamps"]);
    assert_eq!(numbers(&store), (1..=40).collect::<Vec<u64>>());
    let text = shuffled(steps("step,step_ms", |step, _, ms| format!("{},{}", step * 10, ms + step as f64)));
    let store = ImportedTable::import(&text, &[]).assert_warns(&["line 7", "their steps' numbers"]);
    assert_eq!(numbers(&store), (1..=40).map(|step| step * 10).collect::<Vec<u64>>());
    let last = store.steps().last().unwrap();
    assert_eq!((last.end_ns() - last.start_ns()) / 1_000_000, 70, "each step has kept its own row");
    let text = shuffled(steps("epoch,step,step_ms", |step, _, ms| format!("{},{},{ms}", step / 10, step % 10)));
    let store = ImportedTable::import(&text, &[]).assert_warns(&["out of order"]);
    let epochs: Vec<u64> = store.steps().all().map(|row| row.epoch()).collect();
    assert!(epochs.is_sorted() && epochs.len() == 40, "{epochs:?}");
}

#[test]
fn decreasing_stamps_are_refused_with_line() {
    let set_back = steps("timestamp_s,step_ms", |step, end_s, ms| {
        format!("{:.3},{ms}", if step > 20 { end_s - 3600.0 } else { end_s })
    });
    ImportedTable::import(&set_back, &[])
        .assert_refused(&["line 22: timestamp_s goes back by", "--ignore timestamp_s"]);
    assert_eq!(ImportedTable::import(&set_back, &["--ignore", "timestamp_s"]).assert_no_warnings().steps().total(), 40);
    let two_runs = steps("step,timestamp_s,step_ms", |step, end_s, ms| {
        let (step, end_s) = if step > 20 { (step - 20, end_s - 3600.0) } else { (step, end_s) };
        format!("{step},{end_s:.3},{ms}")
    });
    ImportedTable::import(&two_runs, &[]).assert_refused(&["line 22", "steps start over at 1", "--only COLUMN=VALUE"]);
}

#[test]
fn two_runs_in_one_table_are_refused_or_reported() {
    let named = steps("run_num,step,step_ms", |step, _, ms| format!("{},{},{ms}", step / 21, step % 21));
    ImportedTable::import(&named, &[]).assert_refused(&["line 22: run_num is \"1\"", "--only run_num=0"]);
    ImportedTable::import(&named, &["--only", "run_num=0"]).assert_no_warnings();
    let ranks = steps("rank,step,step_ms", |step, _, ms| format!("{},{},{ms}", step % 2, step / 2));
    ImportedTable::import(&ranks, &[]).assert_refused(&["line 3: rank is \"0\"", "--only rank=1"]);
    let epochs = steps("epoch,step,step_ms", |step, _, ms| format!("{},{},{ms}", step % 20 / 5, step % 5));
    ImportedTable::import(&epochs, &[]).assert_refused(&["epochs go back from 3 to 0"]);
    let paused = steps("step,timestamp_s,step_ms", |step, end_s, ms| {
        let (step, end_s) = if step > 20 { (step - 20, end_s + 7200.0) } else { (step, end_s) };
        format!("{step},{end_s:.3},{ms}")
    });
    ImportedTable::import(&paused, &[])
        .assert_warns(&["line 22: steps start over after a pause of 2h 00m", "two runs"]);
}

#[test]
fn marks_are_placed_by_step_number() {
    for first in [0, 1] {
        let sessions = Sessions::new();
        let text = steps("step,timestamp_s,step_ms", |step, end_s, ms| {
            let (number, late) = (step - 1 + first, step >= 10);
            format!("{number},{:.3},{}", end_s + if late { 0.2 } else { 0.0 }, if step == 10 { ms + 200.0 } else { ms })
        });
        sessions.file("t.csv", text.as_bytes());
        sessions.file("gc.csv", format!("step_idx,duration_ms\n{},200\n", 9 + first).as_bytes());
        let table = ImportedTable::beside(sessions, &["--marks", "gc=gc.csv"]);
        let store = table.assert_no_warnings();
        let mark = store.marks().iter().next().unwrap();
        let slow = store.steps().row(9).unwrap();
        assert!((slow.start_ns()..=slow.end_ns()).contains(&mark.t_ns), "counted from {first}");
        assert_eq!((slow.step().0, table.ran.err.contains("counted from 0")), (10, first == 0));
    }
}

#[test]
fn mark_after_a_step_of_usual_length_is_between_steps() {
    let sessions = Sessions::new();
    let text = steps("step,timestamp_s,step_ms", |step, end_s, ms| {
        format!("{step},{:.3},{ms}", end_s + if step > 10 { 0.2 } else { 0.0 })
    });
    sessions.file("t.csv", text.as_bytes());
    sessions.file("gc.csv", b"step,duration_ms\n10,200\n");
    let store = ImportedTable::beside(sessions, &["--marks", "gc=gc.csv"]).assert_no_warnings();
    assert_eq!(store.marks_by_text()[0].1.describe_place(), "all between steps");
}

#[test]
fn marks_without_place_are_reported() {
    let with = |marks: &str, text: &str| {
        let sessions = Sessions::new();
        sessions.file("t.csv", text.as_bytes());
        sessions.file("gc.csv", marks.as_bytes());
        ImportedTable::beside(sessions, &["--marks", "gc=gc.csv"])
    };
    let timed = steps("step,timestamp_s,step_ms", |step, end_s, ms| format!("{step},{end_s:.3},{ms}"));
    let store = with("step,duration_ms\n5,1\n900,1\n901,1\n", &timed)
        .assert_warns(&["gc.csv, line 3 (step 900): 2 marks were left out", "no such step"]);
    assert_eq!(store.marks().iter().len(), 1);
    with("timestamp_s\n1770000001\n1880000000\n", &timed)
        .assert_warns(&["gc.csv, line 3: 1 mark was left out", "far outside the run"]);
    let plain = steps("step,step_ms", |step, _, ms| format!("{step},{ms}"));
    with("timestamp_s\n1770000001\n", &plain).assert_warns(&["line 2", "no time stamps"]);
}

#[test]
fn duplicate_role_is_reported_or_refused() {
    let text = steps("step,step_ms,batch_ms", |step, _, ms| format!("{step},{ms},{}", ms + 5.0));
    let store = ImportedTable::import(&text, &[])
        .assert_warns(&["step_ms and batch_ms can both be duration", "--column duration=batch_ms"]);
    assert_eq!(store.steps().last().map(|row| row.end_ns() - row.start_ns()), Some(30_000_000));
    let store = ImportedTable::import(&text, &["--column", "duration=batch_ms"]).assert_no_warnings();
    assert_eq!(store.steps().last().map(|row| row.end_ns() - row.start_ns()), Some(35_000_000));
    let twice = ["--column", "duration=batch_ms", "--column", "duration=step_ms"];
    ImportedTable::import(&text, &twice).assert_refused(&["a role has one column"]);
    let text = steps("step_ms,step_ms", |_, _, ms| format!("{ms},{ms}"));
    ImportedTable::import(&text, &[]).assert_warns(&["two columns are called step_ms"]);
}

#[test]
fn unread_signal_names_are_reported() {
    let text = steps("step_ms,util,joules", |step, _, ms| format!("{ms},{},{}", 50 + step % 3, 2 + step % 2));
    ImportedTable::import(&text, &["--column", "signal:gpu.util=util:%"])
        .assert_warns(&["gpu.util", "did you mean gpu.0.util?"]);
    ImportedTable::import(&text, &["--column", "signal:gpu.0.energy=joules:J"]).assert_warns(&["is read as a total"]);
    let fine = ["--column", "signal:gpu.0.util=util:%", "--column", "total:gpu.0.energy=joules:J"];
    ImportedTable::import(&text, &fine).assert_no_warnings();
}

#[test]
fn cumulative_and_per_step_columns_are_distinguished() {
    let text = steps("step_ms,joules", |step, _, ms| format!("{ms},{}", 1000 + step * 3));
    ImportedTable::import(&text, &["--column", "total:gpu.0.energy=joules:J"])
        .assert_warns(&["joules rises in all of 40 rows", "--column cumulative:gpu.0.energy=joules:J"]);
    let store = ImportedTable::import(&text, &["--column", "cumulative:gpu.0.energy=joules:J"]).assert_no_warnings();
    let points = |store: &Store| {
        let signal = store.signals().find(gnntop_wire::Quantity::GpuEnergy).unwrap();
        signal.series.points().map(|point| point.value().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!((points(&store)[0], points(&store).len()), (1_003_000, 40));
    let text = steps("step_ms,joules", |step, _, ms| format!("{ms},{}", 3 + step % 2));
    ImportedTable::import(&text, &["--column", "cumulative:gpu.0.energy=joules:J"])
        .assert_warns(&["line 3 and 19 more", "total:gpu.0.energy"]);
    let store = ImportedTable::import(&text, &["--column", "total:gpu.0.energy=joules:J"]).assert_no_warnings();
    let points = points(&store);
    assert_eq!((points[0], *points.last().unwrap()), (0, 140_000), "the first step's part is not lost");
}

#[test]
fn place_of_data_wait_is_reported_with_warning() {
    let beside = steps("step,timestamp_s,data_wait_ms,step_ms", |step, end_s, ms| format!("{step},{end_s:.3},15,{ms}"));
    let table = ImportedTable::import(&beside, &[]);
    table.assert_no_warnings();
    assert!(table.ran.err.contains("data_wait_ms comes just before its step, not inside it"), "{}", table.ran.err);
    let inside = steps("step,timestamp_s,data_wait_ms,step_ms", |step, end_s, _| format!("{step},{end_s:.3},15,45"));
    let table = ImportedTable::import(&inside, &[]);
    assert!(
        table.ran.err.contains("data_wait_ms is inside its step: the time stamps leave no room"),
        "{}",
        table.ran.err
    );
    for store in [table, ImportedTable::import(&inside, &["--column", "phase:data wait=data_wait_ms:ms"])] {
        let store = store.assert_no_warnings();
        let wait = store.phase("data wait").unwrap().slot;
        assert_eq!(store.steps().row(5).unwrap().phase_ns(wait), 15_000_000);
    }
    let given = ImportedTable::import(&inside, &["--column", "before:data wait=data_wait_ms:ms"]);
    given.assert_warns(&[
        "step_ms and data_wait_ms add up to",
        "seems to be inside step_ms",
        "\"phase:data wait=data_wait_ms:ms\"",
    ]);
}

#[test]
fn rest_of_a_step_of_which_only_waits_are_known_is_a_phase() {
    let beside = steps("step,timestamp_s,data_wait_ms,step_ms", |step, end_s, ms| format!("{step},{end_s:.3},15,{ms}"));
    let inside = steps("step,timestamp_s,data_wait_ms,step_ms", |step, end_s, _| format!("{step},{end_s:.3},15,45"));
    let beside = ImportedTable::import(&beside, &[]).assert_no_warnings();
    let inside = ImportedTable::import(&inside, &["--column", "phase:data wait=data_wait_ms:ms"]).assert_no_warnings();
    for store in [beside, inside] {
        let (row, compute) = (store.steps().row(5).unwrap(), store.phase("compute").unwrap().slot);
        let is_near = |ns: u64, expected: u64| ns.abs_diff(expected) < 1000;
        assert!(is_near(row.phase_ns(compute), 30_000_000) && is_near(row.gap_ns(), 5_000_000), "{}", row.gap_ns());
    }
}

#[test]
fn readings_of_a_table_are_not_called_aliased() {
    let mut text = String::from("step,timestamp_s,step_ms,util\n");
    for step in 1..=200 {
        writeln!(text, "{step},{:.3},30,{}", 1_770_000_000.0 + f64::from(step) * 0.05, 50 + step % 3).unwrap();
    }
    let table = ImportedTable::import(&text, &["--column", "signal:gpu.0.util=util:%"]);
    table.assert_no_warnings();
    let report = table.sessions.run(["report", "t.gnntop", "--json"]);
    assert!(report.code == Some(0) && !report.out.contains("sensors are read mostly"), "{report:?}");
    assert!(report.out.contains("they are means or last values, not samples"), "{report:?}");
}

#[test]
fn cumulative_times_are_differenced_or_refused() {
    let wait = |store: &Store| {
        let slot = store.phase("data wait").unwrap().slot;
        // What lies before the first step is not in its period.
        store.steps().all().skip(1).map(|row| row.phase_ns(slot) / 1_000_000).collect::<Vec<u64>>()
    };
    let table = |name: &str| {
        steps(&format!("step,timestamp_s,step_ms,{name}"), |step, end_s, ms| {
            format!("{step},{end_s:.3},{ms},{}", step * 12)
        })
    };
    let named = ImportedTable::import(&table("data_wait_total_ms"), &[]);
    assert!(named.ran.err.contains("data_wait_total_ms is cumulative, because it never falls"), "{:?}", named.ran);
    assert_eq!(wait(&named.assert_no_warnings()), [12; 39]);
    let given = ["--column", "cumulative:before:data wait=w_ms"];
    assert_eq!(wait(&ImportedTable::import(&table("w_ms"), &given).assert_no_warnings()), [12; 39]);
    // By its name it is of each step, and it cannot be.
    let said = ["data_wait_ms rises in each of 40 rows", "line 41", "cumulative:before:data wait=data_wait_ms:ms"];
    ImportedTable::import(&table("data_wait_ms"), &[]).assert_refused(&said);
    let forward = ["forward_ms rises in each of 40 rows", "cumulative:phase:forward=forward_ms:ms"];
    ImportedTable::import(&table("forward_ms"), &[]).assert_refused(&forward);
    let falling = steps("step,timestamp_s,step_ms,forward_total_ms", |step, end_s, ms| {
        format!("{step},{end_s:.3},{ms},{}", 20 + step % 3)
    });
    let left_out = ImportedTable::import(&falling, &[]);
    assert!(left_out.ran.err.contains("forward_total_ms, which falls in line 4"), "{:?}", left_out.ran);
    assert!(left_out.store().phase("forward").is_none());
    let given = ["--column", "cumulative:phase:forward=forward_total_ms"];
    ImportedTable::import(&falling, &given).assert_refused(&["line 4 and", "forward_total_ms falls"]);
}

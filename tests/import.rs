//! `gnntop import`: tables and traces into recordings.

mod chrome;
mod doubts;
mod forms;
mod histories;
mod published;
mod short;

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use crate::sessions::Sessions;
use gnntop::import::{self, CsvOptions, ImportError, Imported, Mapping, MarkFile};
use gnntop_analysis::source::Recording;
use gnntop_analysis::store::Store;

fn imported(path: &Path, columns: &[&str], marks: &[MarkFile]) -> Result<(Imported, Store), ImportError> {
    let mappings: Vec<Mapping> = columns.iter().map(|text| Mapping::parse(text).unwrap()).collect();
    let given = CsvOptions { columns: mappings, marks: marks.to_vec(), ..CsvOptions::default() };
    let mut bytes = Vec::new();
    let done = import::csv(path, &given, &mut bytes)?;
    Ok((done, store_of(&bytes)))
}

fn store_of(bytes: &[u8]) -> Store {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("imported.gnntop");
    fs::write(&file, bytes).unwrap();
    let mut store = Store::new();
    let mut recording = Recording::open(&file).unwrap();
    recording.read_all(&mut store);
    assert!(store.losses().is_complete(), "{:?}", store.losses());
    store
}

#[test]
fn matching_rows_become_steps_with_given_facts() {
    let sessions = Sessions::new();
    let file = sessions.file("t.csv", b"step_ms,phase\n10,0\n99,1\n20,0\n");
    let place = ["--rank", "3/4", "--stage", "1/2", "--run", "r1", "--fact", "micro-batches=5"];
    let mut words = vec!["import", "csv", file.to_str().unwrap(), "-o", "t.gnntop", "--only", "phase=0"];
    words.extend(place);
    assert_eq!(sessions.run(words).code, Some(0));
    let store = store_of(&fs::read(sessions.path().join("t.gnntop")).unwrap());
    assert_eq!(store.steps().total(), 2);
    let place = store.session().info().unwrap().place.clone().unwrap();
    assert_eq!((place.run.as_str(), place.rank, place.ranks), ("r1", 3, 4));
    assert_eq!((place.stage, place.stages, place.copy, place.copies), (1, 2, 1, 2));
    let mark = store.marks().iter().next().unwrap();
    assert_eq!((store.name(mark.name), mark.value), ("micro-batches", Some(5.0)));
    for wrong in [["--rank", "4/4"], ["--fact", "a=b"], ["--only", "phase"]] {
        let mut words = vec!["import", "csv", "t.csv", "-o", "u.gnntop"];
        words.extend(wrong);
        assert_eq!(sessions.run(words).code, Some(2), "{wrong:?}");
    }
    let none = sessions.run(["import", "csv", "t.csv", "-o", "u.gnntop", "--only", "phase=7"]);
    none.assert_refused("no rows match --only");
}

#[test]
fn a_table_becomes_the_recording_it_describes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.csv");
    let rows = "epoch,step,end_s,wait_ms,step_ms,fwd,loss,num_edges,gpu\n\
                0,0,100.050,10,40,15,1.5,7000,50\n0,1,100.100,5,40,15,,7100,\n1,2,100.150,0,45,15,nan,,70\n";
    fs::write(&path, rows).unwrap();
    let columns = ["phase:forward=fwd:ms", "signal:gpu.0.util=gpu:%"];
    let (done, store) = imported(&path, &columns, &[]).unwrap();
    assert_eq!(done.steps, 3);
    let row = |n| store.steps().row(n).unwrap();
    let slot = |name| store.phase(name).unwrap().slot;
    assert_eq!([row(0).step().0, row(2).step().0, row(2).epoch()], [1, 3, 1]);
    assert_eq!([row(1).period_ns(), row(1).gap_ns()].map(|ns| ns / 1_000_000), [50, 30]);
    assert_eq!([slot("data wait"), slot("forward")].map(|slot| row(1).phase_ns(slot) / 1_000_000), [5, 15]);
    assert_eq!((row(0).batch().edges, row(2).batch().edges, row(1).loss()), (Some(7000), None, None));
    assert!(row(2).loss().unwrap().is_nan());
    let util = store.signals().find(gnntop_wire::Quantity::GpuUtil).unwrap();
    assert_eq!(util.series.points().map(|point| point.value().unwrap()).collect::<Vec<_>>(), [50_000, 70_000]);
    assert_eq!(store.session().info().unwrap().name, "run");
}

#[test]
fn invalid_table_is_refused_with_line() {
    let sessions = Sessions::new();
    let refused = |text: &str, arguments: &[&str], words: &str| {
        let file = sessions.file("t.csv", text.as_bytes());
        let mut all = vec!["import", "csv", file.to_str().unwrap(), "-o", "t.gnntop"];
        all.extend(arguments);
        sessions.run(all).assert_refused(words);
        assert!(!sessions.path().join("t.gnntop").exists(), "nothing is left behind");
    };
    refused("", &[], "is empty");
    refused("a\n1\n", &[], "no column has a step's duration");
    refused("step_ms\n", &[], "no rows below the header");
    refused("step_ms\n5\nfast\n", &[], "line 3: step_ms is \"fast\", which is not a time");
    refused("step_ms\n-5\n", &[], "line 2: step_ms is \"-5\"");
    refused("step_ms\ninf\n", &[], "which is not a time");
    refused("step_ms,a\n1\n2,3\n", &[], "line 2 has 1 cell, but the header names 2 columns");
    refused("step_ms\n1\n", &["--column", "loss=l"], "has no column \"l\"; it has step_ms");
    refused("step_ms\n1\n", &["--marks", "gc=nowhere.csv"], "cannot read nowhere.csv");
    let ran = sessions.run(["import", "csv", "t.csv", "-o", "t.gnntop", "--column", "banana=l"]);
    assert_eq!(ran.code, Some(2));
    let endless = format!("step_ms\n{}\n", "9".repeat(400));
    refused(&endless, &[], "which is not a time");
}

/// A disk that is full.
struct Full;

impl Write for Full {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn write_error_is_reported_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.csv");
    fs::write(&path, "step_ms\n5\n").unwrap();
    let error = import::csv(&path, &CsvOptions::default(), Full).unwrap_err();
    let said = format!("{:#}", anyhow::Error::new(error));
    assert_eq!(said, "cannot write the recording: no storage space");
}

#[test]
fn a_trace_of_torch_becomes_steps_phases_and_spans() {
    let annotation = |name: &str, ts: f64, dur: f64| {
        format!(
            r#"{{"ph":"X","cat":"user_annotation","name":"{name}","pid":7,"tid":7,"ts":{ts},"dur":{dur},"args":{{"External id":5}}}}"#
        )
    };
    let mut events = vec![
        r#"{"ph":"M","name":"thread_name","pid":7,"tid":7,"args":{"name":"thread 7 (python)"}}"#.to_owned(),
        r#"{"ph":"M","name":"process_labels","pid":7,"tid":0,"args":{"labels":"CPU"}}"#.to_owned(),
        r#"{"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":7,"tid":7,"ts":1,"args":{"Bytes":4}}"#
            .to_owned(),
        r#"{"ph":"X","cat":"python_function","name":"train.py(1)","pid":7,"tid":7,"ts":1,"dur":9}"#.to_owned(),
    ];
    for step in 0..4u32 {
        let ts = 1_000_000.0 + f64::from(step) * 1000.0;
        events.push(annotation(&format!("ProfilerStep#{step}"), ts, 990.5));
        events.push(annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", ts, 100.0));
        events.push(annotation("## forward ##", ts + 100.0, 300.0));
        events.push(format!(
            r#"{{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":7,"tid":7,"ts":{},"dur":50}}"#,
            ts + 120.0
        ));
        events.push(annotation("my backward", ts + 400.0, 400.0));
        events.push(annotation("Optimizer.step#Adam.step", ts + 800.0, 100.0));
        events.push(format!(
            r#"{{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":"stream 7","ts":{},"dur":"40"}}"#,
            ts + 200.0
        ));
    }
    let text = format!(
        r#"{{"schemaVersion":1,"deviceProperties":[{{"id":0}}],"traceEvents":[{}],"traceName":"a.json"}}"#,
        events.join(",")
    );
    let sessions = Sessions::new();
    let file = sessions.file("trace.json", text.as_bytes());
    let ran =
        sessions.run(["import", "chrome", file.to_str().unwrap(), "-o", "t.gnntop", "--phase", "backward=my backward"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let store = store_of(&fs::read(sessions.path().join("t.gnntop")).unwrap());
    assert_eq!(store.steps().total(), 4);
    let row = store.steps().row(2).unwrap();
    let us = |name: &str| row.phase_ns(store.phase(name).unwrap().slot) / 1000;
    assert_eq!(["data wait", "forward", "backward", "optimizer", "gap"].map(us), [100, 300, 400, 100, 100]);
    assert_eq!(store.training_track().unwrap().text, "thread 7 (python)");
    let count =
        |name: &str| store.spans().iter().find(|span| store.name(span.name) == name).map(|span| span.durations.count());
    assert_eq!((count("aten::mm"), count("gemm"), count("train.py(1)")), (Some(4), Some(4), None));
}

#[test]
fn invalid_trace_is_refused() {
    let sessions = Sessions::new();
    for (text, words) in [
        ("", "is not a trace"),
        ("42", "is not a trace"),
        ("{\"traceEvents\":[]}", "no complete event"),
        ("{\"traceEvents\":[{\"ph\":\"X\",\"ts\":1,\"dur\":-1}]}", "no complete event"),
        ("[{\"ph\":\"X\",\"ts\":1,\"dur\":1}", "is not a trace"),
    ] {
        let file = sessions.file("t.json", text.as_bytes());
        sessions.run(["import", "chrome", file.to_str().unwrap(), "-o", "t.gnntop"]).assert_refused(words);
    }
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let file = sessions.file("t.json", deep.as_bytes());
    sessions.run(["import", "chrome", file.to_str().unwrap(), "-o", "t.gnntop"]).assert_refused("is not a trace");
}

//! Tables in the forms in which they come: packed, in UTF-16, with other separators, decimal commas, comments and dates,
//! a row a phase; and what is no table at all.

use std::fs;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::store_of;
use crate::sessions::{Ran, Sessions};
use gnntop_analysis::store::Store;

/// Three steps of 30, 31 and 32 ms, which end 50 ms apart.
const TABLE: &str = "step,timestamp_s,step_ms\n1,1770000000.05,30\n2,1770000000.10,31\n3,1770000000.15,32\n";

fn import(bytes: &[u8], arguments: &[&str]) -> (Ran, Option<Store>) {
    let sessions = Sessions::new();
    sessions.file("t.csv", bytes);
    let ran = sessions.run([&["import", "csv", "t.csv", "-o", "t.gnntop"], arguments].concat());
    let store = fs::read(sessions.path().join("t.gnntop")).ok().map(|bytes| store_of(&bytes));
    (ran, store)
}

/// Imports it, and checks that it is [`TABLE`] whatever its form.
#[track_caller]
fn assert_same_table(bytes: &[u8], arguments: &[&str]) -> Ran {
    let (ran, store) = import(bytes, arguments);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.err.contains("warning"), "{ran:?}");
    let store = store.unwrap();
    let steps: Vec<(u64, u64)> =
        store.steps().all().map(|row| (row.step().0, (row.end_ns() - row.start_ns() + 1000) / 1_000_000)).collect();
    assert_eq!(steps, [(1, 30), (2, 31), (3, 32)]);
    let period_ns = store.steps().last().unwrap().period_ns();
    assert!(period_ns.abs_diff(50_000_000) < 1000, "{period_ns}");
    ran
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn utf_16(text: &str) -> Vec<u8> {
    format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect()
}

#[test]
fn table_in_every_form_gives_the_same_recording() {
    assert_same_table(TABLE.as_bytes(), &[]);
    assert!(assert_same_table(&packed(TABLE.as_bytes()), &[]).err.contains("compressed with gzip"));
    assert!(assert_same_table(&utf_16(TABLE), &[]).err.contains("in UTF-16"));
    assert!(assert_same_table(&packed(&utf_16(TABLE)), &[]).err.contains("in UTF-16, compressed with gzip"));
    assert_same_table(TABLE.replace('\n', "\r\n").as_bytes(), &[]);
    assert_same_table(format!("\u{feff}{}", TABLE.trim_end()).as_bytes(), &[]);
    for (separator, name) in [(";", "semicolons"), ("\t", "tabs"), ("|", "bars"), (" ", "spaces")] {
        let ran = assert_same_table(TABLE.replace(',', separator).as_bytes(), &[]);
        assert!(ran.err.contains(&format!("separated by {name}")), "{ran:?}");
    }
    assert_same_table(TABLE.replace(',', "~").as_bytes(), &["--separator", "~"]);
    let commas = TABLE.replace(',', ";").replace('.', ",");
    assert!(assert_same_table(commas.as_bytes(), &[]).err.contains("numbers have decimal commas"));
    let quoted: String = TABLE.lines().map(|line| format!("\"{}\"\n", line.replace(',', "\",\""))).collect();
    assert_same_table(quoted.as_bytes(), &[]);
    assert_same_table(TABLE.replace('\n', ",\n").as_bytes(), &[]);
}

#[test]
fn comments_are_left_out_and_may_hold_the_head() {
    let ran =
        assert_same_table(format!("# a run\n\n{}# the end\n", TABLE.replace("\n2", "\n# half\n2")).as_bytes(), &[]);
    assert!(ran.err.contains("3 lines of comment"), "{ran:?}");
    assert_same_table(format!("# {TABLE}").replace(',', " ").as_bytes(), &[]);
}

#[test]
fn time_stamps_are_parsed_in_common_forms() {
    let with = |head: &str, times: [&str; 3]| {
        format!("step,{head},step_ms\n1,{},30\n2,{},31\n3,{},32\n", times[0], times[1], times[2])
    };
    let zoned =
        with("time", ["2026-02-03T04:05:06.050+01:00", "2026-02-03T04:05:06.100+01:00", "2026-02-03T03:05:06.150Z"]);
    let ran = assert_same_table(zoned.as_bytes(), &[]);
    assert!(ran.err.contains("time is the time of day") && !ran.err.contains("UTC"), "{ran:?}");
    let plain = with("timestamp", ["2026-02-03 03:05:06.05", "2026-02-03 03:05:06.10", "2026-02-03 03:05:06.15"]);
    assert!(assert_same_table(plain.as_bytes(), &[]).err.contains("timestamp is in UTC"));
    let millis = with("timestamp", ["1770000000050", "1770000000100", "1770000000150"]);
    assert!(assert_same_table(millis.as_bytes(), &[]).err.contains("timestamp counts ms since 1970"));
    let elapsed = with("elapsed_s", ["0.05", "0.10", "0.15"]);
    assert!(assert_same_table(elapsed.as_bytes(), &[]).err.contains("arbitrary start"));
    let started = with("start_time", ["1770000000.020", "1770000000.069", "1770000000.118"]);
    assert_same_table(started.as_bytes(), &[]);
    let coarse = with("time", ["2026-02-03 03:05:06", "2026-02-03 03:05:06", "2026-02-03 03:05:06"]);
    let (ran, store) = import(coarse.as_bytes(), &[]);
    assert!(ran.code == Some(0) && ran.err.contains("only whole seconds"), "{ran:?}");
    assert_eq!(store.unwrap().steps().last().unwrap().period_ns(), 32_000_000);
}

#[test]
fn a_row_may_be_a_phase() {
    let text = "step,phase,timestamp_s,duration_ms,joules\n\
                1,forward,100.010,10,1\n1,backward,100.030,20,2\n\
                2,forward,100.060,10,1\n2,backward,100.080,15,2\n2,forward,100.085,5,1\n";
    let (ran, store) = import(text.as_bytes(), &["--column", "total:gpu.0.energy=joules:J"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("a row is a phase of a step: forward, backward"), "{ran:?}");
    let store = store.unwrap();
    let ms = |name: &str| {
        let slot = store.phase(name).unwrap().slot;
        store.steps().all().map(|row| (row.phase_ns(slot) + 1000) / 1_000_000).collect::<Vec<u64>>()
    };
    assert_eq!((ms("forward"), ms("backward")), (vec![10, 15], vec![20, 15]));
    assert_eq!((store.steps().last().unwrap().period_ns() + 1000) / 1_000_000, 55);
    let energy = store.signals().find(gnntop_wire::Quantity::GpuEnergy).unwrap();
    let points: Vec<i64> = energy.series.points().map(|point| point.value().unwrap()).collect();
    assert_eq!(points, [0, 3_000, 7_000]);
    let named = text.replace("phase", "what").replace("duration_ms", "took");
    let columns = ["--column", "phase=what", "--column", "duration=took:ms"];
    assert_eq!(import(named.as_bytes(), &columns).1.unwrap().steps().total(), 2);
}

#[test]
fn batch_size_option_is_used() {
    let (ran, store) = import(TABLE.as_bytes(), &["--batch-size", "512"]);
    assert!(ran.err.contains("each step has 512 graphs"), "{ran:?}");
    assert_eq!(store.unwrap().steps().last().unwrap().batch().graphs, Some(512));
    let with = TABLE.replace("step_ms", "step_ms,num_graphs");
    assert_eq!(import(with.as_bytes(), &["--batch-size", "0"]).0.code, Some(2));
}

#[test]
fn import_prints_used_skipped_and_guessed_columns() {
    let text = "step,timestamp_s,step_ms,note\n1,1770000000.05,30,a\n2,1770000000.10,31,b\n";
    let (ran, _) = import(text.as_bytes(), &[]);
    let lines: Vec<&str> = ran.err.lines().collect();
    assert_eq!(lines[0], "used: step as step; timestamp_s as end in s; step_ms as duration in ms");
    assert!(lines[1].starts_with("left out: the columns note ("), "{lines:?}");
    assert!(lines[2].starts_with("guessed: the meaning and units of step, timestamp_s, step_ms, from"), "{lines:?}");
    assert_eq!(lines[3], "t.gnntop: 2 steps, 2 events");
}

#[test]
fn invalid_file_is_refused_in_one_line() {
    let refused = |bytes: &[u8], words: &str| {
        let (ran, store) = import(bytes, &[]);
        ran.assert_refused(words);
        assert!(store.is_none());
    };
    refused(b"", "is empty");
    refused(b"\n\n# nothing\n", "is empty");
    refused(b"step_ms\n", "no rows below the header");
    refused(b"1,2\n3,4\n", "it must name the columns");
    refused(b"PK\x03\x04rest", "is a spreadsheet or a zip archive");
    refused(b"PAR1rest", "is a Parquet file");
    refused(b"\x28\xb5\x2f\xfdrest", "is compressed with zstd");
    refused(&packed(TABLE.as_bytes())[..40], "cannot read t.csv");
    refused(b"step_ms\n1\n\xff\xfe\xfa\n", "line 3 is not UTF-8 text");
    refused(b"step_ms\n1\n2\0\n", "line 3 holds binary data");
    refused(&[7; 2 << 20], "line 1 is longer than 1 MiB");
    refused(b"step_ms,a\n1,2\n\"3,4\n5,6\n", "line 3 has a quotation mark that is not closed");
    refused(b"step_ms,a\n1,2\n3\n5,6\n", "line 3 has 1 cell, but the header names 2 columns");
    refused(b"step_ms,a\n1,2\n3,4,5\n", "line 3 has 3 cells, but the header names 2 columns");
    refused(b"step_ms\n1\nnan\n", "line 3: step_ms is \"nan\", which is not a time");
    refused(b"step_ms\n1e308\n", "line 2: step_ms is \"1e308\"");
    refused(b"step_ms\n-1\n", "line 2: step_ms is \"-1\"");
    refused(b"step_ms,end_s\n1,soon\n", "line 2: end_s is \"soon\", which is not a time stamp");
    refused(b"step_ms,nodes\n1,1e300\n", "line 2: nodes is \"1e300\", which is not a count");
    let noise: Vec<u8> = (0..200_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    assert_eq!(import(&noise, &[]).0.code, Some(1));
    let endless = Sessions::new().run(["import", "csv", "/dev/zero", "-o", "t.gnntop"]);
    endless.assert_refused("cannot read /dev/zero: it is a device, not a file");
}

#[test]
fn cut_last_line_is_skipped_and_reported() {
    let (ran, store) = import(&TABLE.as_bytes()[..TABLE.len() - 4], &[]);
    assert!(ran.err.contains("warning: line 4, the last, is cut: it is left out"), "{ran:?}");
    assert_eq!(store.unwrap().steps().total(), 2);
}

#[test]
fn a_table_of_a_single_line_is_refused_in_a_line() {
    for table in [&b"step,step_ms"[..], b"step,step_ms\n", b","] {
        let (ran, store) = import(table, &[]);
        assert!(store.is_none());
        assert_eq!((ran.code, ran.err.lines().count()), (Some(1), 1), "{ran:?}");
    }
}

#[test]
fn text_that_is_no_table_is_named_for_what_it_is() {
    for (text, words) in [
        ("{\"traceEvents\": []}", "is a trace in Chrome's format: gnntop import chrome"),
        ("{\"step\": 1}\n{\"step\": 2}\n", "has a JSON object in each line"),
        ("timestamp, name, utilization.gpu [%], power.draw [W]\n1, A, 3, 4\n", "has readings of nvidia-smi"),
        ("2026-02-03 04:05:06,7 INFO step 12 took 40 ms\n", "is a log, not a table"),
        ("#[Histogram log format version 1.3]\n", "is an HdrHistogram log"),
        ("step,step_time\n1,40\n2,41\n", "step_time may be one: --column duration=step_time:s"),
        ("epoch,acc\n1,40\n2,41\n", "the columns are epoch, acc"),
    ] {
        let (ran, store) = import(text.as_bytes(), &[]);
        ran.assert_refused(words);
        assert!(store.is_none());
    }
}

/// The steps' numbers and durations in milliseconds.
fn numbers_and_ms(store: &Store) -> Vec<(u64, u64)> {
    store.steps().all().map(|row| (row.step().0, (row.end_ns() - row.start_ns() + 1000) / 1_000_000)).collect()
}

#[test]
fn time_since_the_start_gives_durations_and_rows_without_time_are_left_out() {
    let (ran, store) = import(b"step,elapsed_s,loss\n1,0.5,3\n2,0.7,2\n2,,1.5\n3,1.2,1\n", &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(numbers_and_ms(&store.unwrap()), [(1, 500), (2, 200), (3, 500)], "{ran:?}");
    assert!(ran.err.contains("1 row without a duration"), "{ran:?}");
    let lightning = "epoch,step,train/loss,val_loss,train/step_time_s\n0,9,2.5,,0.1\n0,9,,2.0,\n0,19,1.5,,0.2\n";
    let (ran, store) = import(lightning.as_bytes(), &[]);
    let store = store.unwrap_or_else(|| panic!("{ran:?}"));
    assert_eq!(numbers_and_ms(&store), [(9, 100), (19, 200)]);
    assert_eq!(store.steps().last().unwrap().loss(), Some(1.5));
}

#[test]
fn logs_of_mlperf_and_transformers_are_read() {
    let event =
        |key: &str, ms: u64| format!(":::MLLOG {{\"time_ms\": {ms}, \"key\": \"{key}\", \"metadata\": {{}}}}\n");
    let log: String = (0..3).map(|n| event("epoch_start", n * 5000) + &event("epoch_stop", n * 5000 + 4000)).collect();
    let (ran, store) = import(format!("starting\n{log}").as_bytes(), &[]);
    let store = store.unwrap_or_else(|| panic!("{ran:?}"));
    assert_eq!(numbers_and_ms(&store), [(1, 4000), (2, 4000), (3, 4000)]);
    assert_eq!(store.steps().last().unwrap().period_ns(), 5_000_000_000);
    let state = "{\"global_step\": 20, \"log_history\": [{\"epoch\": 0.5, \"loss\": 2.5, \"step\": 10},
        {\"epoch\": 1.0, \"loss\": 1.5, \"step\": 20}, {\"step\": 20, \"train_runtime\": 4.0}]}";
    let (ran, store) = import(state.as_bytes(), &[]);
    let store = store.unwrap_or_else(|| panic!("{ran:?}"));
    assert_eq!(numbers_and_ms(&store), [(10, 2000), (20, 2000)]);
    assert!(ran.err.contains("the mean time of a step"), "{ran:?}");
}

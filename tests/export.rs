//! `gnntop export`: every form is read back and compared with the recording.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod fixtures;
mod sessions;

use std::collections::HashMap;
use std::fs;

use fixtures::{MS, START_NS, StreamBuilder, TrainingRun};
use serde_json::Value;
use sessions::Sessions;

/// 100 steps of four phases with a span inside one, a loader with a span and a counter, and five signals.
fn recorded() -> Sessions {
    let sessions = Sessions::new();
    sessions.file("a.gnntop", &TrainingRun::default().bytes());
    sessions
}

fn exported(sessions: &Sessions, arguments: &[&str]) -> Vec<u8> {
    let ran = sessions.run([&["export", "a.gnntop", "--to"], arguments].concat());
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    ran.out_bytes
}

#[test]
fn chrome_json_has_every_span_step_mark_and_counter() {
    let json: Value = serde_json::from_slice(&exported(&recorded(), &["chrome"])).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let count =
        |ph: &str, cat: &str| events.iter().filter(|e| e["ph"] == ph && (cat.is_empty() || e["cat"] == cat)).count();
    assert_eq!([count("X", "phase"), count("X", "span"), count("X", "step"), count("i", "")], [400, 200, 100, 4]);
    let forward = events.iter().find(|event| event["name"] == "forward").unwrap();
    assert_eq!((forward["dur"].as_f64(), forward["args"]["step"].as_u64()), (Some(10_000.0), Some(1)));
    assert!(events.iter().any(|event| event["ph"] == "M" && event["args"]["name"] == "loader 0"));
    assert!(events.iter().any(|event| event["name"] == "process.rss [B]" && event["args"]["value"].is_i64()));
}

#[test]
fn a_chrome_export_can_be_imported_by_its_annotations() {
    let sessions = recorded();
    assert_eq!(sessions.run(["export", "a.gnntop", "--to", "chrome", "-o", "a.json"]).code, Some(0));
    let ran = sessions.run(["import", "chrome", "a.json", "-o", "b.gnntop"]);
    assert!(ran.code == Some(0) && ran.err.contains("call profiler.step()"), "{ran:?}");
}

#[test]
fn csv_and_ndjson_say_the_same() {
    let sessions = recorded();
    let csv = exported(&sessions, &["csv"]);
    let rows: Vec<csv::StringRecord> =
        csv::Reader::from_reader(csv.as_slice()).records().collect::<Result<_, _>>().unwrap();
    let text = String::from_utf8(exported(&sessions, &["ndjson"])).unwrap();
    let objects: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), objects.len());
    for (row, object) in rows.iter().zip(&objects) {
        assert_eq!((&row[0], &row[1]), (object["kind"].as_str().unwrap(), object["track"].as_str().unwrap()));
        assert_eq!(row[4].parse::<u64>().ok(), object["start_ns"].as_u64());
    }
    let step = objects.iter().find(|object| object["kind"] == "step").unwrap();
    assert_eq!(
        (step["edges"].as_u64(), step["value"].as_f64(), step["seeds"].is_null()),
        (Some(7680), Some(1.0), true)
    );
}

#[test]
fn a_window_of_steps_holds_these_steps_alone() {
    let sessions = recorded();
    let text = String::from_utf8(exported(&sessions, &["ndjson", "--steps", "10..13"])).unwrap();
    let objects = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let steps: Vec<u64> = objects.filter(|o| o["kind"] == "step").map(|o| o["step"].as_u64().unwrap()).collect();
    assert_eq!(steps, [10, 11, 12]);
    let late = String::from_utf8(exported(&sessions, &["csv", "--from", "4s"])).unwrap();
    assert!((2..40).contains(&late.lines().count()), "{late}");
    sessions.run(["export", "a.gnntop", "--to", "csv", "--steps", "900..901"]).refused("no step 900..901 is held");
}

/// The fields of a protobuf message: number, and a varint, fixed 64 bits, or bytes.
fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, &[u8])> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let (value, len) = match key & 7 {
            0 => (varint(&mut bytes), 0),
            1 => (u64::from_le_bytes(bytes[..8].try_into().unwrap()), 8),
            2 => (0, varint(&mut bytes) as usize),
            other => panic!("wire type {other}"),
        };
        all.push((key >> 3, value, &bytes[..len]));
        bytes = &bytes[len..];
    }
    all
}

/// Replays the slices of a Perfetto trace track by track as its trace processor does: by time, a slice ends the last
/// one begun. Gives each slice as name and duration.
fn slices(trace: &[u8]) -> Vec<(String, u64)> {
    let mut by_track: HashMap<u64, Vec<(u64, u64, String)>> = HashMap::new();
    for (_, _, packet) in fields(trace) {
        let packet = fields(packet);
        let t_ns = packet.iter().find(|field| field.0 == 8).map(|field| field.1);
        let Some(event) = packet.iter().find(|field| field.0 == 11) else { continue };
        let event = fields(event.2);
        let number = |n: u64| event.iter().find(|field| field.0 == n).map(|field| field.1).unwrap();
        let name = event.iter().find(|field| field.0 == 23).map(|field| String::from_utf8(field.2.to_vec()).unwrap());
        by_track.entry(number(11)).or_default().push((t_ns.unwrap(), number(9), name.unwrap_or_default()));
    }
    let mut done = Vec::new();
    for events in by_track.values_mut() {
        events.sort_by_key(|event| event.0);
        let mut open = Vec::new();
        for (t_ns, kind, name) in events.drain(..) {
            match kind {
                1 => open.push((name, t_ns)),
                2 => {
                    let (name, start_ns) = open.pop().unwrap();
                    done.push((name, t_ns - start_ns));
                }
                _ => (),
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }
    done
}

#[test]
fn perfetto_slices_nest_as_they_did() {
    let sessions = recorded();
    let slices = slices(&exported(&sessions, &["perfetto"]));
    let of = |name: &str| slices.iter().filter(|slice| slice.0 == name).map(|slice| slice.1).collect::<Vec<u64>>();
    assert_eq!([of("forward").len(), of("layer 0").len(), of("collate").len(), of("step 7").len()], [100, 100, 100, 1]);
    // A step, its first phase and what lies in that begin at the same instant.
    assert!(of("step 7")[0] == 39 * MS && of("forward")[0] == 10 * MS && of("layer 0")[0] == 5 * MS);
}

#[test]
fn names_of_others_do_not_break_a_form() {
    let sessions = Sessions::new();
    let mut stream = StreamBuilder::new("x");
    let main = stream.track(gnntop_wire::TrackRole::Training, "a\"b,c");
    stream.span(main, 1, "=cmd|\"</script>\\", START_NS, START_NS + MS);
    stream.span(main, 1, "nothing", START_NS, START_NS);
    stream.counter(main, "wild", START_NS, f64::NAN);
    sessions.file("a.gnntop", &stream.bytes());
    let json: Value = serde_json::from_slice(&exported(&sessions, &["chrome"])).unwrap();
    assert_eq!(json["traceEvents"][1]["name"], "=cmd|\"</script>\\");
    assert!(json["traceEvents"].as_array().unwrap().iter().any(|event| event["args"]["value"].is_null()));
    let csv = exported(&sessions, &["csv"]);
    let row = csv::Reader::from_reader(csv.as_slice()).records().next().unwrap().unwrap();
    assert_eq!((&row[1], &row[2]), ("a\"b,c", "'=cmd|\"</script>\\"));
    assert_eq!(slices(&exported(&sessions, &["perfetto"])).len(), 1);
}

#[test]
fn openmetrics_is_complete_and_in_base_units() {
    let text = String::from_utf8(exported(&recorded(), &["openmetrics"])).unwrap();
    assert!(text.ends_with("# EOF\n") && text.contains("gnntop_steps_total 100\n"));
    assert!(text.contains("gnntop_phase_seconds{phase=\"backward\",quantile=\"0.5\"} 0.022"), "{text}");
    assert!(text.contains("gnntop_sensor_counted_total{signal=\"process.cpu_time\",unit=\"seconds\"}"), "{text}");
    assert!(!text.contains("gpu.count"), "what is absent has no line");
    let is_line =
        |line: &str| line.starts_with("# ") || line.rsplit_once(' ').is_some_and(|(_, n)| n.parse::<f64>().is_ok());
    assert!(text.lines().all(is_line), "{text}");
}

#[test]
fn a_file_that_is_there_stays() {
    let sessions = recorded();
    let path = sessions.file("there.json", b"precious");
    sessions.run(["export", "a.gnntop", "--to", "chrome", "-o", "there.json"]).refused("is there already");
    assert_eq!(fs::read(path).unwrap(), b"precious");
    sessions.run(["export", "nowhere.gnntop", "--to", "csv"]).refused("cannot read nowhere.gnntop");
}

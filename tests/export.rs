//! `gnntop export`: every form is read back and compared with the recording.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use crate::sessions::{Sessions, signal, spawn, wait_until};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use gnntop_fixtures::{MS, START_NS, START_WALL_NS, StreamBuilder, TrainingRun};
use gnntop_wire::TrackRole;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use serde_json::Value;

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
fn a_marks_duration_has_its_unit_in_the_name() {
    let mut stream = StreamBuilder::new("test");
    let main = stream.track(TrackRole::Training, "main");
    stream.step(main, 1, START_NS, START_NS + 10 * MS);
    stream.timed_mark(main, "checkpoint", START_NS + 9 * MS, 2 * MS);
    stream.valued_mark(main, "learning rate", START_NS + 9 * MS, 0.5);
    let sessions = Sessions::new();
    sessions.file("a.gnntop", &stream.bytes());
    let text = String::from_utf8(exported(&sessions, &["ndjson"])).unwrap();
    let marks = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).filter(|e| e["kind"] == "mark");
    let marks: Vec<_> = marks.map(|mark| (mark["name"].to_string(), mark["value"].as_f64())).collect();
    assert_eq!(marks, [("\"checkpoint (ms)\"".to_owned(), Some(2.0)), ("\"learning rate\"".to_owned(), Some(0.5))]);
}

#[test]
fn csv_and_ndjson_have_equal_rows() {
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
    sessions.run(["export", "a.gnntop", "--to", "csv", "--steps", "900..901"]).assert_refused("no steps 900..901");
    for form in ["openmetrics", "emissions"] {
        sessions.run(["export", "a.gnntop", "--to", form, "--from", "1s"]).assert_refused("the whole recording");
    }
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
fn perfetto_slices_keep_their_nesting() {
    let sessions = recorded();
    let slices = slices(&exported(&sessions, &["perfetto"]));
    let of = |name: &str| slices.iter().filter(|slice| slice.0 == name).map(|slice| slice.1).collect::<Vec<u64>>();
    assert_eq!([of("forward").len(), of("layer 0").len(), of("collate").len(), of("step 7").len()], [100, 100, 100, 1]);
    // A step, its first phase and what lies in that begin at the same instant.
    assert!(of("step 7")[0] == 39 * MS && of("forward")[0] == 10 * MS && of("layer 0")[0] == 5 * MS);
}

#[test]
fn perfetto_slices_nest_in_long_traces() {
    let sessions = Sessions::new();
    let mut stream = StreamBuilder::new("a");
    let main = stream.track(gnntop_wire::TrackRole::Training, "main");
    for step in 1..=40_000 {
        let (start, end) = (START_NS + step * 10 * MS, START_NS + (step + 1) * 10 * MS);
        stream.phase(main, step, "forward", start, start + 4 * MS);
        stream.phase(main, step, "backward", start + 4 * MS, end);
        stream.step(main, step, start, end);
    }
    sessions.file("a.gnntop", &stream.bytes());
    let slices = slices(&exported(&sessions, &["perfetto"]));
    assert_eq!(slices.len(), 120_000);
    for (name, ns) in slices {
        let expected =
            [("forward", 4), ("backward", 6)].iter().find(|phase| phase.0 == name).map_or(10, |phase| phase.1);
        assert_eq!(ns, expected * MS, "{name}");
    }
}

#[test]
fn perfetto_slices_that_overlap_keep_their_durations() {
    let sessions = Sessions::new();
    let mut stream = StreamBuilder::new("a");
    let main = stream.track(gnntop_wire::TrackRole::Training, "main");
    stream.phase(main, 1, "data wait", START_NS, START_NS + 5 * MS);
    stream.phase(main, 1, "forward", START_NS + 5 * MS - 400, START_NS + 30 * MS);
    stream.span(main, 1, "layer", START_NS + 6 * MS, START_NS + 8 * MS);
    sessions.file("a.gnntop", &stream.bytes());
    let mut slices = slices(&exported(&sessions, &["perfetto"]));
    slices.sort_unstable();
    let expected = [("data wait", 5 * MS), ("forward", 25 * MS + 400), ("layer", 2 * MS)];
    assert_eq!(slices, expected.map(|(name, ns)| (name.to_owned(), ns)));
}

#[test]
fn foreign_names_do_not_break_a_format() {
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

/// The histograms of a log by tag, those of all intervals added up, with the number of intervals.
fn histograms(log: &[u8]) -> HashMap<String, (Histogram<u64>, u64)> {
    let mut by_tag = HashMap::new();
    for entry in IntervalLogIterator::new(log) {
        let LogEntry::Interval(interval) = entry.unwrap() else { continue };
        let bytes = BASE64_STANDARD.decode(interval.encoded_histogram()).unwrap();
        let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
        assert_eq!(interval.max(), histogram.max() as f64);
        let tag = interval.tag().map_or("", |tag| tag.as_str()).to_owned();
        let (all, intervals) = by_tag.entry(tag).or_insert_with(|| (Histogram::new(3).unwrap(), 0));
        all.add(histogram).unwrap();
        *intervals += 1;
    }
    by_tag
}

#[test]
fn a_histogram_log_is_read_back_with_every_step_and_phase() {
    let sessions = recorded();
    let log = exported(&sessions, &["hlog"]);
    let by_tag = histograms(&log);
    let mut tags: Vec<&str> = by_tag.keys().map(String::as_str).collect();
    tags.sort_unstable();
    assert_eq!(tags, ["", "backward", "data_wait", "forward", "optimizer"]);
    // Four seconds, and what little of the last step lies beyond.
    for (tag, (all, intervals)) in &by_tag {
        assert!(all.len() == 100 && (4..=5).contains(intervals), "{tag}: {}, {intervals}", all.len());
    }
    let backward = &by_tag["backward"].0;
    assert!(backward.equivalent(backward.value_at_quantile(0.5), 22 * MS));
    let whole = histograms(&exported(&sessions, &["hlog", "--interval", "1m"]));
    assert!(whole["backward"].0 == *backward && whole["backward"].1 == 1);
    sessions
        .run(["export", "a.gnntop", "--to", "csv", "--interval", "1s"])
        .assert_refused("--interval is for --to hlog");
    sessions
        .run(["export", "a.gnntop", "--to", "hlog", "--interval", "1ms"])
        .assert_refused("--interval must be at least 100 ms");
}

/// The rules of Java's `HistogramLogReader`, which `HistogramLogProcessor` reads with: magic comments, one legend,
/// fields between commas, no scientific numbers, payloads that begin with the cookie of a compressed V2 histogram.
#[test]
fn a_histogram_log_keeps_the_rules_of_its_processor() {
    let text = String::from_utf8(exported(&recorded(), &["hlog"])).unwrap();
    let start = format!("{}.000 (seconds since epoch)]", START_WALL_NS / 1_000_000_000);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("#[Histogram log format version 1.3]"));
    assert!(text.contains(&format!("#[StartTime: {start}\n#[BaseTime: {start}\n")), "{text}");
    let lines: Vec<&str> = lines.skip_while(|line| line.starts_with('#')).collect();
    assert_eq!(lines[0], "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"");
    let mut before = 0.0;
    for line in &lines[1..] {
        let line = line.strip_prefix("Tag=").and_then(|line| line.split_once(',')).map_or(*line, |tagged| tagged.1);
        let fields: Vec<&str> = line.split(',').collect();
        assert_eq!((fields.len(), fields[1]), (4, "1.000"), "{line}");
        assert!(fields[..3].iter().all(|number| number.chars().all(|c| c.is_ascii_digit() || c == '.')), "{line}");
        let start: f64 = fields[0].parse().unwrap();
        assert!(start >= before, "{text}");
        before = start;
        // V2's cookie is 0x1c849303, a compressed one 0x1c849304, both with 0x10 for counts of variable length.
        assert_eq!(BASE64_STANDARD.decode(fields[3]).unwrap()[..4], [0x1c, 0x84, 0x93, 0x14]);
    }
    assert!(before >= 3.0, "intervals count from the start: {text}");
}

/// The rules of speedscope's file-format-spec.ts for evented profiles, and of its importer: events in the order of
/// time, each close ends the frame that was opened last.
#[test]
fn speedscope_has_a_nested_profile_for_each_track() {
    let json: Value = serde_json::from_slice(&exported(&recorded(), &["speedscope"])).unwrap();
    assert_eq!(json["$schema"], "https://www.speedscope.app/file-format-schema.json");
    let frames: Vec<&str> =
        json["shared"]["frames"].as_array().unwrap().iter().map(|frame| frame["name"].as_str().unwrap()).collect();
    let mut profiles = HashMap::new();
    for profile in json["profiles"].as_array().unwrap() {
        assert_eq!((profile["type"].as_str(), profile["unit"].as_str()), (Some("evented"), Some("nanoseconds")));
        let (mut at, mut open, mut closed) = (profile["startValue"].as_u64().unwrap(), Vec::new(), HashMap::new());
        for event in profile["events"].as_array().unwrap() {
            let (frame, now) = (event["frame"].as_u64().unwrap() as usize, event["at"].as_u64().unwrap());
            assert!(now >= at, "{event}");
            at = now;
            if event["type"] == "O" {
                open.push((frame, now));
            } else {
                assert_eq!(event["type"], "C");
                let (opened, since) = open.pop().unwrap();
                assert_eq!(opened, frame);
                let (count, sum) = closed.entry((frames[frame], open.len())).or_insert((0, 0));
                (*count, *sum) = (*count + 1, *sum + now - since);
            }
        }
        assert!(open.is_empty());
        assert_eq!(profile["endValue"].as_u64(), Some(at));
        profiles.insert(profile["name"].as_str().unwrap().to_owned(), closed);
    }
    assert_eq!(profiles.len(), 2, "sensors have no spans: {profiles:?}");
    let full_steps = 96 * 22 * MS + 4 * (22 * MS * 100 / 256);
    assert_eq!(profiles["main"][&("backward", 1)], (100, full_steps));
    let counts = [("step", 0), ("forward", 1), ("layer 0", 2)].map(|frame| profiles["main"][&frame].0);
    assert_eq!(counts, [100, 100, 100]);
    assert_eq!(profiles["loader 0"], HashMap::from([(("collate", 0), (100, 200 * MS))]));
}

#[test]
fn openmetrics_is_complete_and_in_base_units() {
    let text = String::from_utf8(exported(&recorded(), &["openmetrics"])).unwrap();
    assert!(text.ends_with("# EOF\n") && text.contains("gnntop_steps_total 100\n"));
    assert!(text.contains("gnntop_phase_seconds{phase=\"backward\",quantile=\"0.5\"} 0.022"), "{text}");
    assert!(text.contains("gnntop_sensor_counted_total{signal=\"process.cpu_time\",unit=\"seconds\"}"), "{text}");
    assert!(!text.contains("gpu.count"), "what is absent has no line");
    let samples = samples(&text);
    assert_eq!((samples["gnntop_step_seconds_count"], samples["gnntop_epoch"]), (100.0, 3.0));
    assert_eq!(samples["gnntop_findings{kind=\"partial-batch\"}"], 4.0, "{text}");
}

/// Asks a server on this machine; gives the head and the body of its answer.
pub fn ask(address: &str, request: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

/// The samples of an OpenMetrics text by name and labels, checked by its rules: a family is in one piece, has its
/// TYPE before its samples, its samples have the suffixes of its type, none is there twice, and the end is marked.
pub fn samples(text: &str) -> HashMap<String, f64> {
    let body = text.strip_suffix("# EOF\n").expect("a text ends with # EOF");
    let (mut all, mut families, mut name, mut kind) = (HashMap::new(), HashSet::new(), "", "");
    for line in body.lines() {
        if let Some(declared) = line.strip_prefix("# TYPE ") {
            (name, kind) = declared.split_once(' ').unwrap();
            assert!(families.insert(name), "{name} in two pieces");
        }
        if line.starts_with('#') {
            continue;
        }
        let (labelled, value) = line.rsplit_once(' ').unwrap();
        let suffix = labelled.split('{').next().unwrap().strip_prefix(name).unwrap();
        let suffixes: &[&str] = match kind {
            "counter" => &["_total"],
            "gauge" => &[""],
            "info" => &["_info"],
            "summary" => &["", "_count", "_sum"],
            other => panic!("type {other}"),
        };
        assert!(suffixes.contains(&suffix), "{line} in a {kind}");
        assert!(all.insert(labelled.to_owned(), value.parse().unwrap()).is_none(), "{line} twice");
    }
    all
}

#[test]
fn a_live_session_is_served_until_interrupted() {
    let sessions = Sessions::new();
    let bytes = TrainingRun { ends: false, ..TrainingRun::default() }.bytes();
    let (begin, rest) = bytes.split_at(bytes.len() / 2);
    let session = sessions.live("pna", begin);
    let mut child = spawn(&mut sessions.gnntop(["serve", "--metrics", "127.0.0.1:0"]));
    let mut said = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut said).unwrap();
    let address = said.strip_prefix("http://").and_then(|url| url.split('/').next()).unwrap();
    let scrape = || {
        let (head, body) = ask(address, "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
        assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
        assert!(head.contains("Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8"), "{head}");
        assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
        samples(&body)
    };
    let steps = |samples: &HashMap<String, f64>| samples["gnntop_steps_total"];
    wait_until(|| steps(&scrape()) > 10.0);
    let mut before = scrape();
    assert_eq!(before["gnntop_session_live"], 1.0);
    session.append(rest);
    wait_until(|| {
        let now = scrape();
        let cumulative = |name: &str| name.contains("_total") || name.contains("_count") || name.contains("_sum");
        for (name, value) in before.iter().filter(|(name, _)| cumulative(name)) {
            assert!(now[name] >= *value, "{name} went from {value} to {}", now[name]);
        }
        before = now;
        steps(&before) == 100.0
    });
    assert_eq!(before["gnntop_phase_seconds_count{phase=\"backward\"}"], 100.0);
    assert_eq!(before["gnntop_session_info{name=\"pna\",host=\"bench\",pid=\"4711\"}"], 1.0);
    let asked = |request: &str| ask(address, &format!("{request}\r\nHost: localhost:9464\r\n\r\n"));
    assert!(asked("GET / HTTP/1.0").1.contains("/metrics"));
    assert!(asked("GET /etc/passwd HTTP/1.1").0.starts_with("HTTP/1.1 404"));
    assert!(asked("POST /metrics HTTP/1.1").0.starts_with("HTTP/1.1 405"));
    let (head, body) = asked("HEAD /metrics HTTP/1.1");
    assert!(head.starts_with("HTTP/1.1 200") && body.is_empty());
    // A page whose name was made to lead here is not told anything.
    let (head, body) = ask(address, "GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 403") && body.contains("--allow-host"), "{head} {body}");
    // Those who say nothing keep nobody waiting: one after the other they would take a second each.
    let _silent: Vec<TcpStream> = (0..120).map(|_| TcpStream::connect(address).unwrap()).collect();
    scrape();
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_session_is_served_to_other_machines_only_where_allowed() {
    let sessions = recorded();
    let ran = sessions.run(["serve", "a.gnntop", "--metrics", "0.0.0.0:0"]);
    ran.assert_refused("0.0.0.0:0 can be reached from other machines: listen on 127.0.0.1, or add --allow-remote");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    sessions.run(["serve", "a.gnntop", "--metrics", &address]).assert_refused("cannot listen on 127.0.0.1");
}

#[test]
fn a_large_export_is_announced() {
    let sessions = recorded();
    // Nothing but its length matters; what was appended takes no room on disk.
    fs::OpenOptions::new().write(true).open(sessions.path().join("a.gnntop")).unwrap().set_len(16 << 20).unwrap();
    let said = |form: &str| sessions.run(["export", "a.gnntop", "--to", form]).err;
    assert!(said("ndjson").starts_with("the whole recording takes about 4"), "{}", said("ndjson"));
    assert!(!said("csv").contains("the whole recording"), "13 times 16 MiB are not large");
}

#[test]
fn existing_file_is_not_overwritten() {
    let sessions = recorded();
    let path = sessions.file("there.json", b"precious");
    sessions.run(["export", "a.gnntop", "--to", "chrome", "-o", "there.json"]).assert_refused("already exists");
    assert_eq!(fs::read(path).unwrap(), b"precious");
    sessions.run(["export", "nowhere.gnntop", "--to", "csv"]).assert_refused("cannot read nowhere.gnntop");
}

#[test]
fn wide_table_has_a_row_per_step_and_a_column_per_phase() {
    let sessions = recorded();
    let text = String::from_utf8(exported(&sessions, &["csv", "--wide"])).unwrap();
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let heads: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let phases = ["data_wait_ns", "forward_ns", "backward_ns", "optimizer_ns", "gap_ns"];
    assert_eq!(heads[7..12], phases, "{heads:?}");
    let rows: Vec<HashMap<String, String>> = reader.deserialize().collect::<Result<_, _>>().unwrap();
    assert_eq!(rows.len(), 100);
    for row in &rows {
        let number = |name: &str| row[name].parse::<u64>().unwrap();
        assert_eq!(phases.iter().map(|name| number(name)).sum::<u64>(), number("period_ns"), "{row:?}");
        assert_eq!(number("end_ns") - number("start_ns"), number("step_ns"));
        assert!(row["rank"].is_empty() && row["loss"].parse::<f64>().is_ok() && number("graphs") > 0);
    }
    let part = String::from_utf8(exported(&sessions, &["csv", "--wide", "--steps", "10..13"])).unwrap();
    assert_eq!(part.lines().count(), 4, "{part}");
    let refused = sessions.run(["export", "a.gnntop", "--to", "ndjson", "--wide"]);
    assert!(refused.code == Some(2) && refused.err.contains("csv and --to parquet"), "{refused:?}");
}

/// The report, the screen and the exports mean the same by a step and by a period.
#[test]
fn a_step_is_the_same_in_every_form() {
    let sessions = recorded();
    let text = String::from_utf8(exported(&sessions, &["csv", "--wide"])).unwrap();
    let rows: Vec<HashMap<String, String>> =
        csv::Reader::from_reader(text.as_bytes()).deserialize().collect::<Result<_, _>>().unwrap();
    let report: Value = serde_json::from_str(&sessions.run(["report", "a.gnntop", "--json"]).out).unwrap();
    let lines = String::from_utf8(exported(&sessions, &["ndjson"])).unwrap();
    let events: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let steps = events.iter().filter(|event| event["kind"] == "step");
    let by_events: u64 = steps.map(|step| step["end_ns"].as_u64().unwrap() - step["start_ns"].as_u64().unwrap()).sum();
    for (name, column) in [("step", "step_ns"), ("period", "period_ns")] {
        let line = report["phases"].as_array().unwrap().iter().find(|line| line["name"] == name).unwrap();
        let sum: u64 = rows.iter().map(|row| row[column].parse::<u64>().unwrap()).sum();
        assert_eq!(line["total_ns"].as_u64(), Some(sum), "{name}");
        assert!(name == "period" || sum == by_events, "{sum} and {by_events}");
    }
}

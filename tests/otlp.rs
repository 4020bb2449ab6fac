//! Figures on their way to an OpenTelemetry collector: by `gnntop push` and by the keeper of `gnntop run --otlp`. The collector is a
//! stand-in on loopback.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::{fs, thread};

use serde_json::Value;

use crate::sessions::{Ran, Sessions, has_python, spawn, wait_until};
use gnntop_fixtures::{ParallelRun, START_WALL_NS, TrainingRun};

/// Half of the factor between two bounds at the scale that is sent, and what the source may be off.
const WITHIN: f64 = 0.024;

const ACCEPTED: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
const BUSY: &str = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n";

/// A request that came in: its head, its body, and what was answered.
#[derive(Clone)]
struct Received {
    head: String,
    body: Value,
    answer: &'static str,
}

/// What came in so far.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<Received>>>);

impl Collector {
    /// Starts one that gives these answers, the last one again and again; an empty one is silence. Returns its address too.
    fn start(answers: &'static [&'static str]) -> (Self, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let collector = Self::default();
        let received = collector.clone();
        thread::spawn(move || {
            let mut silent = Vec::new();
            for (at, stream) in listener.incoming().enumerate() {
                let answer = answers[at.min(answers.len() - 1)];
                let mut stream = stream.unwrap();
                // Whoever gave up waiting has sent no whole request.
                let Some((head, body)) = read_request(&mut stream) else { continue };
                if answer.is_empty() {
                    silent.push(stream);
                } else {
                    let _ = stream.write_all(answer.as_bytes());
                }
                received.0.lock().unwrap().push(Received { head, body, answer });
            }
        });
        (collector, address)
    }

    fn all(&self) -> Vec<Received> {
        self.0.lock().unwrap().clone()
    }

    fn accepted(&self) -> Vec<Received> {
        self.all().into_iter().filter(|received| received.answer == ACCEPTED).collect()
    }
}

fn read_request(stream: &mut TcpStream) -> Option<(String, Value)> {
    let mut reader = BufReader::new(stream);
    let (mut head, mut len) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(text) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            len = text.trim().parse().unwrap();
        }
        head += &line;
    }
    let mut body = vec![0; len];
    reader.read_exact(&mut body).ok()?;
    let body = if head.contains("Content-Encoding: gzip") {
        let mut text = Vec::new();
        flate2::read::GzDecoder::new(body.as_slice()).read_to_end(&mut text).unwrap();
        text
    } else {
        body
    };
    Some((head, serde_json::from_slice(&body).unwrap()))
}

/// The text of a value, whichever kind it is.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn number(value: &Value) -> f64 {
    text(value).parse().unwrap()
}

/// What an attribute is in this list; empty if it is not there.
fn attribute(all: &Value, key: &str) -> String {
    let found = all.as_array().unwrap().iter().find(|one| one["key"] == key);
    found.map_or_else(String::new, |one| text(one["value"].as_object().unwrap().values().next().unwrap()))
}

/// Every data point: of which resource, of which metric, and itself.
fn points(body: &Value) -> Vec<(Value, String, Value)> {
    let mut all = Vec::new();
    for resource in body["resourceMetrics"].as_array().unwrap() {
        for metric in resource["scopeMetrics"][0]["metrics"].as_array().unwrap() {
            let data = ["sum", "gauge", "exponentialHistogram"].iter().find_map(|kind| metric.get(kind)).unwrap();
            for point in data["dataPoints"].as_array().unwrap() {
                let of = resource["resource"]["attributes"].clone();
                all.push((of, metric["name"].as_str().unwrap().to_owned(), point.clone()));
            }
        }
    }
    all
}

/// The only points of a metric, of all resources.
fn named(body: &Value, name: &str) -> Vec<Value> {
    points(body).into_iter().filter(|(_, metric, _)| metric == name).map(|(_, _, point)| point).collect()
}

/// A quantile in nanoseconds, as a reader of exponential histograms computes it: the middle of its bucket.
fn quantile(point: &Value, quantile: f64) -> f64 {
    let rank = (number(&point["count"]) * quantile).ceil().max(1.0);
    let mut seen = number(&point["zeroCount"]);
    let counts = point["positive"]["bucketCounts"].as_array().unwrap();
    let per_octave = number(&point["scale"]).exp2();
    for (at, count) in counts.iter().enumerate() {
        seen += number(count);
        if seen >= rank {
            let index = number(&point["positive"]["offset"]) + at as f64;
            return ((index + 0.5) / per_octave).exp2() * 1e9;
        }
    }
    panic!("rank {rank} is beyond {point}")
}

#[track_caller]
fn assert_near(found: f64, expected: f64, within: f64) {
    assert!((found - expected).abs() <= expected.abs() * within, "{found} is not {expected}");
}

#[test]
fn pushed_figures_are_those_of_the_report() {
    let sessions = Sessions::new();
    sessions.ended(
        "pna",
        &TrainingRun { steps: 300, spikes: vec![(7, "forward", 90_000_000)], ..TrainingRun::default() }.bytes(),
    );
    let (collector, address) = Collector::start(&[ACCEPTED]);
    let ran = sessions.run(["push", "pna", "--otlp", &address]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    let report: Value = serde_json::from_str(&sessions.run(["report", "pna", "--json"]).out).unwrap();
    let [received] = &collector.all()[..] else { panic!("one request") };
    assert!(received.head.starts_with("POST /v1/metrics HTTP/1.1\r\n"), "{}", received.head);
    let body = &received.body;
    assert_eq!(number(&named(body, "gnntop.steps")[0]["asInt"]), number(&report["steps"]["total"]));
    for expected in report["phases"].as_array().unwrap() {
        let name = expected["name"].as_str().unwrap();
        let found = match name {
            "step" => named(body, "gnntop.step.duration").remove(0),
            "period" => named(body, "gnntop.step.period").remove(0),
            "gap" => named(body, "gnntop.gap.duration").remove(0),
            phase => {
                let all = named(body, "gnntop.phase.duration");
                all.into_iter().find(|point| attribute(&point["attributes"], "gnntop.phase") == phase).unwrap()
            }
        };
        assert_eq!(number(&found["count"]), number(&expected["count"]), "{name}");
        assert_near(number(&found["sum"]) * 1e9, number(&expected["total_ns"]), 1e-9);
        assert_near(number(&found["max"]) * 1e9, number(&expected["max_ns"]), 1e-9);
        for (share, figure) in [(0.5, "p50_ns"), (0.9, "p90_ns"), (0.99, "p99_ns")] {
            assert_near(quantile(&found, share), number(&expected[figure]), WITHIN);
        }
        assert_eq!(text(&found["startTimeUnixNano"]), START_WALL_NS.to_string(), "{name}");
    }
    let found = report["findings"]["found"].as_array().unwrap().iter();
    for kind in found.map(|finding| finding["kind"].as_str().unwrap()) {
        let counts = named(body, "gnntop.finding.count");
        let count = counts.iter().find(|point| attribute(&point["attributes"], "gnntop.finding") == kind).unwrap();
        assert!(number(&count["asDouble"]) > 0.0, "{kind}");
    }
}

#[test]
fn pushed_energy_is_that_of_the_report() {
    let (sessions, recording) = (Sessions::new(), "recordings/labelled/churn.gnntop");
    let recording = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(recording).display().to_string();
    let (collector, address) = Collector::start(&[ACCEPTED]);
    assert_eq!(sessions.run(["push", &recording, "--otlp", &address]).code, Some(0));
    let report: Value = serde_json::from_str(&sessions.run(["report", &recording, "--json"]).out).unwrap();
    let body = &collector.all()[0].body;
    let joules = |scope: &str| number(&report["energy"]["total"][scope]["joules"]);
    let parts = named(body, "hw.energy").iter().map(|point| number(&point["asDouble"])).sum::<f64>();
    assert_near(parts, joules("device"), 1e-6);
    assert_near(number(&named(body, "gnntop.energy")[0]["asDouble"]), joules("job"), 1e-6);
}

#[test]
fn each_rank_of_a_run_is_pushed_under_its_number() {
    let sessions = Sessions::new();
    let parallel = ParallelRun { ranks: 3, ..ParallelRun::default() };
    for (rank, bytes) in parallel.sessions().iter().enumerate() {
        sessions.ended(&format!("rank-{rank}"), bytes);
    }
    let (collector, address) = Collector::start(&[ACCEPTED]);
    let ran = sessions.run(["push", "rank-1", "--otlp", &address]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let of_steps =
        points(&collector.all().pop().unwrap().body).into_iter().filter(|(_, name, _)| name == "gnntop.steps");
    let ranks: Vec<String> =
        of_steps.map(|(of, _, _)| attribute(&of, "gnntop.run") + "/" + &attribute(&of, "gnntop.rank")).collect();
    assert_eq!(ranks, ["job-17/0", "job-17/1", "job-17/2"]);
}

#[test]
fn recording_is_pushed_once_and_compressed_with_headers() {
    let sessions = Sessions::new();
    let recording = sessions.file("a.gnntop", &TrainingRun::default().bytes());
    let (collector, address) = Collector::start(&[ACCEPTED]);
    let mut push = sessions.gnntop(["push", recording.to_str().unwrap()]);
    push.env("OTEL_EXPORTER_OTLP_ENDPOINT", &address).env("OTEL_EXPORTER_OTLP_HEADERS", "x-token=of%20mine");
    push.env("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip").env("OTEL_SERVICE_NAME", "lab");
    let ran = Ran::new(&push.output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let [received] = &collector.all()[..] else { panic!("one request") };
    assert!(received.head.contains("x-token: of mine\r\n"), "{}", received.head);
    assert_eq!(attribute(&points(&received.body)[0].0, "service.name"), "lab");
    assert_eq!(number(&named(&received.body, "gnntop.steps")[0]["asInt"]), 100.0);
}

const PARTIAL: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n\
                       {\"partialSuccess\":{\"rejectedDataPoints\":\"3\",\"errorMessage\":\"too \\u001b[31mold\"}}";

#[test]
fn push_fails_where_the_collector_rejects_a_part() {
    let sessions = Sessions::new();
    let recording = sessions.file("a.gnntop", &TrainingRun::default().bytes());
    sessions.ended("pna", &TrainingRun::default().bytes());
    for named in [recording.to_str().unwrap(), "pna"] {
        let (_collector, address) = Collector::start(&[PARTIAL]);
        let ran = sessions.run(["push", named, "--otlp", &address]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.err.contains("did not take all figures: 3 values were rejected: too "), "{ran:?}");
        assert!(!ran.err.contains('\u{1b}'), "{ran:?}");
    }
}

#[test]
fn push_says_for_how_long_a_collector_did_not_answer() {
    let sessions = Sessions::new();
    let recording = sessions.file("a.gnntop", &TrainingRun::default().bytes());
    let (_collector, address) = Collector::start(&[""]);
    let mut push = sessions.gnntop(["push", recording.to_str().unwrap(), "--otlp", &address]);
    let ran = Ran::new(&push.env("OTEL_EXPORTER_OTLP_TIMEOUT", "1500").output().unwrap());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("the collector did not answer within 1.5 s"), "{ran:?}");
}

#[test]
fn busy_collector_gets_each_point_once() {
    let sessions = Sessions::new();
    let bytes = TrainingRun { ends: false, ..TrainingRun::default() }.bytes();
    let (begin, rest) = bytes.split_at(bytes.len() / 2);
    let mut session = sessions.live("pna", begin);
    let (collector, address) = Collector::start(&[BUSY, ACCEPTED, BUSY, BUSY, ACCEPTED]);
    let mut push = sessions.gnntop(["push", "pna", "--otlp", &address]);
    let push = spawn(push.env("OTEL_METRIC_EXPORT_INTERVAL", "50"));
    wait_until(|| collector.accepted().len() == 1);
    session.append(rest);
    wait_until(|| collector.accepted().len() >= 2);
    session.die();
    let ran = Ran::new(&push.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    let (mut seen, mut starts) = (BTreeSet::new(), BTreeSet::new());
    let accepted = collector.accepted();
    for (of, name, point) in accepted.iter().flat_map(|received| points(&received.body)) {
        starts.extend(point.get("startTimeUnixNano").map(text));
        let at = (
            attribute(&of, "service.instance.id"),
            name,
            point["attributes"].to_string(),
            text(&point["timeUnixNano"]),
        );
        assert!(seen.insert(at.clone()), "{at:?} came twice");
    }
    assert_eq!(starts, BTreeSet::from([START_WALL_NS.to_string()]), "counting began once");
    assert_eq!(number(&named(&accepted.last().unwrap().body, "gnntop.steps")[0]["asInt"]), 100.0);
    let live = |received: &Received| number(&named(&received.body, "gnntop.live")[0]["asInt"]);
    assert_eq!((live(&accepted[0]), live(accepted.last().unwrap())), (1.0, 0.0));
}

/// Steps of a program's own, until it may go.
const SCRIPT: &str = "
import gnntop, os, time
for i in range(20):
    with gnntop.span('work'):
        time.sleep(0.01)
    gnntop.step()
while not os.path.exists('go'):
    time.sleep(0.05)
";

fn run(sessions: &Sessions, address: &str, variables: &[(&str, &str)]) -> Command {
    sessions.file("script.py", SCRIPT.as_bytes());
    let mut command = sessions.gnntop(["run", "--plain", "--otlp", address, "--", "python3", "script.py"]);
    command.envs(variables.iter().copied());
    command
}

#[test]
fn keeper_sends_while_the_program_runs_and_at_its_end() {
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    let sessions = Sessions::new();
    let (collector, address) = Collector::start(&[ACCEPTED]);
    let mut command = run(&sessions, &address, &[("OTEL_METRIC_EXPORT_INTERVAL", "100")]);
    let child = spawn(&mut command);
    let steps = |received: &Received| number(&named(&received.body, "gnntop.steps")[0]["asInt"]);
    wait_until(|| collector.accepted().iter().any(|received| steps(received) >= 20.0));
    sessions.file("go", b"");
    let ran = Ran::new(&child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.err.contains("figures"), "{ran:?}");
    let accepted = collector.accepted();
    let counts: Vec<f64> = accepted.iter().map(steps).collect();
    assert!(counts.windows(2).all(|two| two[0] <= two[1]) && counts.last() == Some(&20.0), "{counts:?}");
    let last = &accepted.last().unwrap().body;
    assert_eq!(number(&named(last, "gnntop.live")[0]["asInt"]), 0.0);
    let resource = &points(last)[0].0;
    assert_eq!(attribute(resource, "service.name"), "script.py");
    assert!(!attribute(resource, "host.name").is_empty() && !attribute(resource, "process.pid").is_empty());
}

#[test]
fn collector_that_is_gone_is_said_once_and_changes_nothing() {
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    let sessions = Sessions::new();
    sessions.file("go", b"");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let ran = Ran::new(&run(&sessions, &address, &[]).output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.err.matches("the last figures did not reach http://127.0.0.1:").count(), 1, "{ran:?}");
    assert!(ran.err.contains("refused") && ran.out.contains("step 20"), "{ran:?}");
}

#[test]
fn collector_that_never_answers_holds_the_end_up_for_no_longer_than_its_time() {
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    let sessions = Sessions::new();
    let (collector, address) = Collector::start(&[""]);
    let variables = [("OTEL_METRIC_EXPORT_INTERVAL", "100"), ("OTEL_EXPORTER_OTLP_TIMEOUT", "400")];
    let child = spawn(&mut run(&sessions, &address, &variables));
    wait_until(|| !collector.all().is_empty());
    sessions.file("go", b"");
    // It ends although no answer ever comes.
    let ran = Ran::new(&child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.err.matches("the last figures did not reach").count(), 1, "{ran:?}");
}

#[test]
fn what_cannot_be_sent_is_refused_before_anything_starts() {
    let sessions = Sessions::new();
    let refused = |words: &[&str], variable: (&str, &str)| {
        let mut command = sessions.gnntop(words);
        let ran = Ran::new(&command.env(variable.0, variable.1).output().unwrap());
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(!sessions.path().join("started").exists(), "{ran:?}");
        ran.err
    };
    let run = ["run", "--plain", "--otlp", "--", "touch", "started"];
    assert!(refused(&run, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")).contains("only http/json"));
    assert!(refused(&["push"], ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "http/protobuf")).contains("only http/json"));
    assert!(refused(&run, ("OTEL_EXPORTER_OTLP_HEADERS", "a")).contains("key=value"));
    assert!(refused(&["run", "--otlp", "pna"], ("A", "")).contains("http://localhost:4318"));
}

/// Answers one request over TLS, and writes it down.
const TLS_SERVER: &str = "
import http.server, ssl
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length']))
        open('request', 'wb').write(str(self.headers).encode() + body)
        self.send_response(200)
        self.send_header('Content-Length', '2')
        self.end_headers()
        self.wfile.write(b'{}')
server = http.server.HTTPServer(('127.0.0.1', 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain('certificate.pem', 'key.pem')
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.handle_request()
";

/// Whether a tool is there; says so if not.
fn has(tool: &str) -> bool {
    let found = Command::new(tool).arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !found {
        println!("skipped: there is no {tool}");
    }
    found
}

#[test]
fn encrypted_collector_is_reached_by_curl_and_only_with_its_certificate() {
    if !has("curl") || !has("openssl") || !has_python((3, 10), (4, 0)) {
        return;
    }
    let sessions = Sessions::new();
    sessions.ended("pna", &TrainingRun::default().bytes());
    sessions.file("server.py", TLS_SERVER.as_bytes());
    let make = "req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out certificate.pem -days 2 -subj /CN=localhost -addext \
                subjectAltName=DNS:localhost";
    let mut openssl = Command::new("openssl");
    let made = openssl.args(make.split_whitespace()).current_dir(sessions.path()).stderr(Stdio::null()).status();
    assert!(made.unwrap().success());
    let push = |certificate: Option<&str>| {
        let mut server = spawn(Command::new("python3").arg("server.py").current_dir(sessions.path()));
        let mut port = String::new();
        BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut port).unwrap();
        let mut push = sessions.gnntop(["push", "pna", "--otlp", &format!("https://localhost:{}", port.trim())]);
        push.env("OTEL_EXPORTER_OTLP_HEADERS", "x-token=of%20mine").env("OTEL_EXPORTER_OTLP_TIMEOUT", "60000");
        push.envs(certificate.map(|file| ("OTEL_EXPORTER_OTLP_CERTIFICATE", file)));
        let ran = Ran::new(&push.output().unwrap());
        let _ = server.kill();
        let _ = server.wait();
        ran
    };
    let ran = push(Some("certificate.pem"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let request = fs::read_to_string(sessions.path().join("request")).unwrap();
    assert!(request.contains("x-token: of mine") && request.contains("gnntop.steps"), "{request}");
    let ran = push(None);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("certificate"), "{ran:?}");
}

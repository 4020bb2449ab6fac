//! `gnntop serve --all`: every run of a machine under its labels; and the dashboard that is drawn of it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::process::Child;
use std::{fs, path::Path};

use serde_json::Value;

use crate::export::{ask, samples};
use crate::sessions::{Sessions, spawn, wait_until};
use gnntop_fixtures::{ParallelRun, TrainingRun};

/// A server of all runs, until it is dropped.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(sessions: &Sessions) -> Self {
        let mut child = spawn(&mut sessions.gnntop(["serve", "--all", "--metrics", "127.0.0.1:0"]));
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.strip_prefix("http://").and_then(|url| url.split('/').next()).unwrap().to_owned();
        Self { child, address }
    }

    fn scrape(&self) -> String {
        let (head, body) = ask(&self.address, "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
        assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
        body
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

#[test]
fn all_runs_are_served_as_they_come_with_run_and_rank() {
    let sessions = Sessions::new();
    let server = Server::start(&sessions);
    assert_eq!(server.scrape().matches("_total").count(), 0, "nothing runs yet");
    let training = TrainingRun { ends: false, ..TrainingRun::default() };
    let mut alone = sessions.live("pna", &training.bytes());
    let parallel = ParallelRun { ends: false, ..ParallelRun::default() };
    let ranks = parallel.sessions();
    let _ranks: Vec<_> =
        ranks.iter().enumerate().map(|(rank, bytes)| sessions.live(&format!("rank-{rank}"), bytes)).collect();
    let steps = |text: &str, labels: &str| samples(text).get(&format!("gnntop_steps_total{{{labels}}}")).copied();
    let last = format!("run=\"job-17\",rank=\"{}\"", ranks.len() - 1);
    let all_steps = Some(parallel.steps as f64);
    wait_until(|| {
        let text = server.scrape();
        steps(&text, "run=\"pna-4711\",rank=\"0\"") == Some(100.0) && steps(&text, &last) == all_steps
    });
    let text = server.scrape();
    let all = samples(&text);
    assert_eq!(all["gnntop_phase_seconds_count{run=\"pna-4711\",rank=\"0\",phase=\"backward\"}"], 100.0);
    assert!(all.keys().any(|line| line.starts_with("gnntop_findings{run=\"job-17\",rank=\"0\",")), "{text}");
    assert!(!all.keys().any(|line| line.starts_with("gnntop_findings{run=\"job-17\",rank=\"1\",")), "{text}");
    let machine = "gnntop_sensor_counted_total{host=\"bench\",signal=\"machine.cpu.busy\",unit=\"seconds\"}";
    assert!(all.contains_key(machine), "{text}");
    alone.die();
    let live = "gnntop_session_live{run=\"pna-4711\",rank=\"0\"}";
    wait_until(|| samples(&server.scrape())[live] == 0.0);
    assert_eq!(samples(&server.scrape())["gnntop_session_live{run=\"job-17\",rank=\"0\"}"], 1.0);
}

#[test]
fn all_and_one_exclude_each_other() {
    assert_eq!(Sessions::new().run(["serve", "--all", "pna"]).code, Some(2));
}

/// The labels that each family has in this text.
fn labels(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, rest) = line.split_once(['{', ' ']).unwrap();
        let labels = rest.split("\",").filter_map(|label| label.split_once("=\"")).map(|(label, _)| label.to_owned());
        all.entry(name.to_owned()).or_default().extend(labels);
    }
    all
}

/// The words of a text that begin with this one.
fn words<'t>(text: &'t str, begin: &'t str) -> impl Iterator<Item = &'t str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(move |word| word.starts_with(begin))
}

/// Of an expression, the metrics with the labels that are asked of them.
fn selectors(expression: &str) -> Vec<(String, Vec<String>)> {
    let names = words(expression, "gnntop_").map(|name| {
        let rest = &expression[name.as_ptr() as usize - expression.as_ptr() as usize + name.len()..];
        let within = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')).map_or("", |(within, _)| within);
        let labels =
            within.split("\",").filter_map(|label| label.split_once('=')).map(|(label, _)| label.trim().to_owned());
        (name.to_owned(), labels.filter(|label| !label.is_empty()).collect())
    });
    names.collect()
}

#[test]
fn dashboard_asks_for_what_is_served() {
    let sessions = Sessions::new();
    let _session = sessions.live("pna", &TrainingRun { ends: false, ..TrainingRun::default() }.bytes());
    let _rank = sessions.live("rank-0", &ParallelRun { ends: false, ..ParallelRun::default() }.session(0));
    let server = Server::start(&sessions);
    wait_until(|| {
        let text = server.scrape();
        text.contains("gnntop_findings") && text.contains("gnntop_seeds_total") && text.contains("gnntop_loss")
    });
    let served = labels(&server.scrape());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/grafana/gnntop.json");
    let dashboard: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let (mut ids, mut asked) = (BTreeSet::new(), 0);
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{} has the id of another", panel["title"]);
        let place = &panel["gridPos"];
        assert!(place["x"].as_u64().unwrap() + place["w"].as_u64().unwrap() <= 24, "{}", panel["title"]);
        for target in panel["targets"].as_array().unwrap() {
            let expression = target["expr"].as_str().unwrap();
            for (name, labels) in selectors(expression) {
                let known = served.get(&name).unwrap_or_else(|| panic!("{name} is not served: {:?}", served.keys()));
                assert!(labels.iter().all(|label| known.contains(label)), "{expression}: {name} has {known:?}");
                asked += 1;
            }
        }
    }
    assert!(asked > 15, "{asked}");
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        let query = variable["query"].as_str().unwrap();
        assert!(words(query, "gnntop_").all(|name| served.contains_key(name)), "{query}");
    }
}

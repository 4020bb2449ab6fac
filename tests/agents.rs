//! `gnntop mcp`, as a client sees it: lines in, lines out.

use std::path::Path;

use serde_json::{Value, json};

use crate::sessions::Sessions;

/// The recording of a demo.
fn demo(fault: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings/demo").join(fault).with_extension("gnntop");
    path.to_str().unwrap().to_owned()
}

/// The results of these requests, in order.
fn results(sessions: &Sessions, requests: &[(&str, Value)]) -> Vec<Value> {
    let lines = requests.iter().enumerate().map(|(id, (method, parameters))| {
        format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters }))
    });
    let ran = sessions.run_with(["mcp"], lines.collect::<String>().as_bytes());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let answers: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), requests.len(), "nothing but answers: {}", ran.out);
    answers.into_iter().map(|answer| answer["result"].clone()).collect()
}

/// What a tool answers.
fn call(name: &str, arguments: &Value) -> Value {
    call_in(&Sessions::new(), name, arguments)
}

fn call_in(sessions: &Sessions, name: &str, arguments: &Value) -> Value {
    let result = results(sessions, &[("tools/call", json!({ "name": name, "arguments": arguments }))]).remove(0);
    let answer = &result["structuredContent"];
    assert!(answer["summary"].is_string() && answer["next_step"].is_string(), "{result}");
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(&text, answer, "old clients read the text");
    result
}

#[test]
fn diagnose_names_the_cause_in_eight_kilobytes() {
    let result = call("diagnose", &json!({ "run": demo("loader") }));
    let answer = &result["structuredContent"];
    assert!(answer["summary"].as_str().unwrap().starts_with("data-bound"), "{answer}");
    assert_eq!(answer["data"]["findings"][0]["kind"], "data-bound");
    assert_eq!(answer["data"]["steps"]["total"], 503);
    assert!(answer.to_string().len() < 8_400, "{} bytes", answer.to_string().len());
    assert_eq!(result["isError"], false);
}

#[test]
fn steps_are_the_slowest_or_a_range() {
    let slowest = call("steps", &json!({ "run": demo("gc"), "count": 3 }));
    let rows = slowest["structuredContent"]["data"]["steps"].as_array().unwrap().clone();
    assert_eq!(rows.len(), 3);
    assert!(rows[0]["period_ns"].as_u64() >= rows[1]["period_ns"].as_u64());
    assert!(rows[0]["phases_ns"]["gc"].as_u64() > Some(100_000_000), "{rows:?}");
    let range = call("steps", &json!({ "run": demo("gc"), "from": 5, "to": 7 }));
    let rows = range["structuredContent"]["data"]["steps"].as_array().unwrap().clone();
    assert_eq!(rows.iter().map(|row| row["step"].as_u64().unwrap()).collect::<Vec<_>>(), [5, 6, 7]);
}

#[test]
fn numbers_stacks_deaths_and_comparisons_are_answered() {
    let percentiles = call("percentiles", &json!({ "run": demo("loader"), "of": "data wait" }));
    assert_eq!(percentiles["structuredContent"]["data"]["lines"][0]["name"], "data wait");
    let stacks = call("stacks", &json!({ "run": demo("gc") }));
    assert!(stacks["structuredContent"]["summary"].as_str().unwrap().contains("train.py"), "{stacks}");
    let died = call("why_died", &json!({ "run": demo("hang") }));
    assert!(died["structuredContent"]["summary"].as_str().unwrap().contains("SIGINT"), "{died}");
    let figures = call("figures", &json!({ "run": demo("loader"), "contains": "gap." }));
    assert!(figures["structuredContent"]["data"]["figures"][0]["figure"].as_str().unwrap().contains("gap."));
    let compared = call("compare", &json!({ "baseline": demo("loader"), "candidate": demo("leak") }));
    assert!(compared["structuredContent"]["data"]["work"]["ratio"].as_f64() > Some(2.0), "{compared}");
}

#[test]
fn runs_are_listed_and_an_unknown_one_is_an_error_that_says_what_to_ask() {
    let sessions = Sessions::new();
    let live = sessions.live("pna", &gnntop_fixtures::TrainingRun::default().bytes());
    let runs = call_in(&sessions, "list_runs", &json!({}));
    let first = &runs["structuredContent"]["data"]["runs"][0];
    assert_eq!((&first["name"], &first["state"]), (&json!("pna"), &json!("live")), "{runs}");
    let waited = call_in(&sessions, "wait_for", &json!({ "steps": 1 }));
    assert!(waited["structuredContent"]["data"]["steps"].as_u64() > Some(0), "{waited}");
    drop(live);
    let unknown = call_in(&sessions, "diagnose", &json!({ "run": "nothing-like-it" }));
    assert_eq!(unknown["isError"], true, "{unknown}");
    assert!(unknown["structuredContent"]["next_step"].as_str().unwrap().contains("list_runs"));
}

#[test]
fn what_does_not_end_by_itself_is_refused_and_the_next_request_answered() {
    let sessions = Sessions::new();
    let pipe = sessions.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let mut requests: Vec<(&str, Value)> = ["-", pipe.to_str().unwrap(), "/dev/zero"]
        .iter()
        .flat_map(|run| ["diagnose", "wait_for"].map(|tool| json!({ "name": tool, "arguments": { "run": run } })))
        .map(|call| ("tools/call", call))
        .collect();
    requests.push(("resources/read", json!({ "uri": "gnntop://run/-/report" })));
    requests.push(("ping", json!({})));
    let answers = results(&sessions, &requests);
    for answer in &answers[..6] {
        assert_eq!(answer["isError"], true, "{answer}");
        assert!(answer["structuredContent"]["summary"].as_str().unwrap().contains("is no file and no run"), "{answer}");
    }
    assert_eq!(answers[7], json!({}));
}

#[test]
fn resources_are_the_findings_and_reports() {
    let sessions = Sessions::new();
    sessions.file("a.gnntop", &gnntop_fixtures::TrainingRun::default().bytes());
    let read = |uri: &str| ("resources/read", json!({ "uri": uri }));
    let results = results(
        &sessions,
        &[
            ("resources/list", json!({})),
            read("gnntop://findings"),
            read("gnntop://run/a.gnntop/report"),
            read("gnntop://run/../report"),
        ],
    );
    assert_eq!(results[0]["resources"][0]["uri"], "gnntop://findings");
    assert!(results[1]["contents"][0]["text"].as_str().unwrap().contains("data-bound"));
    assert!(results[2]["contents"][0]["text"].as_str().unwrap().contains("| "));
    assert_eq!(results[3], Value::Null, "nothing outside is read");
}

#[test]
fn setup_prints_the_line_for_each_client_and_changes_nothing() {
    let sessions = Sessions::new();
    let all = sessions.run(["mcp", "--setup"]);
    for words in ["claude mcp add", "config.toml", ".cursor/mcp.json", ".vscode/mcp.json"] {
        assert!(all.out.contains(words), "{words}: {}", all.out);
    }
    let one = sessions.run(["mcp", "--setup", "codex"]);
    assert!(one.out.contains("config.toml") && !one.out.contains("claude"), "{}", one.out);
}

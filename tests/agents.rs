//! `gnntop mcp`, as a client sees it: lines in, lines out.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::sessions::{Sessions, wait_until};

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
    let ran = sessions.run_with(["mcp", "--allow-run"], lines.collect::<String>().as_bytes());
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

/// A program that publishes steps of this many milliseconds, for a shell.
fn training(step_ms: u32) -> String {
    let this = std::env::current_exe().unwrap();
    let name = "prove::a_tiny_training";
    format!("PROVE_MS={step_ms} exec {} --exact {name} --ignored --nocapture", this.display())
}

#[test]
fn a_program_is_profiled_and_a_change_proven_where_that_is_allowed() {
    let sessions = Sessions::new();
    let call = |name: &str, arguments: Value| ("tools/call", json!({ "name": name, "arguments": arguments }));
    let shell = |command: &str| json!({ "command": ["sh", "-c", command] });
    let results = results(
        &sessions,
        &[
            call("profile", shell(&training(2))),
            call("profile", shell("echo nothing to see; exit 7")),
            call("prove", json!({ "baseline": training(12), "candidate": training(1), "pairs": 6 })),
            call("prove", json!({ "baseline": "exit 7", "candidate": "exit 7" })),
            call("prove", json!({ "job": "prove-3" })),
            call("trace", json!({ "run": "nothing-like-it" })),
        ],
    );
    let [profiled, failed, proven, unproven, asked, traced] = &results[..] else { panic!("{results:?}") };
    assert_eq!(profiled["structuredContent"]["data"]["steps"]["total"], 40, "{profiled}");
    assert_eq!(profiled["structuredContent"]["data"]["exit_code"], 0, "{profiled}");
    assert!(failed.to_string().contains("nothing to see"), "{failed}");
    assert!(proven["structuredContent"]["summary"].as_str().unwrap().starts_with("faster: "), "{proven}");
    assert_eq!(proven["structuredContent"]["next_step"], "keep the change");
    assert_eq!(unproven["isError"], true, "{unproven}");
    assert!(unproven.to_string().contains("exit code 7"), "{unproven}");
    assert_eq!(asked["structuredContent"], proven["structuredContent"], "a job is there until the server ends");
    assert!(traced.to_string().contains("nothing-like-it"), "{traced}");
}

#[test]
fn what_an_agent_started_ends_with_the_server() {
    let sessions = Sessions::new();
    let endless = json!({ "command": ["sh", "-c", "echo $$ > pid; exec sleep 1000"] });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
                          "params": { "name": "profile", "arguments": endless } });
    let mut server = sessions.gnntop(["mcp", "--allow-run"]);
    let mut server = server.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    writeln!(server.stdin.as_mut().unwrap(), "{request}").unwrap();
    let pid = sessions.path().join("pid");
    wait_until(|| fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n')));
    let program = fs::read_to_string(&pid).unwrap().trim().to_owned();
    server.kill().unwrap();
    server.wait().unwrap();
    wait_until(|| !Path::new("/proc").join(&program).exists());
}

#[test]
fn programs_are_started_only_where_that_is_allowed() {
    let sessions = Sessions::new();
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
                          "params": { "name": "profile", "arguments": { "command": ["touch", "started"] } } });
    let ran = sessions.run_with(["mcp"], format!("{request}\n").as_bytes());
    assert!(ran.out.contains("--allow-run"), "{ran:?}");
    assert!(!sessions.path().join("started").exists());
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

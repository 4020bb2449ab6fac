//! Traces of three steps, which is what people record with `active=3`: shares, longest spans, idle device, and what cannot
//! be told, in the report and for programs alike.

use crate::sessions::Sessions;

const TABLE: &str = "step,timestamp_s,step_ms,data_wait_ms,forward_ms,backward_ms\n\
                     1,10.0,100,30,40,50\n2,10.2,100,80,40,50\n3,10.35,120,30,60,50\n";

/// Three steps of 100 ms with a kernel of 25 ms each.
fn trace() -> String {
    let mut events = Vec::new();
    for n in 0..3 {
        let ts = 1_000_000 + n * 102_000;
        let mut event = |category: &str, name: &str, at: u64, dur: u64, pid: u32| {
            let ts = ts + at;
            events.push(format!(
                r#"{{"ph":"X","cat":"{category}","name":"{name}","pid":{pid},"tid":{pid},"ts":{ts},"dur":{dur}}}"#
            ));
        };
        event("user_annotation", &format!("ProfilerStep#{}", n + 2), 0, 100_000, 7);
        event("user_annotation", "forward", 10_000, 30_000, 7);
        event("user_annotation", "backward", 45_000, 40_000, 7);
        event("cpu_op", "aten::mm", 12_000, 2_000, 7);
        event("kernel", "gemm", 50_000, 25_000, 0);
    }
    format!(r#"{{"traceEvents":[{}]}}"#, events.join(","))
}

/// The report of an import as text, and the verdict for programs.
fn import_and_report(sessions: &Sessions, words: &[&str]) -> (String, String) {
    let ran = sessions.run(words);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let text = sessions.run(["report", "t.gnntop"]).out;
    let json: serde_json::Value = serde_json::from_str(&sessions.run(["report", "t.gnntop", "--json"]).out).unwrap();
    let verdict = json["verdict"].as_str().unwrap().to_owned();
    assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(&verdict), "{text}");
    let reasons = json["findings"]["not_enough"].as_array().unwrap().iter().map(|it| it["reason"].as_str().unwrap());
    assert!(reasons.clone().any(|reason| reason == "only 3 steps: 13 are needed, as the first 3 may warm up"));
    assert!(!reasons.into_iter().any(|reason| reason.contains("only 0 steps")), "{json}");
    (text, verdict)
}

#[test]
fn three_table_steps_are_reported() {
    let sessions = Sessions::new();
    sessions.file("t.csv", TABLE.as_bytes());
    let (_, verdict) = import_and_report(&sessions, &["import", "csv", "t.csv", "-o", "t.gnntop"]);
    assert!(verdict.starts_with("3 steps; backward-bound (33 %); data wait 24 %"), "{verdict}");
    assert!(verdict.contains("GPU idle time is not recorded"), "{verdict}");
    assert!(verdict.contains("longest: data wait 80.0 ms in step 2"), "{verdict}");
    assert!(verdict.ends_with("too few for findings, such as spikes, drift or warm-up"), "{verdict}");
}

#[test]
fn three_profiler_steps_are_reported_with_idle_gpu_and_longest_kernel() {
    let sessions = Sessions::new();
    sessions.file("t.json", trace().as_bytes());
    let (_, verdict) = import_and_report(&sessions, &["import", "chrome", "t.json", "-o", "t.gnntop"]);
    assert!(verdict.contains("no kernel on the GPU 75 % of the time"), "{verdict}");
    assert!(verdict.contains("longest: backward 40.0 ms in step 2, gemm 25.0 ms in step 2"), "{verdict}");
}

//! Where a Python program is when it takes too long: real programs under `gnntop run`, whose recordings name the line. Skipped,
//! and said, where there is no Python of 3.11 to 3.14.

use std::fs;

use crate::sessions::{Ran, Sessions, has_python};
use serde_json::Value;

/// Runs forty short steps of `work`, then what `body` does in a step; gives the report, and what the program printed.
fn stacks(head: &str, body: &str, environment: &[(&str, &str)]) -> Option<(Value, String)> {
    if !has_python((3, 11), (3, 15)) {
        return None;
    }
    let script = format!(
        "import gnntop, time\n{head}\nfor i in range(40):\n    with gnntop.span('work'):\n        time.sleep(0.002)\n    \
         gnntop.step()\nwith gnntop.span('work'):\n    {body}\ngnntop.step()\n"
    );
    let sessions = Sessions::new();
    sessions.file("train.py", script.as_bytes());
    let mut command = sessions.gnntop(["run", "--record", "a.gnntop", "--", "python3", "train.py"]);
    let ran = Ran::new(&command.envs(environment.iter().copied()).output().unwrap());
    let logs = fs::read_dir(sessions.path()).unwrap().map(|entry| entry.unwrap().path());
    let log = logs.filter(|path| path.extension().is_some_and(|of| of == "log")).max().unwrap();
    let said = fs::read_to_string(log).unwrap();
    assert_eq!(ran.code, Some(0), "{ran:?} {said}");
    let report = sessions.run(["report", "a.gnntop", "--json"]);
    let report: Value = serde_json::from_str(&report.out).unwrap_or_else(|error| panic!("{error}: {report:?}"));
    assert_eq!(report["steps"]["total"], 41, "{report}");
    let text = sessions.run(["report", "a.gnntop"]).out;
    assert_eq!(text.contains("taken while a phase took too long"), !report["stacks"].is_null(), "{text}");
    Some((report, said))
}

#[track_caller]
fn assert_named(head: &str, body: &str, place: &str) {
    let Some((report, _)) = stacks(head, body, &[]) else { return };
    let places = report["stacks"]["places"].to_string();
    assert!(places.contains(place), "no {place:?} in {places}; facts {}", report["session"]["facts"]);
}

#[test]
fn the_line_of_a_sleep_is_named_with_its_caller() {
    let head = "def tokenize(text):\n    time.sleep(0.4)\n    return text\ndef collate(batch):\n    return [tokenize(x) for x in batch]";
    assert_named(head, "collate(['a'])", "tokenize (train.py:3), under ");
}

#[test]
fn stack_is_taken_while_native_code_holds_the_gil() {
    // PyDLL keeps the lock for the whole call.
    let head = "import ctypes\nlibc = ctypes.PyDLL(None)\ndef locked():\n    libc.usleep(400_000)";
    assert_named(head, "locked()", "locked (train.py:5)");
}

#[test]
fn blocked_pipe_read_is_named() {
    let head = "import os, threading\nread, write = os.pipe()\ndef load():\n    return os.read(read, 1)";
    let Some((report, _)) = stacks(head, "threading.Timer(0.4, os.write, (write, b'x')).start(); load()", &[]) else {
        return;
    };
    assert!(report["stacks"]["places"].to_string().contains("load (train.py:5)"), "{report}");
    if fs::read_to_string("/proc/thread-self/syscall").is_ok() {
        let innermost = &report["stacks"]["stacks"][0][0][0];
        assert_eq!(innermost, "read of a pipe (<system call>)", "{report}");
    }
}

#[test]
fn deep_recursion_is_shortened() {
    let head = "def deep(n):\n    if n == 0:\n        return time.sleep(0.4)\n    return deep(n - 1)";
    let Some((report, _)) = stacks(head, "deep(500)", &[]) else { return };
    let frames = report["stacks"]["stacks"][0][0].to_string();
    assert!(frames.contains("deep (train.py:4)") && frames.contains("frames more)"), "{frames}");
    assert!(frames.contains("<module> (train.py:11)"), "the outermost frames are there: {frames}");
}

#[test]
fn many_threads_and_own_signal_handlers_are_unaffected() {
    let head = "
import signal, threading
seen = []
for number in (signal.SIGUSR1, signal.SIGALRM, signal.SIGPROF):
    signal.signal(number, lambda number, frame: seen.append(number))
stop = threading.Event()
threads = [threading.Thread(target=stop.wait) for _ in range(200)]
[thread.start() for thread in threads]
def busy():
    end = time.monotonic() + 0.4
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    while time.monotonic() < end:
        pass
    stop.set()
    print(seen)
";
    let Some((report, said)) = stacks(head, "busy()", &[]) else { return };
    assert!(report["stacks"]["places"].to_string().contains("busy (train.py:1"), "{report}");
    assert_eq!(said, "[14]\n", "its own signal came once, and none of ours");
}

#[test]
fn forked_child_is_unaffected() {
    let head = "import os\ndef wait():\n    child = os.fork()\n    if child == 0:\n        time.sleep(0.3)\n        os._exit(7)\n    print(os.waitpid(child, 0)[1] >> 8)";
    let Some((report, said)) = stacks(head, "wait()", &[]) else { return };
    assert!(report["stacks"]["places"].to_string().contains("wait (train.py:8)"), "{report}");
    assert_eq!(said, "7\n");
}

#[test]
fn no_stack_without_overdue_phase_or_when_turned_off() {
    let Some((report, _)) = stacks("", "time.sleep(0.3)", &[("GNNTOP_STALL_MS", "10000")]) else { return };
    assert_eq!(report["stacks"], Value::Null, "{report}");
    let (report, _) = stacks("", "time.sleep(0.3)", &[("GNNTOP_STALL_MS", "0")]).unwrap();
    assert_eq!(report["stacks"], Value::Null, "{report}");
}

/// A loop of two phases, three quarters of whose time are in `multiply`.
const LOOP: &str = "\
import gnntop, time
def read(seconds):
    time.sleep(seconds)
def multiply(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
for i in range(80):
    with gnntop.phase('data wait'):
        read(0.005)
    with gnntop.phase('forward'):
        multiply(0.015)
    gnntop.step()
";

/// Records that loop with stacks; `None` without a Python that they are read of.
fn sampled() -> Option<Sessions> {
    if !has_python((3, 11), (3, 15)) {
        return None;
    }
    let sessions = Sessions::new();
    sessions.file("train.py", LOOP.as_bytes());
    let ran = sessions.run(["run", "--stacks", "200", "--record", "a.gnntop", "--", "python3", "train.py"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    Some(sessions)
}

#[test]
fn sampled_stacks_give_shares_by_phase() {
    let Some(sessions) = sampled() else { return };
    let report: Value = serde_json::from_str(&sessions.run(["report", "a.gnntop", "--json"]).out).unwrap();
    let sampled = &report["sampled_stacks"];
    assert_eq!(
        (&sampled["phases"][0][0], &sampled["phases"][1][0]),
        (&"forward".into(), &"data wait".into()),
        "{sampled}"
    );
    let place = sampled["places"][0][0].as_str().unwrap();
    assert!(place.starts_with("multiply (train.py:") && place.ends_with(", under <module> (train.py:12)"), "{sampled}");
    assert!(sampled["places"].to_string().contains("read (train.py:3), under <module> (train.py:10)"), "{sampled}");
    assert_eq!((&sampled["a_second"], &sampled["known"]), (&200.into(), &sampled["taken"]));
    assert!(sampled["cost_share"].as_f64().is_some_and(|share| share > 0.0), "{sampled}");
    assert_eq!(report["losses"]["events_not_kept"], 0, "{report}");
    assert_eq!(report["marks"], Value::Array(Vec::new()), "a sample is no mark of the program");
    let text = sessions.run(["report", "a.gnntop"]).out;
    assert!(text.contains("taken, 200 a second, for ") && text.contains("    <module> (train.py:12)"), "{text}");
    let page = sessions.run(["report", "a.gnntop", "--html"]).out;
    let [flames, table] =
        ["<figure class=\"flames\"><ul><li", &format!("<td>{}</td>", place.replace('<', "&lt;").replace('>', "&gt;"))]
            .map(|part| page.contains(part));
    assert!(flames && table && page.contains("title=\"&lt;module&gt; (train.py:12): "), "{page}");
    let markdown = sessions.run(["report", "a.gnntop", "--markdown"]).out;
    assert!(markdown.contains("## Where in your code") && markdown.contains(" | share |"), "{markdown}");
}

#[test]
fn stacks_need_the_option_and_a_python_program() {
    let Some((report, _)) = stacks("", "time.sleep(0.1)", &[]) else { return };
    assert_eq!(report["sampled_stacks"], Value::Null);
    let sessions = Sessions::new();
    for (words, said) in [
        (&["run", "--stacks", "20", "pna"][..], "--stacks needs a Python program: gnntop run --stacks"),
        (&["run", "--stacks", "201", "--", "true"], "201 is not in 0..=200"),
    ] {
        let ran = sessions.run(words);
        assert!(ran.code == Some(2) && ran.err.contains(said), "{ran:?}");
    }
}

#[test]
fn flame_exports_have_sampled_stacks_and_tables_do_not() {
    let Some(sessions) = sampled() else { return };
    let report: Value = serde_json::from_str(&sessions.run(["report", "a.gnntop", "--json"]).out).unwrap();
    let taken = report["sampled_stacks"]["taken"].as_u64().unwrap();
    let collapsed = sessions.run(["export", "a.gnntop", "--to", "collapsed"]).out;
    let of_samples = |line: &&str| line.starts_with("stacks of train, sampled;");
    let lines: Vec<(&str, u64)> = collapsed
        .lines()
        .filter(of_samples)
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(stack, us)| (stack, us.parse().unwrap()))
        .collect();
    assert_eq!(
        lines.iter().map(|(_, us)| us).sum::<u64>(),
        taken * 5_000,
        "each stands for a 200th of a second: {collapsed}"
    );
    assert!(
        lines.iter().any(|(stack, _)| stack.contains(";forward;<module> (train.py:12);multiply (train.py:")),
        "{collapsed}"
    );

    let speedscope: Value =
        serde_json::from_str(&sessions.run(["export", "a.gnntop", "--to", "speedscope"]).out).unwrap();
    let profile =
        speedscope["profiles"].as_array().unwrap().iter().find(|profile| profile["type"] == "sampled").unwrap();
    let (samples, weights) = (profile["samples"].as_array().unwrap(), profile["weights"].as_array().unwrap());
    assert_eq!((profile["name"].as_str(), samples.len()), (Some("stacks of train, sampled"), weights.len()));
    let all_ns: u64 = weights.iter().filter_map(Value::as_u64).sum();
    assert_eq!((all_ns, profile["endValue"].as_u64()), (taken * 5_000_000, Some(all_ns)));
    let outermost = &speedscope["shared"]["frames"][samples[0][0].as_u64().unwrap() as usize]["name"];
    assert!(["forward", "data wait", "gap"].iter().any(|phase| outermost == phase), "{outermost}");

    let part = sessions.run(["export", "a.gnntop", "--to", "collapsed", "--steps", "20..40"]).out;
    let part_us: u64 =
        part.lines().filter(of_samples).filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum();
    assert!(part_us > 0 && part_us < taken * 5_000, "{part_us} of {taken} x 5000");
    assert!(!sessions.run(["export", "a.gnntop", "--to", "csv"]).out.contains("multiply"), "samples are no marks");
}

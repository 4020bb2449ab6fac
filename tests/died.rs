//! Real programs that die, in many ways, under `gnntop run`: the paragraph that says why is printed, is in the recording, and is
//! in the list. Skipped, and said, without a Python of 3.10 or newer.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use crate::sessions::{Ran, Sessions, has_python, spawn, wait_until};
use serde_json::Value;

/// Steps of its own, then whatever follows.
const STEPS: &str = "
import gnntop, time
for i in range(20):
    with gnntop.span('work'):
        time.sleep(0.002)
    gnntop.step()
# What was recorded goes out every 40 ms; a process that is killed before takes it along.
time.sleep(0.3)
";

/// What a script that published steps died of: as it was printed, with what the recording and the list say.
struct DiedRun {
    ran: Ran,
    cause: Value,
    text: String,
    list: String,
    report: Value,
}

fn die(end: &str) -> Option<DiedRun> {
    if !has_python((3, 10), (4, 0)) {
        return None;
    }
    let sessions = Sessions::new();
    sessions.file("train.py", format!("{STEPS}{end}").as_bytes());
    let ran = sessions.run(["run", "--record", "a.gnntop", "--", "python3", "train.py"]);
    let report = sessions.run(["report", "a.gnntop", "--json"]);
    let report: Value = serde_json::from_str(&report.out).unwrap_or_else(|error| panic!("{error}: {report:?} {ran:?}"));
    assert_eq!(report["steps"]["total"], 20, "{report}");
    let session = report["session"].clone();
    let text = session["died"].as_str().unwrap_or_default().to_owned();
    assert!(ran.err.contains(&text), "{text:?} is printed: {ran:?}");
    let page = sessions.run(["report", "a.gnntop"]).out;
    assert_eq!(page.contains("why it died: "), !text.is_empty(), "{page}");
    Some(DiedRun { cause: session["died_of"].clone(), text, list: sessions.run(["list"]).out, report, ran })
}

#[track_caller]
fn check(end: &str, code: i32, cause: &str, words: &[&str]) {
    let Some(death) = die(end) else { return };
    assert_eq!((death.ran.code, &death.cause), (Some(code), &Value::from(cause)), "{} {:?}", death.text, death.ran);
    words.iter().for_each(|word| assert!(death.text.contains(word), "no {word:?} in {}", death.text));
    assert!(death.list.split_whitespace().collect::<Vec<_>>().join(" ").contains(&death.text), "{}", death.list);
}

#[test]
fn uncaught_exception_is_reported() {
    let end = "def collate():\n    raise ValueError('thrown')\ncollate()";
    check(end, 1, "exception", &["ValueError: thrown, in collate, train.py:10.", "step 20"]);
}

#[test]
fn early_exit_is_reported() {
    let end = "import os\ndef stop():\n    print('that was it', flush=True)\n    os._exit(3)\nstop()";
    check(end, 3, "exit-code", &["called os._exit in stop, train.py:12: exit code 3", "that was it"]);
    check("import sys; print('bye', flush=True); sys.exit(3)", 3, "exit-code", &["exited with code 3", "bye"]);
}

#[test]
fn native_crash_is_reported() {
    let end = "import ctypes\ndef load(): ctypes.string_at(0)\nload()";
    let place = "SIGSEGV, in load, train.py:10 (inside string_at, __init__.py:";
    check(end, 139, "crash", &[place]);
    let prints = format!("import faulthandler; faulthandler.enable(); {end}");
    check(&prints, 139, "crash", &[place]);
    let Some(death) = die(end) else { return };
    assert!(!death.ran.out.contains("Fatal Python error"), "its own output stays as it is: {:?}", death.ran);
}

#[test]
fn kill_is_reported_with_open_phase() {
    let end = "
import os, signal
with gnntop.span('backward'):
    time.sleep(1.6)
    os.kill(os.getpid(), signal.SIGKILL)
";
    check(
        end,
        137,
        "killed",
        &[
            "killed by SIGKILL",
            "not the kernel's out-of-memory killer",
            "It was in backward",
            "before the end shows <module> (train.py:12).",
            "memory",
        ],
    );
}

#[test]
fn address_space_limit_is_reported() {
    let end = "
import resource
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
x = bytearray(8 << 30)
";
    check(end, 1, "memory-refused", &["ran out of memory: MemoryError, in train.py:12", "smaller batch"]);
}

#[test]
fn program_that_asks_its_terminal_is_told_that_it_has_none() {
    let words = ["in ask, train.py:10", "gives it none", "echo yes | gnntop run", "`gnntop run --tty -- ...`"];
    check("def ask():\n    input('go on? ')\nask()", 1, "no-terminal", &words);
    check("def ask():\n    breakpoint()\n    x = 1\nask()", 1, "no-terminal", &["gives it none"]);
}

#[test]
fn group_and_thread_exceptions_are_reported() {
    if has_python((3, 11), (4, 0)) {
        let end = "def f():\n    raise ExceptionGroup('two', [KeyError('x'), OSError(3)])\nf()";
        check(
            end,
            1,
            "exception",
            &["ExceptionGroup: two (2 sub-exceptions), the first: KeyError: 'x', in f, train.py:10."],
        );
    }
    let end = "import sys, threading\ndef load():\n    raise ValueError('thrown')\nt = threading.Thread(target=load, name='loader')\n\
               t.start(); t.join()\nprint('epoch 1:  45%|####5 |', end='', flush=True)\nsys.exit(3)";
    check(
        end,
        3,
        "exit-code",
        &["exited with code 3. The last exception that it printed: ValueError: thrown, in load"],
    );
    let end = "import sys\nsys.stderr.write('epoch 1:  45%|####5 | 45/100')\nraise ValueError('thrown')";
    check(end, 1, "exception", &["ValueError: thrown, in train.py:11."]);
}

#[test]
fn early_end_with_code_0_is_no_death() {
    for end in [
        "import os; os._exit(0)",
        "import os, sys; os.execv('/bin/true', ['true'])",
        "import os\nif os.fork(): os._exit(0)",
    ] {
        let Some(death) = die(end) else { return };
        assert_eq!((death.ran.code, &death.cause), (Some(0), &Value::Null), "{end}: {:?}", death.ran);
        let report = &death.report["session"];
        assert_eq!(
            (&report["state"], &report["end_reason"]),
            (&"ended".into(), &"exit code 0".into()),
            "{end}: {report}"
        );
    }
}

#[test]
fn full_disk_is_reported() {
    check(
        "open('/dev/full', 'w', buffering=1).write('x\\n')",
        1,
        "disk-full",
        &["No space left on device", "train.py:9"],
    );
}

#[test]
fn successful_program_has_no_death() {
    let Some(death) = die(
        "import threading, sys\nthread = threading.Thread(target=lambda: sys.exit(5))\nthread.start(); thread.join()",
    ) else {
        return;
    };
    assert_eq!((death.ran.code, death.cause), (Some(0), Value::Null), "a thread's exit is not the program's");
}

#[test]
fn death_of_a_rank_is_its_own_while_another_still_runs() {
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    let sessions = Sessions::new();
    let waits = "import gnntop, os, time\ngnntop.step()\nwhile not os.path.exists('stop'): time.sleep(0.05)\n";
    sessions.file("waits.py", waits.as_bytes());
    sessions.file("dies.py", format!("{STEPS}raise ValueError('thrown')").as_bytes());
    let rank = |rank: &str, script: &str| {
        let mut command = sessions.gnntop(["run", "--plain", "--", "python3", script]);
        command.envs([("RANK", rank), ("WORLD_SIZE", "2"), ("GNNTOP_RUN", "job")]);
        command
    };
    let mut other = spawn(rank("0", "waits.py").stdout(Stdio::null()).stderr(Stdio::null()));
    wait_until(|| sessions.run(["list"]).out.contains("waits.py"));
    let died = rank("1", "dies.py").output().unwrap();
    sessions.file("stop", b"");
    other.wait().unwrap();
    let said = String::from_utf8_lossy(&died.stderr).into_owned();
    assert!(said.contains("ValueError: thrown") && said.contains("step 20"), "{said}");
}

#[test]
fn death_of_program_without_session_is_reported() {
    let sessions = Sessions::new();
    let ran = sessions.run(["run", "--record", "a.gnntop", "--", "sh", "-c", "sleep 0.4; kill -SEGV $$"]);
    assert!(ran.err.contains("sh crashed in native code with SIGSEGV"), "{ran:?}");
    let report: Value = serde_json::from_str(&sessions.run(["report", "a.gnntop", "--json"]).out).unwrap();
    assert_eq!(report["session"]["died_of"], "crash");
}

/// A control group with this limit below our own, where the system lets us make one.
struct MemoryGroup(PathBuf);

impl MemoryGroup {
    fn with_limit(bytes: u64) -> Option<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        // Version 1 has a tree for memory alone, version 2 one for everything.
        [(":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("0::", "/sys/fs/cgroup", "memory.max")]
            .into_iter()
            .find_map(|(of, root, limit)| {
                let path = groups.lines().find_map(|line| line.split_once(of).map(|(_, path)| path))?;
                let folder = PathBuf::from(root).join(path.trim_start_matches('/'));
                let group = Self(folder.join(format!("gnntop-test-{}", std::process::id())));
                fs::create_dir(&group.0).ok()?;
                fs::write(group.0.join(limit), bytes.to_string()).ok()?;
                Some(group)
            })
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn control_group_limit_is_reported() {
    let Some(group) = MemoryGroup::with_limit(256 << 20).filter(|_| has_python((3, 10), (4, 0))) else {
        eprintln!("skipped: no control group with a limit on memory can be made here");
        return;
    };
    let sessions = Sessions::new();
    let end = "\nx = []\nwhile True:\n    x.append(bytearray(b'x' * (8 << 20))); time.sleep(0.005)\n";
    sessions.file("train.py", format!("{STEPS}{end}").as_bytes());
    let gnntop = env!("CARGO_BIN_EXE_gnntop");
    let script = format!("echo $$ > {}/cgroup.procs; exec {gnntop} run -- python3 train.py", group.0.display());
    let ran = Ran::new(&sessions.program("sh").args(["-c", &script]).output().unwrap());
    assert_eq!(ran.code, Some(137), "{ran:?}");
    for word in ["its control group, limited to 256 MiB, ran out of memory, with a peak of ", "smaller batch"] {
        assert!(ran.err.contains(word), "no {word:?} in {ran:?}");
    }
}

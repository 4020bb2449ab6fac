//! Python programs under `gnntop run`: what is seen of them, and that they do not notice. Skipped, and said, without a
//! Python of 3.10 or newer; torch is not needed.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::sessions::{Ran, Sessions, has_python};
use serde_json::Value;

/// Twenty steps of its own, with a span and a counter in each.
const STEPS: &str = "
import gnntop, sys
for i in range(20):
    with gnntop.span('work'):
        sum(range(1000))
    gnntop.counter('reward', i)
    gnntop.step()
";

/// Runs a script under `gnntop run`, recorded.
fn recorded(sessions: &Sessions, script: &str) -> Ran {
    sessions.file("script.py", script.as_bytes());
    sessions.run(["run", "--record", "a.gnntop", "--force", "--", "python3", "script.py"])
}

fn report(sessions: &Sessions) -> Value {
    let ran = sessions.run(["report", "a.gnntop", "--json"]);
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

/// The program's own output.
fn log(sessions: &Sessions) -> String {
    let entries = fs::read_dir(sessions.path()).unwrap().map(|entry| entry.unwrap().path());
    let log = entries.filter(|path| path.extension().is_some_and(|extension| extension == "log")).max().unwrap();
    fs::read_to_string(log).unwrap()
}

/// What a command writes to both its streams, and its exit code, without us.
fn alone(sessions: &Sessions, command: &mut Command) -> (String, Option<i32>) {
    let path = sessions.path().join("alone.txt");
    let file = fs::File::create(&path).unwrap();
    command.current_dir(sessions.path()).stdout(file.try_clone().unwrap()).stderr(file);
    let code = command.status().unwrap().code();
    (fs::read_to_string(path).unwrap(), code)
}

#[test]
fn short_program_that_another_has_started_is_seen() {
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    let sessions = Sessions::new();
    sessions.file("script.py", STEPS.as_bytes());
    let ran = sessions.run(["run", "--plain", "--record", "a.gnntop", "--", "timeout", "100", "python3", "script.py"]);
    assert_eq!(ran.code, Some(0), "{ran:?} {}", log(&sessions));
    assert!(ran.out.contains("step 20") && !ran.out.contains("publishes no steps"), "{ran:?}");
    assert_eq!(report(&sessions)["steps"]["total"], 20, "{ran:?}");
}

#[test]
fn own_steps_are_published_and_recorded() {
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    let sessions = Sessions::new();
    let ran = recorded(&sessions, STEPS);
    assert_eq!(ran.code, Some(0), "{ran:?} {}", log(&sessions));
    let report = report(&sessions);
    assert_eq!(report["steps"]["total"], 20, "{report}");
    assert_eq!(report["session"]["name"], "script.py");
    assert!(report.to_string().contains("\"work\""), "{report}");
}

/// The files of the package in the cache.
fn cached(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { cached(&path) } else { vec![path] }).collect()
}

#[test]
fn a_package_that_was_damaged_in_the_cache_is_whole_at_the_next_start() {
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    let sessions = Sessions::new();
    assert_eq!(recorded(&sessions, STEPS).code, Some(0));
    let files = cached(&sessions.path().join("cache"));
    assert!(!files.iter().any(|file| file.extension().is_some_and(|end| end == "pyc")), "{files:?}");
    for file in files {
        let file = fs::OpenOptions::new().write(true).open(file).unwrap();
        file.set_len(file.metadata().unwrap().len() / 3).unwrap();
    }
    let ran = recorded(&sessions, STEPS);
    assert_eq!((ran.code, log(&sessions).as_str()), (Some(0), ""), "{ran:?}");
    assert_eq!(report(&sessions)["steps"]["total"], 20);
}

#[test]
fn program_output_and_exit_code_are_unchanged() {
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    let script = "
import sys, os, subprocess, traceback
print('out', sys.flags, sys.argv, [p for p in sys.path if 'gnntop' in p], flush=True)
print('err', file=sys.stderr, flush=True)
import json, decimal
subprocess.run([sys.executable, '-c', 'print(1); raise SystemExit(3)'])
subprocess.run([sys.executable, '-I', '-c', 'import sys; print([p for p in sys.path if \"gnntop\" in p])'])
subprocess.run([sys.executable, '-S', '-c', 'print(2)'])
try:
    import torch
except ImportError as error:
    print(error, error.name)
def deep():
    raise ValueError('thrown')
deep()
";
    let sessions = Sessions::new();
    sessions.file("script.py", script.as_bytes());
    let (expected, code) = alone(&sessions, Command::new("python3").args(["-u", "script.py", "a b"]));
    let ran = sessions.run(["run", "--", "python3", "-u", "script.py", "a b"]);
    assert_eq!(log(&sessions), expected);
    assert_eq!((ran.code, code), (Some(1), Some(1)));
}

#[test]
fn own_sitecustomize_is_run() {
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    for custom in ["print('mine', __name__)", "import no_such_module", "raise ValueError('mine')"] {
        let sessions = Sessions::new();
        let dir = sessions.path().join("site");
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("sitecustomize.py"), custom).unwrap();
        let script = "import sys; print(getattr(sys.modules.get('sitecustomize'), '__file__', None))";
        let (expected, code) = alone(&sessions, Command::new("python3").args(["-c", script]).env("PYTHONPATH", &dir));
        let mut command = sessions.gnntop(["run", "--", "python3", "-c", script]);
        let ran = Ran::new(&command.env("PYTHONPATH", &dir).output().unwrap());
        assert_eq!(log(&sessions), expected, "{custom}");
        assert_eq!(ran.code, code, "{custom}");
    }
}

#[test]
fn exiting_sitecustomize_ends_the_program() {
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    let sessions = Sessions::new();
    fs::write(sessions.path().join("sitecustomize.py"), "import sys; sys.exit(4)").unwrap();
    let (expected, code) =
        alone(&sessions, Command::new("python3").args(["-c", "1"]).env("PYTHONPATH", sessions.path()));
    let mut command = sessions.gnntop(["run", "--", "python3", "-c", "1"]);
    let ran = Ran::new(&command.env("PYTHONPATH", sessions.path()).output().unwrap());
    // Python prints the way to the exit, on which our own file lies.
    assert_eq!(log(&sessions).lines().last(), expected.lines().last());
    assert_eq!(ran.code, code);
}

#[test]
fn a_program_without_torch_shows_and_records_its_hardware() {
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    let sessions = Sessions::new();
    let ran = recorded(&sessions, "import time; time.sleep(1.5)");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("no Python of this program has imported torch"), "{ran:?}");
    assert!(ran.err.contains("hardware only"), "{ran:?}");
    assert!(ran.err.contains("showed no steps: no Python of it imported torch"), "{ran:?}");
    assert!(!ran.out.contains("start it with `gnntop run"), "that is what was done: {ran:?}");
    assert_eq!(report(&sessions)["steps"]["total"], 0);
}

#[test]
fn a_python_that_is_not_reached_is_named_with_the_reason() {
    if !has_python((3, 10), (3, 14)) {
        return;
    }
    let script = "import time; time.sleep(2.5)";
    for (shell, expected) in [
        ("export PYTHONPATH=.\npython3 train.py", "line 1 of train.sh sets PYTHONPATH without what it had"),
        ("PYTHONPATH=lib python3 train.py", "change `PYTHONPATH=lib python3 train.py` to `PYTHONPATH=lib:$PYTHONPATH"),
        ("env PYTHONPATH= python3 train.py", "line 1 of train.sh sets PYTHONPATH"),
        ("env -i \"$(which python3)\" train.py", "its environment was cleared, as by `env -i`"),
        ("python3 -I train.py", "it was started with -I"),
        ("python3 -u -E train.py", "it was started with -E"),
        ("(exec -a sudo bash -c 'env -i \"$(which python3)\" train.py; true')", "`sudo gnntop run -- python ...`"),
        (
            "docker() { (exec -a docker sleep 6); }; docker",
            "what docker starts is not below it: run gnntop in the container",
        ),
    ] {
        let sessions = Sessions::new();
        sessions.file("train.py", script.as_bytes());
        // So that the shell stays above the program.
        sessions.file("train.sh", format!("{shell}\ntrue\n").as_bytes());
        let ran = sessions.run(["run", "--", "bash", "train.sh"]);
        assert!(ran.out.contains(expected), "{shell}: {ran:?}");
        assert!(!ran.out.contains("gnntop-probe (Rust)"), "{shell}: {ran:?}");
    }
}

#[test]
fn a_script_that_puts_a_folder_beside_no_path_has_the_path_that_it_has_alone() {
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    let sessions = Sessions::new();
    sessions.file("path.py", b"import os, sys; open(sys.argv[1], 'w').write(repr(sys.path))");
    for set in ["$PYTHONPATH:src", "src:$PYTHONPATH", "$PWD:$PYTHONPATH", "$PYTHONPATH", ":$PYTHONPATH"] {
        for outside in [None, Some(""), Some("/outside")] {
            let path = |own: &str| {
                let script = format!("export PYTHONPATH=\"{set}\"; python3 path.py {own}; true");
                let mut command = if own == "alone" {
                    Command::new("bash")
                } else {
                    sessions.gnntop(["run", "--plain", "--", "bash"])
                };
                command.args(["-c", &script]).current_dir(sessions.path()).env_remove("PYTHONPATH");
                outside.inspect(|outside| _ = command.env("PYTHONPATH", outside));
                assert!(command.output().unwrap().status.success());
                fs::read_to_string(sessions.path().join(own)).unwrap()
            };
            assert_eq!(path("under"), path("alone"), "{set} {outside:?}");
        }
    }
}

#[test]
fn a_program_that_showed_no_steps_says_why_at_its_end() {
    if !has_python((3, 10), (3, 14)) {
        return;
    }
    let sessions = Sessions::new();
    let folder = |name: &str, torch: &str| {
        fs::create_dir_all(sessions.path().join(name).join("torch")).unwrap();
        fs::write(sessions.path().join(name).join("torch/__init__.py"), torch).unwrap();
    };
    folder(".", "");
    folder("old", "__version__ = '2.2.0'");
    folder("hides", "");
    sessions.file("old/train.py", b"import torch");
    sessions.file("hides/ctypes.py", b"");
    sessions.file("hides/train.py", b"import torch");
    sessions.file("train.sh", b"export PYTHONPATH=.\npython3 -c 'import time; time.sleep(2.5)'\ntrue\n");
    let cleared = "env -i \"$(which python3)\" -c 'import time; time.sleep(2.5)'; true";
    let docker = "docker() { (exec -a docker sleep 6); }; docker";
    // Any program by this name.
    let old_python = "cp \"$(which bash)\" python3.8; ./python3.8 -c 'sleep 2.5; true'; true";
    for (command, expected) in [
        (&["python3", "-c", "pass"][..], "no Python of it imported torch"),
        (
            &["python3", "-c", "import torch"],
            "it imported torch, and ended before a backward pass or a batch through a",
        ),
        (&["python3", "old/train.py"], "torch 2.2.0 is older than 2.3"),
        (&["python3", "hides/train.py"], "ctypes.py takes the place of a module of Python's"),
        (&["python3", "-I", "-c", "pass"], "its Python was not reached: it was started with -I"),
        (&["python3", "-u", "-E", "-c", "pass"], "its Python was not reached: it was started with -E"),
        (&["bash", "train.sh"], "its Python was not reached: line 1 of train.sh sets PYTHONPATH without what it had"),
        (&["bash", "-c", cleared], "its Python was not reached: its environment was cleared, as by `env -i`"),
        (&["bash", "-c", docker], "what docker starts is not below it: run gnntop in the container"),
        (&["bash", "-c", old_python], "it is Python 3.8, and gnntop needs 3.10 or newer"),
    ] {
        let ran = sessions.run([&["run", "--"], command].concat());
        assert!(ran.err.contains("showed no steps: ") && ran.err.contains(expected), "{command:?}: {ran:?}");
    }
    let mut off = sessions.gnntop(["run", "--", "python3", "-c", "pass"]);
    let ran = Ran::new(&off.env("GNNTOP", "0").output().unwrap());
    assert!(ran.err.contains("showed no steps: GNNTOP=0 is set"), "{ran:?}");
}

#[test]
fn a_python_that_something_else_starts_publishes_with_our_variables() {
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    let sessions = Sessions::new();
    let script = b"import gnntop\nfor _ in range(20):\n    gnntop.step()\n";
    sessions.file("it's train.py", script);
    let shell = r#"eval "$("$GNNTOP" env --run "it's mine")" && exec python3 "it's train.py""#;
    let mut shell = {
        let mut sh = sessions.program("sh");
        sh.args(["-c", shell]);
        sh
    };
    let ran = Ran::new(&shell.env("GNNTOP", env!("CARGO_BIN_EXE_gnntop")).output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = sessions.run(["report", "it's mine", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&report.out).unwrap_or_else(|_| panic!("{report:?}"));
    assert_eq!(report["steps"]["total"], 20);
    let variables = sessions.run(["env", "--json"]);
    let variables: serde_json::Value = serde_json::from_str(&variables.out).unwrap();
    assert!(variables["PYTHONPATH"].as_str().unwrap().ends_with("bootstrap/"), "{variables}");
    assert!(variables.get("GNNTOP_RUN").is_none());
}

#[test]
fn a_python_that_does_not_look_for_us_is_joined() {
    if !has_python((3, 14), (4, 0)) {
        return;
    }
    let script = "
import time
for tries in range(600):
    try:
        import gnntop
        break
    except ImportError:
        time.sleep(0.05)
for _ in range(20):
    gnntop.step()
    time.sleep(0.02)
print('done')
";
    for options in ["", "-I ", "-E ", "-S "] {
        let shell = format!("export PYTHONPATH=.; python3 {options}train.py");
        let sessions = Sessions::new();
        sessions.file("train.py", script.as_bytes());
        sessions.file("train.sh", format!("{shell}\ntrue\n").as_bytes());
        let ran = sessions.run(["run", "--record", "a.gnntop", "--", "bash", "train.sh"]);
        assert_eq!((ran.code, log(&sessions).as_str()), (Some(0), "done\n"), "{shell}: {ran:?}");
        assert_eq!(report(&sessions)["steps"]["total"], 20, "{shell}");
    }
}

#[test]
fn fork_does_not_change_the_steps() {
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    let script = "
import gnntop, os
def steps(count):
    for _ in range(count):
        with gnntop.span('work'):
            pass
        gnntop.step()
steps(10)
child = os.fork()
steps(5 if child == 0 else 10)
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
";
    let sessions = Sessions::new();
    assert_eq!(recorded(&sessions, script).code, Some(0));
    assert_eq!(report(&sessions)["steps"]["total"], 20);
}

#[test]
fn steps_are_kept_when_program_exits_abruptly() {
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    for (end, code) in [("os._exit(3)", 3), ("os.kill(os.getpid(), 9)", 137), ("os.abort()", 134)] {
        let sessions = Sessions::new();
        // A signal does not wait for the drain thread; `os._exit` does.
        let pause = if code == 3 { 0.0 } else { 0.3 };
        let ran = recorded(&sessions, &format!("{STEPS}\nimport os, time; time.sleep({pause})\n{end}\n"));
        assert_eq!(ran.code, Some(code), "{end}: {ran:?}");
        assert_eq!(report(&sessions)["steps"]["total"], 20, "{end}");
    }
}

#[test]
fn workers_record_into_their_parents_session_however_they_are_started() {
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    let script = "
import multiprocessing, sys, time
from gnntop import _native
def work(address):
    assert _native.worker_attach(address) and _native.status() == _native.WORKER
    assert not _native.worker_attach(address), 'a ring has one writer'
    for _ in range(30):
        _native.begin(_native.span_name('fetch'))
        _native.end()
if __name__ == '__main__':
    import gnntop
    for at, way in enumerate(['fork', 'spawn', 'forkserver']):
        handle, address = _native.worker_ring(f'worker {at} by {way}')
        worker = multiprocessing.get_context(way).Process(target=work, args=(address,))
        worker.start()
        worker.join()
        assert worker.exitcode == 0, way
        if at == 0:
            gnntop.step()  # the first ring was filled before there was a session
        time.sleep(0.1)
        _native.worker_close(handle)
    gnntop.step()
";
    let sessions = Sessions::new();
    let ran = recorded(&sessions, script);
    assert_eq!(ran.code, Some(0), "{ran:?} {}", log(&sessions));
    let ran = sessions.run(["export", "a.gnntop", "--to", "ndjson"]);
    for way in ["0 by fork", "1 by spawn", "2 by forkserver"] {
        let track = format!("worker {way}");
        let spans = ran.out.lines().filter(|line| line.contains(&track) && line.contains("\"fetch\"")).count();
        assert_eq!(spans, 30, "{way}: {}", ran.out);
    }
}

#[test]
fn hooks_can_be_turned_off() {
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    let sessions = Sessions::new();
    sessions.file("script.py", format!("{STEPS}\nprint(gnntop._native.problem)").as_bytes());
    let mut command = sessions.gnntop(["run", "--", "python3", "-c", "import os; print(os.environ.get('PYTHONPATH'))"]);
    Ran::new(&command.env("GNNTOP", "0").env_remove("PYTHONPATH").output().unwrap());
    assert_eq!(log(&sessions), "None\n");
    assert!(!sessions.path().join("cache").exists(), "nothing was laid down");
}

#[test]
fn unwritable_sessions_directory_is_reported_to_the_viewer_only() {
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    let sessions = Sessions::new();
    let closed = sessions.path().join("closed");
    fs::create_dir(&closed).unwrap();
    // A directory that others can write to is refused, to root too.
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o777)).unwrap();
    let script = format!("{STEPS}\nimport time; time.sleep(0.2); print(gnntop._native.warning(), end='')");
    sessions.file("script.py", script.as_bytes());
    let mut command = sessions.gnntop(["run", "--", "python3", "script.py"]);
    let ran = Ran::new(&command.env("GNNTOP_DIR", &closed).output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn nested_gnntop_run_changes_nothing() {
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    let sessions = Sessions::new();
    // A session of a child's child is found while it lives.
    sessions.file("script.py", format!("{STEPS}\nimport time; time.sleep(0.6)").as_bytes());
    let inner = [env!("CARGO_BIN_EXE_gnntop"), "run", "--", "python3", "script.py"];
    let ran = sessions.run([&["run", "--record", "a.gnntop", "--"][..], &inner].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(report(&sessions)["steps"]["total"], 20);
}

/// A torch that is a few lines: enough for its import to be seen.
fn fake_torch(sessions: &Sessions, text: &str) {
    let dir = sessions.path().join("torch");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("__init__.py"), text).unwrap();
}

#[test]
fn unknown_torch_is_not_patched() {
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    let script = "
import sys, torch
print(torch.__spec__.loader, torch.__loader__ is torch.__spec__.loader, torch.value, len(sys.meta_path))
import importlib
print(importlib.reload(torch) is torch)
try:
    import torch.nothing
except ImportError as error:
    print(error)
";
    let sessions = Sessions::new();
    fake_torch(&sessions, "value = 5\nprint('once')\n");
    let plain = |text: &str| -> String {
        let lines = text.lines().map(|line| line.split(" at 0x").next().unwrap_or(line).to_owned());
        lines.collect::<Vec<_>>().join("\n")
    };
    sessions.file("script.py", script.replace(", len(sys.meta_path)", "").as_bytes());
    let (expected, _) = alone(&sessions, Command::new("python3").arg("script.py"));
    let ran = sessions.run(["run", "--", "python3", "script.py"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(plain(&log(&sessions)), plain(&expected));
}

#[test]
fn failing_torch_import_fails_unchanged() {
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    let sessions = Sessions::new();
    fake_torch(&sessions, "raise OSError('libcudart is not there')\n");
    sessions.file("script.py", b"import torch\n");
    let (expected, code) = alone(&sessions, Command::new("python3").arg("script.py"));
    let ran = sessions.run(["run", "--", "python3", "script.py"]);
    assert_eq!((log(&sessions), ran.code), (expected, code));
}

#[test]
fn shell_scripts_and_other_programs_run_unchanged() {
    let sessions = Sessions::new();
    let ran = sessions.run(["run", "--record", "a.gnntop", "--", "sh", "-c", "sleep 0.3; echo done; exit 6"]);
    assert_eq!((ran.code, log(&sessions).as_str()), (Some(6), "done\n"), "{ran:?}");
    assert!(Path::new(&sessions.path().join("a.gnntop")).exists());
}

/// A Python of 3.14 or newer that `GNNTOP_PYTHON_314` names, or that is on the path.
fn joinable_python() -> Option<String> {
    let python = std::env::var("GNNTOP_PYTHON_314").unwrap_or_else(|_| "python3.14".to_owned());
    let found = Command::new(&python).args(["-c", "pass"]).status().is_ok_and(|status| status.success());
    if !found {
        eprintln!("skipped: there is no {python} (GNNTOP_PYTHON_314 names one)");
    }
    found.then_some(python)
}

#[test]
fn running_python_is_joined_and_restored() {
    let Some(python) = joinable_python() else { return };
    let script = "
import sys, time
before = set(vars()), list(sys.path), list(sys.meta_path)
print('ready', flush=True)
for i in range(2000):
    time.sleep(0.005)
    if '_gnntop._joining' in sys.modules and not any(type(f).__name__ == '_TorchFinder' for f in sys.meta_path):
        break
print('left' if i < 1999 else 'never', set(vars()) - before[0] - {'before', 'i'}, list(sys.path) == before[1], list(sys.meta_path) == before[2])
";
    let sessions = Sessions::new();
    sessions.file("script.py", script.as_bytes());
    let mut child = crate::sessions::spawn(Command::new(python).arg("script.py").current_dir(sessions.path()));
    let mut ready = [0; 6];
    child.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
    let mut command = sessions.gnntop(["attach", &child.id().to_string()]);
    let viewer = crate::sessions::spawn(&mut command);
    std::thread::sleep(std::time::Duration::from_millis(1500));
    crate::sessions::signal(&viewer, "INT");
    let viewer = Ran::new(&viewer.wait_with_output().unwrap());
    if viewer.err.contains("this user may not trace it") {
        eprintln!("skipped: {}", viewer.err);
        child.kill().unwrap();
        child.wait().unwrap();
        return;
    }
    assert!(viewer.err.contains("joined its Python"), "{viewer:?}");
    let ran = Ran::new(&child.wait_with_output().unwrap());
    assert_eq!((ran.out.as_str(), ran.err.as_str(), ran.code), ("left set() True True\n", "", Some(0)));
}

#[test]
fn older_python_is_not_joined_with_reason() {
    let script = "import sys, time; print(int(sys.version_info < (3, 14)), flush=True); time.sleep(20)";
    let Ok(mut child) = Command::new("python3").args(["-c", script]).stdout(Stdio::piped()).spawn() else { return };
    let mut is_older = [0; 1];
    child.stdout.as_mut().unwrap().read_exact(&mut is_older).unwrap();
    if is_older == *b"1" {
        let sessions = Sessions::new();
        let mut viewer = crate::sessions::spawn(&mut sessions.gnntop(["attach", &child.id().to_string()]));
        let (mut errors, mut note) = (BufReader::new(viewer.stderr.take().unwrap()), String::new());
        errors.read_line(&mut note).unwrap();
        crate::sessions::signal(&viewer, "INT");
        let viewer = Ran::new(&viewer.wait_with_output().unwrap());
        let reasons = ["only 3.14 and newer can be joined", "this user may not trace it"];
        assert!(reasons.iter().any(|reason| note.contains(reason)), "{note:?} {viewer:?}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

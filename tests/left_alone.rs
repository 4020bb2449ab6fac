//! What gnntop takes for its own, and what it says of a program: another process with the same number gets no signal, names may have
//! any bytes, and an end is called what it was.

use std::ffi::{CString, OsStr, OsString};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::ptr::null;

use gnntop_fixtures::{StreamBuilder, session_info};
use gnntop_wire::SessionInfo;
use serde_json::{Value, json};

use crate::sessions::{Ran, Sessions, has_python, signal_to, spawn, wait_until};

/// Runs until it is told to end, or its folder is gone.
const WAITS: &str = "touch ready; while [ -e ready ] && [ ! -e go ]; do sleep 0.05; done; exit 6";

fn entry(sessions: &Sessions) -> Option<Value> {
    let mut entries = fs::read_dir(sessions.path()).unwrap().map(|entry| entry.unwrap().path());
    let entry = entries.find(|path| path.extension().is_some_and(|end| end == "run"))?;
    serde_json::from_slice(&fs::read(entry).unwrap()).ok()
}

/// `gnntop run` of a script by this command, once the script runs and its entry exists.
fn started(sessions: &Sessions, mut command: Command) -> Child {
    let child = spawn(&mut command);
    wait_until(|| sessions.path().join("ready").exists() && entry(sessions).is_some());
    child
}

fn pid(entry: &Value, of: &str) -> u32 {
    u32::try_from(entry[of].as_u64().unwrap()).unwrap()
}

#[test]
fn a_program_of_another_pid_namespace_is_named_and_nobody_gets_a_signal() {
    let sessions = Sessions::new();
    let unshare = ["-r", "-p", "-f", "--mount-proc"];
    if !sessions.program("unshare").args(unshare).arg("true").status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: no PID namespace can be made here");
        return;
    }
    let mut command = sessions.program("unshare");
    let gnntop = env!("CARGO_BIN_EXE_gnntop");
    command.args(unshare).args([gnntop, "run", "--plain", "--wait", "--", "sh", "-c", WAITS]);
    let mut child = started(&sessions, command);
    let there = pid(&entry(&sessions).unwrap(), "program").to_string();
    let words = format!("sh (pid {there}) runs in another PID namespace (container); run gnntop there");
    for named in [None, Some("sh")] {
        for command in ["stop", "trace", "attach"] {
            let ran = sessions.run([command].into_iter().chain(named));
            assert!(ran.code == Some(1) && ran.err.contains(&words), "{command}: {ran:?}");
        }
    }
    assert!(sessions.run(["list"]).out.contains(&there));
    assert!(child.try_wait().unwrap().is_none(), "it still runs");
    sessions.file("go", b"");
    assert_eq!(child.wait().unwrap().code(), Some(6));
}

/// An entry of a program that seems to be kept, for as long as the file is open.
fn kept_entry(sessions: &Sessions, entry: &Value) -> File {
    let mut file = File::create(sessions.path().join("gnntop-7-7.run")).unwrap();
    file.write_all(entry.to_string().as_bytes()).unwrap();
    file.lock().unwrap();
    file
}

#[test]
fn a_process_that_only_has_the_number_of_a_keeper_gets_no_signal() {
    let sessions = Sessions::new();
    let child = started(&sessions, sessions.gnntop(["run", "--plain", "--", "sh", "-c", WAITS]));
    let entry = entry(&sessions).unwrap();
    let mut other = Command::new("sleep").arg("1000").spawn().unwrap();
    let of_other = |mut entry: Value| {
        (entry["name"], entry["program"], entry["keeper"]) = (json!("other"), json!(other.id()), json!(other.id()));
        kept_entry(&sessions, &entry)
    };
    let later = of_other(entry.clone());
    assert_eq!(sessions.run(["stop", "other", "--within", "100ms"]).code, Some(1));
    drop(later);
    let mut unproven = entry;
    unproven.as_object_mut().unwrap().remove("proof");
    let _kept = of_other(unproven);
    let ran = sessions.run(["stop", "other", "--within", "100ms"]);
    assert!(ran.code == Some(1) && ran.err.contains("under another version of gnntop"), "{ran:?}");
    assert!(other.try_wait().unwrap().is_none(), "it got no signal");
    other.kill().unwrap();
    other.wait().unwrap();
    sessions.file("go", b"");
    assert_eq!(Ran::new(&child.wait_with_output().unwrap()).code, Some(6));
}

#[test]
fn an_ended_session_is_not_taken_for_a_program_that_runs() {
    let sessions = Sessions::new();
    let info = SessionInfo { pid: 900_000_001, ..session_info("sh") };
    let _ended = sessions.ended("sh-900000001-1", &StreamBuilder::from_info(&info).bytes());
    let child = started(&sessions, sessions.gnntop(["run", "--plain", "--", "sh", "-c", WAITS]));
    let running = pid(&entry(&sessions).unwrap(), "program");
    let ran = sessions.run(["trace", "sh"]);
    let words = format!("sh (pid {running}) runs, and has published no steps yet");
    assert!(ran.code == Some(1) && ran.err.contains(&words), "{ran:?}");
    sessions.file("go", b"");
    child.wait_with_output().unwrap();
}

#[test]
fn stop_says_that_the_keeper_was_killed() {
    let sessions = Sessions::new();
    let child = started(&sessions, sessions.gnntop(["run", "--plain", "--", "sh", "-c", WAITS]));
    let entry = entry(&sessions).unwrap();
    let program = pid(&entry, "program");
    signal_to(pid(&entry, "keeper"), "KILL");
    child.wait_with_output().unwrap();
    let words =
        format!("the keeper of sh (pid {program}) was killed, so nothing passes signals on to it. It still runs");
    for named in [None, Some("sh".to_owned()), Some(program.to_string())] {
        let ran = sessions.run(["stop".to_owned()].into_iter().chain(named));
        assert!(ran.code == Some(1) && ran.err.contains(&words), "{ran:?}");
    }
    sessions.file("go", b"");
    wait_until(|| !fs::exists(format!("/proc/{program}")).unwrap());
    sessions.run(["stop", "sh"]).assert_refused("has no running program sh");
}

#[test]
fn folders_may_have_names_of_any_bytes() {
    for variable in ["GNNTOP_DIR", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME"] {
        let sessions = Sessions::new();
        let dir = sessions.path().join(OsStr::from_bytes(b"a\xff b"));
        fs::create_dir(&dir).unwrap();
        let mut command = sessions.gnntop(["run", "--plain", "--", "sh", "-c", "echo said; exit 7"]);
        if variable == "XDG_RUNTIME_DIR" {
            command.env_remove("GNNTOP_DIR");
        }
        let ran = Ran::new(&command.env(variable, &dir).output().unwrap());
        assert!(ran.code == Some(7) && ran.err.contains("  said"), "{variable}: {ran:?}");
    }
}

#[test]
fn signals_of_the_c_library_are_as_a_shell_gives_them() {
    let sessions = Sessions::new();
    let words = ["grep", "-E", "^Sig(Ign|Blk)", "/proc/self/status"];
    // This forks, as a shell does, because something is prepared in the child.
    let alone = Ran::new(&sessions.program(words[0]).args(&words[1..]).output().unwrap());
    sessions.run([&["run", "--plain", "--"], &words[..]].concat());
    let log = fs::read_dir(sessions.path()).unwrap().map(|entry| entry.unwrap().path());
    let log = log.into_iter().find(|path| path.extension().is_some_and(|end| end == "log")).unwrap();
    assert_eq!(fs::read_to_string(log).unwrap(), alone.out);
}

#[test]
fn broken_pipes_are_ignored_where_they_were() {
    let sessions = Sessions::new();
    for (trap, ignored) in [("trap '' PIPE", 1), ("trap - PIPE", 0)] {
        let script = format!("{trap}; exec \"$0\" run --plain -- sh -c 'grep SigIgn /proc/self/status >ignored'");
        let ran = sessions.program("sh").args(["-c", &script, env!("CARGO_BIN_EXE_gnntop")]).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
        let line = fs::read_to_string(sessions.path().join("ignored")).unwrap();
        let mask = u64::from_str_radix(line["SigIgn:".len()..].trim(), 16).unwrap();
        assert_eq!(mask >> (libc::SIGPIPE - 1) & 1, ignored, "{trap}: {line}");
    }
}

#[test]
fn environment_that_no_shell_would_give_is_passed_on() {
    let sessions = Sessions::new();
    let own = format!("GNNTOP_DIR={}", sessions.path().display());
    let entries = ["A=1", "A=2", "NOEQUALS", "=odd", "EMPTY=", &own, "PATH=/usr/bin:/bin"];
    let texts = |texts: &[&str]| texts.iter().map(|text| CString::new(*text).unwrap()).collect::<Vec<_>>();
    let variables = texts(&entries);
    let words = texts(&[env!("CARGO_BIN_EXE_gnntop"), "run", "--plain", "--", "cat", "/proc/self/environ"]);
    let mut command = sessions.gnntop([""; 0]);
    // SAFETY: besides the call, which may be made after a fork, the closure takes memory, which the C libraries of Linux allow there.
    unsafe {
        command.pre_exec(move || {
            let list = |texts: &[CString]| texts.iter().map(|text| text.as_ptr()).chain([null()]).collect::<Vec<_>>();
            libc::execve(words[0].as_ptr(), list(&words).as_ptr(), list(&variables).as_ptr());
            Err(std::io::Error::last_os_error())
        });
    }
    let ran = Ran::new(&command.output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let logs = fs::read_dir(sessions.path()).unwrap().map(|entry| entry.unwrap().path());
    let log = logs.into_iter().find(|path| path.extension().is_some_and(|end| end == "log")).unwrap();
    let seen = String::from_utf8(fs::read(log).unwrap()).unwrap();
    assert!(seen.starts_with("A=1\0A=2\0NOEQUALS\0=odd\0EMPTY=\0PATH=/usr/bin:/bin\0"), "{seen:?}");
}

#[test]
fn directory_in_which_no_file_can_be_made_is_named() {
    let sessions = Sessions::new();
    let dir = sessions.path().join("read-only");
    fs::create_dir(&dir).unwrap();
    let script = "mount -t tmpfs -o mode=700,ro none \"$1\" || exit 99; GNNTOP_DIR=$1 exec \"$0\" run --plain -- true";
    let mut command = sessions.program("unshare");
    command.args(["-r", "-m", "sh", "-c", script, env!("CARGO_BIN_EXE_gnntop")]).arg(&dir);
    let ran = Ran::new(&command.output().unwrap());
    if ran.code != Some(0) && !ran.err.contains("gnntop") {
        eprintln!("skipped: nothing can be mounted here: {ran:?}");
        return;
    }
    let said = format!("nothing can be published in {}: no file can be made there", dir.display());
    assert!(ran.code == Some(0) && ran.err.matches(&said).count() == 2, "{ran:?}");
}

/// The exit code of a program, and the last line that is printed of it.
fn end_of(words: &[&str]) -> Option<(Option<i32>, String)> {
    if words[0] == "python3" && !has_python((3, 10), (4, 0)) {
        return None;
    }
    let sessions = Sessions::new();
    let ran = sessions.run([&["run", "--plain", "--"], words].concat());
    let last = ran.err.lines().last().unwrap_or_default().to_owned();
    Some((ran.code, last))
}

#[track_caller]
fn check(words: &[&str], code: i32, says: &str) {
    let Some((found, last)) = end_of(words) else { return };
    assert!(found == Some(code) && last.contains(says), "{words:?}: {found:?} {last:?}, not {says:?}");
}

#[test]
fn exit_codes_are_not_taken_for_signals() {
    for code in [130, 137, 139, 141, 143] {
        let exit = format!("import sys; sys.exit({code})");
        check(&["python3", "-c", &exit], code, &format!("python3 exited with code {code} and printed no exception."));
    }
    let says = "exited with code 137, as a shell does for a program that SIGKILL ended and printed no exception.";
    // That it is a shell is seen while it runs.
    check(&["sh", "-c", "sleep 0.5; sh -c 'kill -9 $$'; exit $?"], 137, says);
    if has_python((3, 10), (4, 0)) {
        let replaced = "exec python3 -c 'import sys; sys.exit(137)'";
        check(&["sh", "-c", replaced], 137, "exited with code 137 and printed no exception.");
    }
}

#[test]
fn limit_on_cpu_time_is_named() {
    let says = "reached the limit on CPU time of 1.00 s (ulimit -t), and was ended by SIGKILL";
    check(&["sh", "-c", "ulimit -t 1; while :; do :; done"], 128 + 9, says);
    let says =
        "exited as a shell does for a program that SIGKILL ended, most likely at the limit on CPU time of 1.00 s";
    check(&["sh", "-c", "ulimit -t 1; sh -c 'while :; do :; done'; exit $?"], 128 + 9, says);
}

#[test]
fn script_that_python_cannot_read_has_its_line() {
    let sessions = Sessions::new();
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    for (script, says) in [
        ("import sys\nx = = 1\n", "raised an exception: SyntaxError: invalid syntax, in train.py:2."),
        ("x = 1\n  y = 2\n", "raised an exception: IndentationError: unexpected indent, in train.py:2."),
    ] {
        sessions.file("train.py", script.as_bytes());
        let ran = sessions.run(["run", "--plain", "--", "python3", "train.py"]);
        assert!(ran.code == Some(1) && ran.err.contains(says), "{ran:?}");
    }
}

#[test]
fn call_that_a_filter_forbids_is_named() {
    // Has the kernel end the process for getppid: load the number, compare, return.
    const SCRIPT: &str = "
import ctypes, os, struct
libc = ctypes.CDLL(None)
number = {'x86_64': 110, 'aarch64': 173}[os.uname().machine]
lines = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x80000000), (0x06, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *line) for line in lines))
class Filter(ctypes.Structure): _fields_ = [('len', ctypes.c_ushort), ('code', ctypes.c_void_p)]
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(Filter(len(lines), ctypes.addressof(code)))):
    os.kill(os.getpid(), 31)
os.getppid()
";
    let says = "was ended by SIGSYS, which the kernel sends for a system call that a filter (seccomp) forbids.";
    check(&["python3", "-c", SCRIPT], 128 + 31, says);
}

#[test]
fn run_inside_a_run_is_named() {
    let sessions = Sessions::new();
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    sessions.file("train.py", b"import time\nwhile not __import__('os').path.exists('go'): time.sleep(0.1)\n");
    let gnntop = env!("CARGO_BIN_EXE_gnntop");
    let words = ["run", "--plain", "--", gnntop, "run", "--plain", "--", "python3", "train.py"];
    let child = sessions.gnntop(words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // The keeper looks for Pythons that do not answer every half second.
    std::thread::sleep(std::time::Duration::from_secs(4));
    sessions.file("go", b"");
    let ran = Ran::new(&child.wait_with_output().unwrap());
    assert!(ran.err.contains("another `gnntop run` inside this one, which watches it"), "{ran:?}");
}

#[test]
fn session_that_was_removed_is_named() {
    let sessions = Sessions::new();
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    let script = "import gnntop, os, shutil, glob\nassert gnntop.start()\ngnntop.step()\n\
                  [shutil.rmtree(os.path.dirname(lock)) for lock in glob.glob(os.environ['GNNTOP_DIR'] + '/*/live')]\n";
    sessions.file("train.py", script.as_bytes());
    let ran = sessions.run(["run", "--plain", "--", "python3", "train.py"]);
    let says =
        "python3 train.py has lost its session: it was removed while the program ran, or its file system was unmounted";
    assert!(ran.code == Some(0) && ran.err.contains(says), "{ran:?}");
}

#[test]
fn arguments_of_any_bytes_reach_the_program() {
    let sessions = Sessions::new();
    let script = "[ \"$1\" = \"$(printf 'a\\377 b')\" ] && exit 7";
    let words = ["run", "--plain", "--", "sh", "-c", script, "sh"].map(OsString::from);
    let last = [OsStr::from_bytes(b"a\xff b").to_owned()];
    assert_eq!(sessions.run(words.into_iter().chain(last)).code, Some(7));
}

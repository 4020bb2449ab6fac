//! `gnntop run` and `gnntop train`: starting programs, their output, their exit codes, their sessions.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;

use crate::sessions::{Ran, Sessions, on_signals, signal, spawn, wait_until};

fn logs(sessions: &Sessions) -> Vec<PathBuf> {
    let entries = fs::read_dir(sessions.path()).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "log")).collect()
}

#[test]
fn the_exit_code_is_passed_on() {
    let sessions = Sessions::new();
    assert_eq!(sessions.run(["run", "--", "true"]).code, Some(0));
    assert_eq!(sessions.run(["run", "--", "sh", "-c", "exit 7"]).code, Some(7));
    assert_eq!(sessions.run(["run", "--", "sh", "-c", "kill -9 $$"]).code, Some(128 + 9));
    assert_eq!(sessions.run(["run"]).code, Some(2));
}

#[test]
fn what_a_shell_starts_is_started_and_what_it_refuses_has_its_exit_code() {
    let sessions = Sessions::new();
    let script = sessions.file("script", b"exit $(($1 + 4))");
    let run = |words: &[&str]| sessions.run([&["run", "--plain", "--"], words].concat());
    let missing = run(&["no-such-program"]);
    assert_eq!(missing.code, Some(127), "{missing:?}");
    assert_eq!(missing.err, "gnntop: cannot start no-such-program: No such file or directory (os error 2)\n");
    assert!(missing.out.is_empty(), "{missing:?}");
    assert_eq!(run(&["./script", "3"]).code, Some(126), "it may not be executed");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(run(&["./script", "3"]).code, Some(7));
    let mut found = sessions.gnntop(["run", "--plain", "--", "script", "5"]);
    let path = format!("{}:{}", sessions.path().display(), std::env::var("PATH").unwrap());
    assert_eq!(found.env("PATH", path).output().unwrap().status.code(), Some(9));
    assert_eq!(run(&["/"]).code, Some(126));
}

#[test]
fn ignored_ends_of_children_are_the_programs_and_its_exit_code_is_known() {
    let sessions = Sessions::new();
    let run = |words: &[&str]| {
        let mut command = sessions.gnntop([&["run", "--plain", "--"], words].concat());
        on_signals(&mut command, &[libc::SIGCHLD], libc::SIG_IGN).output().unwrap().status.code()
    };
    assert_eq!(run(&["sh", "-c", "exit 6"]), Some(6));
    assert_eq!(run(&["grep", "-Eq", "SigIgn:.*[13579bdf]....$", "/proc/self/status"]), Some(0));
}

#[test]
fn signals_that_would_end_us_are_for_the_program() {
    for number in [libc::SIGQUIT, libc::SIGALRM, libc::SIGXCPU, libc::SIGPWR, libc::SIGRTMIN() + 3] {
        let sessions = Sessions::new();
        let program = "ulimit -c 0; touch ready; exec sleep 1000";
        let child = spawn(&mut sessions.gnntop(["run", "--plain", "--", "sh", "-c", program]));
        wait_until(|| sessions.path().join("ready").exists());
        signal(&child, &number.to_string());
        let ran = Ran::new(&child.wait_with_output().unwrap());
        assert_eq!(ran.code, Some(128 + number), "{ran:?}");
    }
}

#[test]
fn files_that_are_handed_on_are_the_programs_alone() {
    let sessions = Sessions::new();
    let (mut pipe, theirs) = std::io::pipe().unwrap();
    let program = "exec 9>&-; until [ -e go ]; do sleep 0.02; done";
    let script = "exec \"$0\" run --plain -- sh -c \"$1\" 9>&1 >/dev/null 2>&1";
    let mut shell = sessions.program("sh");
    let mut child = shell.args(["-c", script, env!("CARGO_BIN_EXE_gnntop"), program]).stdout(theirs).spawn().unwrap();
    drop(shell); // it has the end that is written to
    assert_eq!(pipe.read_to_end(&mut Vec::new()).unwrap(), 0);
    assert!(child.try_wait().unwrap().is_none(), "the program still runs");
    sessions.file("go", b"");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn settings_that_cannot_be_used_keep_no_program_from_starting() {
    let sessions = Sessions::new();
    let config = sessions.path().join("gnntop/config.toml");
    fs::create_dir(config.parent().unwrap()).unwrap();
    let run = || sessions.run(["run", "--plain", "--", "sh", "-c", "exit 7"]);
    fs::write(&config, "theme = 'mauve'").unwrap();
    let ran = run();
    assert!(ran.code == Some(7) && ran.err.contains("config.toml:1: theme is mauve"), "{ran:?}");
    fs::remove_file(&config).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&config).status().unwrap().success());
    let ran = run();
    assert!(ran.code == Some(7) && ran.err.contains("config.toml: it is a pipe; no settings are used"), "{ran:?}");
    assert_eq!(sessions.run(["run", "--plain", "--config", "no.toml", "--", "true"]).code, Some(2));
}

/// The longest variable that the system passes on, and a little less.
const LONG: usize = 131_000;

#[test]
fn program_whose_environment_has_no_room_is_started_without_ours() {
    let sessions = Sessions::new();
    let script = format!("test ${{#PYTHONPATH}} = {LONG} && exit 7");
    let mut command = sessions.gnntop(["run", "--plain", "--", "sh", "-c", &script]);
    let ran = Ran::new(&command.env("PYTHONPATH", "/".repeat(LONG)).output().unwrap());
    assert_eq!(ran.code, Some(7), "{ran:?}");
    assert_eq!(ran.err.matches("so it is started without them").count(), 1, "{ran:?}");
}

#[test]
fn small_stack_is_for_the_program_alone() {
    let sessions = Sessions::new();
    for kib in [128, 256, 1024] {
        let script = format!("test $(ulimit -s) = {kib} && exit 7");
        let mut command = sessions.gnntop(["run", "--plain", "--", "sh", "-c", &script]);
        // SAFETY: setrlimit is async-signal-safe and concerns the child alone.
        unsafe {
            command.pre_exec(move || {
                let limit = libc::rlimit { rlim_cur: kib << 10, rlim_max: kib << 10 };
                let done = libc::setrlimit(libc::RLIMIT_STACK, &raw const limit);
                if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
            });
        }
        let ran = Ran::new(&command.output().unwrap());
        assert_eq!(ran.code, Some(7), "{kib} KiB: {ran:?}");
    }
}

#[test]
fn stack_size_of_a_rust_program_is_for_the_program_alone() {
    let sessions = Sessions::new();
    for bytes in ["1", "65536", "1099511627776"] {
        let script = format!("test $RUST_MIN_STACK = {bytes} && sleep 0.2 && exit 7");
        let mut command = sessions.gnntop(["run", "--plain", "--", "sh", "-c", &script]);
        let ran = Ran::new(&command.env("RUST_MIN_STACK", bytes).output().unwrap());
        assert!(ran.code == Some(7) && !ran.err.contains("warning"), "{bytes}: {ran:?}");
    }
}

#[test]
fn removed_log_is_made_again_or_named_as_removed() {
    let sessions = Sessions::new();
    let script = |then: &str| format!("echo before; touch ready; until [ -e go ]; do sleep 0.02; done; {then} exit 3");
    for (then, is_new) in [("echo after;", true), ("", false)] {
        let child = spawn(&mut sessions.gnntop(["run", "--plain", "--", "sh", "-c", &script(then)]));
        let is_written = |log: &PathBuf| fs::read_to_string(log).is_ok_and(|text| text == "before\n");
        wait_until(|| sessions.path().join("ready").exists() && logs(&sessions).iter().any(is_written));
        logs(&sessions).iter().for_each(|log| fs::remove_file(log).unwrap());
        sessions.file("go", b"");
        let ran = Ran::new(&child.wait_with_output().unwrap());
        assert!(ran.code == Some(3) && ran.err.contains("which was removed") != is_new, "{ran:?}");
        let texts: Vec<String> = logs(&sessions).iter().map(|log| fs::read_to_string(log).unwrap()).collect();
        let after = is_new.then(|| "[gnntop: this log was removed, with 7 bytes of output]\nafter\n".to_owned());
        assert_eq!(texts, after.into_iter().collect::<Vec<_>>());
        ["go", "ready"].iter().for_each(|name| fs::remove_file(sessions.path().join(name)).unwrap());
    }
}

#[test]
fn directory_that_cannot_be_made_is_named_first_and_last() {
    let sessions = Sessions::new();
    let dir = sessions.file("in-the-way", b"").join("sessions");
    // It ends once it has been shown.
    let script = format!("until [ -e {0}/go ]; do sleep 0.02; done", sessions.path().display());
    let mut command = sessions.gnntop(["run", "--plain", "--interval", "100ms", "--", "sh", "-c", &script]);
    let mut child = spawn(command.env("GNNTOP_DIR", &dir));
    let (mut lines, mut shown) = (BufReader::new(child.stdout.take().unwrap()), String::new());
    lines.read_line(&mut shown).unwrap();
    sessions.file("go", b"");
    std::io::copy(&mut lines, &mut std::io::sink()).unwrap();
    let ran = Ran::new(&child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let said = format!("nothing can be published in {}: ", dir.display());
    assert!(shown.contains(&said), "{shown}");
    assert!(ran.err.lines().count() == 2 && ran.err.lines().all(|line| line.contains(&said)), "{ran:?}");
}

#[test]
fn program_that_goes_to_another_folder_publishes_where_it_was_started() {
    let sessions = Sessions::new();
    let script = "cd /; test \"$GNNTOP_DIR\" = \"$0\"";
    let expected = sessions.path().join("relative");
    let mut command = sessions.gnntop(["run", "--plain", "--", "sh", "-c", script]);
    let ran = command.arg(&expected).env("GNNTOP_DIR", "relative").current_dir(sessions.path()).output().unwrap();
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
}

#[test]
fn program_that_publishes_nothing_yet_is_live_for_every_command() {
    let sessions = Sessions::new();
    let start = |name: &str| {
        let script = format!("touch {name}; until [ -e go ]; do sleep 0.02; done");
        let child = spawn(&mut sessions.gnntop(["run", "--plain", "--", "sh", "-c", &script]));
        wait_until(|| sessions.path().join(name).exists() && sessions.run(["list", "--live"]).out.contains(&script));
        child
    };
    let first = start("one");
    let mut serves = spawn(&mut sessions.gnntop(["serve", "--metrics", "127.0.0.1:0"]));
    let mut said = [0; 7];
    serves.stdout.take().unwrap().read_exact(&mut said).unwrap();
    assert_eq!(&said, b"http://");
    signal(&serves, "INT");
    assert_eq!(serves.wait().unwrap().code(), Some(0));
    sessions.run(["trace"]).assert_refused("has published no steps yet");
    let second = start("two");
    for command in ["attach", "serve", "trace"] {
        sessions.run([command]).assert_refused("2 live sessions match; choose one by its pid: sh (pid ");
    }
    let several = sessions.run([""; 0]);
    assert!(several.code == Some(1) && several.out.matches("sh (pid ").count() == 2, "{several:?}");
    sessions.file("go", b"");
    [first, second].into_iter().for_each(|child| assert!(child.wait_with_output().unwrap().status.success()));
}

#[test]
fn output_goes_into_a_log_and_its_end_is_shown_after_a_failure() {
    let sessions = Sessions::new();
    let ran = sessions.run(["run", "--", "sh", "-c", "echo to out; echo to err >&2; exit 3"]);
    assert_eq!(ran.code, Some(3));
    assert!(!ran.out.contains("to out"), "{ran:?}");
    assert!(ran.err.contains("sh ended with exit code 3") && ran.err.contains("  to err"), "{ran:?}");
    let logs = logs(&sessions);
    assert_eq!(logs.len(), 1);
    assert_eq!(fs::read_to_string(&logs[0]).unwrap(), "to out\nto err\n");
}

#[test]
fn program_gets_standard_input_and_sessions_directory() {
    let sessions = Sessions::new();
    let script = r#"read line; echo "$line $GNNTOP_DIR""#;
    let ran = sessions.run_with(["run", "--", "sh", "-c", script], b"piped\n");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let expected = format!("piped {}\n", sessions.path().display());
    assert_eq!(fs::read_to_string(&logs(&sessions)[0]).unwrap(), expected);
}

#[test]
fn program_and_doctor_use_given_sensor_paths() {
    let sessions = Sessions::new();
    let zone = sessions.path().join("rapl/intel-rapl:0");
    fs::create_dir_all(&zone).unwrap();
    for (name, text) in [("name", "package-0"), ("energy_uj", "1234567"), ("max_energy_range_uj", "262143328850")] {
        fs::write(zone.join(name), text).unwrap();
    }
    // A relative path is one of the command line, wherever the program goes.
    let script = "cd / && echo $GNNTOP_POWERCAP_ROOT";
    let ran = sessions.run(["run", "--powercap-root", "rapl", "--", "sh", "-c", script]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let said = fs::read_to_string(&logs(&sessions)[0]).unwrap();
    assert_eq!(PathBuf::from(said.trim()), sessions.path().join("rapl").canonicalize().unwrap());
    let doctor = sessions.run(["doctor", "--powercap-root", "rapl"]);
    assert!(doctor.out.contains("zones intel-rapl:0 (package-0)"), "{}", doctor.out);
    let nowhere = sessions.run(["doctor", "--powercap-root", "nowhere"]);
    assert!(nowhere.code == Some(2) && nowhere.err.contains("No such file or directory"), "{}", nowhere.err);
}

#[test]
fn an_interruption_is_passed_on_once() {
    let sessions = Sessions::new();
    let script =
        "trap 'echo interrupted >> signals; exit 5' INT; touch ready; for _ in $(seq 2400); do sleep 0.05; done";
    let child = spawn(&mut sessions.gnntop(["run", "--", "sh", "-c", script]));
    wait_until(|| sessions.path().join("ready").exists());
    signal(&child, "INT");
    let ran = Ran::new(&child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert_eq!(fs::read_to_string(sessions.path().join("signals")).unwrap(), "interrupted\n");
}

#[test]
fn program_without_session_is_recorded_from_outside() {
    let sessions = Sessions::new();
    let ran = sessions.run(["run", "--record", "a.gnntop", "--", "sleep", "0.5"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("hardware only"), "{ran:?}");
    assert!(ran.err.contains("hardware only: the program published no steps"), "{ran:?}");
    assert!(!ran.out.contains("start it with `gnntop run"), "that is what was done: {ran:?}");
    let report = sessions.run(["report", "a.gnntop", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&report.out).unwrap();
    assert_eq!((&report["session"]["name"], &report["steps"]["total"]), (&"sleep".into(), &0.into()));
    sessions.file("b.gnntop", b"precious");
    sessions.run(["run", "--record", "b.gnntop", "--", "touch", "started"]).assert_refused("b.gnntop already exists");
    assert!(!sessions.path().join("started").exists(), "nothing was started");
}

#[test]
fn the_hardware_of_any_process_is_recorded() {
    let sessions = Sessions::new();
    let own = std::process::id().to_string();
    let ran = sessions.run(["record", &own, "-o", "a.gnntop", "--duration", "400ms"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = sessions.run(["report", "a.gnntop", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&report.out).unwrap();
    assert_eq!(report["session"]["pid"], std::process::id());
    sessions.run(["report", &own]).assert_refused("does not publish");
}

#[cfg(not(feature = "workloads"))]
#[test]
fn missing_trainings_are_reported() {
    let sessions = Sessions::new();
    for words in [["train", "pna"], ["run", "pna"]] {
        sessions.run(words).assert_refused("this gnntop was built without the built-in trainings");
    }
}

#[cfg(not(feature = "workloads"))]
#[test]
fn the_program_with_trainings_takes_over_where_it_lies_beside_this_one() {
    use std::os::unix::fs::symlink;
    use std::process::Command;

    let sessions = Sessions::new();
    let small = sessions.path().join("gnntop");
    // By another process: one that this writes may not be started while a child of another test has it open.
    assert!(Command::new("cp").arg(env!("CARGO_BIN_EXE_gnntop")).arg(&small).status().unwrap().success());
    let start = |words: &[&str]| {
        let ran = Command::new(&small).args(words).env("GNNTOP_DIR", sessions.path()).output().unwrap();
        String::from_utf8(ran.stdout).unwrap()
    };
    symlink("/bin/echo", sessions.path().join("gnntop-trainings")).unwrap();
    for words in [["train", "pna", "--steps", "3"].as_slice(), &["run", "pna", "--hidden", "8"]] {
        assert_eq!(start(words), format!("{}\n", words.join(" ")));
    }
    let own = ["run", "--plain", "--", "true"];
    assert_ne!(start(&own), format!("{}\n", own.join(" ")), "a program of one's own is started here");
}

/// A control group with little memory; it is gone when this is dropped.
struct LimitedGroup(PathBuf);

impl LimitedGroup {
    /// Makes it within the group that this process is in. An error is why it cannot be.
    fn new(bytes: u64) -> Result<Self, String> {
        let groups = fs::read_to_string("/proc/self/cgroup").map_err(|error| format!("/proc/self/cgroup: {error}"))?;
        let of = |line: &str| match line.splitn(3, ':').collect::<Vec<_>>()[..] {
            [_, "memory", path] => Some((format!("/sys/fs/cgroup/memory{path}"), "memory.limit_in_bytes")),
            ["0", "", path] => Some((format!("/sys/fs/cgroup{path}"), "memory.max")),
            _ => None,
        };
        let mut why = "no control group is told".to_owned();
        for (parent, limit) in groups.lines().filter_map(of) {
            let group = Self(PathBuf::from(parent).join(format!("gnntop-test-{}", std::process::id())));
            let made = fs::create_dir(&group.0).and_then(|()| {
                // Without the controller there is no such file, and none can be made here.
                let mut file = fs::OpenOptions::new().write(true).open(group.0.join(limit))?;
                std::io::Write::write_all(&mut file, bytes.to_string().as_bytes())
            });
            match made {
                Ok(()) => return Ok(group),
                Err(error) => why = format!("a control group with {limit} cannot be made: {error}"),
            }
        }
        Err(why)
    }
}

impl Drop for LimitedGroup {
    fn drop(&mut self) {
        // The kernel needs a moment to forget what was in it.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() || !self.0.exists() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

#[test]
fn out_of_memory_kill_is_reported() {
    let cramped = match LimitedGroup::new(32 << 20) {
        Ok(cramped) => cramped,
        Err(reason) => return println!("skipped: {reason}"),
    };
    let sessions = Sessions::new();
    // tail keeps the last line, which never ends.
    let script = format!("echo $$ > {}/cgroup.procs && exec tail /dev/zero", cramped.0.display());
    let ran = sessions.run(["run", "--", "sh", "-c", &script]);
    assert_eq!(ran.code, Some(128 + 9), "{ran:?}");
    assert!(ran.err.contains("The kernel's out-of-memory killer ran on this machine at that time"), "{ran:?}");
    let other = sessions.run(["run", "--", "sh", "-c", "kill -9 $$"]);
    assert!(other.code == Some(128 + 9) && !other.err.contains("memory ran out"), "{other:?}");
}

/// A program that ends without ending its session, as `os._exit` does.
#[test]
#[ignore = "is the program that is started"]
fn a_training_that_leaves_at_once() {
    use gnntop_probe::{Session, TrackRole, step};
    let session = Session::builder("leaves").start();
    let _track = session.track("main", TrackRole::Training);
    for _ in 0..100 {
        drop(step(0));
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    std::process::exit(0);
}

#[test]
fn a_program_that_leaves_its_session_open_and_ends_well_was_not_killed() {
    let sessions = Sessions::new();
    let this = std::env::current_exe().unwrap().display().to_string();
    let program = ["--exact", "running::a_training_that_leaves_at_once", "--ignored", "--nocapture"];
    let ran = sessions.run([&["run", "--plain", "--", &this], &program[..]].concat());
    assert!(ran.out.ends_with("\nended: exit code 0\n"), "{ran:?}");
}

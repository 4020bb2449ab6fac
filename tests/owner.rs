//! Who owns the program that `gnntop run` starts: its keeper does. What a scheduler, a full disk, a limit or an impatient
//! person does to gnntop never ends the program, and its exit code comes through.

use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use gnntop_fixtures::SmallDisk;

use crate::sessions::{Ran, Sessions, ignored_hangup, signal, signal_to, spawn, wait_until};

/// What is in a file, once something is.
fn wait_for_text(path: &Path) -> String {
    wait_until(|| fs::read_to_string(path).is_ok_and(|text| text.ends_with('\n')));
    fs::read_to_string(path).unwrap()
}

/// The log of the only program and what came before it, bytes in all.
fn logs(dir: &Path) -> (Vec<PathBuf>, u64) {
    let paths = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let logs: Vec<_> = paths.filter(|path| path.extension().is_some_and(|end| end == "log")).collect();
    let bytes = logs.iter().map(|path| fs::metadata(path).unwrap().len()).sum();
    (logs, bytes)
}

/// `gnntop run --plain` of a script, which has begun: it has made the file `ready`, and its keeper has an entry.
fn started(sessions: &Sessions, script: &str) -> Child {
    let child = spawn(&mut sessions.gnntop(["run", "--plain", "--", "sh", "-c", script]));
    wait_until(|| sessions.path().join("ready").exists() && keeper_of(sessions).is_some());
    child
}

/// Waits to be let go, then prints more than a pipe and a queue hold, and reports that it could.
const PRINTS: &str = "touch ready; while [ ! -e go ] && [ -e ready ]; do sleep 0.05; done
    yes | head -c 3000000; echo whole; touch end; exit 6";

/// The keeper of the only program, once it has made its entry.
fn keeper_of(sessions: &Sessions) -> Option<u32> {
    let mut entries = fs::read_dir(sessions.path()).unwrap().map(|entry| entry.unwrap().path());
    let entry = entries.find(|path| path.extension().is_some_and(|end| end == "run"))?;
    let entry: serde_json::Value = serde_json::from_slice(&fs::read(entry).unwrap()).ok()?;
    u32::try_from(entry["keeper"].as_u64().unwrap()).ok()
}

fn keeper(sessions: &Sessions) -> u32 {
    keeper_of(sessions).unwrap()
}

/// The process that collects the output of a keeper's program.
fn collector(keeper: u32) -> u32 {
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_it = |pid: &u32| {
        let parent = format!("PPid:\t{keeper}\n");
        fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|status| status.contains(&parent))
            && fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|words| words.windows(8).any(|at| at == b"\0collect"))
    };
    let found: Vec<u32> = processes.filter(is_it).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found[0]
}

/// The newest output of the only program.
fn newest_output(sessions: &Sessions) -> String {
    let log = logs(sessions.path()).0.into_iter().find(|path| !path.to_string_lossy().ends_with(".older.log"));
    fs::read_to_string(log.unwrap()).unwrap()
}

const SAYS_SIGNALS: &str = "for s in HUP USR1 USR2 TERM; do trap \"echo $s >> signals\" $s; done
    touch ready; while [ ! -e go ] && [ -e ready ]; do sleep 0.05; done; exit 6";

#[test]
fn scheduler_signals_reach_the_program() {
    let sessions = Sessions::new();
    let child = started(&sessions, SAYS_SIGNALS);
    for (at, name) in ["USR1", "USR2"].into_iter().enumerate() {
        signal(&child, name);
        wait_until(|| fs::read_to_string(sessions.path().join("signals")).is_ok_and(|text| text.lines().count() > at));
    }
    sessions.file("go", b"");
    let ran = Ran::new(&child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(6), "{ran:?}");
    assert_eq!(fs::read_to_string(sessions.path().join("signals")).unwrap(), "USR1\nUSR2\n");
}

#[test]
fn sigterm_is_forwarded_and_end_is_awaited() {
    let sessions = Sessions::new();
    let script = "trap 'echo saved > signals; exit 0' TERM; touch ready; for _ in $(seq 2400); do [ -e ready ] || break; sleep 0.05; done";
    let child = started(&sessions, script);
    signal(&child, "TERM");
    let ran = Ran::new(&child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(128 + 15), "{ran:?}");
    assert_eq!(wait_for_text(&sessions.path().join("signals")), "saved\n");
}

#[test]
fn hangup_ends_the_waiting_command_and_not_the_program() {
    let sessions = Sessions::new();
    let child = started(&sessions, SAYS_SIGNALS);
    signal(&child, "HUP");
    let ran = Ran::new(&child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(128 + 1), "{ran:?}");
    assert!(!sessions.path().join("signals").exists(), "the program has heard nothing of it");
    fs::remove_file(sessions.path().join("ready")).unwrap();
}

#[test]
fn ignored_signals_stay_ignored() {
    let sessions = Sessions::new();
    let script = "touch ready; while [ ! -e go ] && [ -e ready ]; do sleep 0.05; done; kill -s HUP $$; exit 6";
    let mut command = sessions.gnntop(["run", "--plain", "--", "sh", "-c", script]);
    let child = spawn(ignored_hangup(&mut command));
    wait_until(|| sessions.path().join("ready").exists());
    signal(&child, "HUP");
    sessions.file("go", b"");
    let ran = Ran::new(&child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(6), "neither gnntop nor the program has ended of it: {ran:?}");
}

#[test]
fn stop_ends_a_program_without_view() {
    let sessions = Sessions::new();
    sessions.run(["stop"]).assert_refused("`gnntop run` has no running program");
    let mut child = started(
        &sessions,
        "trap 'echo asked > signals; exit 0' INT; touch ready; for _ in $(seq 2400); do [ -e ready ] || break; sleep 0.05; done",
    );
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    sessions.run(["stop", "no-such"]).assert_refused("has no running program no-such");
    let ran = sessions.run(["stop", "sh"]);
    assert!(ran.code == Some(0) && ran.out.contains("has ended"), "{ran:?}");
    assert_eq!(wait_for_text(&sessions.path().join("signals")), "asked\n");
    sessions.run(["stop", "sh"]).assert_refused("has no running program sh");
}

#[test]
fn stop_kills_unresponsive_program() {
    let sessions = Sessions::new();
    let child = started(
        &sessions,
        "trap '' INT TERM; touch ready; for _ in $(seq 2400); do [ -e ready ] || break; sleep 0.05; done",
    );
    assert_eq!(sessions.run(["stop", "sh", "--within", "200ms"]).code, Some(1));
    assert_eq!(sessions.run(["stop", "--kill"]).code, Some(0));
    assert_eq!(Ran::new(&child.wait_with_output().unwrap()).code, Some(128 + 9));
}

#[test]
fn a_log_keeps_the_newest_output_in_bounded_room() {
    // 150 MB, no piece of which is too large to wait for a slow disk.
    const OUTPUT: &str = "for i in $(seq 75); do yes | head -c 2000000; sleep 0.02; done; echo the last line; exit 3";
    let sessions = Sessions::new();
    let ran = sessions.run(["run", "--", "sh", "-c", OUTPUT]);
    assert_eq!(ran.code, Some(3));
    assert!(ran.err.contains("  the last line"), "{}", ran.err);
    let (logs, bytes) = logs(sessions.path());
    assert_eq!(logs.len(), 2, "the newest, and what was before it");
    assert!((32 << 20..(64 << 20) + 1000).contains(&bytes), "{bytes} bytes");
}

/// Limits what a command and its children may write into a file, in bytes.
fn limit_files(command: &mut Command, bytes: u64) -> &mut Command {
    let limit = move || {
        let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
        // SAFETY: the limit outlives the call.
        let done = unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) };
        if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: setrlimit is async-signal-safe and concerns the child alone.
    unsafe { command.pre_exec(limit) }
}

#[test]
fn a_limit_on_files_ends_neither_the_program_nor_its_log() {
    let sessions = Sessions::new();
    let mut command = sessions.gnntop(["run", "--", "sh", "-c", "yes | head -c 3000000; echo the last line; exit 3"]);
    limit_files(&mut command, 1 << 20);
    let ran = Ran::new(&command.output().unwrap());
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.err.contains("  the last line"), "{}", ran.err);
}

#[test]
fn a_limit_on_the_file_of_our_own_lines_ends_nothing() {
    let sessions = Sessions::new();
    let file = || fs::OpenOptions::new().append(true).open(sessions.file("lines", b"")).unwrap();
    let mut command = sessions.gnntop(["run", "--plain", "--", "sh", "-c", "sleep 2; touch end; exit 4"]);
    let ended = limit_files(&mut command, 0).stdout(file()).stderr(file()).status().unwrap();
    assert_eq!(ended.code(), Some(4), "{ended}");
    assert!(sessions.path().join("end").exists());
}

#[test]
fn a_full_disk_under_the_log_and_the_recording_does_not_end_the_program() {
    let disk = match SmallDisk::new("256k") {
        Ok(disk) => disk,
        Err(reason) => return println!("skipped: no small file system can be mounted: {reason}"),
    };
    let sessions = Sessions::new();
    let path = disk.path();
    let record = path.join("a.gnntop");
    // Long enough for the recording to need more than the page that it may have taken before the log.
    let script = "yes | head -c 3000000; sleep 6; exit 3";
    let mut command = sessions.gnntop(["run", "--record", record.to_str().unwrap(), "--", "sh", "-c", script]);
    let ran = Ran::new(&command.env("GNNTOP_DIR", path).output().unwrap());
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.err.contains("a.gnntop ends here: ") && ran.err.contains("No space left on device"), "{}", ran.err);
    assert!(ran.err.contains("output of sh is missing in "), "{}", ran.err);
}

#[test]
fn a_killed_keeper_ends_no_program_that_prints() {
    let sessions = Sessions::new();
    let child = started(&sessions, PRINTS);
    signal_to(keeper(&sessions), "KILL");
    sessions.file("go", b"");
    wait_until(|| sessions.path().join("end").exists());
    wait_until(|| newest_output(&sessions).ends_with("\nwhole\n"));
    let ran = Ran::new(&child.wait_with_output().unwrap());
    assert!(ran.code == Some(1) && ran.err.contains("the keeper was killed"), "{ran:?}");
}

#[test]
fn a_stopped_keeper_holds_up_no_program_that_prints() {
    let sessions = Sessions::new();
    let child = started(&sessions, PRINTS);
    let keeper = keeper(&sessions);
    signal_to(keeper, "STOP");
    sessions.file("go", b"");
    wait_until(|| sessions.path().join("end").exists());
    wait_until(|| newest_output(&sessions).ends_with("\nwhole\n"));
    signal_to(keeper, "CONT");
    let ran = Ran::new(&child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(6), "{ran:?}");
    assert!(!newest_output(&sessions).contains("gnntop"), "nothing is missing");
}

#[test]
fn a_stopped_collector_holds_up_no_program_that_prints() {
    let sessions = Sessions::new();
    let child = started(&sessions, PRINTS);
    let collector = collector(keeper(&sessions));
    signal_to(collector, "STOP");
    sessions.file("go", b"");
    wait_until(|| sessions.path().join("end").exists());
    signal_to(collector, "CONT");
    let ran = Ran::new(&child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(6), "{ran:?}");
    wait_until(|| newest_output(&sessions).contains(" bytes of output are lost here"));
}

#[test]
fn a_killed_collector_ends_no_program_that_prints_and_is_reported() {
    let sessions = Sessions::new();
    let child = started(&sessions, PRINTS);
    signal_to(collector(keeper(&sessions)), "KILL");
    sessions.file("go", b"");
    let ran = Ran::new(&child.wait_with_output().unwrap());
    assert!(ran.code == Some(6) && sessions.path().join("end").exists(), "{ran:?}");
    assert!(ran.err.contains("output is lost from now on"), "{ran:?}");
}

#[test]
fn the_log_is_whole_when_run_has_returned() {
    let sessions = Sessions::new();
    let child = started(
        &sessions,
        "touch ready; while [ ! -e go ] && [ -e ready ]; do sleep 0.05; done; echo whole; touch end",
    );
    let collector = collector(keeper(&sessions));
    signal_to(collector, "STOP");
    sessions.file("go", b"");
    wait_until(|| sessions.path().join("end").exists());
    let late = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(1));
        signal_to(collector, "CONT");
    });
    let ran = Ran::new(&child.wait_with_output().unwrap());
    assert_eq!((ran.code, newest_output(&sessions).as_str()), (Some(0), "whole\n"), "{ran:?}");
    late.join().unwrap();
}

#[test]
fn an_older_recording_stays_when_there_is_nothing_to_replace_it() {
    let sessions = Sessions::new();
    let old = sessions.file("a.gnntop", b"old");
    let run = ["run", "--plain", "--force", "--record", "a.gnntop", "--"];
    assert_eq!(sessions.run([&run[..], &["no-such-program"]].concat()).code, Some(127));
    assert_eq!(fs::read(&old).unwrap(), b"old");
    assert_eq!(sessions.run([&run[..], &["true"]].concat()).code, Some(0));
    let is_replaced = fs::read(&old).unwrap() != b"old";
    assert!(!is_replaced || sessions.run(["report", "a.gnntop"]).code == Some(0), "by a recording, if at all");
    assert_eq!(sessions.run(["run", "--plain", "--record", "b.gnntop", "--", "no-such-program"]).code, Some(127));
    assert!(!sessions.path().join("b.gnntop").exists());
}

#[test]
fn a_recording_into_a_pipe_that_nothing_reads_is_refused_at_once() {
    let sessions = Sessions::new();
    let pipe = sessions.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let ran = sessions.run(["run", "--plain", "--record", "pipe", "--", "sh", "-c", "exit 6"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("pipe is a pipe that nothing reads: start its reader first"), "{ran:?}");
}

#[test]
fn no_entry_is_made_in_another_users_folder() {
    let sessions = Sessions::new();
    let another = rustix::process::geteuid().as_raw() + 1;
    if std::os::unix::fs::chown(sessions.path(), Some(another), None).is_err() {
        return println!("skipped: only root can give a directory away");
    }
    let ran = sessions.run(["run", "--plain", "--", "sh", "-c", "exit 6"]);
    assert_eq!(ran.code, Some(6), "{ran:?}");
    let found = fs::read_dir(sessions.path()).unwrap().map(|entry| entry.unwrap().path());
    let ours: Vec<_> = found.filter(|path| path.extension().is_some_and(|end| end == "run" || end == "log")).collect();
    assert!(ours.is_empty(), "{ours:?}");
}

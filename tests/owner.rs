//! Who owns the program that `gnntop run` starts: its keeper does. What a scheduler, a full disk, a limit or an impatient
//! person does to gnntop never ends the program, and its exit code comes through.

use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::Child;

use gnntop_fixtures::SmallDisk;

use crate::sessions::{Ran, Sessions, default_hangup, ignored_hangup, signal, spawn, wait_until};

/// What is in a file, once something is.
fn said(path: &Path) -> String {
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

/// `gnntop run --plain` of a script, which has begun: it has made the file `ready`.
fn started(sessions: &Sessions, script: &str) -> Child {
    let child = spawn(default_hangup(&mut sessions.gnntop(["run", "--plain", "--", "sh", "-c", script])));
    wait_until(|| sessions.path().join("ready").exists());
    child
}

const SAYS_SIGNALS: &str = "for s in HUP USR1 USR2 TERM; do trap \"echo $s >> signals\" $s; done
    touch ready; while [ ! -e go ] && [ -e ready ]; do sleep 0.05; done; exit 6";

#[test]
fn what_a_scheduler_sends_reaches_the_program() {
    let sessions = Sessions::new();
    let child = started(&sessions, SAYS_SIGNALS);
    for (at, name) in ["USR1", "USR2"].into_iter().enumerate() {
        signal(&child, name);
        wait_until(|| fs::read_to_string(sessions.path().join("signals")).is_ok_and(|text| text.lines().count() > at));
    }
    sessions.file("go", b"");
    let ran = Ran::of(&child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(6), "{ran:?}");
    assert_eq!(fs::read_to_string(sessions.path().join("signals")).unwrap(), "USR1\nUSR2\n");
}

#[test]
fn sigterm_reaches_the_program_and_its_end_is_waited_for() {
    let sessions = Sessions::new();
    let script = "trap 'echo saved > signals; exit 0' TERM; touch ready; for _ in $(seq 2400); do [ -e ready ] || break; sleep 0.05; done";
    let child = started(&sessions, script);
    signal(&child, "TERM");
    let ran = Ran::of(&child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(128 + 15), "{ran:?}");
    assert_eq!(said(&sessions.path().join("signals")), "saved\n");
}

#[test]
fn a_hangup_ends_what_waits_and_not_the_program() {
    let sessions = Sessions::new();
    let child = started(&sessions, SAYS_SIGNALS);
    signal(&child, "HUP");
    let ran = Ran::of(&child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(128 + 1), "{ran:?}");
    assert!(!sessions.path().join("signals").exists(), "the program has heard nothing of it");
    fs::remove_file(sessions.path().join("ready")).unwrap();
}

#[test]
fn what_is_ignored_stays_ignored() {
    let sessions = Sessions::new();
    let script = "touch ready; while [ ! -e go ] && [ -e ready ]; do sleep 0.05; done; kill -s HUP $$; exit 6";
    let mut command = sessions.gnntop(["run", "--plain", "--", "sh", "-c", script]);
    let child = spawn(ignored_hangup(&mut command));
    wait_until(|| sessions.path().join("ready").exists());
    signal(&child, "HUP");
    sessions.file("go", b"");
    let ran = Ran::of(&child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(6), "neither gnntop nor the program has ended of it: {ran:?}");
}

#[test]
fn stop_ends_what_goes_on_without_a_view() {
    let sessions = Sessions::new();
    sessions.run(["stop"]).refused("`gnntop run` has no running program");
    let mut child = started(
        &sessions,
        "trap 'echo asked > signals; exit 0' INT; touch ready; for _ in $(seq 2400); do [ -e ready ] || break; sleep 0.05; done",
    );
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    sessions.run(["stop", "no-such"]).refused("has no running program no-such");
    let ran = sessions.run(["stop", "sh"]);
    assert!(ran.code == Some(0) && ran.out.contains("has ended"), "{ran:?}");
    assert_eq!(said(&sessions.path().join("signals")), "asked\n");
    sessions.run(["stop", "sh"]).refused("has no running program sh");
}

#[test]
fn stop_kills_what_does_not_listen() {
    let sessions = Sessions::new();
    let child = started(
        &sessions,
        "trap '' INT TERM; touch ready; for _ in $(seq 2400); do [ -e ready ] || break; sleep 0.05; done",
    );
    assert_eq!(sessions.run(["stop", "sh", "--within", "200ms"]).code, Some(1));
    assert_eq!(sessions.run(["stop", "--kill"]).code, Some(0));
    assert_eq!(Ran::of(&child.wait_with_output().unwrap()).code, Some(128 + 9));
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

#[test]
fn a_limit_on_files_ends_neither_the_program_nor_its_log() {
    let sessions = Sessions::new();
    let mut command = sessions.gnntop(["run", "--", "sh", "-c", "yes | head -c 3000000; echo the last line; exit 3"]);
    // SAFETY: setrlimit is async-signal-safe and concerns the child alone.
    unsafe {
        command.pre_exec(|| {
            let limit = libc::rlimit { rlim_cur: 1 << 20, rlim_max: 1 << 20 };
            let done = libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit);
            if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
        });
    }
    let ran = Ran::of(&command.output().unwrap());
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.err.contains("  the last line"), "{}", ran.err);
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
    let ran = Ran::of(&command.env("GNNTOP_DIR", path).output().unwrap());
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.err.contains("a.gnntop ends here: ") && ran.err.contains("No space left on device"), "{}", ran.err);
}

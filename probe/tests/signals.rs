//! Signals that are meant for the program: none of them is taken by a thread of ours.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::alone;
use crate::program::{output_of, program};
use gnntop_probe::{SensorOptions, Session, TrackRole, phase, span, step};

/// The signals that a thread blocks, as bits, bit 0 for signal 1.
fn blocked(task: &Path) -> u64 {
    let status = fs::read_to_string(task.join("status")).unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap()
}

/// The threads of this process of that name.
fn threads(name: &str) -> Vec<std::path::PathBuf> {
    let tasks = fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    tasks.filter(|task| fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim() == name)).collect()
}

#[test]
fn probe_threads_block_signals_and_program_threads_do_not() {
    let temp = tempfile::tempdir().unwrap();
    let own = Path::new("/proc/thread-self");
    let _alone = alone();
    let before = blocked(own);
    let options = SensorOptions { gpu: false, ..SensorOptions::default() };
    let session = Session::builder("signals").directory(temp.path()).sensors(Some(options)).start();
    assert_eq!(blocked(own), before, "the program's own thread");
    for name in ["gnntop drain", "gnntop sensors"] {
        let task = crate::reading::wait_for(|| threads(name).pop());
        let blocked = blocked(&task);
        for signal in
            [libc::SIGUSR1, libc::SIGXFSZ, libc::SIGINT, libc::SIGTERM, libc::SIGCHLD, libc::SIGALRM, libc::SIGPIPE]
        {
            assert!(blocked >> (signal - 1) & 1 == 1, "{name} takes signal {signal}");
        }
        assert!(blocked >> (libc::SIGSEGV - 1) & 1 == 0, "a crash of {name} goes to the program's crash handler");
    }
    drop(session);
}

/// Trains under a limit on the size of files; without the limit's signal being ignored.
#[test]
#[ignore = "run by another test, as a program of its own"]
fn child_hits_a_limit() {
    let session = Session::builder("limited").sensors(None).on_warning(|_| ()).start();
    let track = session.track("train", TrackRole::Training);
    // SAFETY: a plain system call on a valid limit.
    unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &libc::rlimit { rlim_cur: 100, rlim_max: 100 }) };
    for _ in 0..200 {
        let _step = step(0);
        drop(span(&phase::FORWARD));
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(!track.is_recording(), "the limit was met");
}

#[test]
fn file_size_signal_does_not_end_program() {
    let temp = tempfile::tempdir().unwrap();
    let (status, said) = output_of(&mut program("signals::child_hits_a_limit", temp.path()));
    assert!(status.success(), "{status}: {said}");
}

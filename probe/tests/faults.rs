//! Everything that can go wrong around a publishing program; the program must not notice.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::mpsc;
use std::time::Duration;

use crate::program::{output_of, program, sessions};
use crate::reading::RecordedStream;
use gnntop_fixtures::SmallDisk;
use gnntop_probe::{Session, TrackRole, intern, phase, span, step};
use gnntop_sessions::SessionDir;
use gnntop_wire::{Fact, NameKind};

fn train(steps: u64) {
    for _ in 0..steps {
        let _step = step(0);
        let _forward = span(&phase::FORWARD);
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// What a program does: a hundred steps, whatever happens to the publishing.
#[test]
#[ignore = "run by other tests, as a program of its own"]
fn child_trains() {
    let (tell, warnings) = mpsc::channel();
    let session =
        Session::builder("child").sensors(None).on_warning(move |w| tell.send(w.to_string()).unwrap()).start();
    let track = session.track("train", TrackRole::Training);
    train(100);
    println!("recording to the end: {}", track.is_recording());
    drop((track, session));
    warnings.iter().for_each(|warning| println!("warned: {warning}"));
}

/// Trains until it is killed.
#[test]
#[ignore = "run by other tests, as a program of its own"]
fn child_trains_for_ever() {
    let session = Session::builder("child").sensors(None).start();
    let _track = session.track("train", TrackRole::Training);
    train(u64::MAX);
}

fn assert_trains_on_with_one_warning(command: &mut Command, word: &str) {
    let (status, said) = output_of(command);
    assert!(status.success(), "{said}");
    assert_eq!(said.matches("warned: ").count(), 1, "{said}");
    assert!(said.contains(word), "{word:?} is not in: {said}");
    assert!(said.contains("recording to the end: false"), "{said}");
}

#[test]
fn unusable_directory_gives_one_warning() {
    let temp = tempfile::tempdir().unwrap();
    let (file, link) = (temp.path().join("file"), temp.path().join("link"));
    fs::write(&file, "").unwrap();
    std::os::unix::fs::symlink(temp.path(), &link).unwrap();
    assert_trains_on_with_one_warning(&mut program("faults::child_trains", &file), "is not a directory");
    assert_trains_on_with_one_warning(&mut program("faults::child_trains", &link), "is a symbolic link");
    // No one, not even root, can make directories here: stands for any read-only place.
    assert_trains_on_with_one_warning(
        &mut program("faults::child_trains", Path::new("/proc/1/gnntop")),
        "cannot publish: writing",
    );
}

#[test]
fn other_users_directory_gives_one_warning() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("theirs");
    fs::create_dir(&dir).unwrap();
    if std::os::unix::fs::chown(&dir, Some(12345), None).is_err() {
        println!("skipped: only root can give a directory away");
        return;
    }
    assert_trains_on_with_one_warning(&mut program("faults::child_trains", &dir), "belongs to another user");
}

#[test]
fn file_size_limit_gives_one_warning() {
    let temp = tempfile::tempdir().unwrap();
    let mut command = program("faults::child_trains", temp.path());
    // SAFETY: both calls are async-signal-safe and touch only the child.
    unsafe {
        command.pre_exec(|| {
            let limit = libc::rlimit { rlim_cur: 100, rlim_max: 100 };
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            if libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) == 0 {
                Ok(())
            } else {
                Err(std::io::Error::last_os_error())
            }
        });
    }
    // The harness writes to a pipe, which the limit does not concern.
    assert_trains_on_with_one_warning(&mut command, "cannot publish: writing");
}

/// Trains for a while with more output than a file may be large.
#[test]
#[ignore = "run by another test, as a program of its own"]
fn child_trains_under_a_limit() {
    // SAFETY: a plain system call on a valid limit.
    unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &libc::rlimit { rlim_cur: 4000, rlim_max: 4000 }) };
    let session = Session::builder("child").sensors(None).on_warning(|w| println!("warned: {w}")).start();
    let _track = session.track("train", TrackRole::Training);
    train(300);
}

#[test]
fn file_size_limit_does_not_limit_segments() {
    let temp = tempfile::tempdir().unwrap();
    let (status, said) = output_of(&mut program("faults::child_trains_under_a_limit", temp.path()));
    assert!(status.success() && !said.contains("warned: "), "{said}");
    let stream = RecordedStream::from_session(&sessions(temp.path())[0]);
    assert!(stream.damage.is_empty() && stream.ended && stream.sessions.len() > 1, "several whole segments");
    assert_eq!(stream.steps().len(), 300, "what one segment did not take is in the next");
}

/// Says how much address space the process has.
#[test]
#[ignore = "run by another test, as a program of its own"]
fn child_says_its_size() {
    let size = || {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmPeak:")).unwrap().to_owned();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
    };
    // The harness has a thread and an arena for it of its own.
    let before = size();
    let session = Session::builder("child").start();
    let track = session.track("train", TrackRole::Training);
    train(100);
    drop((track, session));
    println!("MiB more: {}", size() - before);
}

#[test]
#[cfg(target_env = "gnu")]
fn memory_limit_reduces_reserved_address_space() {
    let temp = tempfile::tempdir().unwrap();
    let mut command = program("faults::child_says_its_size", temp.path());
    // SAFETY: setrlimit is async-signal-safe and concerns the child alone.
    unsafe {
        command.pre_exec(|| {
            let limit = libc::rlimit { rlim_cur: 4 << 30, rlim_max: 4 << 30 };
            let done = libc::setrlimit(libc::RLIMIT_AS, &raw const limit);
            if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
        });
    }
    let (status, said) = output_of(&mut command);
    assert!(status.success(), "{said}");
    let more = said.lines().find_map(|line| line.split("MiB more: ").nth(1)).unwrap();
    assert!(more.parse::<u64>().unwrap() < 32, "{more} MiB");
}

#[test]
fn full_disk_warns_and_publishing_resumes() {
    let disk = match SmallDisk::new("256k") {
        Ok(disk) => disk,
        Err(reason) => return println!("skipped: no small file system can be mounted: {reason}"),
    };
    let (mut child, session) = started(disk.path());
    let filler = disk.path().join("filler");
    // Whoever comes first to the last page has it.
    let says = || SessionDir::open(&session).unwrap().publisher().stopped;
    let stopped = crate::reading::wait_for(|| {
        let mut file = fs::OpenOptions::new().create(true).append(true).open(&filler).unwrap();
        while std::io::Write::write_all(&mut file, &[0; 512]).is_ok() {}
        std::thread::sleep(Duration::from_millis(20));
        says()
    });
    assert_eq!(stopped.reason, "the disk was full");
    assert!(child.try_wait().unwrap().is_none(), "still training");
    fs::File::open(session.join("live")).unwrap().try_lock_shared().expect_err("and alive");
    let before = RecordedStream::from_session(&session).steps().len();
    fs::remove_file(&filler).unwrap();
    crate::reading::wait_for(|| {
        std::thread::sleep(Duration::from_millis(20));
        let goes_on = says().is_none() && RecordedStream::from_session(&session).steps().len() > before + 10;
        goes_on.then_some(())
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let stream = RecordedStream::from_session(&session);
    assert!(stream.damage.is_empty(), "no half frame was left behind");
    assert!(stream.steps().len() < stream.steps().last().unwrap().step.0 as usize, "missing steps are numbered");
    let said = stream.not_recorded("what happened while nothing could be written").unwrap();
    assert!(said.ends_with(" UTC: the disk was full"), "{said}");
}

#[test]
fn steps_before_anything_could_be_written_are_counted() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("sessions");
    fs::write(&dir, "in the way").unwrap();
    let mut command = program("faults::child_trains_for_ever", &dir);
    let mut child = command.stderr(std::process::Stdio::piped()).stdout(std::process::Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("cannot publish")));
    fs::remove_file(&dir).unwrap();
    let first = crate::reading::wait_for(|| {
        std::thread::sleep(Duration::from_millis(20));
        let session = dir.exists().then(|| sessions(&dir).pop()).flatten()?;
        RecordedStream::from_session(&session).steps().first().map(|step| step.step.0)
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let stream = RecordedStream::from_session(&sessions(&dir)[0]);
    assert_eq!(stream.not_recorded(Fact::FIRST_STEPS), Some(&*(first - 1).to_string()));
    assert!(first > 1);
}

/// Asks often, while nothing can be written, for what it has recorded to be written.
#[test]
#[ignore = "run by another test, as a program of its own"]
fn child_flushes_in_an_outage() {
    let session = Session::builder("child").sensors(None).on_warning(|w| println!("warned: {w}")).start();
    crate::reading::wait_for(|| (!session.is_publishing()).then_some(()));
    println!("{} flushed", (0..600).filter(|_| session.flush()).count());
}

/// Ten minutes of waiting otherwise.
#[test]
fn flush_waits_for_nothing_in_an_outage() {
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("file");
    fs::write(&file, "").unwrap();
    let (status, said) = output_of(&mut program("faults::child_flushes_in_an_outage", &file));
    assert!(status.success() && said.contains("0 flushed"), "{said}");
}

/// Trains until it is killed, into a recording.
#[test]
#[ignore = "run by another test, as a program of its own"]
fn child_records_for_ever() {
    let path = Path::new(&std::env::var_os("GNNTOP_DIR").unwrap()).join("a.gnntop");
    let session =
        Session::builder("child").sensors(None).record_to(path).on_warning(|w| println!("warned: {w}")).start();
    let _track = session.track("train", TrackRole::Training);
    train(u64::MAX);
}

#[test]
fn blocks_after_an_outage_continue_none_that_were_discarded() {
    let disk = match SmallDisk::new("256k") {
        Ok(disk) => disk,
        Err(reason) => return println!("skipped: no small file system can be mounted: {reason}"),
    };
    let (path, filler) = (disk.path().join("a.gnntop"), disk.path().join("filler"));
    let mut command = program("faults::child_records_for_ever", disk.path());
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let steps = || if path.exists() { RecordedStream::from_files([&path]).steps().len() } else { 0 };
    crate::reading::wait_for(|| {
        std::thread::sleep(Duration::from_millis(20));
        (steps() > 0).then_some(())
    });
    fs::write(&filler, vec![0; 1 << 20]).unwrap_err();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("warned: ")));
    let before = steps();
    fs::remove_file(&filler).unwrap();
    crate::reading::wait_for(|| {
        std::thread::sleep(Duration::from_millis(20));
        (steps() > before + 10).then_some(())
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let stream = RecordedStream::from_files([&path]);
    assert!(stream.damage.is_empty(), "{:?}", stream.damage);
}

/// Ends without a word as soon as its steps are on the disk. The pauses between two looks at its rings never end.
#[test]
#[ignore = "run by another test, as a program of its own"]
fn child_ends_at_once() {
    let hour = Duration::from_secs(3600);
    let session = Session::builder("child").sensors(None).drain_interval(hour).start();
    let _track = session.track("train", TrackRole::Training);
    (0..60).for_each(|_| drop(step(0)));
    crate::reading::wait_for(|| {
        std::thread::sleep(Duration::from_millis(1));
        (RecordedStream::from_session(session.dir().unwrap()).steps().len() == 60).then_some(())
    });
    // SAFETY: ends the process, whatever its threads do.
    unsafe { libc::_exit(0) };
}

#[test]
fn the_first_steps_are_written_at_once() {
    let temp = tempfile::tempdir().unwrap();
    let (status, said) = output_of(&mut program("faults::child_ends_at_once", temp.path()));
    assert!(status.success(), "{said}");
    assert_eq!(RecordedStream::from_session(&sessions(temp.path())[0]).steps().len(), 60);
}

/// The most files that the program below may have open, which gives it every number that was gnntop's.
const FEW_FILES: libc::rlim_t = 200;
/// The numbers that it leaves free.
const LEFT_FREE: usize = 20;

/// Closes all descriptors, as libraries for daemons do, and opens its own files under their numbers.
#[test]
#[ignore = "run by another test, as a program of its own"]
fn child_closes_every_descriptor() {
    // SAFETY: a plain system call on a valid limit.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &libc::rlimit { rlim_cur: FEW_FILES, rlim_max: FEW_FILES }) };
    let dir = std::path::PathBuf::from(std::env::var_os("GNNTOP_DIR").unwrap()).with_file_name("checkpoints");
    let session = Session::builder("child").start();
    let _track = session.track("train", TrackRole::Training);
    for round in 0..3 {
        train(50);
        // SAFETY: this program has nothing open that it still uses; what gnntop has open must not mind.
        (3..4096).for_each(|number| unsafe { _ = libc::close(number) });
        let numbers = 3..FEW_FILES as usize - LEFT_FREE;
        let mut files: Vec<fs::File> =
            numbers.map(|number| fs::File::create_new(dir.join(format!("{round}-{number}"))).unwrap()).collect();
        train(50);
        files.iter_mut().for_each(|file| std::io::Write::write_all(file, b"weights").unwrap());
        train(50);
        assert!(files.iter().all(|file| file.metadata().unwrap().len() == 7), "all are open");
    }
}

#[test]
fn files_of_a_program_that_closes_our_descriptors_stay_its_own() {
    let temp = tempfile::tempdir().unwrap();
    let (dir, checkpoints) = (temp.path().join("sessions"), temp.path().join("checkpoints"));
    fs::create_dir(&checkpoints).unwrap();
    let (status, said) = output_of(&mut program("faults::child_closes_every_descriptor", &dir));
    assert!(status.success(), "{said}");
    let files: Vec<_> = fs::read_dir(&checkpoints).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 3 * (FEW_FILES as usize - LEFT_FREE - 3));
    for file in files {
        assert_eq!(fs::read(&file).unwrap(), b"weights", "{}", file.display());
    }
    let stream = RecordedStream::from_session(&sessions(&dir)[0]);
    assert!(stream.ended && stream.damage.is_empty(), "{:?}", stream.damage);
    assert_eq!(stream.steps().len(), 450);
}

#[test]
fn disabled_probe_leaves_no_files() {
    let temp = tempfile::tempdir().unwrap();
    let (status, said) = output_of(program("faults::child_trains", temp.path()).env("GNNTOP", "0"));
    assert!(status.success() && said.contains("recording to the end: false") && !said.contains("warned"), "{said}");
    assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0);
}

/// Starts a program that trains for ever and waits until it has published steps.
fn started(dir: &Path) -> (Child, std::path::PathBuf) {
    let child = program("faults::child_trains_for_ever", dir).stdout(std::process::Stdio::null()).spawn().unwrap();
    let session = crate::reading::wait_for(|| {
        std::thread::sleep(Duration::from_millis(20));
        sessions(dir).pop().filter(|session| RecordedStream::from_session(session).steps().len() > 20)
    });
    (child, session)
}

#[test]
fn killed_program_keeps_events_up_to_last_drain() {
    let temp = tempfile::tempdir().unwrap();
    let (mut child, session) = started(temp.path());
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
    let stream = RecordedStream::from_session(&session);
    let (steps, forward) = (stream.steps(), stream.spans("forward"));
    assert!(!stream.ended && stream.damage.is_empty());
    assert_eq!(steps.len(), steps.last().unwrap().step.0 as usize, "no hole before the end");
    assert!(forward.len().abs_diff(steps.len()) <= 1);
    fs::File::open(session.join("live")).unwrap().try_lock_shared().expect("the lock ends with the program");
}

#[test]
fn removed_session_files_do_not_stop_program() {
    let temp = tempfile::tempdir().unwrap();
    let (mut child, session) = started(temp.path());
    fs::remove_dir_all(session).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    assert!(child.try_wait().unwrap().is_none(), "still training");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Names with escape sequences, of a megabyte, a million of them, and a hundred thousand tracks.
#[test]
#[ignore = "run by other tests, as a program of its own"]
fn child_names_everything() {
    let session = Session::builder("\x1b[31mred\u{202e}").sensors(None).start();
    let track = session.track("\x07bell", TrackRole::Training);
    drop(span(intern(NameKind::Span, "\x1b[2J")));
    drop(span(intern(NameKind::Span, &"x".repeat(1 << 20))));
    for i in 0..1_000_000 {
        drop(span(intern(NameKind::Span, &format!("name {i}"))));
        if i % 8000 == 0 {
            std::thread::sleep(Duration::from_millis(25));
        }
    }
    drop(track);
    for i in 0..2_000 {
        drop(session.track(&format!("track {i}"), TrackRole::Other));
    }
    session.fact("not recorded: threads beyond the table of tracks", "none");
}

#[test]
fn hostile_names_are_bounded_and_cleaned() {
    let temp = tempfile::tempdir().unwrap();
    let (status, said) = output_of(&mut program("faults::child_names_everything", temp.path()));
    assert!(status.success(), "{said}");
    let stream = RecordedStream::from_session(&sessions(temp.path())[0]);
    assert!(stream.names.len() <= 4096 && stream.tracks.len() <= 1025);
    assert_eq!(
        stream.not_recorded("threads beyond the table of tracks"),
        Some("512 or more"),
        "its own fact is another"
    );
    assert!(stream.names.values().all(|name| name.len() <= 1024 && !name.contains(char::is_control)));
    assert_eq!(stream.sessions[0].name, "\u{fffd}[31mred\u{fffd}");
}

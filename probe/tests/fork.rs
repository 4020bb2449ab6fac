//! Programs that fork while they publish.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::program::{output_of, program, sessions};
use crate::reading::RecordedStream;
use gnntop_probe::{Name, NameKind, Session, TrackRole, intern, opener, phase, span, step};

static INNER: Name = Name::span("inner");

fn train(steps: u64) {
    for _ in 0..steps {
        let _step = step(0);
        let _forward = span(&phase::FORWARD);
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Forks; `None` in the child, which has to [`leave`].
fn fork() -> Option<libc::pid_t> {
    // SAFETY: the child does only what is tested, and leaves.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "the system forks");
    (child > 0).then_some(child)
}

/// Ends a child at once, without running the rest of the test harness.
fn leave() -> ! {
    // SAFETY: nothing of the child is needed any more.
    unsafe { libc::_exit(0) }
}

/// Waits for a child, for at most ten seconds; returns whether it exited normally.
fn has_left(child: libc::pid_t) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(10) {
        let mut status = 0;
        // SAFETY: asks for our own child, with a valid place for its status.
        match unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } {
            0 => std::thread::sleep(Duration::from_millis(1)),
            _ => return status == 0,
        }
    }
    // SAFETY: our own child, which hangs.
    unsafe { libc::kill(child, libc::SIGKILL) };
    false
}

/// Publishes, forks, and lets parent and child both go on recording.
#[test]
#[ignore = "run by other tests, as a program of its own"]
fn child_forks() {
    let session = Session::builder("parent").sensors(None).start();
    let track = session.track("train", TrackRole::Training);
    train(20);
    let open = span(&phase::BACKWARD);
    let Some(child) = fork() else {
        for _ in 0..50_000 {
            drop(span(&INNER));
        }
        drop(open);
        drop((session.track("another", TrackRole::Other), opener().track("a third", TrackRole::Other)));
        drop((track, session));
        leave();
    };
    drop(open);
    train(20);
    assert!(has_left(child));
    train(20);
}

#[test]
fn forked_child_does_not_write_to_parents_session() {
    let temp = tempfile::tempdir().unwrap();
    let (status, said) = output_of(&mut program("fork::child_forks", temp.path()));
    assert!(status.success(), "{said}");
    let stream = RecordedStream::from_session(&sessions(temp.path())[0]);
    assert_eq!((stream.steps().len(), stream.spans("inner").len()), (60, 0));
    assert_eq!(stream.spans("backward").len(), 1, "the parent's own");
    assert!(stream.ended && stream.damage.is_empty());
    assert_eq!(stream.tracks.len(), 2, "the publisher's and the parent's");
}

/// Forks again and again while other threads register names and open tracks.
#[test]
#[ignore = "run by other tests, as a program of its own"]
fn child_forks_while_locks_are_held() {
    static STOP: AtomicBool = AtomicBool::new(false);
    let session = Session::builder("locks").sensors(None).start();
    let threads: [_; 4] = std::array::from_fn(|thread| {
        std::thread::spawn(move || {
            for i in 0.. {
                if STOP.load(Ordering::Relaxed) {
                    return;
                }
                intern(NameKind::Span, &format!("name {} of {thread}", i % 1000));
                let _opener = opener().track("inert", TrackRole::Other);
            }
        })
    });
    let hangs = |i: &i32| match fork() {
        Some(child) => !has_left(child),
        None => {
            intern(NameKind::Span, &format!("name of child {i}"));
            drop(opener().track("inert", TrackRole::Other));
            leave();
        }
    };
    assert_eq!((0..300).filter(hangs).count(), 0, "children that hang");
    STOP.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    drop(session);
}

#[test]
fn a_forked_child_never_waits_for_a_lock_of_its_parent() {
    let temp = tempfile::tempdir().unwrap();
    let (status, said) = output_of(&mut program("fork::child_forks_while_locks_are_held", temp.path()));
    assert!(status.success(), "{said}");
}

/// Publishes, forks, and has the child publish a session of its own.
#[test]
#[ignore = "run by other tests, as a program of its own"]
fn child_forks_a_publisher() {
    let session = Session::builder("parent").sensors(None).start();
    let track = session.track("train", TrackRole::Training);
    train(5);
    let Some(child) = fork() else {
        let own = Session::builder("of the child").sensors(None).start();
        let own_track = gnntop_probe::track("train", TrackRole::Training);
        train(7);
        drop((own_track, own));
        assert!(!track.is_recording(), "its own session was the only one");
        drop((track, session));
        leave();
    };
    train(5);
    assert!(has_left(child));
    train(5);
}

#[test]
fn a_forked_child_may_publish_a_session_of_its_own() {
    let temp = tempfile::tempdir().unwrap();
    let (status, said) = output_of(&mut program("fork::child_forks_a_publisher", temp.path()));
    assert!(status.success(), "{said}");
    let streams: Vec<RecordedStream> =
        sessions(temp.path()).iter().map(|session| RecordedStream::from_session(session)).collect();
    let mut steps: Vec<_> =
        streams.iter().map(|stream| (stream.sessions[0].name.as_str(), stream.steps().len())).collect();
    steps.sort_unstable();
    assert_eq!(steps, [("of the child", 7), ("parent", 15)]);
    assert!(streams.iter().all(|stream| stream.ended && stream.damage.is_empty()));
}

/// Publishes, forks a child that lives on, says its id, and trains until it is killed, a minute at most.
#[test]
#[ignore = "run by other tests, as a program of its own"]
fn child_leaves_a_child() {
    let session = Session::builder("parent").sensors(None).start();
    let _track = session.track("train", TrackRole::Training);
    let dir = session.dir().unwrap();
    crate::reading::wait_for(|| crate::reading::segments(dir).pop());
    let Some(child) = fork() else {
        std::thread::sleep(Duration::from_secs(60));
        leave();
    };
    println!("\nchild {child}");
    train(60_000);
}

#[test]
fn a_killed_program_is_seen_to_be_dead_while_its_child_lives() {
    let temp = tempfile::tempdir().unwrap();
    let mut parent = program("fork::child_leaves_a_child", temp.path()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(parent.stdout.take().unwrap()).lines().map(Result::unwrap);
    let child: libc::pid_t = lines.find_map(|line| line.strip_prefix("child ")?.parse().ok()).unwrap();
    let lock = File::open(sessions(temp.path())[0].join("live")).unwrap();
    assert!(lock.try_lock_shared().is_err(), "the session lives");
    parent.kill().unwrap();
    parent.wait().unwrap();
    // The child closes its copy first thing, but the system may not have let it run yet.
    crate::reading::wait_for(|| lock.try_lock_shared().ok());
    // SAFETY: a child of the program that was started here, with nobody left to wait for it.
    let lived = unsafe { libc::kill(child, libc::SIGKILL) } == 0;
    assert!(lived, "the child lived until now");
}

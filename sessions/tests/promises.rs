//! What the crate promises: a test for each row of the table at its head, of the same name.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::fs::{self, File, Permissions};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use gnntop_sessions::{
    Error, HeldFile, LiveLock, PrivateDir, Removal, SessionDir, Stopped, append_to_ended, discover, layout, request,
};
use gnntop_wire::{Definition, End, Fact, SessionInfo, put_definitions, put_end, put_segment};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

const SEGMENT: &str = "00000000.gnntop";
const OTHER_USER: u32 = 12_345;
const HOUR: Duration = Duration::from_secs(3600);

/// Held by tests that hold locks: another one's forked child would hold them, too.
static LOCKS: Mutex<()> = Mutex::new(());

fn locks() -> MutexGuard<'static, ()> {
    LOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn private() -> (TempDir, PrivateDir) {
    let temp = tempfile::tempdir().unwrap();
    let dir = PrivateDir::open(temp.path()).unwrap();
    (temp, dir)
}

fn pipe(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
}

/// A session of this process id that was never locked.
fn session(sessions: &Path, pid: u32) -> PathBuf {
    let info = SessionInfo { name: "pna".into(), pid, ..SessionInfo::default() };
    let dir = PrivateDir::create(&sessions.join(layout::session_dir_name(&info.name, pid, info.session_id))).unwrap();
    dir.create_file(layout::LOCK_FILE).unwrap();
    let mut segment = Vec::new();
    put_segment(&mut segment, &info);
    dir.create_file(SEGMENT).unwrap().write_all(&segment).unwrap();
    dir.path().to_owned()
}

/// As it will be after some time.
fn removal(sessions: &Path, later: Duration) -> Removal {
    Removal::new(PrivateDir::open(sessions).unwrap(), SystemTime::now() + later)
}

/// Removes all that can be removed, and returns by name why the rest cannot.
fn remove_all(sessions: &Path) -> Vec<(String, String)> {
    let removal = removal(sessions, HOUR);
    let found = removal.candidates().unwrap();
    let mut kept: Vec<_> = found.others.into_iter().map(|(name, error)| (name, error.to_string())).collect();
    for idle in found.idle {
        let checked = removal.check(&idle).map_err(|error| error.to_string());
        let removed = removal.remove(&idle).map_err(|error| error.to_string());
        assert_eq!(checked, removed);
        kept.extend(removed.err().map(|error| (idle.name, error)));
    }
    kept.sort();
    kept
}

fn reasons(kept: Vec<(String, String)>) -> Vec<String> {
    kept.into_iter().map(|(_, reason)| reason).collect()
}

fn is_alive(session: &Path) -> bool {
    SessionDir::open(session).unwrap().publisher().alive
}

/// Whether only root could do what a test needs, and this is not root.
fn is_skipped() -> bool {
    let is_skipped = rustix::process::geteuid().as_raw() != 0;
    if is_skipped {
        println!("skipped: only root can give files away");
    }
    is_skipped
}

#[test]
fn every_promise_has_its_test() {
    let (head, tests) = (include_str!("../src/lib.rs"), [include_str!("promises.rs"), include_str!("copies.rs")]);
    let promises: Vec<&str> =
        head.lines().filter_map(|line| line.strip_prefix("//! | `")?.split_once('`')).map(|found| found.0).collect();
    assert!(promises.len() > 15, "{promises:?}");
    for promise in promises {
        let test = format!("#[test]\nfn {promise}()");
        assert!(tests.iter().any(|tests| tests.contains(&test)), "no test of {promise}");
    }
}

#[test]
fn never_follows_a_link() {
    let (temp, dir) = private();
    let (real, file) = (temp.path().join("real"), temp.path().join("file"));
    fs::create_dir(&real).unwrap();
    fs::write(&file, "precious").unwrap();
    symlink(&real, temp.path().join("dir link")).unwrap();
    symlink(&file, temp.path().join("file link")).unwrap();
    symlink(temp.path().join("nothing"), temp.path().join("dangling")).unwrap();
    for path in ["dir link", "dir link/", "dir link/.", "file link"].map(|name| temp.path().join(name)) {
        assert!(matches!(PrivateDir::open(&path), Err(Error::Link)), "{}", path.display());
        assert!(matches!(PrivateDir::create(&path), Err(Error::Link)), "{}", path.display());
    }
    assert!(PrivateDir::create(&temp.path().join("dangling")).is_err());
    assert!(matches!(dir.dir("dir link"), Err(Error::Link)));
    assert!(matches!(dir.create_dir("dir link"), Err(Error::Link)));
    for link in ["file link", "dir link", "dangling"] {
        assert!(matches!(dir.read(link), Err(Error::Link)));
        assert!(matches!(dir.append(link), Err(Error::Link)));
        assert!(dir.create_file(link).is_err() && dir.create_log(link).is_err());
    }
    dir.replace("new", "file link", b"replaced").unwrap();
    dir.replace("dangling", "unfinished", b"replaced").unwrap();
    assert!(!temp.path().join("nothing").exists());
    assert_eq!(fs::read(&file).unwrap(), b"precious");
    symlink(&file, temp.path().join(layout::NEW_REQUEST_FILE)).unwrap();
    assert!(matches!(request::Pending::new(temp.path(), 1), Err(Error::Link)));
    symlink(&file, real.join(SEGMENT)).unwrap();
    assert!(matches!(SessionDir::open(&real).unwrap().segment(0), Err(Error::Link)));
    assert_eq!(fs::read(&file).unwrap(), b"precious");
}

#[test]
fn never_waits_for_a_pipe() {
    let (temp, dir) = private();
    for name in ["pipe", layout::LOCK_FILE, layout::REQUEST_FILE, layout::NEW_REQUEST_FILE, SEGMENT] {
        pipe(&temp.path().join(name));
    }
    // Each of these would never return.
    assert!(dir.read("pipe").is_err() && dir.append("pipe").is_err() && dir.create_file("pipe").is_err());
    assert!(PrivateDir::open(&temp.path().join("pipe")).is_err());
    assert!(SessionDir::open(&temp.path().join("pipe")).is_err());
    assert!(!is_alive(temp.path()) && SessionDir::open(temp.path()).unwrap().segment(0).is_err());
    assert_eq!(request::read(temp.path()), None);
    assert!(request::Pending::new(temp.path(), 1).is_err());
    assert!(gnntop_sessions::user_file::open(&temp.path().join("pipe")).is_err());
    let piped = session(temp.path(), 1);
    fs::remove_file(piped.join(layout::LOCK_FILE)).unwrap();
    pipe(&piped.join(layout::LOCK_FILE));
    assert_eq!(reasons(remove_all(temp.path())), ["contains live, which is not a regular file"]);
}

#[test]
fn opens_only_regular_files() {
    let (temp, dir) = private();
    pipe(&temp.path().join("pipe"));
    let _socket = std::os::unix::net::UnixListener::bind(temp.path().join("socket")).unwrap();
    fs::create_dir(temp.path().join("dir")).unwrap();
    fs::write(temp.path().join("file"), "x").unwrap();
    // With a reader, the pipe could be opened for writing.
    let _reader = fs::OpenOptions::new().read(true).write(true).open(temp.path().join("pipe")).unwrap();
    for other in ["pipe", "socket", "dir"] {
        assert!(matches!(dir.read(other), Err(Error::NotAFile)), "{other}");
        assert!(matches!(dir.append(other), Err(Error::NotAFile)), "{other}");
        assert!(gnntop_sessions::user_file::open(&temp.path().join(other)).is_err(), "{other}");
    }
    assert!(dir.read("file").is_ok() && dir.append("file").is_ok());
    assert!(matches!(PrivateDir::open(&temp.path().join("file")), Err(Error::NotADirectory)));
}

#[test]
fn opens_only_what_is_mine() {
    if is_skipped() {
        return;
    }
    let (temp, dir) = private();
    let theirs = temp.path().join("theirs");
    for name in ["theirs", layout::REQUEST_FILE] {
        fs::write(temp.path().join(name), "trace 1 5\n").unwrap();
        chown(temp.path().join(name), Some(OTHER_USER), None).unwrap();
    }
    assert!(matches!(dir.read("theirs"), Err(Error::OtherUser { uid: OTHER_USER })));
    assert!(matches!(dir.append("theirs"), Err(Error::OtherUser { uid: OTHER_USER })));
    assert_eq!(request::read(temp.path()), None);
    fs::remove_file(&theirs).unwrap();
    fs::create_dir(&theirs).unwrap();
    chown(&theirs, Some(OTHER_USER), None).unwrap();
    assert!(matches!(PrivateDir::open(&theirs), Err(Error::OtherUser { uid: OTHER_USER })));
    assert!(matches!(PrivateDir::create(&theirs), Err(Error::OtherUser { uid: OTHER_USER })));
    assert!(matches!(dir.dir("theirs"), Err(Error::OtherUser { uid: OTHER_USER })));
    assert!(matches!(dir.create_dir("theirs"), Err(Error::OtherUser { uid: OTHER_USER })));
}

#[test]
fn refuses_a_directory_that_others_can_write_to() {
    let (temp, dir) = private();
    let path = temp.path().join("open");
    fs::create_dir(&path).unwrap();
    for mode in [0o777, 0o770, 0o702, 0o1777] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        assert!(matches!(PrivateDir::open(&path), Err(Error::WritableByOthers)), "{mode:o}");
        assert!(matches!(PrivateDir::create(&path), Err(Error::WritableByOthers)), "{mode:o}");
        assert!(matches!(dir.dir("open"), Err(Error::WritableByOthers)), "{mode:o}");
        assert!(discover::list(&path).is_err(), "{mode:o}");
    }
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    PrivateDir::open(&path).unwrap();
}

#[test]
fn never_leaves_its_directory() {
    let (temp, _) = private();
    fs::create_dir(temp.path().join("inside")).unwrap();
    fs::write(temp.path().join("outside"), "precious").unwrap();
    let dir = PrivateDir::open(&temp.path().join("inside")).unwrap();
    let absolute = temp.path().join("outside").to_str().unwrap().to_owned();
    for path in ["../outside", "./../outside", absolute.as_str(), "..", ".", "", "a/b"] {
        assert!(dir.read(path).is_err() && dir.append(path).is_err(), "{path}");
        assert!(dir.create_file(path).is_err() && dir.create_log(path).is_err() && dir.remove(path).is_err(), "{path}");
        assert!(dir.dir(path).is_err() && dir.create_dir(path).is_err(), "{path}");
        assert!(dir.rename(path, "mine").is_err() && dir.replace(path, "new", b"").is_err(), "{path}");
    }
    // What takes the place of its path is not reached, either.
    fs::rename(temp.path().join("inside"), temp.path().join("moved")).unwrap();
    fs::create_dir(temp.path().join("inside")).unwrap();
    dir.create_file("mine").unwrap();
    assert!(temp.path().join("moved/mine").exists() && !temp.path().join("inside/mine").exists());
    assert_eq!(fs::read(temp.path().join("outside")).unwrap(), b"precious");
}

#[test]
fn creates_for_this_user_alone() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("a/b");
    let dir = PrivateDir::create(&path).unwrap();
    PrivateDir::create(&path).unwrap();
    dir.create_dir("c").unwrap();
    dir.create_dir("c").unwrap();
    let mode = |path: PathBuf| fs::metadata(path).unwrap().mode() & 0o777;
    for made in [temp.path().join("a"), path.clone(), path.join("c")] {
        assert_eq!(mode(made), 0o700);
    }
    dir.create_file("file").unwrap();
    dir.create_log("log").unwrap();
    dir.replace("whole", "unfinished", b"x").unwrap();
    gnntop_sessions::user_file::create(&path.join("named")).unwrap();
    let _lock = LiveLock::create(&dir).unwrap();
    let _request = request::Pending::new(&path, 1).unwrap();
    for made in ["file", "log", "whole", "named", layout::LOCK_FILE, layout::REQUEST_FILE] {
        assert_eq!(mode(path.join(made)), 0o600, "{made}");
    }
}

#[test]
fn never_overwrites_what_it_creates() {
    let (temp, dir) = private();
    for name in ["file", layout::LOCK_FILE] {
        fs::write(temp.path().join(name), "precious").unwrap();
    }
    assert!(dir.create_file("file").is_err() && dir.create_log("file").is_err());
    assert!(gnntop_sessions::user_file::create(&temp.path().join("file")).is_err());
    assert!(LiveLock::create(&dir).is_err());
    dir.append("file").unwrap().write_all(b" and more").unwrap();
    assert_eq!(fs::read(temp.path().join("file")).unwrap(), b"precious and more");
    assert_eq!(fs::read(temp.path().join(layout::LOCK_FILE)).unwrap(), b"precious");
}

#[test]
fn replaces_whole_or_not_at_all() {
    let (temp, dir) = private();
    let path = temp.path().join("past");
    dir.replace("past", "past.new", b"old").unwrap();
    let mut reader = File::open(&path).unwrap();
    // One that was killed has left half of it.
    fs::write(temp.path().join("past.new"), "half of it, and longer").unwrap();
    dir.replace("past", "past.new", b"new").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    let mut read = String::new();
    reader.read_to_string(&mut read).unwrap();
    assert_eq!(read, "old", "who has opened it reads what it was");
    fs::create_dir(temp.path().join("past.new")).unwrap();
    assert!(dir.replace("past", "past.new", b"newer").is_err());
    assert_eq!(fs::read(&path).unwrap(), b"new");
}

#[test]
fn is_live_as_long_as_its_lock_is_held() {
    let _alone = locks();
    let (temp, dir) = private();
    assert!(!is_alive(temp.path()), "without a lock file");
    let lock = LiveLock::create(&dir).unwrap();
    assert!(is_alive(temp.path()));
    lock.report(Some(&Stopped { wall_ns: 7, reason: "the disk was full".to_owned() }));
    let publisher = SessionDir::open(temp.path()).unwrap().publisher();
    assert!(publisher.alive && publisher.stopped.is_some_and(|stopped| stopped.reason == "the disk was full"));
    lock.report(None);
    assert_eq!(SessionDir::open(temp.path()).unwrap().publisher().stopped, None);
    drop(lock);
    assert!(!is_alive(temp.path()));
}

#[test]
fn takes_the_lock_from_no_one() {
    let _alone = locks();
    let (temp, dir) = private();
    let _lock = LiveLock::create(&dir).unwrap();
    assert!(is_alive(temp.path()) && is_alive(temp.path()), "looking does not take it away");
    let dead = session(temp.path(), 1);
    let other = File::open(dead.join(layout::LOCK_FILE)).unwrap();
    other.lock_shared().unwrap();
    assert!(!is_alive(&dead), "another one who looks is not a publisher");
    assert!(remove_all(temp.path()).is_empty() && !dead.exists());
}

#[test]
fn a_forked_child_keeps_no_session_alive() {
    let _alone = locks();
    let (temp, dir) = private();
    let lock = LiveLock::create(&dir).unwrap();
    let mut ready = [0; 2];
    // SAFETY: the array has room for both ends. The child calls only functions that are allowed after a fork.
    let child = unsafe {
        assert_eq!(libc::pipe(ready.as_mut_ptr()), 0);
        match libc::fork() {
            0 => {
                libc::write(ready[1], b"x".as_ptr().cast(), 1);
                loop {
                    libc::pause();
                }
            }
            child => child,
        }
    };
    assert!(child > 0);
    // SAFETY: the buffer has room for the byte; the child is this process's own and not yet waited for.
    unsafe {
        assert_eq!(libc::read(ready[0], [0_u8].as_mut_ptr().cast(), 1), 1);
        let held = is_alive(temp.path());
        drop(lock);
        let still_held = is_alive(temp.path());
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, std::ptr::null_mut(), 0);
        libc::close(ready[0]);
        libc::close(ready[1]);
        assert!(held, "the parent's lock stays");
        assert!(!still_held, "and ends with the parent's session");
    }
}

#[test]
fn a_program_that_closes_all_descriptors_leaves_its_session_alive() {
    let _alone = locks();
    let (temp, dir) = private();
    let _lock = LiveLock::create(&dir).unwrap();
    let path = temp.path().join(layout::LOCK_FILE).canonicalize().unwrap();
    let open = fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
    assert_eq!(open.filter(|open| *open == path).count(), 0, "there is none to close");
    assert!(is_alive(temp.path()));
}

/// Gives a held file's number to another one, as it happens to a program that closes what it has not opened.
fn switch_to_file(held: &HeldFile, other: &File) -> File {
    let number: RawFd = held.get().unwrap().as_raw_fd();
    // SAFETY: the number is that of a held file, which must not mind; the result is its only other owner.
    unsafe {
        assert_eq!(libc::dup2(other.as_raw_fd(), number), number);
        File::from_raw_fd(number)
    }
}

#[test]
fn uses_no_number_that_the_program_has_taken() {
    let temp = tempfile::tempdir().unwrap();
    let open = |name: &str| File::options().create(true).append(true).open(temp.path().join(name)).unwrap();
    let mut held = HeldFile::new(open("ours")).unwrap();
    assert!(held.get().unwrap().as_raw_fd() > 100, "a program gets low numbers");
    let mut theirs = switch_to_file(&held, &open("theirs"));
    assert!(held.get().is_none());
    held.get_or_open(|| Ok(open("another"))).unwrap_err();
    held.get_or_open(|| Ok(open("ours"))).unwrap().write_all(b"more").unwrap();
    let mut taken_again = switch_to_file(&held, &open("theirs"));
    drop(held);
    theirs.write_all(b"one").unwrap();
    taken_again.write_all(b"two").unwrap();
    assert_eq!(fs::read(temp.path().join("theirs")).unwrap(), b"onetwo", "both are still open");
    assert_eq!(fs::read(temp.path().join("ours")).unwrap(), b"more");
    let held = HeldFile::new(open("ours")).unwrap();
    let number = held.get().unwrap().as_raw_fd();
    drop(held);
    assert!(fs::read_link(format!("/proc/self/fd/{number}")).is_err(), "it is closed when it is ours");
}

#[test]
fn reports_a_full_disk_in_reserved_room() {
    let _alone = locks();
    let (temp, dir) = private();
    let lock = LiveLock::create(&dir).unwrap();
    let len = || fs::metadata(temp.path().join(layout::LOCK_FILE)).unwrap().len();
    let reserved = len();
    for reason in ["the disk was full", &"é".repeat(1000)] {
        lock.report(Some(&Stopped { wall_ns: u64::MAX, reason: reason.to_owned() }));
        assert_eq!(len(), reserved);
    }
    assert!(reserved > 0);
}

#[test]
fn asks_one_request_at_a_time() {
    let _alone = locks();
    let (temp, _dir) = private();
    let first = request::Pending::new(temp.path(), 5).unwrap();
    assert!(matches!(request::Pending::new(temp.path(), 1), Err(Error::Requested)));
    assert_eq!(request::read(temp.path()), Some(first.request().to_string()), "the first one is as it was");
    drop(first);
    assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0, "nothing is left behind");
    // Somebody who is about to ask is not disturbed either.
    let about_to = File::create(temp.path().join(layout::NEW_REQUEST_FILE)).unwrap();
    about_to.lock().unwrap();
    (&about_to).write_all(b"trace 1 5\n").unwrap();
    assert!(matches!(request::Pending::new(temp.path(), 1), Err(Error::Requested)));
    assert_eq!(fs::read(temp.path().join(layout::NEW_REQUEST_FILE)).unwrap(), b"trace 1 5\n");
}

#[test]
fn knows_who_ended_well() {
    let temp = tempfile::tempdir().unwrap();
    let dir = session(temp.path(), 1);
    let idle = || removal(temp.path(), Duration::ZERO).candidates().unwrap().idle.remove(0);
    let mut last = vec![0; 9000];
    let mut write = |more: &[u8]| {
        last.extend(more);
        fs::write(dir.join("00000001.gnntop"), &last).unwrap();
    };
    write(&[]);
    assert!(!idle().ended_well, "killed");
    let mut end = Vec::new();
    put_end(&mut end, &End::default());
    write(&end);
    assert!(idle().ended_well);
    let size = |name: &str| fs::metadata(dir.join(name)).unwrap().len();
    assert_eq!(idle().bytes, size(SEGMENT) + size("00000001.gnntop"));
    let mut died = Vec::new();
    put_definitions(
        &mut died,
        &[Definition::Fact(Fact::Died { cause: "killed".into(), text: "out of memory".into() })],
    );
    write(&died);
    assert!(!idle().ended_well, "why it died was added");
    assert!(removal(temp.path(), Duration::ZERO).capacity_bytes() > Some(0));
}

#[test]
fn writes_into_no_session_that_is_live() {
    let _alone = locks();
    let temp = tempfile::tempdir().unwrap();
    let dir = PrivateDir::create(&temp.path().join("pna-1-00000000")).unwrap();
    assert!(matches!(append_to_ended(dir.path(), b"x"), Err(Error::NoSegments)));
    dir.create_file(SEGMENT).unwrap().write_all(b"segment").unwrap();
    dir.create_file("00000001.gnntop").unwrap().write_all(b"newest").unwrap();
    let lock = LiveLock::create(&dir).unwrap();
    assert!(matches!(append_to_ended(dir.path(), b"x"), Err(Error::Live)));
    drop(lock);
    append_to_ended(dir.path(), b" and why").unwrap();
    assert_eq!(fs::read(dir.path().join(SEGMENT)).unwrap(), b"segment");
    assert_eq!(SessionDir::open(dir.path()).unwrap().tail(11).unwrap(), b"est and why");
}

#[test]
fn removes_nothing_live() {
    let _alone = locks();
    let temp = tempfile::tempdir().unwrap();
    let (dead, live) = (session(temp.path(), 1), session(temp.path(), 2));
    let without_lock = session(temp.path(), 3);
    fs::remove_file(without_lock.join(layout::LOCK_FILE)).unwrap();
    let lock = File::open(live.join(layout::LOCK_FILE)).unwrap();
    lock.lock().unwrap();
    assert_eq!(reasons(remove_all(temp.path())), ["is live", "has no lock file, so whether it is live is unknown"]);
    assert!(!dead.exists() && live.join(SEGMENT).exists() && without_lock.join(SEGMENT).exists());
    drop(lock);
    assert_eq!(remove_all(temp.path()).len(), 1);
    assert!(!live.exists());
}

#[test]
fn removes_nothing_that_is_not_a_sessions() {
    let temp = tempfile::tempdir().unwrap();
    let precious = temp.path().join("precious");
    fs::write(&precious, "").unwrap();
    symlink(temp.path(), temp.path().join("pna-0-00000000")).unwrap();
    fs::write(session(temp.path(), 1).join("notes\x1b[2J.txt"), "why it was slow").unwrap();
    fs::write(session(temp.path(), 2).join("mine.gnntop"), "").unwrap();
    fs::write(session(temp.path(), 3).join(SEGMENT), "a person's file of this name").unwrap();
    fs::create_dir(session(temp.path(), 4).join("00000001.gnntop")).unwrap();
    symlink(&precious, session(temp.path(), 5).join("00000001.gnntop")).unwrap();
    fs::set_permissions(session(temp.path(), 6), Permissions::from_mode(0o777)).unwrap();
    let before = fs::read_dir(temp.path()).unwrap().count();
    let expected = [
        "is a symbolic link",
        "contains notes\u{fffd}[2J.txt, which is not gnntop's",
        "contains mine.gnntop, which is not gnntop's",
        "does not start like a session",
        "contains 00000001.gnntop, which is not a regular file",
        "contains 00000001.gnntop, which is a symbolic link",
        "can be written by other users",
    ];
    assert_eq!(reasons(remove_all(temp.path())), expected);
    assert!(fs::read_dir(temp.path()).unwrap().count() == before && precious.exists());
    if is_skipped() {
        return;
    }
    let (theirs, their_segment) = (session(temp.path(), 7), session(temp.path(), 8));
    fs::write(their_segment.join("00000001.gnntop"), "").unwrap();
    for path in [&theirs, &their_segment.join("00000001.gnntop")] {
        chown(path, Some(OTHER_USER), None).unwrap();
    }
    let expected =
        ["belongs to another user (uid 12345)", "contains 00000001.gnntop, which belongs to another user (uid 12345)"];
    assert_eq!(reasons(remove_all(temp.path()))[7..], expected);
    assert!(theirs.exists() && their_segment.exists());
}

#[test]
fn removes_nothing_under_another_name() {
    let temp = tempfile::tempdir().unwrap();
    let at = |name: &str| temp.path().join(name);
    fs::rename(session(temp.path(), 4711), at("pna-4711-best")).unwrap();
    fs::rename(session(temp.path(), 4711), at("best-4711-00000000")).unwrap();
    assert_eq!(reasons(remove_all(temp.path())), ["does not have the name that its publisher gave it"]);
    assert!(at("pna-4711-best").exists() && at("best-4711-00000000").exists());
}

#[test]
fn removes_nothing_that_is_about_to_begin() {
    let temp = tempfile::tempdir().unwrap();
    let dir = session(temp.path(), 1);
    fs::write(dir.join(SEGMENT), "").unwrap();
    let now = removal(temp.path(), Duration::ZERO);
    let error = now.remove(&now.candidates().unwrap().idle[0]).unwrap_err();
    assert!(matches!(error, Error::Starting) && dir.exists(), "{error}");
    assert!(remove_all(temp.path()).is_empty() && !dir.exists());
}

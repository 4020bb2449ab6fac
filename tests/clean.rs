//! `gnntop clean` and what `gnntop list` says of age and size, on sessions that this test lays down: what has ended goes, and
//! nothing else does.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use gnntop_fixtures::{MS, StreamBuilder};
use gnntop_sessions::layout;

use crate::sessions::{Ran, Sessions};

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

/// The stream of a session that was killed.
fn stream(pid: u32) -> (String, Vec<u8>) {
    let info = gnntop_wire::SessionInfo { pid, ..gnntop_fixtures::session_info("pna") };
    let mut stream = StreamBuilder::from_info(&info);
    let track = stream.track(gnntop_wire::TrackRole::Training, "main");
    for step in 1..=1000 {
        stream.step(track, step, step * 7 * MS, (step * 7 + 5) * MS);
    }
    (layout::session_dir_name(&info.name, pid, info.session_id), stream.bytes())
}

/// A session that ended so long ago, as its publisher leaves it.
fn ended(sessions: &Sessions, pid: u32, age_s: u64) -> PathBuf {
    let (name, bytes) = stream(pid);
    let dir = sessions.ended(&name, &bytes).dir().to_owned();
    fs::write(dir.join(layout::LOCK_FILE), "").unwrap();
    for entry in fs::read_dir(&dir).unwrap() {
        let file = File::options().write(true).open(entry.unwrap().path()).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(age_s)).unwrap();
    }
    dir
}

/// Everything below a folder.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    let below: Vec<_> =
        found.iter().filter(|path| path.is_dir() && !path.is_symlink()).flat_map(|dir| files(dir)).collect();
    found.extend(below);
    found.sort();
    found
}

#[track_caller]
fn assert_succeeded(ran: &Ran, last_line: &str) {
    assert_eq!((ran.code, ran.out.lines().last()), (Some(0), Some(last_line)), "{ran:?}");
}

#[test]
fn older_sessions_are_removed_with_a_line_each() {
    let sessions = Sessions::new();
    let [old, older, new] = [(1, 31 * DAY), (2, 40 * DAY), (3, 29 * DAY)].map(|(pid, age)| ended(&sessions, pid, age));
    let size = gnntop_analysis::figures::bytes(fs::metadata(new.join("00000000.gnntop")).unwrap().len() as f64);
    let all = gnntop_analysis::figures::bytes(2.0 * fs::metadata(new.join("00000000.gnntop")).unwrap().len() as f64);
    let ran = sessions.run(["clean", "--older", "30d"]);
    assert_succeeded(&ran, &format!("removed 2 ended sessions, {all}; 1 ended session, {size} stay"));
    let expected = [
        format!("removed pna-2-5f3a90c2  ended 40d 00h ago  {size:>8}"),
        format!("removed pna-1-5f3a90c2  ended 31d 00h ago  {size:>8}"),
    ];
    assert_eq!(ran.out.lines().take(2).collect::<Vec<_>>(), expected, "the oldest first");
    assert!(!old.exists() && !older.exists() && new.exists() && ran.err.is_empty(), "{ran:?}");
    assert_succeeded(
        &sessions.run(["clean", "--older", "4w2d"]),
        &format!("nothing to remove; 1 ended session, {size} stay"),
    );
    assert_succeeded(
        &sessions.run(["clean", "--older", "0s"]),
        &format!("removed 1 ended session, {size}; 0 ended sessions stay"),
    );
    assert!(!new.exists());
}

#[test]
fn oldest_sessions_are_removed_beyond_total_size() {
    let sessions = Sessions::new();
    let all: Vec<_> = (1..=4).map(|pid| ended(&sessions, pid, u64::from(pid) * HOUR)).collect();
    let one = fs::metadata(all[0].join("00000000.gnntop")).unwrap().len();
    let ran = sessions.run(["clean", "--keep-total", &(one * 2 + one / 2).to_string()]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(all.iter().map(|dir| dir.exists()).collect::<Vec<_>>(), [true, true, false, false], "{ran:?}");
    let ran = sessions.run(["clean", "--keep-total", "1G", "--older", "90m"]);
    assert_eq!(all.iter().map(|dir| dir.exists()).collect::<Vec<_>>(), [true, false, false, false], "{ran:?}");
}

#[test]
fn dry_run_prints_the_same_and_removes_nothing() {
    let sessions = Sessions::new();
    for pid in 1..=3 {
        ended(&sessions, pid, u64::from(pid) * DAY);
    }
    let before = files(sessions.path());
    let dry = sessions.run(["clean", "--older", "36h", "--dry-run"]);
    assert_eq!((dry.code, files(sessions.path())), (Some(0), before), "{dry:?}");
    assert_eq!(sessions.run(["clean", "--older", "36h", "-n"]).out, dry.out);
    let ran = sessions.run(["clean", "--older", "36h"]);
    assert_eq!(ran.out.replace("removed ", "would remove "), dry.out);
    assert_eq!(dry.out.lines().count(), 3, "{dry:?}");
}

#[test]
fn a_live_session_is_never_removed() {
    let sessions = Sessions::new();
    let live = ended(&sessions, 1, 400 * DAY);
    let lock = File::open(live.join(layout::LOCK_FILE)).unwrap();
    lock.lock().unwrap();
    let starting = sessions.path().join("pna-2-5f3a90c2");
    fs::create_dir(&starting).unwrap();
    fs::write(starting.join(layout::LOCK_FILE), "").unwrap();
    let before = files(sessions.path());
    let ran = sessions.run(["clean", "--older", "0s", "--keep-total", "1"]);
    assert_succeeded(&ran, "nothing to remove; 0 ended sessions stay");
    assert_eq!(files(sessions.path()), before);
    assert_eq!(ran.err, "left alone: pna-2-5f3a90c2: it has no segment yet\n");
    drop(lock);
    assert_eq!(sessions.run(["clean", "--older", "0s"]).code, Some(0));
    assert!(!live.exists() && starting.exists());
}

#[test]
fn unproven_sessions_are_kept_and_reported() {
    let sessions = Sessions::new();
    let at = |name: &str| sessions.path().join(name);
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("precious"), "").unwrap();
    symlink(elsewhere.path(), at("pna-1-5f3a90c2")).unwrap();
    fs::write(ended(&sessions, 2, DAY).join("saved.gnntop"), stream(2).1).unwrap();
    fs::rename(ended(&sessions, 3, DAY), at("best-3-5f3a90c2")).unwrap();
    fs::rename(ended(&sessions, 4, DAY), at("a copy for Ada")).unwrap();
    fs::create_dir(at("strangers")).unwrap();
    sessions.file("a.gnntop", &stream(5).1);
    sessions.file("pna-6-5f3a90c2", b"a file of that name");
    fs::write(ended(&sessions, 7, DAY).join("00000000.gnntop"), "not a session").unwrap();
    let newer = ended(&sessions, 8, DAY).join("00000000.gnntop");
    let mut bytes = fs::read(&newer).unwrap();
    crate::faults::fixtures_newer(&mut bytes);
    fs::write(newer, bytes).unwrap();
    let before = files(sessions.path());
    let ran = sessions.run(["clean", "--older", "0s"]);
    assert_succeeded(&ran, "nothing to remove; 0 ended sessions stay");
    assert_eq!(files(sessions.path()), before);
    assert!(elsewhere.path().join("precious").exists());
    let expected = "\
left alone: best-3-5f3a90c2: it does not have the name that its publisher gave it
left alone: pna-1-5f3a90c2: it is a symbolic link
left alone: pna-2-5f3a90c2: it contains saved.gnntop, which is not gnntop's
left alone: pna-7-5f3a90c2: it does not start like a session
left alone: pna-8-5f3a90c2: it is written in the newer format 9: update gnntop
";
    assert_eq!(ran.err, expected);
}

#[test]
fn what_a_killed_keep_has_left_goes() {
    let sessions = Sessions::new();
    let elsewhere = tempfile::tempdir().unwrap();
    let recording = elsewhere.path().join("a.gnntop");
    assert_eq!(sessions.run(["run", "--plain", "--record", recording.to_str().unwrap(), "--", "true"]).code, Some(0));
    let [here, beside, kept] = [
        sessions.path().join("b.x.shorter.unfinished"),
        elsewhere.path().join("a.gnntop.x.shorter.unfinished"),
        elsewhere.path().join("a.gnntop.y.unfinished"),
    ];
    for path in [&here, &beside, &kept] {
        File::create(path).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    }
    let dry = sessions.run(["clean", "--older", "9d", "--dry-run"]);
    assert_eq!([here.exists(), beside.exists(), kept.exists()], [true; 3]);
    let ran = sessions.run(["clean", "--older", "9d"]);
    assert_eq!([here.exists(), beside.exists(), kept.exists()], [false, false, true], "what was recorded stays");
    let line = |path: &str| format!("removed {path}  a copy that a killed --keep has left  0 B");
    let expected = [line(beside.to_str().unwrap()), line("./b.x.shorter.unfinished")];
    assert_eq!(ran.out.lines().take(2).collect::<Vec<_>>(), expected, "{ran:?}");
    assert_succeeded(&ran, "no ended session to remove; 0 ended sessions stay");
    assert_eq!(dry.out, ran.out.replace("removed ", "would remove "));
}

#[test]
fn clean_without_limit_lists_sessions_and_options() {
    let sessions = Sessions::new();
    let ran = sessions.run(["clean"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{ran:?}");
    ended(&sessions, 1, 3 * DAY + 5 * HOUR);
    ended(&sessions, 2, 0);
    let ran = sessions.run(["clean", "--dry-run"]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.lines().count()), (Some(2), "", 1), "{ran:?}");
    for words in ["`gnntop clean --older 30d`", "there are 2 ended sessions, ", "the oldest from 3d 05h ago"] {
        assert!(ran.err.contains(words), "no {words:?} in {ran:?}");
    }
    for wrong in [["clean", "--older", "soon"], ["clean", "--keep-total", "much"]] {
        assert_eq!(sessions.run(wrong).code, Some(2), "{wrong:?}");
    }
    let none =
        sessions.gnntop(["clean", "--older", "1d"]).env("GNNTOP_DIR", sessions.path().join("none")).output().unwrap();
    assert_succeeded(&Ran::new(&none), "nothing to remove; 0 ended sessions stay");
}

#[test]
fn the_list_shows_sizes_and_ages_and_the_newest_first() {
    let sessions = Sessions::new();
    let beside = ended(&sessions, 1, 3 * DAY + HOUR / 2).join("beside");
    fs::write(&beside, vec![0; 5 << 20]).unwrap();
    File::options().write(true).open(&beside).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    let (name, bytes) = stream(2);
    let _live = sessions.live(&name, &bytes);
    let list = sessions.run(["list"]);
    let lines: Vec<Vec<&str>> = list.out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["NAME", "PID", "STATE", "AGE", "ENDED", "SIZE", "COMMAND"]);
    assert_eq!((&lines[1][..3], lines[1][5]), (&["pna", "2", "live"][..], "-"), "{list:?}");
    assert!(list.out.lines().nth(2).unwrap().contains("3d 00h ago  5.00 MiB  pna --batch-size 256"), "{list:?}");
    for pid in 10..40 {
        ended(&sessions, pid, 10 * DAY + u64::from(pid));
    }
    let list = sessions.run(["list"]);
    assert_eq!(list.out.lines().count(), 1 + 1 + 20, "{list:?}");
    assert!(list.err.starts_with("and 11 older ended sessions; `gnntop list --all` lists them"), "{list:?}");
    let list = sessions.run(["list", "--all"]);
    assert_eq!((list.out.lines().count(), list.err.as_str()), (1 + 1 + 31, ""));
    assert_eq!(sessions.run(["list", "--live"]).out.lines().count(), 2);
}

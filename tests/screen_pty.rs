//! The real program in a real pseudo-terminal: it starts, obeys keys, resizes, stops and comes back, and always leaves the
//! terminal as it was.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::terminal::Terminal;

use gnntop::viewer::{ScreenOptions, run_screen};
use gnntop_analysis::source::{Progress, Source, SourceState, Status};
use gnntop_analysis::stream::Sink;
use gnntop_fixtures::{MS, ParallelRun, SECOND, START_NS, StreamBuilder, TrainingRun};
use gnntop_sessions::layout;
use gnntop_wire::TrackRole;
use tempfile::TempDir;

/// A directory of sessions with one live session in it, published by this test.
struct LiveSession {
    sessions: TempDir,
    dir: PathBuf,
    lock: Option<File>,
}

impl LiveSession {
    fn start() -> Self {
        let sessions = tempfile::tempdir().unwrap();
        let dir = sessions.path().join(layout::session_dir_name("pna", std::process::id(), 0x5f3a_90c2 << 96));
        fs::create_dir(&dir).unwrap();
        private(sessions.path());
        private(&dir);
        let lock = File::create(dir.join(layout::LOCK_FILE)).unwrap();
        lock.lock().unwrap();
        let session = Self { sessions, dir, lock: Some(lock) };
        let run = TrainingRun { ends: false, spikes: vec![(90, "backward", 300 * MS)], ..TrainingRun::default() };
        session.publish(&run.bytes());
        session
    }

    fn publish(&self, bytes: &[u8]) {
        let path = self.dir.join(layout::segment_file_name(0));
        fs::OpenOptions::new().create(true).append(true).open(path).unwrap().write_all(bytes).unwrap();
    }

    /// Publishes so many more steps of 50 ms, from number `from` on.
    fn publish_steps(&self, from: u64, count: u64) {
        let mut stream = StreamBuilder::new("pna");
        let main = stream.track(TrackRole::Training, "main");
        for step in from..from + count {
            let start_ns = START_NS + 60 * SECOND + step * 50 * MS;
            stream.step(main, step, start_ns, start_ns + 50 * MS);
        }
        self.publish(&stream.bytes());
    }

    fn attach(&self) -> Terminal {
        self.attach_with(&[])
    }

    fn attach_with(&self, flags: &[&str]) -> Terminal {
        let dir = self.sessions.path().to_str().unwrap();
        let arguments = [&["attach", self.dir.to_str().unwrap()], flags].concat();
        Terminal::gnntop(&arguments, &[("GNNTOP_DIR", dir)])
    }
}

#[cfg(unix)]
fn private(dir: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn attach_follows_freezes_and_quits_a_live_run() {
    let session = LiveSession::start();
    let mut terminal = session.attach();
    terminal.wait_for("step 100");
    terminal.wait_for("live");
    terminal.press(" ");
    terminal.wait_for("frozen");
    session.publish_steps(101, 20);
    terminal.press("?");
    terminal.wait_for("quit the viewer; the run continues");
    terminal.press("\u{1b}");
    terminal.wait_for("phases");
    assert!(terminal.text().contains("step 100"), "nothing moves while frozen\n{}", terminal.text());
    terminal.press(" ");
    terminal.wait_for("step 120");
    terminal.press("\u{1b}[D\r");
    terminal.wait_for("against the median");
    terminal.press("q");
    terminal.wait_for(") keeps running; to see it again: gnntop attach ");
    assert_eq!(terminal.wait_for_end().exit_code(), 0);
}

#[test]
fn all_ranks_of_a_run_are_watched_and_a_late_one_joins() {
    let sessions = tempfile::tempdir().unwrap();
    private(sessions.path());
    let parallel = ParallelRun { ranks: 3, ends: false, ..ParallelRun::default() };
    let publish = |rank: u32| {
        let dir = sessions.path().join(format!("rank{rank}"));
        fs::create_dir(&dir).unwrap();
        let lock = File::create(dir.join(layout::LOCK_FILE)).unwrap();
        lock.lock().unwrap();
        fs::write(dir.join(layout::segment_file_name(0)), parallel.session(rank)).unwrap();
        lock
    };
    let (_zero, one) = (publish(0), publish(1));
    let environment = [("GNNTOP_DIR", sessions.path().to_str().unwrap())];
    let mut terminal = Terminal::gnntop(&["attach", "job-17"], &environment);
    terminal.resize(40, 120);
    terminal.wait_for("rank 0/3, pid 5000");
    terminal.wait_for("2 of 3 ranks have published");
    terminal.press("R");
    terminal.wait_for("slowest behind fastest in 60 steps");
    terminal.press("}");
    terminal.wait_for("rank 1/3, pid 5001");
    let _two = publish(2);
    terminal.wait_for("3 ranks on 2 cores: oversubscribed");
    terminal.wait_until("all ranks are there", |screen| !screen.contents().contains("have published"));
    drop(one);
    terminal.wait_for("1 gone: killed?");
    terminal.press("q");
    assert_eq!(terminal.wait_for_end().exit_code(), 0);
}

/// A press and a release of the left button, at this column and row from 0 on.
fn click(terminal: &mut Terminal, column: u16, row: u16) {
    terminal.press(&format!("\u{1b}[<0;{0};{1}M\u{1b}[<0;{0};{1}m", column + 1, row + 1));
}

/// Where the screen shows this text.
fn find(terminal: &Terminal, text: &str) -> (u16, u16) {
    let shown = terminal.text();
    let found = shown.lines().enumerate().find_map(|(row, line)| {
        let at = line.find(text)?;
        Some((u16::try_from(line[..at].chars().count()).unwrap(), u16::try_from(row).unwrap()))
    });
    found.unwrap_or_else(|| panic!("no {text:?} in\n{shown}"))
}

#[test]
fn the_mouse_shows_views_selects_steps_and_zooms() {
    let session = LiveSession::start();
    let mut terminal = session.attach();
    terminal.wait_for("step 100");
    terminal.wait_until("the mouse is asked for", |screen| {
        screen.mouse_protocol_mode() == vt100::MouseProtocolMode::ButtonMotion
            && screen.mouse_protocol_encoding() == vt100::MouseProtocolEncoding::Sgr
    });
    let (column, row) = find(&terminal, "4 mem");
    click(&mut terminal, column, row);
    terminal.wait_for("resident");
    let (column, row) = find(&terminal, "1 over");
    click(&mut terminal, column, row);
    let (_, row) = find(&terminal, "backward");
    terminal.wait_for("phases");
    // The bars stand above the table and their numbers, the newest at the right edge.
    let bars = find(&terminal, "phases").1 - 2;
    click(&mut terminal, 70, bars);
    terminal.wait_for("selected: ");
    let y = bars + 1;
    terminal.press(&format!("\u{1b}[<0;61;{y}M\u{1b}[<32;71;{y}M\u{1b}[<0;71;{y}m"));
    terminal.wait_for("11 steps selected");
    terminal.press(&format!("\u{1b}[<65;61;{y}M"));
    terminal.wait_for("2 steps a column");
    click(&mut terminal, 8, row);
    terminal.press("q");
    assert_eq!(terminal.wait_for_end().exit_code(), 0);
}

#[test]
fn no_mouse_leaves_the_mouse_to_the_terminal() {
    let session = LiveSession::start();
    let mut terminal = session.attach_with(&["--no-mouse"]);
    terminal.wait_for("step 100");
    terminal.wait_until("no mouse", |screen| screen.mouse_protocol_mode() == vt100::MouseProtocolMode::None);
    terminal.press("q");
    assert_eq!(terminal.wait_for_end().exit_code(), 0);
}

#[test]
fn noise_swallows_no_key() {
    let session = LiveSession::start();
    let mut terminal = session.attach();
    terminal.wait_for("step 100");
    for begun in ["\u{1b}[", "\u{1b}[<0;1", "\u{1b}]11;rgb:ff"] {
        terminal.press(begun);
        // Longer than the rest is waited for.
        std::thread::sleep(Duration::from_millis(700));
        terminal.press("?");
        terminal.wait_for("quit the viewer; the run continues");
        terminal.press("\u{1b}");
        terminal.wait_for("phases");
    }
    // Alt-], which begins as an answer of the terminal does, and Ctrl-C.
    terminal.press("\u{1b}]\u{3}");
    assert_eq!(terminal.wait_for_end().exit_code(), 0);
}

#[test]
fn background_answer_of_terminal_is_used() {
    let session = LiveSession::start();
    let mut terminal = session.attach();
    terminal.wait_for("step 100");
    let colors = |screen: &vt100::Screen| screen.cell(0, 1).map(|cell| cell.fgcolor());
    let dark = colors(terminal.screen.lock().unwrap().screen());
    terminal.press("\u{1b}]11;rgb:ffff/ffff/ffff\u{1b}\\");
    terminal.wait_until("colours for a light background", |screen| colors(screen) != dark);
    terminal.press("q");
    assert_eq!(terminal.wait_for_end().exit_code(), 0);
}

#[test]
fn sessions_are_chosen_one_after_another() {
    let session = LiveSession::start();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("old.gnntop"), TrainingRun { name: "before", ..TrainingRun::default() }.bytes())
        .unwrap();
    fs::write(folder.path().join("broken.gnntop"), "these are a few words").unwrap();
    let dir = session.sessions.path().to_str().unwrap().to_owned();
    let mut session = session;
    session.lock = None;
    let mut terminal = Terminal::gnntop_in(folder.path(), &[], &[("GNNTOP_DIR", &dir)]);
    terminal.wait_for("old.gnntop");
    terminal.wait_for("ended");
    terminal.press("/pna\r\r");
    terminal.wait_for("step 100");
    terminal.press("O");
    terminal.wait_for("broken.gnntop");
    terminal.press("/broken\r\r");
    terminal.wait_for("not a recording");
    terminal.press("\u{1b}");
    terminal.wait_for("old.gnntop");
    terminal.press("/old\r\r");
    terminal.wait_for("replay 1x");
    terminal.wait_for("before");
    terminal.press("q");
    assert_eq!(terminal.wait_for_end().exit_code(), 0);
}

#[test]
fn two_viewers_show_a_killed_run() {
    let mut session = LiveSession::start();
    let (mut one, mut two) = (session.attach(), session.attach());
    one.wait_for("live");
    two.wait_for("live");
    session.lock = None;
    one.wait_for("ended");
    two.wait_for("ended");
    one.press("q");
    two.press("\u{3}");
    assert_eq!((one.wait_for_end().exit_code(), two.wait_for_end().exit_code()), (0, 0));
}

#[test]
fn terminal_can_be_resized_at_any_time() {
    let session = LiveSession::start();
    let mut terminal = session.attach();
    terminal.wait_for("phases");
    for (rows, cols) in [(3, 10), (6, 20), (1, 1), (15, 60), (100, 300), (2, 200), (50, 5)] {
        terminal.resize(rows, cols);
        terminal.press("e\t");
    }
    terminal.resize(40, 120);
    terminal.press("\u{1b}");
    terminal.wait_for("epoch 3 │ step 100");
    terminal.resize(3, 10);
    terminal.wait_until("the smallest screen", |screen| screen.contents().starts_with("● live\n"));
    terminal.press("q");
    assert_eq!(terminal.wait_for_end().exit_code(), 0);
}

#[test]
fn a_recording_is_replayed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.gnntop");
    fs::write(&path, TrainingRun::default().bytes()).unwrap();
    let mut terminal = Terminal::gnntop(&["replay", path.to_str().unwrap()], &[]);
    terminal.wait_for("replay 1x");
    terminal.press(" :100%\r");
    terminal.wait_for("step 100");
    terminal.press("\u{1a}");
    terminal.wait_until_stopped();
    terminal.wait_until_given_back();
    terminal.signal(libc::SIGCONT);
    terminal
        .wait_until("the screen again", |screen| screen.alternate_screen() && screen.contents().contains("step 100"));
    terminal.press("q");
    assert_eq!(terminal.wait_for_end().exit_code(), 0);
}

#[test]
fn a_recording_that_comes_through_a_pipe_is_replayed_like_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.gnntop");
    // Two ranks one after the other, of which each goes on for 16 s.
    fs::write(&path, ParallelRun { steps: 400, ..ParallelRun::default() }.bytes()).unwrap();
    let gnntop = env!("CARGO_BIN_EXE_gnntop");
    let script = r#"cat "$0" | "$1" replay -"#;
    let mut terminal = Terminal::start(Path::new("/bin/sh"), &["-c", script, path.to_str().unwrap(), gnntop], &[]);
    terminal.wait_for("replay 1x");
    terminal.wait_for(" of 00:16");
    terminal.press(" R:100%\r");
    terminal.wait_for("step 400");
    terminal.press(":4s\r");
    terminal.wait_for("step 97");
    terminal.press("q");
    assert_eq!(terminal.wait_for_end().exit_code(), 0);
}

#[test]
fn findings_are_ready_after_a_seek_and_select_steps() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.gnntop");
    let spikes = vec![(41, "backward", 270 * MS)];
    fs::write(&path, TrainingRun { spikes, ..TrainingRun::default() }.bytes()).unwrap();
    let mut terminal = Terminal::gnntop(&["replay", path.to_str().unwrap()], &[]);
    terminal.wait_for("replay 1x");
    terminal.press(" 8");
    terminal.wait_for("findings");
    terminal.press(":100%\r");
    terminal.wait_for("of the newest 100 steps");
    terminal.wait_for("step 41 took");
    terminal.press("2[[[[");
    terminal.wait_for("step 41 selected");
    terminal.press("q");
    assert_eq!(terminal.wait_for_end().exit_code(), 0);
}

#[test]
fn two_recordings_are_compared() {
    let dir = tempfile::tempdir().unwrap();
    let paths = ["a.gnntop", "b.gnntop"].map(|name| dir.path().join(name).to_str().unwrap().to_owned());
    fs::write(&paths[0], TrainingRun::default().bytes()).unwrap();
    let phases = vec![("forward", 10_000_000), ("backward", 9_000_000)];
    fs::write(&paths[1], TrainingRun { name: "other", phases, ..TrainingRun::default() }.bytes()).unwrap();
    let mut terminal = Terminal::gnntop(&["replay", &paths[1], "--against", &paths[0]], &[]);
    terminal.wait_for("replay 1x");
    terminal.press(" :100%\r9");
    terminal.wait_for("A a.gnntop, 96 of 100 steps   B b.gnntop, 96 of 100");
    terminal.wait_for("B does 2.00 x the work of A");
    terminal.press("q");
    assert_eq!(terminal.wait_for_end().exit_code(), 0);
}

#[test]
fn stop_signal_suspends_and_resumes() {
    let session = LiveSession::start();
    let mut terminal = session.attach();
    terminal.wait_for("step 100");
    terminal.signal(libc::SIGTSTP);
    terminal.wait_until_stopped();
    terminal.wait_until_given_back();
    terminal.signal(libc::SIGCONT);
    terminal.wait_until("the screen again", vt100::Screen::alternate_screen);
    terminal.wait_for("step 100");
    // A stop that cannot be seen coming.
    terminal.signal(libc::SIGSTOP);
    terminal.wait_until_stopped();
    session.publish_steps(101, 1);
    terminal.signal(libc::SIGCONT);
    terminal.wait_for("step 101");
    terminal.press("q");
    assert_eq!(terminal.wait_for_end().exit_code(), 0);
}

#[test]
fn signals_end_the_viewer_cleanly() {
    let session = LiveSession::start();
    for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGINT] {
        let mut terminal = session.attach();
        terminal.wait_for("step 100");
        terminal.signal(signal);
        let code = i32::try_from(terminal.wait_for_end().exit_code()).unwrap();
        assert_eq!(code, 128 + signal);
    }
}

#[test]
fn closed_terminal_ends_the_viewer() {
    let session = LiveSession::start();
    let mut terminal = session.attach();
    terminal.wait_for("step 100");
    terminal.close();
    session.publish_steps(101, 1);
    assert_eq!(terminal.wait_for_exit().exit_code(), 128 + libc::SIGHUP as u32);
}

#[test]
fn closed_terminal_prints_no_error() {
    let session = LiveSession::start();
    let said = session.sessions.path().join("said");
    let (dir, said_to) = (session.dir.to_str().unwrap(), said.to_str().unwrap());
    let script = r#"exec "$0" attach "$1" 2> "$2""#;
    let arguments = ["-c", script, env!("CARGO_BIN_EXE_gnntop"), dir, said_to];
    let environment = [("GNNTOP_DIR", session.sessions.path().to_str().unwrap())];
    let mut terminal = Terminal::start(Path::new("/bin/sh"), &arguments, &environment);
    terminal.wait_for("step 100");
    terminal.close();
    session.publish_steps(101, 1);
    assert_eq!(terminal.wait_for_exit().exit_code(), 128 + libc::SIGHUP as u32);
    assert_eq!(fs::read_to_string(said).unwrap(), "");
}

/// A source that fails in a way that no code foresees.
struct Broken;

impl Source for Broken {
    fn poll(&mut self, _sink: &mut dyn Sink, _budget: Duration) -> Progress {
        panic!("the source broke");
    }

    fn status(&self) -> Status {
        Status { state: SourceState::Running, ..Status::default() }
    }
}

#[test]
#[ignore = "is started by a_panic_gives_the_terminal_back, in a terminal of its own"]
fn a_screen_that_panics() {
    run_screen(Box::new(Broken), ScreenOptions::default()).unwrap();
}

#[test]
fn a_panic_gives_the_terminal_back() {
    let this = std::env::current_exe().unwrap();
    let arguments = ["--exact", "screen_pty::a_screen_that_panics", "--ignored", "--nocapture"];
    let mut terminal = Terminal::start(&this, &arguments, &[]);
    assert_ne!(terminal.wait_for_end().exit_code(), 0);
    terminal.wait_for("the source broke");
}

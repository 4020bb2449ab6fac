//! `gnntop run` in a real pseudo-terminal: the view only looks, and whatever becomes of it or of its terminal, the program
//! and its recording go on until somebody says otherwise.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::sessions::{Sessions, has_python, wait_until};
use crate::terminal::Terminal;
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// `gnntop run -- sh -c SCRIPT` in a terminal.
struct Running {
    child: Box<dyn Child + Send + Sync>,
    keyboard: Box<dyn Write + Send>,
    /// Everything that was written to the terminal.
    output: Arc<Mutex<Vec<u8>>>,
    /// Whether the terminal is closed as soon as something more is written to it.
    is_closing: Arc<AtomicBool>,
    master: Box<dyn MasterPty + Send>,
}

impl Running {
    fn start(sessions: &Sessions, script: &str) -> Self {
        Self::start_with(sessions, &[], script)
    }

    fn start_with(sessions: &Sessions, options: &[&str], script: &str) -> Self {
        let pair = native_pty_system().openpty(PtySize { rows: 24, cols: 80, ..PtySize::default() }).unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_gnntop"));
        command.args([&["run"], options, &["--", "sh", "-c", script]].concat());
        command.env("GNNTOP_DIR", sessions.path());
        command.env("XDG_CONFIG_HOME", sessions.path());
        command.env("TERM", "xterm-256color");
        command.cwd(sessions.path());
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let output = Arc::new(Mutex::new(Vec::new()));
        let (mut reader, written) = (pair.master.try_clone_reader().unwrap(), Arc::clone(&output));
        let is_closing = Arc::new(AtomicBool::new(false));
        let closes = Arc::clone(&is_closing);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let (false, Ok(len @ 1..)) = (closes.load(Ordering::Relaxed), reader.read(&mut bytes)) {
                written.lock().unwrap().extend(&bytes[..len]);
            }
        });
        let keyboard = pair.master.take_writer().unwrap();
        Self { child, keyboard, output, is_closing, master: pair.master }
    }

    fn wait_for(&self, words: &str) {
        let contains = |bytes: &[u8]| bytes.windows(words.len()).any(|window| window == words.as_bytes());
        wait_until(|| contains(&self.output.lock().unwrap()));
    }

    fn press(&mut self, keys: &[u8]) {
        self.keyboard.write_all(keys).unwrap();
        self.keyboard.flush().unwrap();
    }

    fn exit_code(mut self) -> u32 {
        self.child.wait().unwrap().exit_code()
    }

    /// Waits until the view is there.
    fn wait_for_view(&self) {
        self.wait_for("\x1b[?1049h");
        self.wait_for("sh");
    }

    /// Closes the terminal, as a window that is closed does. Gives the exit code.
    fn close(self) -> u32 {
        let Self { mut child, keyboard, master, is_closing, .. } = self;
        is_closing.store(true, Ordering::Relaxed);
        drop((keyboard, master));
        child.wait().unwrap().exit_code()
    }
}

/// A program that goes on for as long as the file `alive` is there, and says at its end that it came to it.
const LIVES: &str =
    "touch alive; for _ in $(seq 2400); do [ -e alive ] || break; sleep 0.05; done; echo over > end; exit 3";

fn program_runs(sessions: &Sessions) -> bool {
    let path = |name: &str| sessions.path().join(name);
    path("alive").exists() && !path("end").exists()
}

/// Lets a program that [`LIVES`] end, which must be running.
fn let_end(sessions: &Sessions) {
    assert!(program_runs(sessions), "it was not to end before");
    std::fs::remove_file(sessions.path().join("alive")).unwrap();
    wait_until(|| sessions.path().join("end").exists());
}

#[test]
fn q_leaves_the_view_and_program_continues() {
    let sessions = Sessions::new();
    let mut running = Running::start_with(&sessions, &["--record", "a.gnntop"], LIVES);
    running.wait_for_view();
    running.press(b"q");
    running.wait_for("sh keeps running as process ");
    running.wait_for("gnntop attach ");
    running.wait_for("gnntop stop ");
    assert_eq!(running.exit_code(), 0);
    let_end(&sessions);
    // Nobody looked, and the recording is whole.
    wait_until(|| sessions.run(["report", "a.gnntop"]).code == Some(0));
}

#[test]
fn shift_q_and_wait_return_the_exit_code() {
    for (options, key) in [(&[][..], b"Q"), (&["--wait"], b"q")] {
        let sessions = Sessions::new();
        let mut running = Running::start_with(&sessions, options, LIVES);
        running.wait_for_view();
        running.press(key);
        running.wait_for("sh keeps running as process ");
        let_end(&sessions);
        running.wait_for("sh ended with exit code 3");
        assert_eq!(running.exit_code(), 3);
    }
}

#[test]
fn control_c_while_waiting_ends_the_program() {
    let sessions = Sessions::new();
    let mut running = Running::start(&sessions, "for _ in $(seq 2400); do sleep 0.05; done");
    running.wait_for_view();
    running.press(b"Q");
    running.wait_for("sh keeps running as process ");
    running.press(b"\x03");
    assert_eq!(running.exit_code(), 130);
}

#[test]
fn control_c_in_the_view_asks_and_twice_leaves_program_running() {
    let sessions = Sessions::new();
    let mut running = Running::start(&sessions, LIVES);
    running.wait_for_view();
    running.press(b"\x03");
    running.wait_for("d detach");
    running.press(b"\x03");
    running.wait_for("sh keeps running as process ");
    assert_eq!(running.exit_code(), 0);
    let_end(&sessions);
}

#[test]
fn control_c_and_s_stop_the_program() {
    let sessions = Sessions::new();
    let mut running = Running::start(&sessions, "trap 'exit 7' INT; for _ in $(seq 2400); do sleep 0.05; done");
    running.wait_for_view();
    running.press(b"\x03");
    running.wait_for("d detach");
    running.press(b"s");
    running.wait_for("sent SIGINT to sh");
    assert_eq!(running.exit_code(), 7);
}

#[test]
fn closed_terminal_ends_only_the_view() {
    let sessions = Sessions::new();
    let running = Running::start_with(&sessions, &["--record", "a.gnntop"], LIVES);
    running.wait_for_view();
    wait_until(|| program_runs(&sessions));
    assert!([1, 128 + 1].contains(&running.close()), "as by SIGHUP, which portable-pty gives as 1");
    let_end(&sessions);
    wait_until(|| sessions.run(["report", "a.gnntop"]).code == Some(0));
}

#[test]
fn closed_terminal_ends_program_with_on_hangup_stop() {
    let sessions = Sessions::new();
    let script = "trap 'echo hung up > end; exit 1' HUP; touch alive; for _ in $(seq 2400); do [ -e alive ] || break; sleep 0.05; done";
    let running = Running::start_with(&sessions, &["--on-hangup", "stop"], script);
    running.wait_for_view();
    wait_until(|| program_runs(&sessions));
    running.close();
    wait_until(|| sessions.path().join("end").exists());
}

#[test]
fn a_program_that_has_the_terminal_reads_and_writes_it() {
    let sessions = Sessions::new();
    let script = "trap 'echo caught; exit 5' INT; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && printf 'who? '; read -r name; echo \"hello $name\"
while :; do sleep 0.05; done";
    let mut running = Running::start_with(&sessions, &["--tty"], script);
    running.wait_for("to watch sh in another terminal: gnntop attach ");
    running.wait_for("who? ");
    running.press(b"me\r");
    running.wait_for("hello me");
    running.press(b"\x1a\x03"); // Ctrl-Z does nothing, Ctrl-C is the program's
    running.wait_for("caught");
    assert_eq!(running.exit_code(), 5);
    let mut running = Running::start_with(&sessions, &["--tty"], "echo begins; exec sleep 1000");
    running.wait_for("begins");
    running.press(b"\x1c"); // Ctrl-\, too
    assert_eq!(running.exit_code(), 131);
    // What it printed there is not known.
    let running = Running::start_with(&sessions, &["--tty"], "exit 3");
    running.wait_for(" exited with code 3.");
    assert_eq!(running.exit_code(), 3);
}

#[test]
fn a_run_in_the_background_is_not_stopped_and_outlives_its_shell() {
    let sessions = Sessions::new();
    let dir = sessions.path().to_str().unwrap();
    let variables = [("GNNTOP_DIR", dir), ("XDG_CONFIG_HOME", dir), ("PATH", &std::env::var("PATH").unwrap())];
    let mut shell = Terminal::start_in(sessions.path(), Path::new("bash"), &["--norc", "-i"], &variables);
    shell.press(&format!("'{}' run -- sh -c '{LIVES}' &\r", env!("CARGO_BIN_EXE_gnntop")));
    wait_until(|| program_runs(&sessions));
    // A job that draws a view has been stopped by now.
    shell.press("sleep 1; jobs\r");
    shell.wait_for("Running");
    shell.press("exit\r");
    shell.wait_for_exit();
    let_end(&sessions);
}

#[test]
fn what_a_shell_sends_to_a_stopped_run_as_it_ends_is_not_for_the_program() {
    for option in ["--plain", "--wait"] {
        let sessions = Sessions::new();
        let dir = sessions.path().to_str().unwrap();
        let variables = [("GNNTOP_DIR", dir), ("XDG_CONFIG_HOME", dir), ("PATH", &std::env::var("PATH").unwrap())];
        let mut shell = Terminal::start_in(sessions.path(), Path::new("bash"), &["--norc", "-i"], &variables);
        shell.press(&format!("'{}' run {option} -- sh -c '{LIVES}'\r", env!("CARGO_BIN_EXE_gnntop")));
        wait_until(|| program_runs(&sessions));
        shell.wait_for(if option == "--wait" { "sh" } else { "gnntop" });
        // The keys are gnntop's once its screen is there.
        std::thread::sleep(std::time::Duration::from_secs(2));
        shell.press("\x1a");
        shell.wait_for("Stopped");
        // A person takes longer than the keeper, which looks twenty times a second.
        std::thread::sleep(std::time::Duration::from_secs(1));
        shell.press("exit\r");
        shell.wait_for("There are stopped jobs");
        shell.press("exit\r");
        shell.wait_for_exit();
        std::thread::sleep(std::time::Duration::from_secs(1));
        assert!(!sessions.run(["list", "--live"]).out.is_empty(), "{option}: it was ended");
        let_end(&sessions);
    }
}

#[test]
fn a_program_that_has_the_terminal_hears_of_its_size() {
    let sessions = Sessions::new();
    let script = "trap 'stty size' WINCH; echo begins; while :; do sleep 0.05; done";
    let mut running = Running::start_with(&sessions, &["--tty"], script);
    running.wait_for("begins");
    for rows in [30, 31, 32] {
        running.master.resize(PtySize { rows, cols: 90, ..PtySize::default() }).unwrap();
    }
    running.wait_for("32 90");
    running.press(b"\x1c");
    assert_eq!(running.exit_code(), 131);
}

#[test]
fn a_debugger_works_in_the_terminal_that_a_program_has() {
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    let sessions = Sessions::new();
    let script = "exec python3 -c 'x = 6; breakpoint(); print(x * 700, flush=True)'";
    let mut running = Running::start_with(&sessions, &["--tty"], script);
    running.wait_for("(Pdb) ");
    running.press(b"p x * 1111\r");
    running.wait_for("6666");
    running.press(b"c\r");
    running.wait_for("4200");
    assert_eq!(running.exit_code(), 0);
}

#[test]
fn a_program_gets_no_terminal_where_there_is_none() {
    let sessions = Sessions::new();
    let ran = sessions.run(["run", "--tty", "--", "true"]);
    assert!(ran.code == Some(2) && ran.err.contains("--tty needs a terminal"), "{ran:?}");
}

#[test]
fn killed_view_leaves_program_running() {
    let sessions = Sessions::new();
    let mut running = Running::start_with(&sessions, &["--record", "a.gnntop"], LIVES);
    running.wait_for_view();
    wait_until(|| program_runs(&sessions));
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    let_end(&sessions);
    wait_until(|| sessions.run(["report", "a.gnntop"]).code == Some(0));
}

#[test]
fn a_program_that_ends_under_the_view_is_shown_until_a_key() {
    let sessions = Sessions::new();
    let mut running = Running::start(&sessions, "touch started; sleep 0.5; touch over; exit 4");
    running.wait_for("\x1b[?1049h");
    wait_until(|| sessions.path().join("over").exists());
    running.press(b"q");
    running.wait_for("sh ended with exit code 4");
    assert_eq!(running.exit_code(), 4);
}

//! `gnntop run` in a real pseudo-terminal: leaving the view leaves the program running, whose exit code counts.

use std::io::{Read, Write};
use std::sync::{Arc, Mutex};

use crate::sessions::{Sessions, wait_until};
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// `gnntop run -- sh -c SCRIPT` in a terminal.
struct Running {
    child: Box<dyn Child + Send + Sync>,
    keyboard: Box<dyn Write + Send>,
    /// Everything that was written to the terminal.
    output: Arc<Mutex<Vec<u8>>>,
    _master: Box<dyn MasterPty + Send>,
}

impl Running {
    fn start(sessions: &Sessions, script: &str) -> Self {
        let pair = native_pty_system().openpty(PtySize { rows: 24, cols: 80, ..PtySize::default() }).unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_gnntop"));
        command.args(["run", "--", "sh", "-c", script]);
        command.env("GNNTOP_DIR", sessions.path());
        command.env("XDG_CONFIG_HOME", sessions.path());
        command.env("TERM", "xterm-256color");
        command.cwd(sessions.path());
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let output = Arc::new(Mutex::new(Vec::new()));
        let (mut reader, written) = (pair.master.try_clone_reader().unwrap(), Arc::clone(&output));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(len @ 1..) = reader.read(&mut bytes) {
                written.lock().unwrap().extend(&bytes[..len]);
            }
        });
        let keyboard = pair.master.take_writer().unwrap();
        Self { child, keyboard, output, _master: pair.master }
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
}

#[test]
fn the_program_goes_on_after_the_view_and_its_exit_code_counts() {
    let sessions = Sessions::new();
    let mut running = Running::start(&sessions, "while [ ! -e go ]; do sleep 0.05; done; exit 3");
    running.wait_for("\x1b[?1049h");
    running.press(b"q");
    running.wait_for("sh goes on as process ");
    sessions.file("go", b"");
    running.wait_for("sh ended with exit code 3");
    assert_eq!(running.exit_code(), 3);
}

#[test]
fn control_c_after_the_view_ends_the_program() {
    let sessions = Sessions::new();
    let mut running = Running::start(&sessions, "while :; do sleep 0.05; done");
    running.wait_for("\x1b[?1049h");
    running.press(b"q");
    running.wait_for("sh goes on as process ");
    running.press(b"\x03");
    assert_eq!(running.exit_code(), 130);
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

//! A program in a real pseudo-terminal, with what it has drawn there.
#![allow(missing_docs, clippy::unwrap_used, reason = "only tests use it")]

use std::fs;
use std::io::{Read, Write};
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, ExitStatus, MasterPty, PtySize, native_pty_system};

/// How long to wait for what must come. Nothing is measured: a slow machine only makes a failing test slower.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program in a terminal.
pub struct Terminal {
    master: Option<Box<dyn MasterPty + Send>>,
    keyboard: Option<Box<dyn Write + Send>>,
    child: Box<dyn Child + Send + Sync>,
    pub screen: Arc<Mutex<vt100::Parser>>,
    /// Whether the terminal is closed as soon as the program writes again.
    is_closing: Arc<AtomicBool>,
    /// The terminal's settings before the program began, in words.
    settings: String,
}

impl Terminal {
    pub fn start(program: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        Self::start_in(&std::env::temp_dir(), program, arguments, environment)
    }

    pub fn start_in(folder: &Path, program: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let size = PtySize { rows: 24, cols: 80, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(program);
        command.args(arguments);
        command.env_clear();
        command.env("TERM", "xterm-256color");
        command.env("LANG", "C.UTF-8");
        command.cwd(folder);
        environment.iter().for_each(|(name, value)| command.env(name, value));
        let settings = settings_of(&*pair.master);
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let screen = Arc::new(Mutex::new(vt100::Parser::new(cells(24), cells(80), 0)));
        let mut output = pair.master.try_clone_reader().unwrap();
        let parser = Arc::clone(&screen);
        let is_closing = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_closing);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let (false, Ok(len @ 1..)) = (ends.load(Ordering::Relaxed), output.read(&mut bytes)) {
                parser.lock().unwrap().process(&bytes[..len]);
            }
        });
        let keyboard = pair.master.take_writer().unwrap();
        Self { master: Some(pair.master), keyboard: Some(keyboard), child, screen, is_closing, settings }
    }

    pub fn gnntop(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        Self::start(Path::new(env!("CARGO_BIN_EXE_gnntop")), arguments, environment)
    }

    pub fn gnntop_in(folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        Self::start_in(folder, Path::new(env!("CARGO_BIN_EXE_gnntop")), arguments, environment)
    }

    pub fn text(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    /// Waits until the screen is as it should be.
    pub fn wait_until(&self, what: &str, is_so: impl Fn(&vt100::Screen) -> bool) {
        let start = Instant::now();
        while !is_so(self.screen.lock().unwrap().screen()) {
            assert!(start.elapsed() < PATIENCE, "never came: {what}\n{}", self.text());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn wait_for(&self, text: &str) {
        self.wait_until(text, |screen| screen.contents().contains(text));
    }

    pub fn press(&mut self, keys: &str) {
        let keyboard = self.keyboard.as_mut().unwrap();
        keyboard.write_all(keys.as_bytes()).unwrap();
        keyboard.flush().unwrap();
    }

    pub fn resize(&self, rows: u16, cols: u16) {
        self.screen.lock().unwrap().screen_mut().set_size(cells(rows), cells(cols));
        self.master().resize(PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }).unwrap();
    }

    pub fn signal(&self, signal: libc::c_int) {
        let pid = libc::pid_t::try_from(self.child.process_id().unwrap()).unwrap();
        // SAFETY: kill has no preconditions; the process is our child and not yet waited for.
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
    }

    fn is_stopped(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.process_id().unwrap())).unwrap();
        stat.rsplit(')').next().unwrap().trim_start().starts_with('T')
    }

    pub fn wait_until_stopped(&self) {
        let start = Instant::now();
        while !self.is_stopped() {
            assert!(start.elapsed() < PATIENCE, "never stopped\n{}", self.text());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn wait_for_exit(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(start.elapsed() < PATIENCE, "never ended\n{}", self.text());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for the end and checks that the terminal is as it was before.
    pub fn wait_for_end(&mut self) -> ExitStatus {
        let status = self.wait_for_exit();
        self.wait_until_given_back();
        status
    }

    /// Closes the terminal as closing its window does, once the program has written something more.
    pub fn close(&mut self) {
        self.is_closing.store(true, Ordering::Relaxed);
        self.master = None;
        self.keyboard = None;
    }

    fn master(&self) -> &dyn MasterPty {
        self.master.as_deref().unwrap()
    }

    pub fn wait_until_given_back(&self) {
        self.wait_until("the main screen", |screen| {
            let has_mouse = screen.mouse_protocol_mode() != vt100::MouseProtocolMode::None;
            !screen.alternate_screen() && !screen.hide_cursor() && !has_mouse
        });
        assert_eq!(settings_of(self.master()), self.settings, "the terminal's settings are back");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn cells(n: u16) -> NonZero<u16> {
    NonZero::new(n).unwrap()
}

fn settings_of(master: &dyn MasterPty) -> String {
    format!("{:?}", master.get_termios().unwrap())
}

//! Somebody at a terminal of 80 columns and 24 rows, with a shell.

use std::path::Path;
use std::time::Duration;

use crate::sessions::Sessions;
use crate::terminal::Terminal;

use super::training;

pub const LEFT: &str = "\u{1b}[D";
pub const RIGHT: &str = "\u{1b}[C";
const ENTER: &str = "\r";
const PAGE_DOWN: &str = "\u{1b}[6~";
/// Leaves nothing on the screen but this word, from the shell.
const CLEAR: &str = "printf '\\033[2J\\033[H%s\\n' clear\n";
const CLEARED: &str = "clear\n[0]$";
/// Pages that the help has at most.
const HELP_PAGES: usize = 8;
/// The row of the footer, from 0.
const FOOTER: usize = 23;

pub struct Person {
    pub sessions: Sessions,
    terminal: Terminal,
}

impl Person {
    /// Sits down in a folder in which there is a training, `./train`.
    pub fn new() -> Self {
        let sessions = Sessions::new();
        training::put(&sessions);
        let folder = sessions.path().to_str().unwrap().to_owned();
        let programs = Path::new(env!("CARGO_BIN_EXE_gnntop")).parent().unwrap().display();
        let path = format!("{programs}:{}", std::env::var("PATH").unwrap());
        let home = std::env::var("HOME").unwrap_or_default();
        let cache = sessions.path().join("cache");
        let environment = [
            ("PATH", path.as_str()),
            // Where a Python that was installed for one user finds itself.
            ("HOME", &home),
            ("GNNTOP_DIR", &folder),
            ("XDG_CONFIG_HOME", &folder),
            ("XDG_CACHE_HOME", cache.to_str().unwrap()),
            // The prompt shows how the last command ended.
            ("PS1", "[$?]$ "),
        ];
        let terminal = Terminal::start_in(sessions.path(), Path::new("/bin/sh"), &["-i"], &environment);
        terminal.wait_until("the prompt", |screen| exit_code(&screen.contents()) == Some(0));
        Self { sessions, terminal }
    }

    /// Types a command whose view then has the screen.
    pub fn open(&mut self, command: &str) {
        self.terminal.press(&format!("{command}\n"));
        self.terminal.wait_until(&format!("the view of {command}"), vt100::Screen::alternate_screen);
    }

    /// Types a command that then asks for something.
    pub fn start(&mut self, command: &str) {
        self.terminal.press(&format!("{command}\n"));
    }

    /// Types a command, and reads what it says once the prompt is back. Gives that and the exit code.
    pub fn run(&mut self, command: &str) -> (String, u32) {
        self.terminal.press(CLEAR);
        self.terminal.wait_until("an empty screen", |screen| screen.contents().trim_end() == CLEARED);
        self.terminal.press(&format!("{command}\n"));
        let is_over = |screen: &vt100::Screen| {
            let text = screen.contents();
            !CLEARED.starts_with(text.trim_end()) && exit_code(&text).is_some()
        };
        self.terminal.wait_until(&format!("the end of {command}"), is_over);
        let text = self.terminal.text();
        let code = exit_code(&text).unwrap();
        (text, code)
    }

    /// Types a command that succeeds, and whose answer has these words. Gives the answer.
    #[track_caller]
    pub fn read(&mut self, command: &str, words: &[&str]) -> String {
        let (text, code) = self.run(command);
        assert_eq!(code, 0, "{text}");
        words.iter().for_each(|word| assert!(text.contains(word), "no {word:?} in\n{text}"));
        text
    }

    /// Waits until the screen has this.
    pub fn expect(&self, text: &str) {
        self.terminal.wait_for(text);
    }

    /// Waits until the header shows this step or a later one: on a busy machine the screen does not show each.
    pub fn expect_step(&self, step: u64) {
        self.terminal.wait_until(&format!("step {step} or a later one"), |screen| {
            let text = screen.contents();
            let shown = text.split_once("│ step ").and_then(|(_, rest)| rest.split_whitespace().next());
            shown.and_then(|shown| shown.replace(',', "").parse().ok()).is_some_and(|shown: u64| shown >= step)
        });
    }

    pub fn screen(&self) -> String {
        self.terminal.text()
    }

    /// Presses a key that the footer shows in these words: `Space freeze`.
    pub fn press(&mut self, shown: &str, key: &str) {
        self.terminal.wait_until(&format!("{shown:?} in the footer"), |screen| {
            screen.contents().lines().nth(FOOTER).is_some_and(|footer| footer.contains(shown))
        });
        self.terminal.press(key);
    }

    /// Presses a key that some sentence on the screen names.
    pub fn follow(&mut self, sentence: &str, key: &str) {
        self.terminal.wait_for(sentence);
        self.terminal.press(key);
    }

    /// Goes to the view that the row of views shows in these words: `8 findings`.
    pub fn show_view(&mut self, shown: &str) {
        self.terminal.wait_until(&format!("{shown:?} above"), |screen| {
            screen.contents().lines().any(|line| line.contains("1 overview") && line.contains(shown))
        });
        self.terminal.press(&shown[..1]);
    }

    /// Presses a key that the help of this view explains in these words.
    pub fn find_in_help(&mut self, explanation: &str, key: &str) {
        self.press("? help", "?");
        self.expect("keys in ");
        for _ in 0..HELP_PAGES {
            if self.screen().contains(explanation) {
                break;
            }
            // The help is longer than the screen, which shows how to go on in it.
            let before = self.screen();
            self.terminal.press(PAGE_DOWN);
            self.terminal.wait_until("the next page of the help", |screen| screen.contents() != before);
            // It is drawn in several pieces.
            std::thread::sleep(Duration::from_millis(300));
        }
        self.expect(explanation);
        // A replay's footer has no room for Esc.
        self.press("? help", "?");
        self.terminal.wait_until("the view behind the help", |screen| !screen.contents().contains("keys in "));
        self.terminal.press(key);
    }

    /// Types an answer to a question that the footer asks.
    pub fn answer(&mut self, question: &str, text: &str) {
        self.expect(question);
        self.terminal.press(&format!("{text}{ENTER}"));
    }

    /// Waits until the prompt is back after a view, and gives the exit code.
    pub fn wait_for_prompt(&self) -> u32 {
        self.terminal
            .wait_until("the prompt", |screen| !screen.alternate_screen() && exit_code(&screen.contents()).is_some());
        exit_code(&self.screen()).unwrap()
    }
}

/// Whether there is a `python3` of this version or a newer one; says so if a task is skipped.
pub fn has_python(person: &mut Person, least: &str) -> bool {
    let (_, is_older) = person.run(&format!("python3 -c 'import sys; sys.exit(sys.version_info < ({least}))'"));
    if is_older != 0 {
        eprintln!("skipped: there is no python3 of {least} or newer");
    }
    is_older == 0
}

/// What the prompt in the last line says, where there is one and nothing is typed behind it.
fn exit_code(screen: &str) -> Option<u32> {
    screen.trim_end().lines().last()?.strip_prefix('[')?.strip_suffix("]$")?.parse().ok()
}

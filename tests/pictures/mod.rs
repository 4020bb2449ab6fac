//! Pictures of the screen for tests: a stream goes into the store, keys are pressed, and the screen becomes text.
#![allow(missing_docs, clippy::unwrap_used, dead_code, reason = "each test uses a part of it")]

use std::path::Path;
use std::time::Duration;

use gnntop::app::keys::Key;
use gnntop::app::{Action, App, Effect, OwnCost, Preferences, update};
use gnntop::report::EnergySnapshot;
use gnntop::ui::draw;
use gnntop::ui::theme::{ColorDepth, Theme};
use gnntop_analysis::energy::Assumptions;
use gnntop_analysis::findings;
use gnntop_analysis::source::{Recording, SourceState, Status};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

use gnntop_fixtures::each_item;

pub fn live() -> Status {
    Status { title: "pna (pid 4711)".to_owned(), state: SourceState::Running, live: true, ..Status::default() }
}

/// An app that has read these bytes.
pub fn app_of(bytes: &[u8]) -> App {
    app_in(bytes, live())
}

/// An app whose source, in this status, has given these bytes; it has measured what it costs itself.
pub fn app_in(bytes: &[u8], status: Status) -> App {
    let mut app = app_with(Preferences::default(), bytes, status);
    update(&mut app, Action::Measured(OwnCost { cpu_percent: Some(0.84), rss_bytes: Some(9 << 20) }));
    app
}

/// An app with these preferences that has read these bytes and judged them.
pub fn app_with(preferences: Preferences, bytes: &[u8], status: Status) -> App {
    let mut app = App::with_preferences(true, preferences);
    each_item(bytes, |item| app.run.apply(item));
    update(&mut app, Action::Tick { now: Duration::from_secs(10) });
    update(&mut app, Action::Polled { status, changed: true });
    judge(&mut app);
    app
}

/// Does what the program does in the background: looks for findings and reckons energy.
pub fn judge(app: &mut App) {
    let judgement = findings::judge_newest(app.run.store());
    update(app, Action::FindingsUpdated(Box::new(judgement)));
    let told = EnergySnapshot::for_run(&app.run, &Assumptions::default());
    update(app, Action::EnergyUpdated(Box::new(told)));
}

pub fn press(app: &mut App, keys: &[Key]) -> Option<Effect> {
    keys.iter().fold(None, |_, key| update(app, Action::Key(*key)))
}

pub fn picture(app: &mut App, width: u16, height: u16, theme: Theme) -> Buffer {
    update(app, Action::Resized { width, height });
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    let drawn = draw(app, &theme, &mut buffer);
    app.drawn(drawn.extent);
    buffer
}

pub fn text_of(buffer: &Buffer) -> String {
    let mut text = String::new();
    for y in 0..buffer.area.height {
        let mut line = String::new();
        let mut x = 0;
        while x < buffer.area.width {
            let symbol = buffer[(x, y)].symbol();
            line.push_str(symbol);
            x += symbol.width().max(1) as u16;
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

pub fn screen(app: &mut App, width: u16, height: u16) -> String {
    text_of(&picture(app, width, height, Theme::new(ColorDepth::True, false)))
}

/// A generator of numbers that look random and are the same every time (SplitMix64).
pub struct RandomNumbers(pub u64);

impl RandomNumbers {
    pub fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below.max(1)
    }
}

/// An app that has read a recording that ships, to its end.
pub fn app_of_recording(name: &str) -> App {
    let mut app = App::with_preferences(true, Preferences::default());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings").join(name);
    Recording::open(&path).unwrap().read_all(&mut app.run);
    update(&mut app, Action::Tick { now: Duration::from_secs(10) });
    let state = SourceState::Ended("end of the recording".to_owned());
    let status = Status { title: name.to_owned(), state, ..Status::default() };
    update(&mut app, Action::Polled { status, changed: true });
    let judgement = findings::judge_run(&app.run);
    update(&mut app, Action::FindingsUpdated(Box::new(judgement)));
    app
}

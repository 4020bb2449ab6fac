//! Draws the screen for the documentation and for reviewing a change: reads a recording, presses keys, and writes the
//! resulting screen as SVG.
//!
//! ```sh
//! cargo run --example screenshot -- a.gnntop -o overview.svg --size 120x40 --keys 'Left Left Enter'
//! ```

mod glyphs;
mod svg;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Parser;
use gnntop::app::keys::Key;
use gnntop::app::{Action, App, Effect, Palette, Preferences, update};
use gnntop::report::EnergySnapshot;
use gnntop::ui::draw;
use gnntop::ui::theme::{Background, ColorDepth, Theme};
use gnntop_analysis::energy::Assumptions;
use gnntop_analysis::findings;
use gnntop_analysis::source::playback::PlaybackOptions;
use gnntop_analysis::source::{Control, Playback, Source};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Draw a recording's screen into an SVG file.
#[derive(Debug, Parser)]
struct Arguments {
    /// The recording
    recording: PathBuf,
    /// The picture
    #[arg(short)]
    output: PathBuf,
    /// Columns and rows
    #[arg(long, default_value = "100x30", value_parser = size)]
    size: (u16, u16),
    /// How much of the recording has been played, in percent
    #[arg(long, default_value_t = 100.0)]
    at: f64,
    /// Keys to press, by name, with spaces between them
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    keys: String,
    /// Another recording, for the view that compares
    #[arg(long)]
    against: Option<PathBuf>,
    /// Colours
    #[arg(long, default_value = "default", value_parser = |name: &str| Palette::from_name(name).ok_or("no such palette"))]
    palette: Palette,
    /// dark or light
    #[arg(long, default_value = "dark", value_parser = |name: &str| Background::from_name(name).ok_or("dark or light"))]
    background: Background,
    /// truecolor, 256, 16 or none
    #[arg(long, default_value = "truecolor", value_parser = |name: &str| ColorDepth::from_name(name).ok_or("no such depth"))]
    depth: ColorDepth,
    /// Draw ASCII only
    #[arg(long)]
    ascii: bool,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let Arguments { palette, background, .. } = arguments;
    let mut app = App::with_preferences(false, Preferences { palette, background, ..Preferences::default() });
    play(&mut app, &arguments)?;
    let (width, height) = arguments.size;
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    let theme = Theme::new(arguments.depth, arguments.ascii);
    draw(&app, &theme, &mut buffer);
    fs::write(&arguments.output, svg::picture(&buffer, arguments.background))
        .with_context(|| format!("cannot write {}", arguments.output.display()))
}

/// Plays the recording up to the instant that is shown, and presses the keys.
fn play(app: &mut App, arguments: &Arguments) -> anyhow::Result<()> {
    let mut source = Playback::open(arguments.recording.clone(), PlaybackOptions::default())?;
    let (width, height) = arguments.size;
    update(app, Action::Resized { width, height });
    source.control(Control::TogglePause);
    source.control(Control::SeekShare(arguments.at / 100.0));
    take_in(&mut source, app);
    if let Some(other) = &arguments.against {
        take_in_other(other.clone(), app)?;
    }
    for name in arguments.keys.split_whitespace() {
        let Some(key) = Key::from_name(name) else { bail!("there is no key {name}") };
        if let Some(Effect::Control(control)) = update(app, Action::Key(key)) {
            source.control(control);
            take_in(&mut source, app);
        }
    }
    // Messages of keys are over.
    update(app, Action::Tick { now: Duration::from_secs(60) });
    Ok(())
}

/// Lets the source catch up with its position.
fn take_in(source: &mut Playback, app: &mut App) {
    while source.poll(&mut app.run, Duration::from_millis(100)).more {}
    // What was held back until now.
    source.poll(&mut app.run, Duration::from_millis(100));
    update(app, Action::Tick { now: Duration::from_secs(1) });
    update(app, Action::Polled { status: source.status(), changed: true });
    let judgement = findings::judge_newest(app.run.store());
    update(app, Action::FindingsUpdated(Box::new(judgement)));
    let told = EnergySnapshot::for_run(&app.run, &Assumptions::default());
    update(app, Action::EnergyUpdated(Box::new(told)));
}

/// Reads the whole of the recording that the other is compared with.
fn take_in_other(path: PathBuf, app: &mut App) -> anyhow::Result<()> {
    let mut other = Playback::open(path, PlaybackOptions::default())?;
    other.control(Control::TogglePause);
    other.control(Control::SeekShare(1.0));
    while other.poll(&mut app.other_mut().run, Duration::from_millis(100)).more {}
    other.poll(&mut app.other_mut().run, Duration::from_millis(100));
    update(app, Action::OtherPolled { status: other.status(), changed: true });
    Ok(())
}

fn size(text: &str) -> Result<(u16, u16), String> {
    let numbers = text.split_once('x').and_then(|(width, height)| Some((width.parse().ok()?, height.parse().ok()?)));
    numbers
        .filter(|(width, height)| (1..=500).contains(width) && (1..=200).contains(height))
        .ok_or_else(|| "give columns and rows, such as 120x40".to_owned())
}

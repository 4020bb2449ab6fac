//! What a person does to the screen, by key and by mouse, as it then looks: filter, highlight, replay, looks. Without a
//! terminal: drawn into a buffer.

use std::time::Duration;

use crate::pictures::{live, text_of};
use gnntop::app::keys::Key;
use gnntop::app::{Action, App, Background, ColorDepth, Gesture, Palette, Preferences, Target, View, update};
use gnntop::ui::theme::Theme;
use gnntop::ui::{Spot, draw};
use gnntop_analysis::source::catalog::{CatalogEntry, EntryKind};
use gnntop_analysis::source::latest::Latest;
use gnntop_analysis::source::{Status, Transport};
use gnntop_fixtures::{SECOND, TrainingRun};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Color;

fn app_with(preferences: Preferences, status: Status) -> App {
    let run = TrainingRun { ends: false, ..TrainingRun::default() };
    crate::pictures::app_with(preferences, &run.bytes(), status)
}

fn app() -> App {
    app_with(Preferences::default(), live())
}

fn press(app: &mut App, keys: &str) {
    for name in keys.split(' ') {
        update(app, Action::Key(Key::from_name(name).unwrap()));
    }
}

fn picture(app: &mut App, width: u16, height: u16, theme: Theme) -> (Buffer, Vec<Spot>) {
    update(app, Action::Resized { width, height });
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    let spots = draw(app, &theme, &mut buffer).spots;
    (buffer, spots)
}

fn screen(app: &mut App, width: u16, height: u16) -> String {
    text_of(&picture(app, width, height, Theme::new(ColorDepth::True, false)).0)
}

fn ascii(app: &mut App, width: u16, height: u16) -> String {
    text_of(&picture(app, width, height, Theme::new(ColorDepth::None, true)).0)
}

#[test]
fn filter_keeps_matching_names() {
    let mut app = app();
    press(&mut app, "/ w a r d");
    insta::assert_snapshot!("filter_typed_80x24", screen(&mut app, 80, 24));
    press(&mut app, "Enter");
    insta::assert_snapshot!("filtered_120x40", screen(&mut app, 120, 40));
    press(&mut app, "3");
    insta::assert_snapshot!("filtered_latency_80x24", screen(&mut app, 80, 24));
    press(&mut app, "/ z z z Enter");
    let nothing = screen(&mut app, 80, 24);
    assert!(!nothing.contains("forward") && nothing.contains("/wardzzz"), "{nothing}");
    press(&mut app, "Esc");
    assert!(screen(&mut app, 80, 24).contains("optimizer"));
}

#[test]
fn a_phase_of_the_legend_is_highlighted_with_and_without_colour() {
    let mut app = app();
    let (_, spots) = picture(&mut app, 80, 24, Theme::new(ColorDepth::True, false));
    let phase = app.run.store().phases().iter().find(|phase| phase.text == "forward").unwrap().slot;
    assert!(spots.iter().any(|spot| spot.target == Target::Phase(phase)), "the legend offers it");
    update(&mut app, Action::Mouse { gesture: Gesture::Press, on: Target::Phase(phase) });
    insta::assert_snapshot!("highlight_80x24", screen(&mut app, 80, 24));
    insta::assert_snapshot!("highlight_ascii_80x24", ascii(&mut app, 80, 24));
}

#[test]
fn every_spot_is_on_the_screen_and_bars_target_steps() {
    let mut app = app();
    for view in View::ALL {
        if let Some(key) = view.key() {
            update(&mut app, Action::Key(Key::Char(key)));
        }
        for (width, height) in [(80, 24), (120, 40), (60, 15), (20, 6), (10, 3), (1, 1), (300, 100)] {
            let (buffer, spots) = picture(&mut app, width, height, Theme::new(ColorDepth::True, false));
            assert!(spots.iter().all(|spot| buffer.area.intersection(spot.area) == spot.area), "{view:?} {spots:?}");
        }
    }
    press(&mut app, "1");
    let (_, spots) = picture(&mut app, 80, 24, Theme::new(ColorDepth::True, false));
    let steps: Vec<u64> =
        spots.iter().filter_map(|spot| if let Target::Step(step) = spot.target { Some(step) } else { None }).collect();
    assert_eq!(steps.last(), Some(&99), "the newest at the right");
    assert!(steps.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{steps:?}");
    let tabs = spots.iter().filter(|spot| matches!(spot.target, Target::View(_))).count();
    assert_eq!(tabs, 9);
}

#[test]
fn session_choice_is_drawn() {
    let entry = |kind, name: &str, pid: Option<u32>, command: &str, seconds| CatalogEntry {
        kind,
        name: name.to_owned(),
        pid,
        command: command.to_owned(),
        size_bytes: 73_374 * seconds,
        age: Some(Duration::from_secs(seconds)),
        started: pid.map(|_| Duration::from_secs(100 + seconds)),
        folder: (kind == EntryKind::Live).then(|| "/home/me/runs/lr-0.1".into()),
        latest: (kind == EntryKind::Live)
            .then(|| Latest { step: 400, still: (seconds == 3).then(|| Duration::from_secs(40)) }),
        path: name.into(),
    };
    let entries = vec![
        entry(EntryKind::Live, "pna", Some(4711), "gnntop train pna --preset study", 2),
        entry(EntryKind::Live, "前向传播", Some(4712), "python train.py", 3),
        entry(EntryKind::Ended, "gat", Some(999), "gnntop train gat", 3700),
        entry(EntryKind::Recording, &"long".repeat(50), None, "", 90_000),
    ];
    let mut app = App::new(false);
    app.offer_sessions(true);
    insta::assert_snapshot!("sessions_none_80x24", screen(&mut app, 80, 24));
    update(&mut app, Action::SessionsListed(Ok(entries)));
    press(&mut app, "Down");
    insta::assert_snapshot!("sessions_80x24", screen(&mut app, 80, 24));
    insta::assert_snapshot!("sessions_120x40", screen(&mut app, 120, 40));
    insta::assert_snapshot!("sessions_ascii_60x15", ascii(&mut app, 60, 15));
    update(&mut app, Action::Failed("a.gnntop is no recording".to_owned()));
    assert!(screen(&mut app, 80, 24).contains("a.gnntop is no recording"));
    for width in 0..100 {
        screen(&mut app, width, 14);
    }
}

#[test]
fn replay_part_and_step_prompt_are_drawn() {
    let part = (Some(10 * SECOND), Some(20 * SECOND));
    let transport = Transport {
        position_ns: 12 * SECOND,
        total_ns: Some(90 * SECOND),
        speed: 0.25,
        repeated: part,
        ..Transport::default()
    };
    let mut app = app_with(Preferences::default(), Status { transport: Some(transport), live: false, ..live() });
    insta::assert_snapshot!("replay_part_80x24", screen(&mut app, 80, 24));
    press(&mut app, ": # 1 2 0");
    let asked = screen(&mut app, 80, 24);
    assert!(asked.contains("go to: #120_"), "{asked}");
}

#[test]
fn screen_starts_with_preferences() {
    let preferences = Preferences { view: View::Latency, palette: Palette::Monochrome, ..Preferences::default() };
    let mut app = app_with(preferences, live());
    assert_eq!(app.view(), View::Latency);
    press(&mut app, "t");
    assert!(screen(&mut app, 80, 24).contains("theme: terminal"));
}

/// All colours in the picture.
fn colors(palette: Palette, background: Background, depth: ColorDepth) -> Vec<Color> {
    let mut app = app_with(Preferences { palette, background, ..Preferences::default() }, live());
    let (buffer, _) = picture(&mut app, 120, 40, Theme::new(depth, false));
    buffer.content().iter().flat_map(|cell| [cell.fg, cell.bg]).collect()
}

#[test]
fn every_palette_keeps_to_the_depth_on_the_whole_screen() {
    for palette in Palette::ALL {
        for background in [Background::Dark, Background::Light] {
            let is_rgb = |color: &Color| matches!(color, Color::Rgb(..));
            let is_indexed = |color: &Color| matches!(color, Color::Indexed(_));
            let indexed = colors(palette, background, ColorDepth::Indexed);
            assert!(!indexed.iter().any(is_rgb), "{palette}");
            let sixteen = colors(palette, background, ColorDepth::Ansi);
            assert!(!sixteen.iter().any(|color| is_rgb(color) || is_indexed(color)), "{palette}");
            let none = colors(palette, background, ColorDepth::None);
            assert!(none.iter().all(|color| *color == Color::Reset), "{palette}");
        }
    }
    let dark = colors(Palette::Default, Background::Dark, ColorDepth::True);
    assert_ne!(dark, colors(Palette::Default, Background::Light, ColorDepth::True));
    assert_ne!(dark, colors(Palette::ColorBlind, Background::Dark, ColorDepth::True));
}

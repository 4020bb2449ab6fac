//! What somebody sees who opens the viewer for the first time, in a small terminal: the finding before what is usual, the largest
//! before the first, a sign wherever something does not fit, and no word of what is not there.

use crate::pictures::{app_in, app_of, live, picture, press, screen, text_of};
use gnntop::app::keys::Key;
use gnntop::app::{App, Effect};
use gnntop::ui::theme::{ColorDepth, Theme};
use gnntop_analysis::source::{Control, Status, Transport};
use gnntop_fixtures::{MS, ParallelRun, SECOND, START_NS, StreamBuilder, TrainingRun};
use gnntop_wire::{SignalKind, TrackRole, Unit};

/// A run whose longest phase is no problem, with five spikes.
fn spiky() -> TrainingRun {
    let spikes = [17, 30, 41, 66, 88].map(|step| (step, "forward", (200 + step) * MS)).to_vec();
    let phases = vec![("forward", 10 * MS), ("backward", 22 * MS), ("optimizer", 3 * MS)];
    TrainingRun { phases, spikes, epoch_steps: 1000, ends: false, ..TrainingRun::default() }
}

fn line(app: &mut App, (width, height): (u16, u16), nth: usize) -> String {
    screen(app, width, height).lines().nth(nth).unwrap_or_default().to_owned()
}

fn replay_of(bytes: &[u8]) -> App {
    app_in(bytes, Status { transport: Some(Transport::default()), live: false, ..live() })
}

#[test]
fn finding_is_the_last_part_of_the_verdict_to_go() {
    let mut app = app_of(&spiky().bytes());
    for width in [80, 60, 40] {
        let verdict = line(&mut app, (width, 15), 1);
        assert!(verdict.contains("5 spikes (") && !verdict.contains("gap 2"), "{verdict}");
    }
    assert!(line(&mut app, (80, 24), 1).contains("-bound ("));
}

#[test]
fn largest_phases_are_shown_where_not_all_fit() {
    let phases = [("data wait", 1), ("forward", 2), ("loss", 3), ("backward", 4), ("optimizer", 30)];
    let phases = phases.map(|(name, ms)| (name, ms * MS)).to_vec();
    let mut app = app_of(&TrainingRun { phases, ends: false, ..TrainingRun::default() }.bytes());
    let text = screen(&mut app, 60, 15);
    let at = |name: &str| text.lines().position(|line| line.contains(name));
    assert!(at("O optimizer").is_some() && at("W data wait").is_none(), "{text}");
    assert!(at("B backward") < at("O optimizer"), "in the order of a step: {text}");
    assert!(text.contains("─phases  3 of 6 ─"), "{text}");
}

#[test]
fn what_to_try_is_seen_at_any_size_and_the_rest_is_a_page_away() {
    let mut app = app_of(&spiky().bytes());
    press(&mut app, &[Key::Char('8')]);
    let first = screen(&mut app, 60, 15);
    assert!(first.contains(" try       open one of these steps"), "{first}");
    assert!(first.contains("↓ ") && !first.contains("evidence"), "{first}");
    press(&mut app, &[Key::PageDown, Key::PageDown]);
    let rest = screen(&mut app, 60, 15);
    assert!(rest.contains("evidence") && rest.contains("↑ "), "{rest}");
    press(&mut app, &[Key::PageUp, Key::PageUp]);
    assert_eq!(screen(&mut app, 60, 15), first);
    let roomy = screen(&mut app, 80, 24);
    assert!(roomy.find("evidence") < roomy.find(" try "), "{roomy}");
}

#[test]
fn what_could_not_be_checked_is_one_line_of_the_list() {
    let mut app = app_of(&spiky().bytes());
    press(&mut app, &[Key::Char('8')]);
    assert_eq!(screen(&mut app, 80, 24).matches("for lack of data").count(), 1);
    press(&mut app, &[Key::Char('G')]);
    let text = screen(&mut app, 120, 40);
    assert!(text.contains("─not checked  ") && text.contains("GPU idle: no GPU is measured"), "{text}");
}

#[test]
fn a_list_that_is_cut_says_so() {
    let mut app = app_of(&TrainingRun { epoch_steps: 25, ..spiky() }.bytes());
    press(&mut app, &[Key::Char('8')]);
    assert!(line(&mut app, (60, 15), 3).ends_with("more ─"), "{}", screen(&mut app, 60, 15));
    press(&mut app, &[Key::Char('?')]);
    assert!(line(&mut app, (80, 24), 3).contains("↓ "), "{}", screen(&mut app, 80, 24));
}

#[test]
fn nothing_is_said_of_a_running_program_in_a_replay() {
    let bytes = spiky().bytes();
    let mut app = replay_of(&bytes);
    press(&mut app, &[Key::Char('?')]);
    assert!(!screen(&mut app, 120, 100).contains("the run continues"));
    let mut app = app_of(&bytes);
    press(&mut app, &[Key::Char('?')]);
    assert!(screen(&mut app, 120, 100).contains("the run continues"));
}

#[test]
fn end_goes_to_the_end_of_a_replay() {
    let end = Some(Effect::Control(Control::SeekShare(1.0)));
    let mut app = replay_of(&spiky().bytes());
    for view in ['1', '2', '3', '4', '5', '6', '7', '8', '9', 'f', 'V', 'm', '?'] {
        press(&mut app, &[Key::Left, Key::Char(view)]);
        assert_eq!(press(&mut app, &[Key::End]), end, "key {view}");
        assert_eq!(app.window().cursor(), None, "and follows there");
    }
    press(&mut app, &[Key::Esc, Key::Char('1'), Key::Char(':')]);
    let typed: Vec<Key> = "end".chars().map(Key::Char).chain([Key::Enter]).collect();
    assert_eq!(press(&mut app, &typed), end);
    assert!(screen(&mut app, 120, 24).contains("End end"), "the footer says how");
    press(&mut app, &[Key::Char('8'), Key::Char('?')]);
    let help = screen(&mut app, 120, 100);
    assert!(help.contains("End           go to the end of the replay") && !help.contains("G  End"), "{help}");
}

#[test]
fn a_selected_step_is_said_to_keep_the_picture() {
    let mut app = app_of(&spiky().bytes());
    assert!(line(&mut app, (80, 24), 0).contains("● live │"));
    press(&mut app, &[Key::Left]);
    assert!(line(&mut app, (80, 24), 0).contains("● live, Esc follows"));
}

#[test]
fn what_was_said_of_a_key_goes_with_the_next() {
    let mut app = app_of(&spiky().bytes());
    press(&mut app, &[Key::Char('2'), Key::Char('s'), Key::Char('s')]);
    assert_eq!(app.notice(), Some("number 2 of the slowest steps"));
    press(&mut app, &[Key::Left]);
    assert_eq!(app.notice(), None);
}

#[test]
fn pages_scroll_text_and_select_no_step() {
    let mut app = app_of(&spiky().bytes());
    for view in ['4', '5'] {
        press(&mut app, &[Key::Char(view)]);
        screen(&mut app, 60, 15);
        press(&mut app, &[Key::PageDown]);
        assert!(app.window().cursor().is_none() && app.line(app.view()) > 0, "{view}");
    }
}

#[test]
fn ranks_lanes_are_explained_by_what_is_there() {
    let parallel = ParallelRun { ranks: 2, ends: false, ..ParallelRun::default() };
    let mut app = app_of(&parallel.bytes());
    press(&mut app, &[Key::Char('R')]);
    let text = screen(&mut app, 80, 24);
    for whole in ["reports what", "one rank does", "slowest"] {
        assert!(text.contains(whole), "no text is cut above empty rows: {text}");
    }
    assert!(!text.contains('…'), "{text}");
    let mut stream = StreamBuilder::from_info(&parallel.info(0));
    let main = stream.track(TrackRole::Training, "main");
    for step in 1..=20 {
        let start = START_NS + step * 10 * MS;
        stream.phase(main, step, "forward", start, start + 9 * MS);
        stream.step(main, step, start, start + 10 * MS);
    }
    let mut app = app_of(&stream.bytes());
    press(&mut app, &[Key::Char('R')]);
    assert!(!screen(&mut app, 80, 24).contains("all-reduce"), "{}", screen(&mut app, 80, 24));
}

#[test]
fn narrow_tabs_keep_names_beside_those_of_ranks() {
    let mut app = app_of(&ParallelRun { ranks: 2, ends: false, ..ParallelRun::default() }.bytes());
    let tabs = line(&mut app, (60, 15), 2);
    assert!(["1 over", "2 step", "8 find", "R rank"].iter().all(|name| tabs.contains(name)), "{tabs}");
}

#[test]
fn throttled_gpu_is_on_the_first_screen_with_all_its_words() {
    let mut stream = StreamBuilder::new("pna");
    let track = stream.track(TrackRole::Sensors, "sensors");
    let readings = [
        ("util", Unit::MilliPercent, 98_000),
        ("memory.used", Unit::Bytes, 61 << 30),
        ("power", Unit::Milliwatts, 700_000),
        ("temperature", Unit::MilliCelsius, 83_000),
        ("throttle", Unit::Bits, 0x40),
    ];
    for (quantity, unit, value) in readings {
        let signal = stream.signal(&format!("gpu.0.{quantity}"), unit, SignalKind::Gauge);
        stream.sample(track, signal, START_NS + SECOND, value);
    }
    let mut app = app_of(&stream.bytes());
    let text = text_of(&picture(&mut app, 100, 24, Theme::new(ColorDepth::None, false)));
    assert!(text.contains("98 % throttled 61.0 GiB 700 W 83 °C"), "{text}");
}

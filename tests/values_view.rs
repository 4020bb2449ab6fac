//! The values that a program logs on the screen: the loss over the steps, what is wrong with it, and the way through them by key.

use crate::pictures::{app_of, picture, press, screen, text_of};
use gnntop::app::App;
use gnntop::app::keys::Key;
use gnntop::ui::theme::{ColorDepth, Theme};
use gnntop_fixtures::{MS, START_NS, StreamBuilder};
use gnntop_wire::TrackRole;

/// A training that logs after each step. From step 81 on its loss is not a number, and its validation diverges from step 60 on.
fn training() -> App {
    let mut stream = StreamBuilder::new("train.py");
    let main = stream.track(TrackRole::Training, "train");
    for step in 1..=100u64 {
        let begin_ns = START_NS + step * 100 * MS;
        stream.phase(main, step, "forward", begin_ns, begin_ns + 30 * MS);
        stream.phase(main, step, "backward", begin_ns + 30 * MS, begin_ns + 90 * MS);
        stream.step(main, step, begin_ns, begin_ns + 95 * MS);
        let at = step as f64;
        let loss = if step <= 80 { 2.3 / at.sqrt() } else { f64::NAN };
        let validation = if step < 60 { 1.5 } else { at / 5.0 };
        for (name, value) in [("lr", 3e-4), ("train/loss", loss), ("val/loss", validation), ("accuracy", at / 200.0)] {
            stream.counter(main, name, begin_ns + 97 * MS, value);
        }
    }
    app_of(&stream.bytes())
}

#[test]
fn values_are_drawn_and_selected_by_key() {
    let mut app = training();
    press(&mut app, &[Key::Char('V')]);
    for (width, height) in [(80, 24), (120, 40), (60, 15), (20, 6)] {
        insta::assert_snapshot!(format!("values_{width}x{height}"), screen(&mut app, width, height));
    }
    let loss = screen(&mut app, 80, 24);
    assert!(loss.contains("NaN since step 81") && loss.contains("the last good step is 80"), "{loss}");
    press(&mut app, &[Key::Down]);
    let validation = screen(&mut app, 80, 24);
    insta::assert_snapshot!("values_diverging_80x24", validation);
    assert!(validation.contains("diverges: above 4 times its least value since step 60"), "{validation}");
    press(&mut app, &[Key::Down, Key::Down, Key::Down, Key::Down]);
    assert!(screen(&mut app, 80, 24).contains("4 of 4"));
    press(&mut app, &[Key::Up, Key::Up, Key::Up, Key::Char('y')]);
    insta::assert_snapshot!("values_log_80x24", screen(&mut app, 80, 24));
    press(&mut app, &[Key::Left]);
    assert!(screen(&mut app, 80, 24).contains("at the selected step"));
    let ascii = text_of(&picture(&mut app, 80, 24, Theme::new(ColorDepth::None, true)));
    assert!(ascii.is_ascii(), "{ascii}");
}

#[test]
fn nothing_logged_is_explained() {
    let mut stream = StreamBuilder::new("train.py");
    let main = stream.track(TrackRole::Training, "train");
    stream.step(main, 1, START_NS, START_NS + MS);
    let mut app = app_of(&stream.bytes());
    press(&mut app, &[Key::Char('V')]);
    assert!(screen(&mut app, 80, 24).contains("no values yet"));
}

#[test]
fn values_of_any_kind_fit_any_size() {
    let mut stream = StreamBuilder::new("train.py");
    let main = stream.track(TrackRole::Training, "train");
    let values = [f64::MAX, f64::MIN, 5e-324, f64::NAN, f64::INFINITY, -0.0, 1.0];
    for (at, value) in (0u64..).zip(values.iter().cycle().take(50)) {
        stream.step(main, at + 1, START_NS + at * MS, START_NS + at * MS + MS);
        stream.counter(main, "损失 loss", START_NS + at * MS + MS, *value);
        stream.counter(main, "constant", START_NS + at * MS + MS, 7.0);
    }
    let mut app = app_of(&stream.bytes());
    press(&mut app, &[Key::Char('V')]);
    for _ in 0..4 {
        for (width, height) in [0, 1, 29, 30, 31, 60, 140]
            .into_iter()
            .flat_map(|width| [0, 1, 5, 6, 7, 9, 14, 50].map(|height| (width, height)))
        {
            screen(&mut app, width, height);
        }
        press(&mut app, &[Key::Down, Key::Char('y')]);
    }
}

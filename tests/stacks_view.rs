//! Stacks over the whole run on the screen: flames, the way through them by key, and what is said where there are none.

use crate::pictures::{app_of, picture, press, screen, text_of};
use gnntop::app::App;
use gnntop::app::keys::Key;
use gnntop::ui::theme::{ColorDepth, Theme};
use gnntop_fixtures::{MS, START_NS, StreamBuilder, TrainingRun};
use gnntop_wire::{NameKind, Sampling, TrackRole};

/// Stacks from the phase inwards, with how many of each there were.
const STACKS: [(&[&str], u64); 6] = [
    (&["data wait", "main (train.py:19)", "fetch (torch/utils/data/_utils/fetch.py:57)", "collate (train.py:7)"], 180),
    (
        &[
            "data wait",
            "main (train.py:19)",
            "fetch (torch/utils/data/_utils/fetch.py:57)",
            "collate (train.py:7)",
            "tokenize (train.py:5)",
        ],
        260,
    ),
    (&["backward", "main (train.py:20)", "train_one (train.py:15)", "backward (torch/autograd/__init__.py:395)"], 350),
    (
        &[
            "forward",
            "main (train.py:20)",
            "train_one (train.py:14)",
            "Linear.forward (torch/nn/modules/linear.py:134)",
        ],
        150,
    ),
    (&["forward", "main (train.py:20)", "train_one (train.py:14)"], 30),
    (&["gap", "main (train.py:20)"], 30),
];

/// A training with those stacks; 1,200 were taken in all.
fn sampled() -> App {
    let mut stream = StreamBuilder::new("train.py");
    let main = stream.track(TrackRole::Training, "train");
    let samples = stream.track(TrackRole::Samples, "stacks of train, sampled");
    let mut t_ns = START_NS;
    for step in 1..=50 {
        let begin_ns = t_ns;
        for (phase, ns) in [("data wait", 440 * MS), ("forward", 180 * MS), ("backward", 350 * MS)] {
            stream.phase(main, step, phase, t_ns, t_ns + ns);
            t_ns += ns;
        }
        stream.step(main, step, begin_ns, t_ns);
        t_ns += 30 * MS;
    }
    for (frames, count) in STACKS {
        let path = stream.path(frames);
        stream.stack_sample(samples, path, t_ns, count);
    }
    for figure in Sampling::ALL {
        let value = match figure {
            Sampling::Taken => 1200,
            Sampling::Unread => 3,
            Sampling::CostUs => 150_000,
            Sampling::Rate => 20,
            Sampling::Held => 0,
        };
        let name = stream.name(NameKind::Sampling(figure), figure.text());
        stream.stack_sample(samples, name, t_ns, value);
    }
    app_of(&stream.bytes())
}

#[test]
fn flames_are_as_wide_as_their_share() {
    let mut app = sampled();
    press(&mut app, &[Key::Char('f')]);
    insta::assert_snapshot!("stacks_80x24", screen(&mut app, 80, 24));
    insta::assert_snapshot!("stacks_120x40", screen(&mut app, 120, 40));
    insta::assert_snapshot!("stacks_30x8", screen(&mut app, 30, 8));
}

#[test]
fn keys_select_and_zoom_a_frame() {
    let mut app = sampled();
    press(&mut app, &[Key::Char('f'), Key::Down, Key::Down, Key::Down, Key::Down, Key::Down]);
    let shown = screen(&mut app, 80, 24);
    assert!(shown.contains("tokenize (train.py:5): 26 % of the time, 26 % in it alone; 260 stacks"), "{shown}");
    press(&mut app, &[Key::Up, Key::Enter]);
    let zoomed = screen(&mut app, 80, 24);
    assert!(zoomed.contains("collate (train.py:7): 44 % of the time, 18 % in it alone; 440 stacks"), "{zoomed}");
    assert!(!zoomed.contains("forward"), "what lies beside it has no room: {zoomed}");
    insta::assert_snapshot!("stacks_zoomed_80x24", zoomed);
    press(&mut app, &[Key::Esc]);
    assert!(screen(&mut app, 80, 24).contains("│forward"), "Esc gives the width back, and the selection stays");
    press(&mut app, &[Key::Char('g'), Key::Down, Key::Right]);
    assert!(screen(&mut app, 80, 24).contains("backward: 35 % of the time, 0.0 % in it alone; 350 stacks"));
    press(&mut app, &[Key::Esc]);
    assert!(!screen(&mut app, 80, 24).contains("1,200 taken"), "and then leaves the view");
}

#[test]
fn view_without_stacks_explains_how_to_get_them() {
    let mut app = app_of(&TrainingRun::default().bytes());
    press(&mut app, &[Key::Char('f'), Key::Down, Key::Right, Key::Enter, Key::End]);
    assert!(screen(&mut app, 80, 24).contains("gnntop run --stacks 20 -- python"));
}

#[test]
fn every_size_is_drawn() {
    let mut app = sampled();
    press(&mut app, &[Key::Char('f')]);
    for keys in [&[][..], &[Key::End], &[Key::Up, Key::Char('+')]] {
        press(&mut app, keys);
        for (width, height) in (0..70).flat_map(|width| (0..20).map(move |height| (width, height))) {
            let plain = text_of(&picture(&mut app, width, height, Theme::new(ColorDepth::None, true)));
            assert!(plain.is_ascii(), "{plain}");
            picture(&mut app, width, height, Theme::new(ColorDepth::True, false));
        }
    }
}

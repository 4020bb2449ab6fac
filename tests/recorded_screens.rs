//! What the screen says of the recordings that ship, with the keys that a person presses.

use crate::pictures::{app_of_recording, press, screen};
use gnntop::app::keys::Key;

/// The last of its 301 steps ended 49.9 s before its end.
#[test]
fn run_that_hung_is_drawn_up_to_its_end() {
    let mut app = app_of_recording("demo/hang.gnntop");
    for (width, height) in [(80, 24), (60, 15), (120, 40)] {
        let shown = screen(&mut app, width, height);
        assert_eq!(shown.matches("no step for 50 s").count(), 2, "the rate, and a label on the bars:\n{shown}");
        assert!(!shown.contains("steps/s"), "{shown}");
    }
    press(&mut app, &[Key::Char('8')]);
    let shown = screen(&mut app, 60, 15);
    assert!(shown.contains("see what that line waits for"), "{shown}");
    assert!(shown.contains("python train.py was asked to stop"), "{shown}");
}

#[test]
fn verdict_counts_all_findings_that_it_leaves_out() {
    let mut app = app_of_recording("demo/gc.gnntop");
    let found = app.findings().found.len();
    let shown = screen(&mut app, 60, 15);
    let more = format!("; {} more: key 8", found - 1);
    assert!(shown.contains(" gc-bound (58 %); ") && shown.contains(&more), "{found}: {shown}");
}

#[test]
fn memory_of_a_python_program_asks_for_no_rust() {
    let mut app = app_of_recording("demo/leak.gnntop");
    press(&mut app, &[Key::Char('4')]);
    let shown = screen(&mut app, 120, 40);
    assert!(shown.contains(" growth  ") && shown.contains("what a Python program allocates is not counted"), "{shown}");
    assert!(!shown.contains("TrackingAllocator"), "{shown}");
}

#[test]
fn keys_without_effect_say_why() {
    let mut app = app_of_recording("demo/loader.gnntop");
    for (key, why) in [
        (']', "] does nothing here: no finding has a place to go to"),
        ('u', "only time per step: batches have no graphs, seeds, edges"),
        ('z', "z does nothing here: no range of steps is selected (v)"),
    ] {
        press(&mut app, &[Key::Char(key)]);
        let shown = screen(&mut app, 80, 24);
        assert!(shown.contains(why), "{shown}");
    }
}

/// A finding without places, the overview without the focus on its phases, and keys that do nothing anywhere.
#[test]
fn no_key_is_silent() {
    let mut app = app_of_recording("labelled/contention.gnntop");
    for (keys, why) in [
        (&[Key::Char('8'), Key::Enter][..], "Enter does nothing here: this finding has no place to go to"),
        (&[Key::Char('1'), Key::Down], "Down does nothing here: the phases scroll, once Tab has gone to them"),
        (&[Key::Char('d')], "d does nothing: ? lists the keys"),
        (&[Key::Char('0')], "0 does nothing: ? lists the keys"),
        (&[Key::Char('B')], "B does nothing: ? lists the keys"),
    ] {
        press(&mut app, keys);
        let shown = screen(&mut app, 80, 24);
        assert!(shown.contains(why), "{shown}");
    }
}

/// The last of its 200 steps ended 10.3 s before its end, after which the tracks have nothing.
#[test]
fn end_of_a_run_shows_what_it_did_last() {
    let mut app = app_of_recording("labelled/gpu-reads.gnntop");
    let shown = screen(&mut app, 120, 40);
    assert_eq!(shown.matches("after the last step: 10.3 s").count(), 2, "verdict and rate: {shown}");
    assert!(!shown.contains("steps/s"), "{shown}");
    assert!(screen(&mut app, 30, 4).contains("after the last step: 10.3 s"), "a small screen as well");
    press(&mut app, &[Key::Char('7')]);
    let shown = screen(&mut app, 120, 40);
    assert!(shown.contains("wait for the dev"), "{shown}");
    assert!(shown.contains("200'") || shown.contains("200╵"), "the last step is in view: {shown}");
}

#[test]
fn titles_and_labels_are_not_cut_inside_a_figure() {
    let mut app = app_of_recording("labelled/gpu-reads.gnntop");
    let shown = screen(&mut app, 60, 15);
    assert!(!shown.contains("period±") || shown.contains(" µs ") || shown.contains(" ms "), "{shown}");
    press(&mut app, &[Key::Char('3')]);
    for (width, height) in [(60, 15), (80, 24), (120, 40)] {
        let shown = screen(&mut app, width, height);
        let title = shown.lines().find(|line| line.contains("latency of")).unwrap_or_default();
        assert!(!title.contains("devic p99"), "{title}");
    }
}

/// Small powers and loads are no zero.
#[test]
fn small_figures_are_not_rounded_to_zero() {
    for name in ["labelled/contention", "labelled/gap", "labelled/drift"] {
        let mut app = app_of_recording(&format!("{name}.gnntop"));
        for view in ['1', '5', '6'] {
            press(&mut app, &[Key::Char(view)]);
            let shown = screen(&mut app, 120, 40);
            for zero in ["0.000 ", "0.00 cores", "0.00 of ", "the host takes 0.0 %", "+-"] {
                assert!(!shown.contains(zero), "{name}: {zero}: {shown}");
            }
        }
    }
}

/// Too few for a p99 in one table are too few in the other; a step's phases are by the clock of its bar.
#[test]
fn two_views_show_one_figure() {
    let mut app = app_of_recording("demo/gc.gnntop");
    let row = |shown: &str| {
        let line = shown.lines().find(|line| line.contains(" gc  ")).unwrap();
        line.split_once(" % ").unwrap().0.to_owned()
    };
    let shown = screen(&mut app, 120, 40);
    assert_eq!((row(&shown).matches("465 ms").count(), row(&shown).matches('—').count()), (1, 1), "{shown}");
    let mut app = app_of_recording("labelled/gpu-reads.gnntop");
    let forward = |app: &mut gnntop::app::App| {
        let shown = screen(app, 120, 40);
        let line = shown.lines().find(|line| line.contains("forward ")).unwrap().to_owned();
        let at = line.split_whitespace().position(|word| word == "forward").unwrap();
        line.split_whitespace().skip(at + 1).take(2).collect::<Vec<&str>>().join(" ")
    };
    let overview = forward(&mut app);
    press(&mut app, &[Key::Char('2')]);
    assert_eq!(forward(&mut app), overview);
}

#[test]
fn findings_use_the_room_there_is() {
    let mut app = app_of_recording("labelled/denormals.gnntop");
    press(&mut app, &[Key::Char('8')]);
    let shown = screen(&mut app, 120, 40);
    assert!(!shown.contains('…') && !shown.contains("PgDn"), "all of it fits: {shown}");
    assert!(shown.contains(" shares after the first 3 "), "{shown}");
    let mut app = app_of_recording("demo/straggler.gnntop");
    press(&mut app, &[Key::Char('8')]);
    assert!(screen(&mut app, 60, 15).contains("more ─"), "the text has more lines");
}

#[test]
fn marks_are_counted_the_same_in_and_out_of_steps() {
    let mut app = app_of_recording("demo/gc.gnntop");
    press(&mut app, &[Key::Char('m')]);
    let shown = screen(&mut app, 80, 24);
    let line = shown.lines().find(|line| line.contains("garbage collection ")).unwrap();
    let figures: Vec<&str> = line.split_whitespace().collect();
    assert_eq!((figures[2], figures[figures.len() - 1]), ("55", "1"), "54 are in steps: {shown}");
}

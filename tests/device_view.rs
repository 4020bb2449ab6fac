//! A training on a device: phases by its clock or the host's, and its memory.

use crate::pictures::{app_of, press, screen};
use gnntop::app::View;
use gnntop::app::keys::Key;
use gnntop_fixtures::TrainingRun;
use gnntop_fixtures::device::DeviceRun;

#[test]
fn phases_are_shown_by_the_devices_clock_and_a_key_shows_the_hosts() {
    let mut app = app_of(&DeviceRun::default().bytes());
    let text = screen(&mut app, 120, 40);
    assert!(text.contains("phases  device time") && text.contains("period±12.3 µs"), "{text}");
    assert!(text.contains("6.00 ms") && text.contains("11.0 ms"), "{text}");
    insta::assert_snapshot!("device_overview_120x40", text);
    press(&mut app, &[Key::Char('c')]);
    let text = screen(&mut app, 120, 40);
    assert!(text.contains("phases  handed over") && text.contains("600 µs"), "{text}");
    assert!(!text.contains("6.00 ms"), "the clocks are never mixed: {text}");
    for (width, height) in [(80, 24), (60, 15), (30, 8), (1, 1)] {
        screen(&mut app, width, height);
    }
}

#[test]
fn step_detail_names_both_clocks() {
    let mut app = app_of(&DeviceRun { untimed: 40, ..DeviceRun::default() }.bytes());
    press(&mut app, &[Key::Char('2'), Key::Left, Key::Left, Key::Enter]);
    assert_eq!(app.view(), View::Step);
    let text = screen(&mut app, 120, 40);
    assert!(text.contains("host: when work was handed over: step 20.0 ms; forward 600 µs, backward 800 µs"), "{text}");
    insta::assert_snapshot!("device_step_120x40", text);
    press(&mut app, &[Key::Char('G')]);
    let text = screen(&mut app, 120, 40);
    assert!(text.contains("the device has not reported this step") || text.contains("step 40"), "{text}");
}

#[test]
fn percentiles_are_by_the_clock_that_is_shown() {
    let mut app = app_of(&DeviceRun { is_synchronised: true, ..DeviceRun::default() }.bytes());
    press(&mut app, &[Key::Char('3'), Key::Char('r')]);
    let text = screen(&mut app, 120, 40);
    assert!(text.contains("40 newest steps of 1,000; device clock") || text.contains("device clock ±"), "{text}");
    press(&mut app, &[Key::Char('c')]);
    let text = screen(&mut app, 120, 40);
    assert!(text.contains("host, waiting for the device"), "{text}");
}

#[test]
fn device_memory_is_shown_by_phase_and_kind() {
    let mut app = app_of(&DeviceRun::default().bytes());
    press(&mut app, &[Key::Char('4')]);
    let text = screen(&mut app, 120, 60);
    for part in ["device memory", "300 MiB of 39.1 GiB; at most 1.50 GiB", "85 %", "activations", "optimizer state"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    insta::assert_snapshot!("device_memory_120x60", text);
}

#[test]
fn clocks_are_not_mentioned_without_device() {
    let mut app = app_of(&TrainingRun::default().bytes());
    let before = screen(&mut app, 120, 40);
    press(&mut app, &[Key::Char('c')]);
    assert_eq!(screen(&mut app, 120, 40), before);
    assert!(!before.contains("clock"), "{before}");
}

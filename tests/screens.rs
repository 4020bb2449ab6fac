//! Whole screens: a stream goes into the store, keys are pressed, and the picture is compared with the one on file.

use std::time::Duration;

use crate::pictures::{RandomNumbers, app_in, app_of, judge, live, picture, press, screen, text_of};
use gnntop::app::keys::{BINDINGS, Key};
use gnntop::app::{Action, App, Effect, update};
use gnntop::ui::theme::{ColorDepth, Theme};
use gnntop_analysis::ranks::Run;
use gnntop_analysis::source::{SourceState, Status, Transport, exit_record};
use gnntop_analysis::store::Limits;
use gnntop_fixtures::{MS, SECOND, START_NS, StreamBuilder, TrainingRun, each_item};
use gnntop_wire::{BatchShape, Event, Item, SignalKind, Step, StepId, TrackRole, Unit};
use unicode_width::UnicodeWidthStr;

/// A run of a few epochs with spikes, the last of them not long ago.
fn run() -> TrainingRun {
    let spikes = vec![(41, "data wait", 270 * MS), (70, "backward", 45 * MS), (88, "backward", 8 * MS)];
    TrainingRun { spikes, ends: false, ..TrainingRun::default() }
}

fn type_text(app: &mut App, text: &str) {
    text.chars().for_each(|c| {
        press(app, &[Key::Char(c)]);
    });
}

fn colors() -> Theme {
    Theme::new(ColorDepth::True, false)
}

#[test]
fn live_run_is_drawn() {
    let mut app = app_of(&run().bytes());
    insta::assert_snapshot!("live_80x24", screen(&mut app, 80, 24));
    insta::assert_snapshot!("live_120x40", screen(&mut app, 120, 40));
    insta::assert_snapshot!("live_60x15", screen(&mut app, 60, 15));
    insta::assert_snapshot!("live_20x6", screen(&mut app, 20, 6));
    insta::assert_snapshot!("live_10x3", screen(&mut app, 10, 3));
}

#[test]
fn main_views_are_drawn() {
    let mut app = app_of(&run().bytes());
    for (digit, name) in [
        ('2', "steps"),
        ('3', "latency"),
        ('4', "memory"),
        ('5', "hardware"),
        ('6', "energy"),
        ('7', "tracks"),
        ('8', "findings"),
        ('9', "compare"),
    ] {
        press(&mut app, &[Key::Char(digit)]);
        insta::assert_snapshot!(format!("view_{name}_80x24"), screen(&mut app, 80, 24));
        insta::assert_snapshot!(format!("view_{name}_120x40"), screen(&mut app, 120, 40));
    }
}

#[test]
fn findings_are_selected_by_key() {
    let mut app = app_of(&run().bytes());
    press(&mut app, &[Key::Char('8'), Key::Down]);
    insta::assert_snapshot!("findings_spikes_80x24", screen(&mut app, 80, 24));
    insta::assert_snapshot!("findings_spikes_120x40", screen(&mut app, 120, 40));
    insta::assert_snapshot!("findings_spikes_60x15", screen(&mut app, 60, 15));
    insta::assert_snapshot!("findings_spikes_20x6", screen(&mut app, 20, 6));
    press(&mut app, &[Key::Right, Key::Enter]);
    insta::assert_snapshot!("findings_shown_80x24", screen(&mut app, 80, 24));
    press(&mut app, &[Key::Char('1'), Key::Char('[')]);
    insta::assert_snapshot!("findings_walked_120x40", screen(&mut app, 120, 40));
    press(&mut app, &[Key::Char('8'), Key::Char('G')]);
    insta::assert_snapshot!("findings_not_enough_80x24", screen(&mut app, 80, 24));
    let ascii = text_of(&picture(&mut app, 80, 24, Theme::new(ColorDepth::None, true)));
    assert!(ascii.is_ascii(), "{ascii}");
    for (width, height) in (0..70).flat_map(|width| [3, 7, 9, 14].map(|height| (width, height))) {
        screen(&mut app, width, height);
    }
}

#[test]
fn no_findings_are_reported() {
    let even = TrainingRun { epoch_steps: 1000, has_hardware: false, ends: false, ..TrainingRun::default() };
    let phases = vec![("forward", 10 * MS), ("backward", 22 * MS)];
    let mut app = app_of(&TrainingRun { phases, ..even }.bytes());
    press(&mut app, &[Key::Char('8')]);
    insta::assert_snapshot!("findings_none_80x24", screen(&mut app, 80, 24));
    assert!(screen(&mut app, 80, 24).contains("nothing wrong in the newest 100 steps"));
    press(&mut app, &[Key::Char('2')]);
    assert!(screen(&mut app, 80, 24).contains("no finding begins in these steps"));
}

#[test]
fn legend_shows_extent_of_findings() {
    let run = TrainingRun { steps: 9000, epoch_steps: 500, has_hardware: false, ends: false, ..TrainingRun::default() };
    let mut app = app_of(&run.bytes());
    press(&mut app, &[Key::Char('2'), Key::Char('w')]);
    let shown = screen(&mut app, 120, 40);
    assert!(shown.contains("findings: newest 8,192 steps"), "{shown}");
}

#[test]
fn findings_are_drawn_for_any_name() {
    for name in ["x".repeat(200), "前向传播の時間".repeat(9), "הת".repeat(60), "e\u{301}\u{301}".repeat(80)] {
        let name: &'static str = name.leak();
        let phases = vec![("forward", 10 * MS), (name, 22 * MS)];
        let spikes = vec![(60, name, 300 * MS), (80, name, 90 * MS)];
        let mut app = app_of(&TrainingRun { phases, spikes, ends: false, ..TrainingRun::default() }.bytes());
        press(&mut app, &[Key::Char('8')]);
        for _ in 0..4 {
            for (width, height) in [(80, 24), (120, 40), (60, 15), (20, 6)] {
                screen(&mut app, width, height);
            }
            press(&mut app, &[Key::Down]);
        }
        press(&mut app, &[Key::Char('2'), Key::Char('[')]);
        assert!(screen(&mut app, 80, 24).contains("spike"));
    }
}

#[test]
fn screen_without_colour_and_in_ascii() {
    let mut app = app_of(&run().bytes());
    let no_color = Theme::new(ColorDepth::None, false);
    insta::assert_snapshot!("no_color_80x24", text_of(&picture(&mut app, 80, 24, no_color)));
    let ascii = picture(&mut app, 80, 24, Theme::new(ColorDepth::None, true));
    insta::assert_snapshot!("ascii_80x24", text_of(&ascii));
    assert!(text_of(&ascii).is_ascii());
    press(&mut app, &[Key::Char('?')]);
    assert!(text_of(&picture(&mut app, 80, 60, Theme::new(ColorDepth::None, true))).is_ascii());
}

#[test]
fn frozen_screen_is_drawn() {
    let mut app = app_of(&run().bytes());
    press(&mut app, &[Key::Char(' ')]);
    update(&mut app, Action::Tick { now: Duration::from_secs(22) });
    insta::assert_snapshot!("frozen_80x24", screen(&mut app, 80, 24));
    press(&mut app, &[Key::Char(' ')]);
    assert!(screen(&mut app, 80, 24).contains("live"));
}

#[test]
fn help_is_drawn() {
    let mut app = app_of(&run().bytes());
    press(&mut app, &[Key::Char('?')]);
    insta::assert_snapshot!("help_80x24", screen(&mut app, 80, 24));
    press(&mut app, &[Key::Char('G')]);
    insta::assert_snapshot!("help_end_80x24", screen(&mut app, 80, 24));
    insta::assert_snapshot!("help_40x60", screen(&mut app, 40, 60));
    press(&mut app, &[Key::Esc]);
    assert!(screen(&mut app, 80, 24).contains("phases"));
}

#[test]
fn step_detail_is_drawn() {
    let mut app = app_of(&run().bytes());
    screen(&mut app, 80, 24);
    // The spike of step 70.
    press(&mut app, &[Key::Left; 31]);
    insta::assert_snapshot!("selected_80x24", screen(&mut app, 80, 24));
    press(&mut app, &[Key::Enter]);
    insta::assert_snapshot!("detail_80x24", screen(&mut app, 80, 24));
    insta::assert_snapshot!("detail_120x40", screen(&mut app, 120, 40));
    insta::assert_snapshot!("detail_60x15", screen(&mut app, 60, 15));
}

#[test]
fn zoomed_out_columns_are_drawn() {
    let spikes = vec![(1500, "forward", 90 * MS), (2100, "data wait", 2 * SECOND)];
    let run = TrainingRun { steps: 3000, epoch_steps: 500, spikes, ends: false, ..TrainingRun::default() };
    let mut app = app_of(&run.bytes());
    screen(&mut app, 80, 24);
    press(&mut app, &[Key::Char('-'); 9]);
    let zoomed_out = screen(&mut app, 80, 24);
    insta::assert_snapshot!("zoomed_out_80x24", zoomed_out);
    assert!(zoomed_out.contains("2.04 s"), "no spike hides");
}

#[test]
fn step_axes_and_measures_are_drawn() {
    let mut app = app_of(&run().bytes());
    press(&mut app, &[Key::Char('2')]);
    screen(&mut app, 80, 24);
    press(&mut app, &[Key::Char('y')]);
    insta::assert_snapshot!("steps_log_80x24", screen(&mut app, 80, 24));
    press(&mut app, &[Key::Char('y'), Key::Char('x')]);
    insta::assert_snapshot!("steps_by_time_80x24", screen(&mut app, 80, 24));
    press(&mut app, &[Key::Char('x'), Key::Char('u')]);
    insta::assert_snapshot!("steps_per_graph_80x24", screen(&mut app, 80, 24));
    press(&mut app, &[Key::Char('u'), Key::Char('u'), Key::Char('u'), Key::Char('w')]);
    assert!(screen(&mut app, 80, 24).contains("2 steps a column"));
    press(&mut app, &[Key::Char('w'), Key::Left, Key::PageUp, Key::Char('v'), Key::Right, Key::Right, Key::Right]);
    insta::assert_snapshot!("steps_range_80x24", screen(&mut app, 80, 24));
    insta::assert_snapshot!("steps_range_60x15", screen(&mut app, 60, 15));
}

#[test]
fn percentile_selects_its_step() {
    let mut app = app_of(&run().bytes());
    press(&mut app, &[Key::Char('3'), Key::Right, Key::Right]);
    insta::assert_snapshot!("latency_p99_80x24", screen(&mut app, 80, 24));
    assert_eq!(press(&mut app, &[Key::Enter]), None);
    insta::assert_snapshot!("latency_step_80x24", screen(&mut app, 80, 24));
    assert!(screen(&mut app, 80, 24).contains("step 70  epoch 2"), "the second longest of 100");
    press(&mut app, &[Key::Esc, Key::Down, Key::Right, Key::Right, Key::Right, Key::Enter]);
    assert!(screen(&mut app, 80, 24).contains("step 41  epoch 1"), "the longest data wait");
    press(&mut app, &[Key::Char('v'), Key::PageDown, Key::Char('3')]);
    insta::assert_snapshot!("latency_selected_80x24", screen(&mut app, 80, 24));
    insta::assert_snapshot!("latency_selected_60x15", screen(&mut app, 60, 15));
}

#[test]
fn slowest_steps_and_a_range_are_reached_by_key() {
    let mut app = app_of(&run().bytes());
    press(&mut app, &[Key::Char('2'), Key::Char('s')]);
    assert_eq!(app.notice(), Some("the slowest step"));
    let slowest = app.window().cursor();
    assert!(screen(&mut app, 80, 24).contains("selected: 310 ms"), "{}", screen(&mut app, 80, 24));
    press(&mut app, &[Key::Char('s')]);
    assert_eq!(app.notice(), Some("number 2 of the slowest steps"));
    assert!(app.window().cursor().is_some() && app.window().cursor() != slowest);
    press(&mut app, &[Key::Esc, Key::Char('v')]);
    press(&mut app, &[Key::Left; 39]);
    press(&mut app, &[Key::Char('z')]);
    insta::assert_snapshot!("steps_range_zoomed_80x24", screen(&mut app, 80, 24));
    insta::assert_snapshot!("steps_range_zoomed_120x40", screen(&mut app, 120, 40));
    insta::assert_snapshot!("steps_range_zoomed_60x15", screen(&mut app, 60, 15));
    press(&mut app, &[Key::Left]);
    assert!(!screen(&mut app, 80, 24).contains("steps 61 to 100"), "another range has another verdict");
}

#[test]
fn comparison_is_drawn() {
    let mut app = app_of(&TrainingRun { steps: 400, ..run() }.bytes());
    let phases = vec![("data wait", 4 * MS), ("forward", 7 * MS), ("backward", 15 * MS), ("all-reduce", 2 * MS)];
    let other = TrainingRun { name: "pna-fused", steps: 300, phases, ..TrainingRun::default() };
    each_item(&other.bytes(), |item| app.other_mut().run.apply(item));
    let status = Status { title: "b.gnntop".to_owned(), ..Status::default() };
    update(&mut app, Action::OtherPolled { status, changed: true });
    press(&mut app, &[Key::Char('9')]);
    insta::assert_snapshot!("compare_80x24", screen(&mut app, 80, 24));
    insta::assert_snapshot!("compare_120x40", screen(&mut app, 120, 40));
    insta::assert_snapshot!("compare_60x15", screen(&mut app, 60, 15));
    press(&mut app, &[Key::Down, Key::Down, Key::Down]);
    insta::assert_snapshot!("compare_backward_80x24", screen(&mut app, 80, 24));
}

#[test]
fn epochs_of_one_step_are_drawn() {
    let run = TrainingRun { steps: 300, epoch_steps: 1, partial_graphs: 256, ..run() };
    let mut app = app_of(&run.bytes());
    press(&mut app, &[Key::Char('2')]);
    insta::assert_snapshot!("steps_epochs_80x24", screen(&mut app, 80, 24));
}

#[test]
fn percentiles_are_drawn() {
    let mut app = app_of(&TrainingRun { steps: 2000, ..run() }.bytes());
    press(&mut app, &[Key::Char('p')]);
    insta::assert_snapshot!("percentiles_80x24", screen(&mut app, 80, 24));
    insta::assert_snapshot!("percentiles_60x15", screen(&mut app, 60, 15));
    press(&mut app, &[Key::Char('p')]);
    assert!(screen(&mut app, 80, 24).contains("1 step a column"));
}

/// A replay at twice the speed.
fn transport() -> Transport {
    Transport {
        position_ns: 12 * SECOND,
        total_ns: Some(90 * SECOND),
        speed: 2.0,
        paused: false,
        looping: false,
        repeated: (None, None),
        seeking: false,
        missed_step: None,
    }
}

#[test]
fn replay_is_drawn() {
    let transport = transport();
    let status = Status { transport: Some(transport), live: false, ..live() };
    let mut app = app_in(&run().bytes(), status.clone());
    insta::assert_snapshot!("replay_80x24", screen(&mut app, 80, 24));
    let ascii = text_of(&picture(&mut app, 80, 24, Theme::new(ColorDepth::None, true)));
    let keys = "q quit ? help Space pause End end < > speed : go to h l step Enter more v range";
    assert!(ascii.lines().last().is_some_and(|footer| footer.contains(keys)), "{ascii}");
    press(&mut app, &[Key::Char(':')]);
    type_text(&mut app, "1:30");
    insta::assert_snapshot!("replay_go_to_80x24", screen(&mut app, 80, 24));
    assert_eq!(
        press(&mut app, &[Key::Enter]),
        Some(Effect::Control(gnntop_analysis::source::Control::Seek(90 * SECOND)))
    );
    let paused = Status { transport: Some(Transport { paused: true, ..transport }), ..status };
    update(&mut app, Action::Polled { status: paused, changed: false });
    assert!(screen(&mut app, 80, 24).contains("❚❚ replay 2x at 00:12 of 01:30"));
}

/// The last row of a screen of 80 columns.
fn footer(app: &mut App) -> String {
    screen(app, 80, 24).lines().nth(23).unwrap().to_owned()
}

#[test]
fn the_footer_of_eighty_columns_has_the_keys_that_matter_in_the_view() {
    let replay = Status { transport: Some(transport()), live: false, ..live() };
    let run = run().bytes();
    for status in [live(), replay.clone()] {
        let mut app = app_in(&run, status);
        for view in ['1', '2', '4', '5', '6'] {
            press(&mut app, &[Key::Char(view)]);
            for words in ["←→ step", "Enter more", "v range"] {
                assert!(footer(&mut app).contains(words), "{view}: {}", footer(&mut app));
            }
        }
        press(&mut app, &[Key::Char('3'), Key::Right]);
        for words in ["←→ percentile", "Enter show step", "r range"] {
            assert!(footer(&mut app).contains(words), "{}", footer(&mut app));
        }
        press(&mut app, &[Key::Char('8'), Key::Down]);
        for words in ["←→ place", "Enter show step"] {
            assert!(footer(&mut app).contains(words), "{}", footer(&mut app));
        }
    }
    let mut app = app_in(&run, replay);
    press(&mut app, &[Key::Char('2')]);
    for words in ["Space pause", "End end", "< > speed", ": go to", "v range"] {
        assert!(footer(&mut app).contains(words), "{}", footer(&mut app));
    }
}

#[test]
fn screen_without_data_is_drawn() {
    let mut app = App::new(false);
    insta::assert_snapshot!("waiting_80x24", screen(&mut app, 80, 24));
    let run = TrainingRun { steps: 0, ends: false, ..TrainingRun::default() };
    let mut app = app_of(&run.bytes());
    insta::assert_snapshot!("no_steps_80x24", screen(&mut app, 80, 24));
}

#[test]
fn hardware_only_screen_is_drawn() {
    let mut stream = StreamBuilder::new("python train.py");
    let track = stream.track(TrackRole::Sensors, "sensors");
    let rss = stream.signal("process.rss", Unit::Bytes, SignalKind::Gauge);
    let busy = stream.signal("machine.cpu.busy", Unit::Nanoseconds, SignalKind::Counter);
    for second in 0..20i64 {
        let t_ns = START_NS + second as u64 * SECOND;
        stream.sample(track, rss, t_ns, (100 + second * 7) << 20);
        stream.sample(track, busy, t_ns, second * second * 40_000_000);
    }
    let hint = "hardware only: this program publishes no steps; link gnntop-probe into it to see them";
    let mut app = app_in(&stream.bytes(), Status { hint: Some(hint.to_owned()), ..live() });
    insta::assert_snapshot!("hardware_only_80x24", screen(&mut app, 80, 24));
    press(&mut app, &[Key::BackTab, Key::Char('e')]);
    insta::assert_snapshot!("hardware_enlarged_80x24", screen(&mut app, 80, 24));
}

#[test]
fn two_gpus_are_drawn() {
    let mut stream = StreamBuilder::new("pna");
    let track = stream.track(TrackRole::Sensors, "sensors");
    for gpu in 0..2 {
        let mut sample = |quantity: &str, unit, value| {
            let signal = stream.signal(&format!("gpu.{gpu}.{quantity}"), unit, SignalKind::Gauge);
            stream.sample(track, signal, START_NS + SECOND, value);
        };
        sample("util", Unit::MilliPercent, 87_000);
        sample("memory.used", Unit::Bytes, 41 << 30);
        if gpu == 0 {
            sample("power", Unit::Milliwatts, 312_400);
            sample("temperature", Unit::MilliCelsius, 62_000);
        }
    }
    let mut app = app_of(&stream.bytes());
    insta::assert_snapshot!("two_gpus_80x24", screen(&mut app, 80, 24));
}

#[test]
fn hung_phase_is_drawn() {
    let mut bytes = run().bytes();
    let mut app = app_of(&bytes);
    let last_ns = app.run.store().now_ns();
    let mut stream = StreamBuilder::new("pna");
    let main = stream.track(TrackRole::Training, "main");
    // The names that the run itself uses.
    for name in ["data wait", "forward"] {
        stream.name(gnntop_wire::NameKind::Phase, name);
    }
    stream.open(main, 101, "forward", last_ns + 5 * MS, last_ns + 3205 * MS);
    bytes.extend(stream.bytes());
    app = app_of(&bytes);
    insta::assert_snapshot!("hung_80x24", screen(&mut app, 80, 24));
    assert!(screen(&mut app, 80, 24).contains("forward open for 3.20 s"));
    insta::assert_snapshot!("hung_10x3", screen(&mut app, 10, 3));
}

#[test]
fn run_that_stands_still_between_steps_is_drawn_with_its_place() {
    let mut stream = StreamBuilder::new("hang.py");
    let main = stream.track(TrackRole::Training, "main");
    let stacks = stream.track(TrackRole::Stacks, "stacks of train");
    for step in 0..200 {
        let start_ns = START_NS + step * 40 * MS;
        stream.phase(main, step + 1, "forward", start_ns, start_ns + 12 * MS);
        stream.phase(main, step + 1, "backward", start_ns + 12 * MS, start_ns + 39 * MS);
        stream.step(main, step + 1, start_ns, start_ns + 39 * MS);
    }
    let last_ns = START_NS + 199 * 40 * MS + 39 * MS;
    let frames = ["futex (<system call>)", "wait_for_lock (hang.py:6)", "main (hang.py:20)"];
    stream.stack(stacks, last_ns + 1000 * MS, gnntop_wire::StackThread::Training, &frames);
    stream.anchor(last_ns + 12_000 * MS);
    let mut app = app_of(&stream.bytes());
    let shown = screen(&mut app, 80, 24);
    assert!(shown.contains(" no step for 12 s, in wait_for_lock (hang.py:6)") && !shown.contains("live"), "{shown}");
    assert!(shown.contains("0 steps/s for 12 s"), "{shown}");
    insta::assert_snapshot!("still_80x24", shown);
    insta::assert_snapshot!("still_120x40", screen(&mut app, 120, 40));
    insta::assert_snapshot!("still_20x6", screen(&mut app, 20, 6));
    press(&mut app, &[Key::Char('8')]);
    insta::assert_snapshot!("still_findings_80x24", screen(&mut app, 80, 24));
}

#[test]
fn missing_data_is_highlighted() {
    let mut stream = StreamBuilder::new("pna");
    let main = stream.track(TrackRole::Training, "main");
    for step in 0..40 {
        let start_ns = START_NS + step * 20 * MS;
        stream.phase(main, step + 1, "forward", start_ns, start_ns + 18 * MS);
        stream.step(main, step + 1, start_ns, start_ns + 18 * MS);
    }
    stream.dropped(main, 1234);
    stream.miss(main, 7);
    stream.step(main, 41, START_NS + 800 * MS, START_NS + 820 * MS);
    let mut status = live();
    status.lost_segments = 2;
    let mut app = app_in(&stream.bytes(), status);
    insta::assert_snapshot!("drops_80x24", screen(&mut app, 80, 24));
    insta::assert_snapshot!("drops_120x40", screen(&mut app, 120, 40));
}

#[test]
fn silent_and_ended_runs_are_drawn() {
    let mut app = app_of(&run().bytes());
    update(&mut app, Action::Tick { now: Duration::from_secs(17) });
    assert!(screen(&mut app, 80, 24).contains("silent for 7s"));
    let ended = SourceState::Ended("ended unexpectedly: killed?".to_owned());
    update(&mut app, Action::Polled { status: Status { state: ended, live: false, ..live() }, changed: true });
    judge(&mut app);
    insta::assert_snapshot!("ended_80x24", screen(&mut app, 80, 24));
    assert!(screen(&mut app, 40, 10).contains("waiting for data (16 %)"), "{}", screen(&mut app, 40, 10));
}

#[test]
fn cause_of_death_is_above_every_view() {
    let mut app = app_of(&run().bytes());
    let text = "The kernel killed train.py because its control group, limited to 4.00 GiB, ran out of memory. It was in forward \
                of step 812.";
    app.run.apply(Item::Definitions(vec![exit_record::fact(text, "out-of-memory")]));
    for keys in [&[][..], &[Key::Char('2')], &[Key::Char('8')]] {
        press(&mut app, keys);
        let shown = screen(&mut app, 80, 24);
        let lines: Vec<&str> = shown.lines().skip(3).map(str::trim).collect();
        assert_eq!(lines[..2].join(" "), text, "{shown}");
    }
    assert!(!screen(&mut app, 20, 6).is_empty(), "also where there is little room");
    press(&mut app, &[Key::Char('?')]);
    assert!(!screen(&mut app, 80, 24).contains("The kernel killed"), "the keys are not about it");
}

#[test]
fn names_of_any_script_are_drawn() {
    let long = "x".repeat(200);
    let mut stream = StreamBuilder::new(
        "前向传播-グラフニューラルネットワーク-שלום-🚀🚀🚀-e\u{301}e\u{301}-training-run-with-a-very-long-name",
    );
    let main = stream.track(TrackRole::Training, "main");
    let names = [
        "forward",
        "前向传播の時間とメモリ使用量",
        "התקדמות",
        "👩‍💻 decode 🚀🚀🚀🚀",
        long.as_str(),
        "e\u{301}\u{301}\u{301}",
    ];
    for step in 0..30 {
        let start_ns = START_NS + step * 60 * MS;
        for (i, name) in (0..).zip(names) {
            let from = start_ns + i * 10 * MS;
            stream.phase(main, step + 1, name, from, from + 9 * MS);
            stream.counter(main, &format!("queue {name}"), from, i as f64);
        }
        stream.step(main, step + 1, start_ns, start_ns + 60 * MS);
    }
    let mut app = app_of(&stream.bytes());
    insta::assert_snapshot!("names_80x24", screen(&mut app, 80, 24));
    press(&mut app, &[Key::Tab, Key::Char('e')]);
    insta::assert_snapshot!("names_enlarged_80x24", screen(&mut app, 80, 24));
    press(&mut app, &[Key::Enter]);
    insta::assert_snapshot!("names_detail_120x40", screen(&mut app, 120, 40));
}

#[test]
fn program_output_is_drawn() {
    let mut app = app_of(&run().bytes());
    assert_eq!(press(&mut app, &[Key::Char('o')]), Some(Effect::ReadLog));
    let lines = (1..=100).map(|i| format!("epoch 1 step {i} loss 0.{i}")).collect();
    update(&mut app, Action::LogRead(Ok(lines)));
    insta::assert_snapshot!("log_80x24", screen(&mut app, 80, 24));
    press(&mut app, &[Key::PageUp]);
    assert!(screen(&mut app, 80, 24).contains("18 lines up from the end"));
    update(&mut app, Action::LogRead(Err("/tmp/log: no such file".to_owned())));
    assert!(screen(&mut app, 80, 24).contains("no such file"));
}

#[test]
fn phases_on_the_screen_differ_without_colour() {
    let mut app = app_of(&run().bytes());
    let shown = screen(&mut app, 80, 24);
    for (fill, letter, name) in [("╱╱", 'W', "data wait"), ("░░", 'F', "forward"), ("██", 'B', "backward")]
    {
        assert!(shown.lines().any(|line| line.starts_with(&format!(" {fill} {letter} {name}"))), "{name}:\n{shown}");
    }
    // In bars and table, cells of the same fill have the same colour and no other fill has it.
    let buffer = picture(&mut app, 80, 24, colors());
    let mut seen: Vec<(String, ratatui::style::Color)> = Vec::new();
    let bars_and_table = &buffer.content()[..80 * 19];
    for cell in bars_and_table.iter().filter(|cell| ["╱", "░", "█", "▚"].contains(&cell.symbol())) {
        seen.push((cell.symbol().to_owned(), cell.bg));
    }
    seen.sort_by_key(|seen| format!("{seen:?}"));
    seen.dedup();
    assert_eq!(seen.len(), 4, "{seen:?}");
}

fn random_stream(numbers: &mut RandomNumbers) -> Vec<u8> {
    let mut stream = StreamBuilder::new(["pna", "", "前向", "\u{301}"][numbers.next(4) as usize]);
    let main = stream.track(TrackRole::Training, "main");
    let signal = stream.signal("gpu.0.util", Unit::MilliPercent, SignalKind::Gauge);
    let long = "长".repeat(200);
    let names =
        ["forward", "backward", "\u{200b}\u{202e}\u{301}", "מה שלום", "前向传播", "", "gap", long.as_str(), "👩‍💻"];
    let mut t_ns = START_NS;
    for step in 0..numbers.next(300) {
        for _ in 0..numbers.next(5) {
            let name = names[numbers.next(9) as usize];
            let (from, exponent) = (t_ns, numbers.next(12) as u32);
            t_ns = t_ns.saturating_add(numbers.next(10u64.pow(exponent)));
            stream.phase(main, step, name, from, t_ns);
        }
        // Steps that jump back and forth, and some without any length.
        let from = t_ns.saturating_sub(numbers.next(SECOND));
        stream.step(main, numbers.next(u64::MAX), from, t_ns);
        match numbers.next(9) {
            6 => stream.mark(main, names[numbers.next(9) as usize], numbers.next(t_ns + 1)),
            7 => stream.span(main, step, names[numbers.next(9) as usize], numbers.next(t_ns + 1), t_ns),
            8 => {
                let batch =
                    BatchShape { graphs: Some(numbers.next(3)), edges: Some(u64::MAX), ..BatchShape::default() };
                let (step, loss) = (StepId(step), Some(f64::from_bits(numbers.next(u64::MAX))));
                let epoch = numbers.next(u64::MAX);
                stream.event(
                    main,
                    Event::Step(Step { step, epoch, start_ns: t_ns, end_ns: t_ns, batch, loss, ..Step::default() }),
                );
            }
            0 => stream.open(main, step, names[numbers.next(7) as usize], numbers.next(t_ns), t_ns),
            1 => stream.counter(main, "queue", t_ns, f64::from_bits(numbers.next(u64::MAX))),
            2 => stream.sample(main, signal, numbers.next(u64::MAX), numbers.next(u64::MAX) as i64),
            3 => stream.absent(main, signal, t_ns, "gone: 前向"),
            4 => stream.dropped(main, step),
            _ => t_ns = numbers.next(2).wrapping_sub(1).max(t_ns).min(u64::MAX / 2),
        }
    }
    stream.bytes()
}

/// Any key that does something somewhere, and some that do nothing.
fn random_key(numbers: &mut RandomNumbers) -> Key {
    let bound = BINDINGS.iter().flat_map(|binding| binding.keys).filter(|key| **key != Key::Ctrl('z'));
    let keys: Vec<Key> = bound.copied().chain([Key::Char('é'), Key::Char('0')]).collect();
    keys[numbers.next(keys.len() as u64) as usize]
}

#[test]
fn no_stream_size_or_key_makes_drawing_panic() {
    let mut numbers = RandomNumbers(7);
    for round in 0..120 {
        let status = match round % 3 {
            0 => live(),
            1 => Status { transport: Some(Transport { position_ns: u64::MAX, ..Transport::default() }), ..live() },
            _ => Status { state: SourceState::Ended("x".repeat(300)), hint: Some("h".repeat(300)), ..live() },
        };
        let mut app = app_in(&random_stream(&mut numbers), status);
        if round % 4 == 0 {
            each_item(&random_stream(&mut numbers), |item| app.other_mut().run.apply(item));
        }
        let ascii = round % 2 == 0;
        for _ in 0..25 {
            let depth =
                [ColorDepth::True, ColorDepth::Indexed, ColorDepth::Ansi, ColorDepth::None][numbers.next(4) as usize];
            let (width, height) = (numbers.next(130) as u16, numbers.next(45) as u16);
            picture(&mut app, width, height, Theme::new(depth, ascii));
            let key = random_key(&mut numbers);
            press(&mut app, &[key]);
            // A replay that is moved begins anew in the same view.
            if numbers.next(40) == 0 {
                app.run = Run::default();
                each_item(&random_stream(&mut numbers), |item| app.run.apply(item));
                update(&mut app, Action::Polled { status: live(), changed: true });
                if numbers.next(2) == 0 {
                    continue;
                }
                judge(&mut app);
            }
        }
        picture(&mut app, 300, 100, colors());
    }
}

#[test]
fn run_longer_than_the_store_is_drawn() {
    let spikes = vec![(1500, "forward", 90 * MS), (17_001, "data wait", 2 * SECOND)];
    let run = TrainingRun {
        steps: 20_000,
        epoch_steps: 500,
        spikes,
        has_hardware: false,
        ends: false,
        ..TrainingRun::default()
    };
    let mut app = App::new(false);
    app.run = Run::with_limits(Limits { step_rows: 1000, step_groups: 512, ..Limits::default() });
    each_item(&run.bytes(), |item| app.run.apply(item));
    update(&mut app, Action::Polled { status: live(), changed: true });
    judge(&mut app);
    screen(&mut app, 80, 24);
    press(&mut app, &[Key::Char('2'), Key::Char('w')]);
    let whole = screen(&mut app, 80, 24);
    insta::assert_snapshot!("steps_reduced_80x24", whole);
    assert!(whole.contains("2.04 s"), "no spike hides\n{whole}");
    press(&mut app, &[Key::Char('g')]);
    for _ in 0..20 {
        press(&mut app, &[Key::Char('+')]);
    }
    let oldest = screen(&mut app, 80, 24);
    assert!(oldest.contains("steps a column"), "the oldest steps are known only together\n{oldest}");
    press(&mut app, &[Key::Char('3'), Key::Right, Key::Right, Key::Right, Key::Right, Key::Right, Key::Enter]);
    assert!(screen(&mut app, 80, 24).contains("step 17,001 selected: 2.04 s"));
}

/// Every view at sizes from a corner of a screen to a wall of them: text stays on its line, and nothing is drawn over the
/// footer or the header.
#[test]
fn views_fit_any_size() {
    let mut app = app_of(&run().bytes());
    for digit in '1'..='9' {
        press(&mut app, &[Key::Char(digit)]);
        for (width, height) in [(20, 6), (60, 15), (80, 24), (120, 40), (300, 100)] {
            let text = screen(&mut app, width, height);
            let lines: Vec<&str> = text.lines().collect();
            assert_eq!(lines.len(), usize::from(height));
            assert!(lines.iter().all(|line| line.width() <= usize::from(width)), "{text}");
            assert!(lines[0].contains("live"), "{text}");
            if height >= 15 {
                let tab = format!("▌{digit} ");
                assert!(lines[2].contains(&tab) && lines[usize::from(height) - 1].contains("q quit"), "{text}");
            }
        }
    }
}

#[test]
fn every_small_size_is_drawn() {
    let mut app = app_of(&run().bytes());
    let others = [None, Some(Key::Enter), Some(Key::Char('o')), Some(Key::Char('?'))];
    for view in others.into_iter().chain(('1'..='9').map(|digit| Some(Key::Char(digit)))) {
        if let Some(key) = view {
            press(&mut app, &[key]);
        }
        for width in 0..64 {
            for height in 0..26 {
                picture(&mut app, width, height, colors());
            }
        }
    }
}

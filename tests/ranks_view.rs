//! The view of the ranks, and the keys that go from rank to rank.

use crate::pictures::{app_of, picture, press, screen, text_of};
use gnntop::app::keys::Key;
use gnntop::app::{Action, Gesture, Target, View, update};
use gnntop::ui::theme::{ColorDepth, Theme};
use gnntop_fixtures::{MS, ParallelRun, SECOND, START_NS, StreamBuilder, TrainingRun, each_item};
use gnntop_wire::{Place, SessionInfo, TrackRole};

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (60, 15)];

/// Four ranks on two cores; rank 2 is slow, rank 3 on another machine whose clock was measured.
fn uneven() -> ParallelRun {
    let slow = vec![(2, 0..1000, "backward", 6 * MS), (1, 58..59, "data wait", 30 * MS)];
    let elsewhere = vec![(3, 5 * SECOND as i64, Some(MS / 2))];
    ParallelRun { ranks: 4, slow, elsewhere, ends: false, ..ParallelRun::default() }
}

#[test]
fn slowest_rank_is_shown_at_every_size() {
    let mut app = app_of(&uneven().bytes());
    press(&mut app, &[Key::Char('R')]);
    assert_eq!((app.view(), app.main_view()), (View::Ranks, View::Ranks));
    for (width, height) in SIZES {
        let text = screen(&mut app, width, height);
        assert!(text.contains("2 ◀"), "{text}");
        insta::assert_snapshot!(format!("ranks_{width}x{height}"), text);
    }
    let plain = text_of(&picture(&mut app, 80, 24, Theme::new(ColorDepth::None, true)));
    assert!(plain.is_ascii(), "{plain}");
    insta::assert_snapshot!("ranks_ascii_80x24", plain);
}

#[test]
fn keys_and_mouse_select_ranks_in_every_view() {
    let mut app = app_of(&uneven().bytes());
    // Only the machine with a rank 0 is in the picture at first.
    assert!(screen(&mut app, 120, 40).contains("rank 0/4, pid 5000 on bench"));
    press(&mut app, &[Key::Left, Key::Left, Key::Char('}'), Key::Char('}')]);
    assert_eq!(app.run.rank(), Some(2));
    let step = app.run.store().steps().known_row(app.window().cursor().unwrap()).unwrap();
    assert_eq!(step.step().0, 59, "the same step on the other rank");
    assert!(screen(&mut app, 120, 40).contains("rank 2/4, pid 5002 on bench"));
    press(&mut app, &[Key::Char('{')]);
    assert_eq!(app.run.rank(), Some(1));
    press(&mut app, &[Key::Char('R'), Key::Down, Key::Down, Key::Down]);
    assert_eq!(app.run.rank(), Some(3), "there is no further one");
    press(&mut app, &[Key::Char('g')]);
    assert_eq!(app.run.rank(), Some(3), "g goes to the oldest time, as in the tracks");
    update(&mut app, Action::Mouse { gesture: Gesture::Press, on: Target::Line(1) });
    assert_eq!(app.run.rank(), Some(1));
    press(&mut app, &[Key::Char('+'), Key::Left, Key::Enter]);
    assert_eq!(app.view(), View::Step);
    press(&mut app, &[Key::Esc, Key::Esc, Key::Esc, Key::Esc]);
    assert_eq!((app.view(), app.run.rank()), (View::Overview, Some(1)));
}

#[test]
fn single_session_has_no_ranks_view() {
    let mut app = app_of(&TrainingRun::default().bytes());
    press(&mut app, &[Key::Char('R')]);
    assert_eq!(app.view(), View::Overview);
    let text = screen(&mut app, 120, 40);
    assert!(!text.contains("ranks") && !text.contains("rank 0"), "{text}");
    press(&mut app, &[Key::Char('?')]);
    assert!(!screen(&mut app, 120, 100).contains("who waits for whom"));
}

#[test]
fn sixty_four_ranks_scroll() {
    let parallel =
        ParallelRun { ranks: 64, steps: 12, slow: vec![(40, 0..99, "forward", 3 * MS)], ..ParallelRun::default() };
    let mut app = app_of(&parallel.bytes());
    press(&mut app, &[Key::Char('R')]);
    let text = screen(&mut app, 80, 24);
    assert!(text.contains("64 ranks on 2 cores: oversubscribed") && text.contains("rank 40 is the slowest"), "{text}");
    assert!(!text.contains("40 ◀"), "it is further down: {text}");
    press(&mut app, &[Key::Down; 40]);
    let text = screen(&mut app, 80, 24);
    assert!(text.contains("▌40 ◀"), "{text}");
    insta::assert_snapshot!("ranks_64_80x24", text);
}

#[test]
fn ranks_that_are_missing_gone_or_hang_are_shown() {
    let parallel = ParallelRun { ranks: 4, steps: 120, dies: Some((1, 20)), ends: false, ..ParallelRun::default() };
    let mut app = app_of(&[parallel.session(0), parallel.session(1), parallel.session(2)].concat());
    press(&mut app, &[Key::Char('R')]);
    let text = screen(&mut app, 120, 40);
    assert!(text.contains("1 silent 4.") && text.contains("3 of 4 ranks have published"), "{text}");
    app.run.select_session(parallel.info(1).session_id);
    app.run.current_mut().note_publisher(false);
    let text = screen(&mut app, 80, 24);
    assert!(text.contains("1 gone: kill") && text.contains("step 120: all ranks took the same time"), "{text}");
    // The one that is looked at waits in an all-reduce that does not end.
    let mut hung = StreamBuilder::from_info(&parallel.info(3));
    let main = hung.track(TrackRole::Training, "main");
    hung.phase(main, 1, "forward", START_NS, START_NS + SECOND);
    hung.open(main, 1, "all-reduce", START_NS + SECOND, START_NS + 5 * SECOND);
    each_item(&hung.bytes(), |item| app.run.apply(item));
    press(&mut app, &[Key::Char('G')]);
    assert!(screen(&mut app, 120, 40).contains("all-reduce is open"), "{}", screen(&mut app, 120, 40));
}

#[test]
fn uncompared_clock_is_reported() {
    let parallel = ParallelRun { elsewhere: vec![(1, -2 * SECOND as i64, None)], ..ParallelRun::default() };
    let mut app = app_of(&parallel.bytes());
    press(&mut app, &[Key::Char('R')]);
    let text = screen(&mut app, 120, 40);
    assert!(text.contains("clocks: rank 1 (node1) +2.00 s by the wall clocks, error unknown"), "{text}");
}

#[test]
fn comparison_with_one_rank_gives_efficiency() {
    let mut app = app_of(&uneven().bytes());
    let alone = ParallelRun { ranks: 1, run: "alone", ..ParallelRun::default() };
    each_item(&alone.session(0), |item| app.other_mut().run.apply(item));
    press(&mut app, &[Key::Char('R')]);
    let text = screen(&mut app, 120, 40);
    assert!(text.contains("efficiency 7") && text.contains("% of one rank"), "{text}");
}

#[test]
fn hostile_names_and_numbers_stay_within_the_view() {
    let long = "rank\u{202e}\u{1F600}e\u{301}".repeat(60);
    let mut bytes = Vec::new();
    for rank in [0, 7, u32::MAX - 1, u32::MAX] {
        let place = Place {
            run: long.clone(),
            rank,
            ranks: u32::MAX,
            stages: u32::MAX,
            threads: u32::MAX,
            host_ranks: u32::MAX,
            host_cores: 1,
            engine: gnntop_wire::Engine::Other(long.clone()),
            device: long.clone(),
            ..Place::default()
        };
        let info = SessionInfo {
            session_id: u128::from(rank) + 1,
            host: long.clone(),
            boot_id: rank.to_string(),
            place: Some(Box::new(place)),
            ..ParallelRun::default().info(0)
        };
        let mut stream = StreamBuilder::from_info(&info);
        let main = stream.track(TrackRole::Training, &long);
        for (step, start_ns) in [(1, START_NS), (5, u64::MAX - 10), (u64::MAX, 0)] {
            stream.phase(main, step, &long, start_ns, start_ns.saturating_add(SECOND));
            stream.phase(main, step, "all-reduce", 0, u64::MAX);
            stream.step(main, step, start_ns, start_ns.saturating_add(SECOND));
        }
        stream.open(main, 9, &long, 0, u64::MAX);
        bytes.extend(stream.bytes());
    }
    let mut app = app_of(&bytes);
    press(&mut app, &[Key::Char('R')]);
    for (width, height) in [(80, 24), (120, 40), (60, 15), (30, 6), (20, 5), (1, 1), (300, 90)] {
        for key in [Key::Down, Key::Left, Key::Char('w'), Key::Char('+'), Key::Char('-'), Key::Char('{')] {
            press(&mut app, &[key]);
            for theme in [Theme::new(ColorDepth::True, false), Theme::new(ColorDepth::None, true)] {
                let text = text_of(&picture(&mut app, width, height, theme));
                assert!(!text.contains('\u{202e}') || !text.is_empty());
            }
        }
    }
}

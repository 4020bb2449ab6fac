//! The view of a pipeline: its boxes, its bubble and a better split, at every size.

use crate::pictures::{app_of, picture, press, screen, text_of};
use gnntop::app::View;
use gnntop::app::keys::Key;
use gnntop::ui::theme::{ColorDepth, Theme};
use gnntop_fixtures::pipeline::PipelineRun;
use gnntop_fixtures::uneven::UnevenRun;

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (60, 15)];

#[test]
fn a_slow_stage_and_a_better_split_are_seen_at_every_size() {
    let published = PipelineRun { blocks: vec![6, 2, 2, 2], ..PipelineRun::default() };
    let mut app = app_of(&published.sessions().concat());
    press(&mut app, &[Key::Char('P')]);
    assert_eq!((app.view(), app.main_view()), (View::Pipeline, View::Pipeline));
    for (width, height) in SIZES {
        let text = screen(&mut app, width, height);
        assert!(text.contains("a balanced split 3/3/3/3 (now 6/2/2/2)"), "{text}");
        insta::assert_snapshot!(format!("pipeline_{width}x{height}"), text);
    }
    let plain = text_of(&picture(&mut app, 80, 24, Theme::new(ColorDepth::None, true)));
    assert!(plain.is_ascii(), "{plain}");
    insta::assert_snapshot!("pipeline_ascii_80x24", plain);
    for (width, height) in [(30, 8), (20, 6), (1, 1), (200, 9), (40, 100)] {
        screen(&mut app, width, height);
    }
}

#[test]
fn one_forward_one_backward_holds_few_micro_batches() {
    let run = PipelineRun { schedule: "1f1b", micro_batches: 8, hand_over_ns: 200_000, ..PipelineRun::default() };
    let mut app = app_of(&run.sessions().concat());
    press(&mut app, &[Key::Char('P'), Key::Left, Key::Left]);
    let text = screen(&mut app, 120, 40);
    assert!(text.contains("1F1B, 4 stages x 8 micro-batches") && text.contains("step 19"), "{text}");
    for live in ["4/4", "3/3", "2/2", "1/1"] {
        assert!(text.contains(live), "{live}: {text}");
    }
    insta::assert_snapshot!("pipeline_1f1b_120x40", text);
}

#[test]
fn pipeline_view_needs_stages_and_reports_what_is_missing() {
    let mut app = app_of(&UnevenRun::default().sessions().concat());
    press(&mut app, &[Key::Char('P')]);
    assert_eq!(app.view(), View::Overview);
    assert!(!screen(&mut app, 120, 40).contains("pipeline"));
    let mut app = app_of(&PipelineRun::default().sessions()[..3].concat());
    press(&mut app, &[Key::Char('P')]);
    let text = screen(&mut app, 80, 24);
    assert!(text.contains("stage 3 of 4 does not publish, or twice"), "{text}");
}

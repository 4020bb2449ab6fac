//! `gnntop top`: the table as a screen, in a terminal, as text and as JSON.

use std::path::PathBuf;
use std::time::Duration;

use crate::pictures::{picture, press, screen, text_of};
use crate::sessions::{Published, Sessions, spawn};
use crate::terminal::Terminal;
use gnntop::app::keys::Key;
use gnntop::app::{Action, App, Effect, View, update};
use gnntop::runs_table::Order;
use gnntop::ui::theme::{ColorDepth, Theme};
use gnntop_analysis::many_runs::{Aged, RunFigures, RunRow, RunState, WorstFinding};
use gnntop_fixtures::{MS, TrainingRun, each_item};
use serde_json::Value;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn run(name: &str, state: RunState, rate: Option<f64>, figures: Option<RunFigures>) -> RunRow {
    RunRow {
        path: PathBuf::from(name),
        name: name.to_owned(),
        pid: 4711,
        command: format!("python train.py --name {name}"),
        user: "ana".to_owned(),
        hosts: vec!["elm".to_owned()],
        ranks: (1, 1),
        state,
        running_for: Some(seconds(10_920)),
        time_left: None,
        step: Some(12_400),
        steps_per_s: rate.map(|value| Aged { value, age: seconds(1) }),
        figures: figures.map(|value| Aged { value, age: seconds(3) }),
    }
}

fn figures(usual: f64, bound: (&str, f64), finding: Option<(&'static str, Option<f64>)>) -> RunFigures {
    let worst = |(title, share)| WorstFinding { id: "x", title, share, summary: format!("{title}: a whole sentence") };
    RunFigures {
        usual_steps_per_s: Some(usual),
        bound: Some((bound.0.to_owned(), bound.1)),
        finding: finding.map(worst),
        watts: Some(412.4),
        sessions: (1, 1),
        ..RunFigures::default()
    }
}

/// Runs of two people on several machines, in every state.
fn runs() -> Vec<RunRow> {
    let gpus = |figures: RunFigures| RunFigures {
        gpus: 8,
        gpu_busy: Some(0.871),
        gpu_memory_bytes: Some(3.1e11),
        sessions: (8, 16),
        ..figures
    };
    let waits = figures(30.0, ("data wait", 0.61), Some(("waiting for data", Some(0.58))));
    let ranks = gpus(figures(3.1, ("all-reduce", 0.48), Some(("stragglers", Some(0.21)))));
    let died = RunFigures {
        died: Some("killed for want of memory: it asked for 40 GiB".to_owned()),
        ..figures(9.0, ("forward", 0.4), None)
    };
    let mut all = vec![
        run("pna", RunState::Live, Some(24.6), Some(figures(25.1, ("backward", 0.52), None))),
        run("loader", RunState::Live, Some(12.2), Some(waits)),
        run("job-17", RunState::Partly(15, 16), Some(3.15), Some(ranks)),
        run(
            "hung",
            RunState::Still(seconds(40)),
            Some(8.8),
            Some(figures(8.7, ("forward", 0.5), Some(("no progress", None)))),
        ),
        run("stopped", RunState::Silent(seconds(43)), Some(4.0), Some(figures(4.0, ("forward", 0.5), None))),
        run("just-started", RunState::Live, None, None),
        run("gat", RunState::Ended(Some(seconds(3700))), None, Some(died)),
        run("前向传播", RunState::Ended(Some(seconds(90))), None, Some(figures(9.0, ("forward", 0.4), None))),
    ];
    (all[2].ranks, all[2].user) = ((16, 16), "bo".to_owned());
    all[2].hosts = vec!["oak".to_owned(), "ash".to_owned()];
    all[1].time_left = Some(seconds(5400));
    all[4].figures.iter_mut().for_each(|figures| figures.age = seconds(75));
    all
}

fn table() -> App {
    let mut app = App::new(false);
    app.offer_runs(Order::default(), String::new());
    update(&mut app, Action::RunsListed { rows: Some(runs()), problem: None });
    app
}

/// The names of the runs in the order of the table.
fn names(app: &App) -> String {
    app.runs().iter().map(|row| row.name.as_str()).collect::<Vec<_>>().join(" ")
}

#[test]
fn table_of_runs_is_drawn() {
    let mut app = App::new(false);
    app.offer_runs(Order::default(), String::new());
    insta::assert_snapshot!("top_none_80x24", screen(&mut app, 80, 24));
    let mut app = table();
    insta::assert_snapshot!("top_160x40", screen(&mut app, 160, 40));
    insta::assert_snapshot!("top_120x40", screen(&mut app, 120, 40));
    insta::assert_snapshot!("top_80x24", screen(&mut app, 80, 24));
    insta::assert_snapshot!("top_60x15", screen(&mut app, 60, 15));
    insta::assert_snapshot!("top_20x6", screen(&mut app, 20, 6));
    insta::assert_snapshot!("top_10x3", screen(&mut app, 10, 3));
    let ascii = text_of(&picture(&mut app, 80, 24, Theme::new(ColorDepth::None, true)));
    assert!(ascii.is_ascii(), "{ascii}");
    for (width, height) in (0..150).flat_map(|width| [0, 1, 2, 3, 4, 7, 12, 13].map(|height| (width, height))) {
        screen(&mut app, width, height);
    }
}

#[test]
fn keys_sort_and_filter_the_table() {
    let mut app = table();
    screen(&mut app, 120, 40);
    assert_eq!(names(&app), "stopped hung job-17 just-started loader pna gat 前向传播");
    press(&mut app, &[Key::Down, Key::Char('s')]);
    assert_eq!(names(&app), "pna loader hung stopped job-17 just-started gat 前向传播", "by steps a second");
    assert_eq!(app.line(View::Runs), 2, "the same one stays selected");
    press(&mut app, &[Key::Char('s')]);
    assert_eq!(names(&app), "loader pna stopped hung job-17 just-started gat 前向传播", "by the usual pace");
    press(&mut app, &[Key::Char('r')]);
    assert!(names(&app).starts_with("just-started job-17"), "{}", names(&app));
    press(&mut app, &[Key::Char('/'), Key::Char('O'), Key::Char('A'), Key::Char('k')]);
    insta::assert_snapshot!("top_filtered_80x24", screen(&mut app, 80, 24));
    assert_eq!(names(&app), "job-17", "by its host");
    press(&mut app, &[Key::Enter, Key::Esc]);
    assert_eq!(app.runs().len(), 8, "the filter goes");
    assert_eq!(press(&mut app, &[Key::Esc]), None);
    assert_eq!(app.view(), View::Runs, "Esc never leaves the table");
    assert_eq!(press(&mut app, &[Key::Char('q')]), Some(Effect::Quit));
}

#[test]
fn a_run_is_opened_and_left_for_the_table() {
    let mut app = table();
    screen(&mut app, 80, 24);
    press(&mut app, &[Key::Char('/'), Key::Char('p'), Key::Char('n'), Key::Enter]);
    let Some(Effect::Open(entry)) = press(&mut app, &[Key::Enter]) else { panic!("nothing is opened") };
    assert_eq!(entry.path, PathBuf::from("pna"));
    for leave in [Key::Char('q'), Key::Esc] {
        update(&mut app, Action::Opened);
        each_item(&TrainingRun { ends: false, ..TrainingRun::default() }.bytes(), |item| app.run.apply(item));
        assert_eq!((app.view(), app.filter()), (View::Overview, ""));
        let shown = screen(&mut app, 80, 24);
        assert!(shown.contains("step 100") && shown.contains("q runs") && !shown.contains("quit"), "{shown}");
        press(&mut app, &[Key::Char('3')]);
        if leave == Key::Esc {
            assert_eq!(press(&mut app, &[leave]), None, "first to the overview");
        }
        assert_eq!(press(&mut app, &[leave]), Some(Effect::Close));
        assert_eq!((app.view(), app.filter(), app.runs().len()), (View::Runs, "pn", 1));
        assert_eq!(app.run.store().steps().total(), 0, "nothing of it is left");
        press(&mut app, &[Key::Char('3')]);
        assert_eq!(app.view(), View::Runs, "there is nothing to show");
    }
    update(&mut app, Action::Opened);
    assert_eq!(press(&mut app, &[Key::Ctrl('c')]), Some(Effect::Quit));
}

#[test]
fn the_selected_run_stays_selected_and_problems_are_said() {
    let mut app = table();
    screen(&mut app, 80, 24);
    press(&mut app, &[Key::Down]);
    let more = runs().into_iter().chain([run("a", RunState::Silent(seconds(1)), None, None)]).collect();
    update(&mut app, Action::RunsListed { rows: Some(more), problem: None });
    assert!(names(&app).starts_with("a stopped hung"));
    assert_eq!(app.line(View::Runs), 2);
    let problem = "the sessions' file system has not answered for 5s".to_owned();
    update(&mut app, Action::RunsListed { rows: None, problem: Some(problem) });
    let shown = screen(&mut app, 80, 24);
    assert!(shown.contains("has not answered for 5s") && shown.contains("hung"), "{shown}");
}

/// A live session and one that has ended.
fn two(sessions: &Sessions) -> [Published; 2] {
    let spikes = vec![(90, "forward", 900 * MS)];
    let live = TrainingRun { name: "pna", ends: false, spikes, ..TrainingRun::default() };
    let over = TrainingRun { name: "gat", ..TrainingRun::default() };
    [sessions.live("pna", &live.bytes()), sessions.ended("gat", &over.bytes())]
}

#[test]
fn once_prints_one_table_and_json() {
    let sessions = Sessions::new();
    let none = sessions.run(["top", "--once"]);
    assert_eq!((none.code, none.out.as_str()), (Some(0), ""), "{none:?}");
    assert!(none.err.contains("no runs"), "{none:?}");
    let _published = two(&sessions);
    let text = sessions.run(["top", "--once"]);
    let lines: Vec<&str> = text.out.lines().collect();
    assert_eq!(lines.len(), 3, "{text:?}");
    assert!(lines[0].starts_with("NAME  STATE ") && lines[1].starts_with("pna   live "), "{text:?}");
    assert!(lines[1].contains("backward ") && lines[1].contains("spikes"), "{text:?}");
    assert!(lines[2].starts_with("gat   ended "), "{text:?}");
    let live = sessions.run(["top", "--once", "--live"]);
    assert_eq!(live.out.lines().count(), 2, "{live:?}");
    let filtered = sessions.run(["top", "--once", "--json", "--filter", "GAT"]);
    let json: Value = serde_json::from_str(&filtered.out).unwrap();
    let gat = &json["runs"][0];
    assert_eq!((json["runs"].as_array().map(Vec::len), gat["state"].as_str()), (Some(1), Some("ended")));
    assert_eq!((gat["step"].as_u64(), gat["bound"]["phase"].as_str()), (Some(100), Some("backward")), "{gat}");
    assert!(gat["steps_per_s"].is_null() && gat["gpu_busy"].is_null() && gat["usual_steps_per_s"].as_f64().is_some());
}

#[test]
fn named_directories_are_read_whoever_they_belong_to() {
    use std::os::unix::fs::PermissionsExt;
    let (mine, theirs) = (Sessions::new(), Sessions::new());
    let _published = two(&theirs);
    let dir = theirs.path().to_str().unwrap();
    // Others may write there, so that it is not trusted as this user's own.
    std::fs::set_permissions(theirs.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let named = mine.run(["top", "--once", dir]);
    assert_eq!(named.out.lines().count(), 3, "{named:?}");
    let missing = mine.run(["top", "--once", "/nowhere/at/all"]);
    assert!(missing.err.contains("/nowhere/at/all") && missing.out.is_empty(), "{missing:?}");
}

#[test]
fn tables_are_printed_until_a_signal() {
    use std::io::{BufRead, BufReader};
    let sessions = Sessions::new();
    let _published = two(&sessions);
    let mut child = spawn(&mut sessions.gnntop(["top", "--json", "--interval", "100ms"]));
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    // Its figures come when their turn does.
    while next()["runs"][0]["bound"].is_null() {}
    // SAFETY: kill has no preconditions; the process is our child and not yet waited for.
    assert_eq!(unsafe { libc::kill(child.id().cast_signed(), libc::SIGTERM) }, 0);
    assert_eq!(child.wait().unwrap().code(), Some(128 + libc::SIGTERM));
}

#[test]
fn top_in_a_terminal_opens_a_run_and_comes_back() {
    let sessions = Sessions::new();
    let published = two(&sessions);
    let mut terminal = Terminal::gnntop(&["top"], &[("GNNTOP_DIR", sessions.path().to_str().unwrap())]);
    terminal.wait_for("1 run live, 1 ended");
    terminal.wait_for("backward 5");
    terminal.press("/pna\r");
    terminal.wait_until("only one is left", |screen| !screen.contents().contains("ended 0"));
    terminal.press("\r");
    terminal.wait_for("step 100");
    terminal.wait_for("phases");
    terminal.press("q");
    terminal.wait_for("by state");
    let [mut live, _] = published;
    live.die();
    terminal.wait_for("0 runs live, 2 ended");
    terminal.press("q");
    assert_eq!(terminal.wait_for_end().exit_code(), 0);
}

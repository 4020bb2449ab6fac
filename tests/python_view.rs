//! What the screen and the report say of a Python program: what it trains with, what is hooked in it, and which of its phases
//! are inferred and not measured.

use crate::pictures::{app_of, press, screen};
use crate::sessions::Sessions;
use gnntop::app::keys::Key;
use gnntop_fixtures::{MS, START_NS, StreamBuilder};
use gnntop_wire::{Definition, Fact, SignalKind, TrackRole, Unit};

/// Forty steps of a compiled training, whose forward nobody calls by itself.
fn compiled_training() -> Vec<u8> {
    let mut stream = StreamBuilder::new("train.py");
    let how = "from the batch's arrival to backward: no module was called that holds the optimizer's parameters";
    let own = [("python", "3.11.2"), ("hooks", "torch, torch_geometric"), ("model", "OptimizedModule")];
    let own = own.map(|(key, text)| Fact::Other { key: key.to_owned(), text: text.to_owned() });
    let known =
        [Fact::Framework("PyTorch 2.15.0".into()), Fact::Inferred { phase: "forward".to_owned(), how: how.to_owned() }];
    own.into_iter().chain(known).for_each(|fact| stream.define(Definition::Fact(fact)));
    let main = stream.track(TrackRole::Training, "train");
    let sensors = stream.track(TrackRole::Sensors, "sensors");
    let rss = stream.signal("process.rss", Unit::Bytes, SignalKind::Gauge);
    let mut t_ns = START_NS;
    for step in 1..=40 {
        let begin_ns = t_ns;
        for (phase, ns) in [("data wait", MS), ("forward", 12 * MS), ("backward", 20 * MS), ("optimizer", 3 * MS)] {
            stream.phase(main, step, phase, t_ns, t_ns + ns);
            t_ns += ns;
        }
        stream.step(main, step, begin_ns, t_ns);
        stream.sample(sensors, rss, t_ns, 400 << 20);
        t_ns += MS;
    }
    stream.end(t_ns);
    stream.bytes()
}

#[test]
fn inferred_phases_have_a_star_and_step_detail_explains() {
    let mut app = app_of(&compiled_training());
    insta::assert_snapshot!("python_overview_80x24", screen(&mut app, 80, 24));
    press(&mut app, &[Key::Enter]);
    insta::assert_snapshot!("python_step_80x24", screen(&mut app, 80, 24));
}

#[test]
fn hardware_view_ends_with_program_facts() {
    let mut app = app_of(&compiled_training());
    press(&mut app, &[Key::Char('5')]);
    let view = screen(&mut app, 100, 60);
    for told in
        ["─program  train.py ", "PyTorch 2.15.0", "torch, torch_geometric", "forward*", "inferred, from the batch's"]
    {
        assert!(view.contains(told), "no {told:?} in\n{view}");
    }
}

#[test]
fn reports_mark_inferred_phases() {
    let sessions = Sessions::new();
    sessions.file("a.gnntop", &compiled_training());
    let text = sessions.run(["report", "a.gnntop"]).out;
    assert!(text.contains("  forward* is inferred from the batch's arrival"), "{text}");
    assert!(text.contains("\nforward* "), "{text}");
    assert!(text.contains("\nbackward "), "{text}");
    let json: serde_json::Value = serde_json::from_str(&sessions.run(["report", "--json", "a.gnntop"]).out).unwrap();
    let phase = |name: &str| json["phases"].as_array().unwrap().iter().find(|p| p["name"] == name).unwrap().clone();
    assert!(phase("forward")["inferred"].as_str().unwrap().starts_with("from the batch's arrival"));
    assert!(phase("backward").get("inferred").is_none());
    let page = sessions.run(["report", "--markdown", "a.gnntop"]).out;
    assert!(page.contains("is inferred | from the batch's arrival") && page.contains("PyTorch 2.15.0"), "{page}");
}

#[test]
fn overview_lists_only_phases_that_a_step_has_spent_time_in() {
    let mut stream = StreamBuilder::new("train.py");
    let main = stream.track(TrackRole::Training, "train");
    let worker = stream.track(TrackRole::Loader, "loader 0");
    let mut t_ns = START_NS;
    for step in 1..=40 {
        stream.phase(worker, 0, "fetch", t_ns, t_ns + 5 * MS);
        stream.phase(main, step, "forward", t_ns, t_ns + 12 * MS);
        stream.step(main, step, t_ns, t_ns + 13 * MS);
        t_ns += 14 * MS;
    }
    stream.end(t_ns);
    insta::assert_snapshot!("python_workers_80x24", screen(&mut app_of(&stream.bytes()), 80, 24));
}

//! The cost of a key: `cargo bench --bench screen [-- steps]`, with 1,000,000 steps.
//!
//! Fills a store with this many steps of four phases and 40 signals ten times a second, then presses a key and draws
//! the whole screen, for every view and for the whole run in view, at 120x40 and at 300x100. Prints the median and the
//! worst of 50 such frames, and the memory that the store took.
#![allow(missing_docs, clippy::print_stdout, clippy::expect_used)]

use std::time::Instant;

use gnntop::app::keys::Key;
use gnntop::app::{Action, App, View, update};
use gnntop::report::EnergySnapshot;
use gnntop::ui::draw;
use gnntop::ui::theme::{ColorDepth, Theme};
use gnntop_analysis::energy::Assumptions;
use gnntop_analysis::findings;
use gnntop_analysis::source::{SourceState, Status};
use gnntop_wire::{
    BatchShape, BlockEncoder, Definition, Event, NameId, NameKind, Quantity, Sample, SignalId, SignalSource, Span,
    Step, StepId, StreamReader, TrackId, TrackRole, put_definitions, put_segment,
};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

const FRAMES: usize = 50;
const SIGNALS: u32 = 40;
/// About 100 ms.
const STEPS_A_SAMPLE: u64 = 250;
const PHASES: [(&str, u64); 4] =
    [("data wait", 40_000), ("forward", 100_000), ("backward", 220_000), ("optimizer", 30_000)];

fn main() {
    let steps: u64 = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(1_000_000);
    let before = rss_bytes();
    let mut app = App::new(false);
    let begin = Instant::now();
    fill(&mut app, steps);
    let table = app.run.store().steps();
    println!("{steps} steps in {:.1} s, {} of them one by one", begin.elapsed().as_secs_f64(), table.len());
    if let (Some(before), Some(after)) = (before, rss_bytes()) {
        println!("memory: {} MiB", after.saturating_sub(before) >> 20);
    }
    let status = Status { title: "bench".to_owned(), state: SourceState::Running, live: true, ..Status::default() };
    update(&mut app, Action::Polled { status, changed: true });
    let judgement = findings::judge_newest(app.run.store());
    update(&mut app, Action::FindingsUpdated(Box::new(judgement)));
    let told = EnergySnapshot::for_run(&app.run, &Assumptions::default());
    update(&mut app, Action::EnergyUpdated(Box::new(told)));
    for (width, height) in [(120, 40), (300, 100)] {
        update(&mut app, Action::Resized { width, height });
        for view in View::MAIN {
            let key = view.key().map(Key::Char).into_iter().collect::<Vec<_>>();
            frames(&format!("{} at {width}x{height}", view.name()), &mut app, &key, (width, height));
        }
        press(&mut app, &[Key::Char('7'), Key::Char('w')]);
        frames(&format!("tracks of the whole run at {width}x{height}"), &mut app, &[Key::Left], (width, height));
        press(&mut app, &[Key::Char('w'), Key::Char('2'), Key::Char('w')]);
        frames(&format!("hardware of the whole run at {width}x{height}"), &mut app, &[Key::Char('5')], (width, height));
        press(&mut app, &[Key::Char('2')]);
        let whole = format!("the whole run at {width}x{height}");
        frames(&whole, &mut app, &[Key::Left], (width, height));
        frames(&format!("{whole}, per graph"), &mut app, &[Key::Char('u'), Key::Char('u')], (width, height));
        press(&mut app, &[Key::Char('x')]);
        frames(&format!("{whole}, by time"), &mut app, &[Key::Left], (width, height));
        press(&mut app, &[Key::Char('x'), Key::Char('w'), Key::Char('3'), Key::Right, Key::Right]);
        frames("to the p99 and back", &mut app, &[Key::Enter, Key::Char('3')], (width, height));
        press(&mut app, &[Key::Char('1'), Key::Char('G')]);
    }
}

fn press(app: &mut App, keys: &[Key]) {
    keys.iter().for_each(|key| {
        update(app, Action::Key(*key));
    });
}

/// Presses the keys and draws, this many times.
fn frames(what: &str, app: &mut App, keys: &[Key], (width, height): (u16, u16)) {
    let theme = Theme::new(ColorDepth::True, false);
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    let mut ms: Vec<f64> = (0..FRAMES)
        .map(|_| {
            let begin = Instant::now();
            press(app, keys);
            buffer.reset();
            draw(app, &theme, &mut buffer);
            begin.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    ms.sort_by(f64::total_cmp);
    println!("{what}: {:.2} ms, at most {:.2}", ms[FRAMES / 2], ms[FRAMES - 1]);
}

fn fill(app: &mut App, steps: u64) {
    let mut out = Vec::new();
    put_segment(&mut out, &gnntop_wire::SessionInfo::default());
    let track = Definition::Track { id: TrackId(1), role: TrackRole::Training, thread_id: 0, text: "train".to_owned() };
    let names = (1..).zip(PHASES).map(|(id, (text, _))| Definition::Name {
        id: NameId(id),
        kind: NameKind::Phase,
        text: text.to_owned(),
    });
    put_definitions(&mut out, &[track].into_iter().chain(names).chain((0..SIGNALS).map(signal)).collect::<Vec<_>>());
    let (mut block, mut sensors) = (BlockEncoder::new(TrackId(1)), BlockEncoder::new(TrackId(2)));
    let mut reader = StreamReader::new();
    let (mut t_ns, mut random) = (1_000_000_000, 1u64);
    for step in 1..=steps {
        let start_ns = t_ns;
        for (id, (_, usual_ns)) in (1..).zip(PHASES) {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let end_ns = t_ns + usual_ns + (random >> 48) + if random % 5000 == 0 { 3_000_000 } else { 0 };
            push(
                &mut block,
                &mut out,
                Event::Span(Span { name: NameId(id), start_ns: t_ns, end_ns, step: StepId(step) }),
            );
            t_ns = end_ns;
        }
        let batch =
            BatchShape { graphs: Some(256 - random % 2), nodes: Some(3600 + random % 64), ..BatchShape::default() };
        let epoch = step / 1000;
        push(
            &mut block,
            &mut out,
            Event::Step(Step { step: StepId(step), epoch, start_ns, end_ns: t_ns, batch, ..Step::default() }),
        );
        t_ns += 2_000;
        if step % STEPS_A_SAMPLE == 0 {
            for id in 0..SIGNALS {
                let value = (step as i64).wrapping_mul(i64::from(id) + 1);
                push(&mut sensors, &mut out, Event::Sample(Sample { signal: SignalId(id), t_ns, value }));
            }
        }
        if step % 1000 == 0 || step == steps {
            block.finish(0, &mut out);
            sensors.finish(0, &mut out);
            reader.fill(&out);
            out.clear();
            while let Some(item) = reader.next() {
                app.run.apply(item);
            }
        }
    }
}

/// Signals of every core, as on a machine with 40.
fn signal(id: u32) -> Definition {
    Definition::Signal {
        id: SignalId(id),
        metric: Quantity::CoreBusy.with_instance(id).into(),
        source: SignalSource::Sensor("bench".to_owned()),
        device: String::new(),
    }
}

fn push(block: &mut BlockEncoder, out: &mut Vec<u8>, event: Event) {
    if !block.push(&event) {
        block.finish(0, out);
        assert!(block.push(&event), "an empty block takes any event");
    }
}

/// Memory of this process, if the system reports it.
fn rss_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? << 10)
}

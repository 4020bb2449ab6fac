//! How fast recordings open, are read and are written: `cargo bench --bench recordings [-- millions of spans]`.
//!
//! Writes a recording of this many spans (default 10 million) into a temporary file, in blocks of 20 ms like a
//! session's, then merges it with the recorder, with chunks and without, opens it as the screen does, reports on it
//! with the binary, from summaries and exactly, and exports it if it has less than 20 million. Prints medians of five
//! passes, of wall time; the report's memory is its peak over the whole process.
#![allow(missing_docs, clippy::print_stdout, clippy::expect_used)]

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use gnntop::export::{ExportFormat, Exporter};
use gnntop_analysis::recorder::{RecorderOptions, RunRecorder};
use gnntop_analysis::source::playback::PlaybackOptions;
use gnntop_analysis::source::{Playback, Recording, Source};
use gnntop_analysis::store::Store;
use gnntop_wire::{
    Anchor, BlockEncoder, Definition, Event, NameId, NameKind, SessionInfo, Span, Step, StepId, TrackId, TrackRole,
    put_anchor, put_definitions, put_segment,
};

const PASSES: usize = 5;
const SPANS_A_STEP: u64 = 20;
/// The time that the screen gives a source at once.
const BUDGET: Duration = Duration::from_millis(15);

fn main() {
    let millions: u64 = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(10);
    let spans = millions * 1_000_000;
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (session, recording) = (dir.path().join("session.gnntop"), dir.path().join("a.gnntop"));
    write_session(&session, spans / SPANS_A_STEP);
    let size = |path: &Path| fs::metadata(path).map_or(0, |meta| meta.len());
    println!("{spans} spans: {} MiB as published", size(&session) >> 20);
    let without = print("record without chunks", || record(&session, &recording, u64::MAX));
    println!("  {:.2} bytes a span", size(&recording) as f64 / spans as f64);
    let with = print("record", || record(&session, &recording, RecorderOptions::default().chunk_bytes));
    println!("  {:.2} bytes a span", size(&recording) as f64 / spans as f64);
    println!("  adding up takes {:.1} ns a span", (with - without) * 1e9 / spans as f64);
    print("open and first poll", || first_poll(&session));
    print("go to the end", || go_to_end(&recording));
    for exact in [&[][..], &["--exact"]] {
        print(&format!("report {}", exact.concat()), || _ = report(&recording, exact));
        println!("  peak memory {} MiB", report(&recording, exact) >> 20);
    }
    if millions >= 20 {
        return;
    }
    for (what, form) in
        [("Perfetto", ExportFormat::Perfetto), ("CSV", ExportFormat::Csv), ("Parquet", ExportFormat::Parquet)]
    {
        let exported = dir.path().join("exported");
        let seconds = print(&format!("export to {what}"), || export(&recording, form, &exported));
        let rate = spans as f64 / seconds / 1e6;
        println!("  {rate:.2} million spans a second, {} MiB", size(&exported) >> 20);
    }
}

/// Prints how long a pass takes, and returns the median in seconds.
fn print(what: &str, mut pass: impl FnMut()) -> f64 {
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..PASSES {
        let start = Instant::now();
        pass();
        times.push(start.elapsed());
    }
    times.sort_unstable();
    println!("{what}: {:.3} s (fastest {:.3})", times[PASSES / 2].as_secs_f64(), times[0].as_secs_f64());
    times[PASSES / 2].as_secs_f64()
}

fn export(from: &Path, form: ExportFormat, to: &Path) {
    let file = File::create(to).expect("a file");
    let mut exporter = Exporter::new(form, BufWriter::new(file), 0..=u64::MAX);
    Recording::open(from).expect("a recording").read_all(&mut exporter);
    let (written, left_out) = exporter.finish().expect("room on the disk");
    assert!(written > 0 && left_out == 0);
}

fn record(from: &Path, to: &Path, chunk_bytes: u64) {
    let file = File::create(to).expect("a file");
    let mut recorder = RunRecorder::new(file, RecorderOptions { chunk_bytes, ..RecorderOptions::default() });
    Recording::open(from).expect("a recording").read_all(&mut recorder);
    recorder.flush().expect("room on the disk");
}

fn first_poll(path: &Path) {
    let mut playback = Playback::open(path.to_owned(), PlaybackOptions::default()).expect("a recording");
    let mut store = Store::new();
    playback.poll(&mut store, BUDGET);
    assert!(playback.status().transport.is_some_and(|transport| transport.total_ns > Some(0)));
}

fn go_to_end(path: &Path) {
    let options = PlaybackOptions { from: Duration::MAX, ..PlaybackOptions::default() };
    let mut playback = Playback::open(path.to_owned(), options).expect("a recording");
    let mut store = Store::new();
    while playback.poll(&mut store, BUDGET).more {}
    assert!(store.steps().total() > 0);
}

/// Runs the binary and returns its peak memory; 0 if the system does not report it.
fn report(path: &Path, options: &[&str]) -> u64 {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gnntop"));
    let child = command
        .arg("report")
        .arg(path)
        .args(options)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts");
    let mut child = child;
    let mut peak_bytes = 0;
    while child.try_wait().expect("a child").is_none() {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse().ok());
        peak_bytes = peak.map_or(peak_bytes, |kib: u64| kib << 10);
        std::thread::sleep(Duration::from_millis(2));
    }
    peak_bytes
}

/// Steps of 2 ms with 20 spans each, 16 of them inside 4 phases.
fn write_session(path: &Path, steps: u64) {
    let mut file = BufWriter::new(File::create(path).expect("a file"));
    let mut out = Vec::new();
    put_segment(&mut out, &SessionInfo { name: "bench".to_owned(), ..SessionInfo::default() });
    put_definitions(&mut out, &definitions());
    let mut block = BlockEncoder::new(TrackId(1));
    let (mut random, mut t_ns) = (1_u64, 1_000_000_000);
    for step in 1..=steps {
        let start_ns = t_ns;
        for phase in 0..4 {
            let phase_start_ns = t_ns;
            for inner in 0..4 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let ns = 80_000 + (random >> 49);
                push(&mut block, &mut out, span(5 + phase * 4 + inner, t_ns, t_ns + ns, step));
                t_ns += ns + 200;
            }
            push(&mut block, &mut out, span(1 + phase, phase_start_ns, t_ns, step));
        }
        t_ns += 5_000;
        let finished = Step { step: StepId(step), start_ns, end_ns: t_ns, ..Step::default() };
        push(&mut block, &mut out, Event::Step(finished));
        if step % 10 == 0 {
            block.finish(0, &mut out);
        }
        if step % 500 == 0 {
            put_anchor(&mut out, &Anchor { monotonic_ns: t_ns, wall_ns: t_ns, boot_ns: t_ns });
            file.write_all(&out).expect("room on the disk");
            out.clear();
        }
    }
    block.finish(0, &mut out);
    file.write_all(&out).expect("room on the disk");
    file.flush().expect("room on the disk");
}

fn definitions() -> Vec<Definition> {
    let role = TrackRole::Training;
    let mut all = vec![Definition::Track { id: TrackId(1), role, thread_id: 1, text: "main".to_owned() }];
    let phases = ["data wait", "forward", "backward", "optimizer"];
    for id in 1..=20_u32 {
        let phase = phases.get(id as usize - 1);
        let kind = if phase.is_some() { NameKind::Phase } else { NameKind::Span };
        let text = phase.map_or_else(|| format!("span {id}"), |phase| (*phase).to_owned());
        all.push(Definition::Name { id: NameId(id), kind, text });
    }
    all
}

fn span(name: u64, start_ns: u64, end_ns: u64, step: u64) -> Event {
    let name = NameId(u32::try_from(name).unwrap_or_default());
    Event::Span(Span { name, start_ns, end_ns, step: StepId(step) })
}

fn push(block: &mut BlockEncoder, out: &mut Vec<u8>, event: Event) {
    if !block.push(&event) {
        block.finish(0, out);
        assert!(block.push(&event), "an empty block takes any event");
    }
}

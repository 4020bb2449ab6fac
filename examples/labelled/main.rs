//! Records programs whose causes of slowness are known. A test measures how well the findings name them
//! (docs/findings.md).
//!
//! ```sh
//! cargo run --no-default-features --example labelled -- record recordings/labelled          # all, two minutes
//! cargo run --no-default-features --example labelled -- record recordings/labelled stall-gc # only that one
//! cargo run --no-default-features --example labelled -- record recordings/labelled ranks    # those of several ranks
//! ```
//!
//! `record` runs a small training loop for each cause, which really does what its name says: it sleeps, faults pages
//! in, leaks, fights for the CPU. What a machine without a GPU cannot do is imported from a generated table, and events
//! between ranks are generated, too (`ranks.rs`): the same bytes every time.
#![allow(missing_docs, clippy::print_stdout, clippy::print_stderr, clippy::expect_used, clippy::unwrap_used)]

mod causes;
mod ranks;
mod training;

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;

use gnntop_analysis::recorder::{Recorder, RecorderOptions};
use gnntop_analysis::source::Recording;
use gnntop_analysis::stream::Sink;
use gnntop_wire::Item;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<&str>>().as_slice() {
        ["record", dir] => {
            causes::ALL.iter().for_each(|cause| record(cause, Path::new(dir)));
            ranks::ALL.iter().for_each(|cause| write_run(cause, Path::new(dir)));
        }
        ["record", dir, names @ ..] => {
            let named = causes::ALL.iter().filter(|cause| names.contains(&cause.name));
            named.for_each(|cause| record(cause, Path::new(dir)));
            let named = ranks::ALL.iter().filter(|cause| names.contains(&cause.name) || names == ["ranks"]);
            named.for_each(|cause| write_run(cause, Path::new(dir)));
        }
        _ => eprintln!("usage: labelled record DIR [NAME...]"),
    }
}

/// Records one cause and writes its label beside it.
fn record(cause: &causes::Cause, dir: &Path) {
    fs::create_dir_all(dir).unwrap();
    let raw = dir.join(format!("{}.raw", cause.name));
    let path = dir.join(format!("{}.gnntop", cause.name));
    (cause.make)(&raw);
    anonymous(cause.name, &raw, &path);
    fs::remove_file(&raw).unwrap();
    label(&path, cause.expect, cause.also, None);
}

/// Writes a run of several ranks as a recording, and its label beside it.
fn write_run(cause: &ranks::RunCause, dir: &Path) {
    let path = dir.join(format!("{}.gnntop", cause.name));
    let raw = path.with_extension("raw");
    fs::write(&raw, (cause.make)().concat()).unwrap();
    let out = BufWriter::new(File::create(&path).unwrap());
    let mut recorder = Recorder::new(out, RecorderOptions::default());
    Recording::open(&raw).unwrap().read_all(&mut recorder);
    recorder.flush().unwrap();
    fs::remove_file(&raw).unwrap();
    label(&path, cause.expect, cause.also, cause.against);
}

/// Writes what must be found in a recording.
fn label(path: &Path, expect: &[&str], also: &[&str], against: Option<&str>) {
    let mut label = format!("expect: {}\nalso: {}\n", expect.join(" "), also.join(" "));
    label += &against.map_or_else(String::new, |name| format!("against: {name}\n"));
    fs::write(path.with_extension("label"), label).unwrap();
    println!("{}", path.display());
}

/// Copies a recording without the facts about its machine.
fn anonymous(name: &str, from: &Path, to: &Path) {
    struct Anonymous<S>(S, String);
    impl<S: Sink> Sink for Anonymous<S> {
        fn apply(&mut self, item: Item<'_>) {
            self.0.apply(match item {
                Item::Segment(mut info) => {
                    (info.host, info.boot_id, info.command) = ("labelled".into(), String::new(), self.1.clone());
                    info.pid = 1;
                    Item::Segment(info)
                }
                other => other,
            });
        }

        fn reset(&mut self) {
            self.0.reset();
        }
    }
    let out = BufWriter::new(File::create(to).unwrap());
    let mut sink = Anonymous(Recorder::new(out, RecorderOptions::default()), format!("labelled {name}"));
    Recording::open(from).unwrap().read_all(&mut sink);
    sink.0.flush().unwrap();
}

//! What holds of any input, for the tests beside this and for the fuzz targets in `fuzz/`. Each check panics where it does
//! not hold.

use std::io::Write;
use std::path::Path;

use gnntop::cli::settings_mistake;
use gnntop::import::chrome::{ChromeOptions, trace};
use gnntop::import::history::{self, HistoryOptions, Tracker};
use gnntop::import::{CsvOptions, ImportError, Imported, csv};
use gnntop_wire::text::is_harmful;
use gnntop_wire::{Item, StreamReader};

/// Events that a byte of input may become, and those of any input.
const EVENTS_A_BYTE: u64 = 64;
const EVENTS: u64 = 4096;
/// Steps between two values of a history, whose time they share.
const MAX_STEPS: u64 = 5_000_000;

/// Bytes that are taken for a table of steps are imported or refused.
pub fn table(bytes: &[u8]) {
    import(bytes, |path, out| csv(path, &CsvOptions::default(), out));
}

/// Bytes that are taken for a trace in Chrome's format are imported or refused.
pub fn chrome_trace(bytes: &[u8]) {
    import(bytes, |path, out| trace(path, &ChromeOptions::default(), out));
}

/// Bytes that are taken for each tracker's history are imported or refused.
pub fn history(bytes: &[u8]) {
    let options = HistoryOptions { only: Some("night".to_owned()), ..HistoryOptions::default() };
    for tracker in [Tracker::TensorBoard, Tracker::Wandb, Tracker::MlFlow, Tracker::Trackio] {
        import_at_most(MAX_STEPS, bytes, |path, out| history::import(tracker, path, &options, out));
    }
}

/// Bytes that are taken for a settings file are understood, or the mistake is told with its line.
pub fn settings(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Some(mistake) = settings_mistake(text) {
        let line = mistake.split(':').nth(1).and_then(|line| line.parse::<usize>().ok());
        assert!(line.is_none_or(|line| (1..=text.lines().count() + 1).contains(&line)), "{mistake}");
    }
}

fn import(bytes: &[u8], import: impl FnOnce(&Path, &mut Vec<u8>) -> Result<Imported, ImportError>) {
    import_at_most(EVENTS, bytes, import);
}

fn import_at_most(
    most_events: u64,
    bytes: &[u8],
    import: impl FnOnce(&Path, &mut Vec<u8>) -> Result<Imported, ImportError>,
) {
    let mut input = tempfile::NamedTempFile::new().unwrap();
    input.write_all(bytes).unwrap();
    let mut out = Vec::new();
    match import(input.path(), &mut out) {
        Ok(imported) => assert_is_recording(&out, &imported, most_events + bytes.len() as u64 * EVENTS_A_BYTE),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// What is imported can be read again, all of it, and is in proportion to the input.
fn assert_is_recording(out: &[u8], imported: &Imported, most_events: u64) {
    let mut reader = StreamReader::new();
    reader.fill(out);
    reader.finish();
    let mut events = 0;
    while let Some(item) = reader.next() {
        match item {
            Item::Segment(info) => assert!(!info.name.chars().any(is_harmful), "{:?}", info.name),
            Item::Block(info, mut block) => {
                let count = block.by_ref().count() as u64;
                assert_eq!(count, info.count);
                events += count;
            }
            Item::Damage(damage) => panic!("it cannot be read: {damage:?}"),
            _ => (),
        }
    }
    assert!(imported.steps <= events, "{} steps in {events} events", imported.steps);
    assert!(events <= most_events, "{events} events");
}

//! Reads a session's summary of the time before its oldest segment.
//!
//! Its minutes go back to the start, its seconds some hours. Minutes are passed on up to the first whole minute whose
//! seconds are available.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use gnntop_history::MINUTE_NS;
use gnntop_sessions::SessionDir;
use gnntop_wire::{Item, StreamReader};

use super::past_figures::{PastFigures, as_slice, is_second, is_wanted};
use crate::stream::Sink;

/// Bytes read at a time.
const CHUNK_LEN: usize = 256 * 1024;

/// More than the figures over the whole time take.
const MAX_BYTES: u64 = 32 << 20;
/// More files of slices than a session has.
const MAX_FILES: usize = 256;

/// The past of a session. Only the figures over the whole time are read so far.
pub(super) struct SessionPast {
    /// Number of the first segment not in it.
    pub(super) next_segment: u64,
    figures: PastFigures,
    slices: Vec<(File, u64)>,
    /// Time from which seconds replace minutes.
    seconds_from_ns: u64,
}

impl SessionPast {
    /// Opens the past of a session; `None` if it has dropped nothing yet, or its past is damaged.
    pub(super) fn open(session: &SessionDir) -> Option<Self> {
        let mut bytes = Vec::new();
        let file = session.past().ok()?;
        file.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
        let past = PastFigures::parse_all(&bytes)?.pop()?;
        let whole = past.totals().filter(|whole| whole.files.len() <= MAX_FILES)?;
        let mut slices = Vec::with_capacity(whole.files.len());
        for (number, bytes) in &whole.files {
            slices.push((session.slices(*number).ok()?, *bytes));
        }
        let mut past = Self { next_segment: whole.next_segment, figures: past, slices, seconds_from_ns: u64::MAX };
        past.seconds_from_ns = past.find_seconds().unwrap_or(u64::MAX);
        Some(past)
    }

    /// The first minute of which all seconds are available: the very first if none were dropped.
    fn find_seconds(&self) -> Option<u64> {
        let (mut second_ns, mut minute_ns) = (None, None);
        for (file, bytes) in &self.slices {
            let mut head = reopened(file)?.take((*bytes).min(CHUNK_LEN as u64));
            each_item(&mut head, |item| {
                let Item::Past(entries) = item else { return };
                for slice in entries.iter().filter_map(as_slice) {
                    let first_ns = if is_second(slice) { &mut second_ns } else { &mut minute_ns };
                    first_ns.get_or_insert(slice.from_ns);
                }
            })
            .ok()?;
        }
        let second_ns: u64 = second_ns?;
        let are_all = minute_ns.is_none_or(|minute_ns: u64| second_ns < minute_ns.saturating_add(MINUTE_NS));
        Some(if are_all { 0 } else { second_ns.checked_next_multiple_of(MINUTE_NS).unwrap_or(u64::MAX) })
    }

    /// Passes everything on: the publisher and definitions, figures over the whole time, then the slices.
    pub(super) fn apply_to(mut self, sink: &mut dyn Sink) {
        let seconds_from_ns = self.seconds_from_ns;
        self.figures.apply_figures_to(sink);
        for (file, bytes) in &self.slices {
            let Some(file) = reopened(file) else { continue };
            // Unreadable slices are missing from the charts, not from the figures over the whole time.
            let _ = each_item(&mut file.take(*bytes), |item| {
                if let Item::Past(mut entries) = item {
                    entries.retain(|past| is_wanted(past, seconds_from_ns));
                    sink.apply(Item::Past(entries));
                }
            });
        }
        self.figures.apply_open_to(seconds_from_ns, sink);
    }
}

/// The same file, from its start.
fn reopened(file: &File) -> Option<File> {
    let mut file = file.try_clone().ok()?;
    file.seek(SeekFrom::Start(0)).ok()?;
    Some(file)
}

fn each_item(from: &mut dyn Read, mut each: impl FnMut(Item<'_>)) -> io::Result<()> {
    let (mut reader, mut chunk) = (StreamReader::new(), vec![0; CHUNK_LEN]);
    loop {
        let len = from.read(&mut chunk)?;
        reader.fill(&chunk[..len]);
        if len == 0 {
            reader.finish();
        }
        while let Some(item) = reader.next() {
            each(item);
        }
        if len == 0 {
            return Ok(());
        }
    }
}

//! The files of slices: of seconds for a few hours, of minutes forever.
//!
//! A file is only appended to, and closed when it reaches its size. If the files of seconds take too much room, the oldest
//! is removed. If those of minutes do, the oldest of the least often halved files is halved: two of its slices become one.

use std::collections::VecDeque;
use std::io::{self, Read, Write};

use gnntop_history::coarsen;
use gnntop_sessions::{NamedDir, layout};
use gnntop_wire::past::{PastEntry as Entry, put_past};
use gnntop_wire::{Item, StreamReader};

/// A file is closed at this size, or a smaller one if the total is small.
const FILE_BYTES: u64 = 1 << 20;
/// The room for one kind is divided into at least this many files.
const FEWEST_FILES: u64 = 4;

/// What a file's slices cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SliceKind {
    Seconds,
    Minutes,
}

#[derive(Clone, Debug)]
struct SliceFile {
    number: u64,
    bytes: u64,
    /// How often the file's slices were merged in pairs.
    halved: u32,
}

/// All files of one session.
#[derive(Debug)]
pub(super) struct SliceFiles {
    dir: NamedDir,
    next: u64,
    seconds: VecDeque<SliceFile>,
    minutes: VecDeque<SliceFile>,
    max_bytes: u64,
    unlisted: Vec<u64>,
}

impl SliceFiles {
    pub(super) fn new(dir: NamedDir, max_bytes: u64) -> Self {
        let (seconds, minutes, unlisted) = (VecDeque::new(), VecDeque::new(), Vec::new());
        Self { dir, next: 0, seconds, minutes, max_bytes, unlisted }
    }

    /// Appends entries and removes those that were written from `entries`.
    pub(super) fn append(&mut self, kind: SliceKind, entries: &mut Vec<Entry>) -> io::Result<()> {
        if entries.is_empty() {
            return Ok(());
        }
        let mut bytes = Vec::new();
        put_past(&mut bytes, &*entries);
        let full_at = self.file_bytes(kind);
        if self.files(kind).back().is_none_or(|newest| newest.bytes >= full_at) {
            let file = self.begin()?;
            self.files(kind).push_back(file);
        }
        let dir = self.dir.open()?;
        if let Some(newest) = self.files(kind).back_mut() {
            // Bytes beyond the listed length, from an earlier attempt, do not count and are overwritten.
            let mut file = dir.append(&layout::slices_file_name(newest.number))?;
            file.set_len(newest.bytes)?;
            file.write_all(&bytes)?;
            newest.bytes += bytes.len() as u64;
        }
        entries.clear();
        Ok(())
    }

    /// Keeps all files within their bounds.
    pub(super) fn make_room(&mut self) -> io::Result<()> {
        while self.seconds.len() > 1 && total(&self.seconds) > self.room(SliceKind::Seconds) {
            self.unlisted.extend(self.seconds.pop_front().map(|file| file.number));
        }
        while total(&self.minutes) > self.room(SliceKind::Minutes) {
            // The newest one still grows.
            let closed = 0..self.minutes.len().saturating_sub(1);
            let Some(at) = closed.min_by_key(|at| (self.minutes[*at].halved, *at)) else { break };
            self.halve(at)?;
        }
        Ok(())
    }

    fn halve(&mut self, at: usize) -> io::Result<()> {
        let old = self.minutes[at].clone();
        let mut bytes = Vec::new();
        put_past(&mut bytes, &coarsen(self.read(&old)?));
        let mut new = self.begin()?;
        self.dir.open()?.append(&layout::slices_file_name(new.number))?.write_all(&bytes)?;
        (new.bytes, new.halved) = (bytes.len() as u64, old.halved + 1);
        self.minutes[at] = new;
        self.unlisted.push(old.number);
        Ok(())
    }

    fn read(&self, file: &SliceFile) -> io::Result<Vec<Entry>> {
        let mut bytes = Vec::new();
        self.dir.open()?.read(&layout::slices_file_name(file.number))?.take(file.bytes).read_to_end(&mut bytes)?;
        let (mut reader, mut entries) = (StreamReader::new(), Vec::new());
        reader.fill(&bytes);
        reader.finish();
        while let Some(item) = reader.next() {
            if let Item::Past(some) = item {
                entries.extend(some);
            }
        }
        Ok(entries)
    }

    fn begin(&mut self) -> io::Result<SliceFile> {
        let number = self.next;
        self.next += 1;
        self.dir.open()?.create_file(&layout::slices_file_name(number))?;
        Ok(SliceFile { number, bytes: 0, halved: 0 })
    }

    /// Number and length of each file that counts: minutes, then seconds.
    pub(super) fn listed(&self) -> Vec<(u64, u64)> {
        self.minutes.iter().chain(&self.seconds).map(|file| (file.number, file.bytes)).collect()
    }

    /// Removes the files that no longer count.
    pub(super) fn remove_unlisted(&mut self) {
        if let Ok(dir) = self.dir.open() {
            for number in self.unlisted.drain(..) {
                let _ = dir.remove(&layout::slices_file_name(number));
            }
        }
    }

    fn files(&mut self, kind: SliceKind) -> &mut VecDeque<SliceFile> {
        match kind {
            SliceKind::Seconds => &mut self.seconds,
            SliceKind::Minutes => &mut self.minutes,
        }
    }

    /// Seconds are for looking at recent times, minutes for all earlier ones.
    fn room(&self, kind: SliceKind) -> u64 {
        match kind {
            SliceKind::Seconds => self.max_bytes / 4,
            SliceKind::Minutes => self.max_bytes - self.max_bytes / 4,
        }
    }

    fn file_bytes(&self, kind: SliceKind) -> u64 {
        (self.room(kind) / FEWEST_FILES).min(FILE_BYTES)
    }
}

fn total(files: &VecDeque<SliceFile>) -> u64 {
    files.iter().map(|file| file.bytes).sum()
}

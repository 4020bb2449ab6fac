//! Follows a session: reads its segments in order and keeps reading the last one while it grows.
//!
//! It never communicates with the publisher, which may drop the oldest segment at any time. An open segment stays readable
//! after that; one that was not yet opened is lost and counted.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gnntop_sessions::{CopyState, Publisher, SessionDir, Stopped};
use gnntop_wire::{Definition, Fact, Item, StreamReader};

use super::holes::Holes;
use super::polling::{Progress, Source, Status};
use super::process::{Afterlife, afterlife};
use super::session_past::SessionPast;
use super::tally::Tally;
use crate::figures;
use crate::stream::Sink;

/// Bytes read and passed on between two checks of the clock.
const CHUNK_LEN: usize = 64 * 1024;

/// Most attempts to read a past that a session replaces quickly.
const PAST_ATTEMPTS: usize = 8;

/// Ends of a session whose process has not ended, which may still do so.
const RUNS_ANOTHER: &str = "ended: its process runs another program now";
const RUNS_ON: &str = "ended, though its process still runs";

/// A session being followed.
pub struct Live {
    dir: PathBuf,
    /// Whether the time before the oldest segment was read.
    has_read_past: bool,
    open: Option<OpenSegment>,
    /// Segments seen after the open one.
    later: VecDeque<u64>,
    /// Whether the publisher was found dead, so that nothing more will be written.
    dead: bool,
    /// Since when the publisher cannot write, if it reports that.
    stopped: Option<Stopped>,
    /// What else is known of the program, where the session is a copy.
    copy: Option<CopyState>,
    ended: Option<String>,
    /// The segment read before the open one; those in between are lost.
    last_closed: Option<u64>,
    /// The file of that segment, once the session has ended: the keeper may still add why the program died.
    closed: Option<File>,
    lost_segments: u64,
    tally: Tally,
    chunk: Vec<u8>,
    /// Time between two checks for later segments and for the publisher; the next field is when the next check is due.
    check_every: Duration,
    next_check: Instant,
}

struct OpenSegment {
    number: u64,
    file: File,
    reader: StreamReader,
    holes: Holes,
}

/// Result of an attempt to advance.
enum LiveAdvance {
    /// Something was passed on.
    Read,
    /// A segment was opened, or the end was detected: try again.
    Again,
    /// Nothing new.
    Idle,
}

impl Live {
    /// Follows the session in `dir` from its oldest segment.
    pub fn follow(dir: &Path) -> Self {
        Self::follow_every(dir, Duration::ZERO)
    }

    /// Like [`Live::follow`], but checks for later segments and for the publisher only this often.
    pub(super) fn follow_every(dir: &Path, check_every: Duration) -> Self {
        Self {
            dir: dir.to_owned(),
            has_read_past: false,
            open: None,
            later: VecDeque::new(),
            dead: false,
            stopped: None,
            copy: None,
            ended: None,
            last_closed: None,
            closed: None,
            lost_segments: 0,
            tally: Tally::default(),
            chunk: vec![0; CHUNK_LEN],
            check_every,
            next_check: Instant::now(),
        }
    }

    /// The session's directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn advance(&mut self, sink: &mut dyn Sink) -> io::Result<LiveAdvance> {
        if !std::mem::replace(&mut self.has_read_past, true) {
            self.tally.clock = SessionDir::open(&self.dir)?.publisher().copy.and_then(|copy| copy.clock);
            self.read_past(sink)?;
        }
        if self.read_chunk(sink)? {
            return Ok(LiveAdvance::Read);
        }
        // A segment is complete once a later one exists, and the session once its publisher is dead. Both must be known
        // before the read that finds nothing more: what was written in between is in the next read.
        if let Some(next) = self.later.pop_front() {
            self.close(sink);
            self.open_segment(next, sink)?;
            return Ok(LiveAdvance::Again);
        }
        if self.dead || self.tally.end.is_some() {
            self.close(sink);
            if let Some(stopped) = self.stopped.as_ref().filter(|_| self.tally.end.is_none()) {
                sink.apply(Item::Definitions(vec![never_written(stopped)]));
            }
            if self.dead {
                // Before this session's first segment, it would be attributed to the previous session.
                sink.set_publisher_alive(false);
            }
            self.ended = Some(self.end_reason());
            return Ok(LiveAdvance::Again);
        }
        let now = Instant::now();
        if now < self.next_check {
            return Ok(LiveAdvance::Idle);
        }
        self.next_check = now + self.check_every;
        let session = SessionDir::open(&self.dir)?;
        let Publisher { alive, stopped, copy } = session.publisher();
        (self.dead, self.stopped) = (!alive, stopped);
        if copy.is_some() {
            self.open_again(&session)?;
        }
        self.copy = copy;
        sink.set_publisher_alive(!self.dead);
        // If the next one was dropped before it could be opened, none is open.
        let after = self.open.as_ref().map(|open| open.number).or(self.last_closed);
        self.later = session.segments()?.into_iter().filter(|n| after.is_none_or(|a| *n > a)).collect();
        Ok(if self.dead || !self.later.is_empty() { LiveAdvance::Again } else { LiveAdvance::Idle })
    }

    /// Passes on what is left of dropped segments, and opens the first one after them.
    fn read_past(&mut self, sink: &mut dyn Sink) -> io::Result<()> {
        for _ in 0..PAST_ATTEMPTS {
            let session = SessionDir::open(&self.dir)?;
            let Some(past) = SessionPast::open(&session) else { return Ok(()) };
            let Some(first) = session.segments()?.into_iter().find(|number| *number >= past.next_segment) else {
                return Ok(());
            };
            // Once open, it stays readable; if it was dropped since it was listed, it is in a newer past.
            match session.segment(first) {
                Ok(file) => {
                    let next_segment = past.next_segment;
                    past.apply_to(sink);
                    self.begin_segment(first, file, first - next_segment, sink);
                    return Ok(());
                }
                Err(error) if error.is_not_found() => (),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Opens the segment again: on a file system that several machines see, that shows what another one has written.
    fn open_again(&mut self, session: &SessionDir) -> io::Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        match session.segment(open.number) {
            Ok(mut file) => {
                file.seek(SeekFrom::Start(open.file.stream_position()?))?;
                open.file = file;
                Ok(())
            }
            // Dropped; what is open stays readable.
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Continues to read the open segment; `false` at its current end.
    fn read_chunk(&mut self, sink: &mut dyn Sink) -> io::Result<bool> {
        let Some(open) = &mut self.open else { return Ok(false) };
        let len = read(&mut open.file, &mut self.chunk)?;
        open.reader.fill(&self.chunk[..len]);
        open.holes.skip(&mut open.file, &self.chunk[..len], &mut { u64::MAX }, &mut open.reader)?;
        self.tally.forward(&mut open.reader, sink);
        Ok(len > 0)
    }

    /// Closes the open segment; anything incomplete at its end is damage.
    fn close(&mut self, sink: &mut dyn Sink) {
        if let Some(mut open) = self.open.take() {
            open.reader.finish();
            self.tally.forward(&mut open.reader, sink);
            self.last_closed = Some(open.number);
            self.closed = Some(open.file);
        }
    }

    /// Reads what was added after the session's end; returns whether anything was.
    fn read_exit_record(&mut self, sink: &mut dyn Sink) -> bool {
        let Some(file) = &mut self.closed else { return false };
        let len = read(file, &mut self.chunk).unwrap_or(0);
        if len == 0 {
            return self.update_end();
        }
        let mut reader = StreamReader::new();
        reader.fill(&self.chunk[..len]);
        self.tally.forward(&mut reader, sink);
        self.ended = Some(self.end_reason());
        true
    }

    /// Whether a process that ran on when the session ended does something else now.
    fn update_end(&mut self) -> bool {
        let ran_on = self.ended.as_deref().is_some_and(|how| [RUNS_ANOTHER, RUNS_ON].contains(&how));
        let now = ran_on.then(|| self.end_reason());
        let has_changed = now.is_some() && now != self.ended;
        self.ended = now.or_else(|| self.ended.take());
        has_changed
    }

    fn open_segment(&mut self, number: u64, sink: &mut dyn Sink) -> io::Result<()> {
        match SessionDir::open(&self.dir)?.segment(number) {
            Ok(file) => {
                let lost = self.last_closed.map_or(0, |last| number.saturating_sub(last).saturating_sub(1));
                self.begin_segment(number, file, lost, sink);
                Ok(())
            }
            // Dropped by the publisher since it was listed. Counted when the next one is opened.
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn begin_segment(&mut self, number: u64, file: File, lost: u64, sink: &mut dyn Sink) {
        self.lost_segments += lost;
        if lost > 0 {
            sink.add_lost_segments(lost);
        }
        self.open = Some(OpenSegment { number, file, reader: StreamReader::new(), holes: Holes::default() });
    }

    /// What people must know about the program: that it cannot write, or that nothing is heard of it.
    fn messages(&self) -> Vec<String> {
        let copy = self.copy.as_ref().filter(|copy| copy.silent.is_some() || copy.trouble.is_some());
        let silence = copy.filter(|_| self.ended.is_none()).map(|copy| not_heard_of(copy, &self.host()));
        self.stopped.iter().map(published_until).chain(silence).collect()
    }

    fn host(&self) -> String {
        let host = self.tally.session.as_ref().map(|session| session.host.clone());
        host.filter(|host| !host.is_empty()).unwrap_or_else(|| "its machine".to_owned())
    }

    fn end_reason(&self) -> String {
        if let Some(cause) = &self.tally.death_cause {
            return match cause.as_str() {
                "asked" => "ended when asked to".to_owned(),
                cause => format!("died: {}", cause.replace('-', " ")),
            };
        }
        match &self.tally.end {
            None if let Some(stopped) = &self.stopped => format!("ended; {}", published_until(stopped)),
            Some(reason) if reason.is_empty() => "ended".to_owned(),
            Some(reason) => format!("ended: {reason}"),
            None if self.copy.is_some() => format!("nothing was heard from {} for too long", self.host()),
            None if self.tally.blocks == 0 => "ended before it published anything".to_owned(),
            None => match self.tally.session.as_ref().map(afterlife) {
                Some(Afterlife::Other) => RUNS_ANOTHER.to_owned(),
                Some(Afterlife::Same) => RUNS_ON.to_owned(),
                _ => "ended unexpectedly: killed?".to_owned(),
            },
        }
    }
}

/// Message about a copy that does not grow.
fn not_heard_of(copy: &CopyState, host: &str) -> String {
    let silent = copy.silent.map(|time| format!("nothing heard from {host} for {}", figures::elapsed_time(time)));
    let trouble = copy.trouble.as_ref().map(|trouble| format!("{host} {trouble}"));
    silent.into_iter().chain(trouble).collect::<Vec<_>>().join("; ")
}

/// Message about a publisher that cannot write.
fn published_until(stopped: &Stopped) -> String {
    format!("published until {}, then {}", time_of_day(stopped), stopped.reason)
}

/// What a publisher could not write until its end.
fn never_written(stopped: &Stopped) -> Definition {
    let what = format!("what happened after {}", time_of_day(stopped));
    Definition::Fact(Fact::NotRecorded { what, amount: stopped.reason.clone() })
}

/// Since when it cannot write. The day is that of the run, which is shown elsewhere.
fn time_of_day(stopped: &Stopped) -> String {
    let time = figures::utc(stopped.wall_ns);
    time.split_once(' ').map_or(time.as_str(), |(_, time)| time).to_owned()
}

/// Reads, and retries if a signal interrupts it.
fn read(file: &mut File, chunk: &mut [u8]) -> io::Result<usize> {
    loop {
        match file.read(chunk) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            other => return other,
        }
    }
}

impl Source for Live {
    fn poll(&mut self, sink: &mut dyn Sink, budget: Duration) -> Progress {
        let began = Instant::now();
        let mut progress = Progress::default();
        if self.ended.is_some() {
            return Progress { changed: self.read_exit_record(sink), more: false };
        }
        while self.ended.is_none() {
            match self.advance(sink) {
                Ok(LiveAdvance::Idle) => return progress,
                Ok(LiveAdvance::Read) => progress.changed = true,
                Ok(LiveAdvance::Again) => (),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.ended = Some("its directory was removed".to_owned());
                }
                Err(error) => self.ended = Some(format!("cannot be read further: {error}")),
            }
            if began.elapsed() >= budget {
                return Progress { changed: true, more: self.ended.is_none() };
            }
            progress.changed |= self.ended.is_some();
        }
        progress
    }

    fn status(&self) -> Status {
        Status {
            live: self.ended.is_none(),
            messages: self.messages(),
            lost_segments: self.lost_segments,
            ..self.tally.status(self.ended.as_deref())
        }
    }
}

#[cfg(test)]
mod tests {
    use gnntop_sessions::LiveLock;
    use gnntop_wire::{End, put_end};

    use super::super::fixture::{self, CollectedItems, SessionDir};
    use super::super::polling::SourceState;
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn session() -> (tempfile::TempDir, SessionDir, LiveLock) {
        let dir = tempfile::tempdir().unwrap();
        let session = SessionDir::create(dir.path(), "pna", 4711);
        let lock = session.lock();
        (dir, session, lock)
    }

    fn poll(live: &mut Live, heard: &mut CollectedItems) -> Progress {
        live.poll(heard, LONG)
    }

    #[test]
    fn a_hole_in_a_segment_is_not_read() {
        let (_dir, session, _lock) = session();
        session.write_segment(0, &[fixture::segment("pna", 4711, 0), fixture::steps(0..3)].concat());
        let path = session.path().join("00000000.gnntop");
        File::options().write(true).open(path).unwrap().set_len(1 << 40).unwrap();
        session.append(0, &fixture::steps(3..5));
        let (mut live, mut heard) = (Live::follow(session.path()), CollectedItems::default());
        while heard.steps().len() < 5 {
            poll(&mut live, &mut heard);
        }
        assert_eq!((heard.steps(), live.status().damage.holes), (vec![1, 2, 3, 4, 5], 1));
    }

    #[test]
    fn a_copy_has_the_clock_that_was_compared_and_says_what_is_not_heard() {
        use gnntop_sessions::copy::{Change, CopyWriter};
        use gnntop_sessions::{Heartbeat, PrivateDir};
        use gnntop_wire::{ClockOffset, Item, Place, SessionInfo, put_segment};
        let dir = tempfile::tempdir().unwrap();
        let name = "sage-7-00000000";
        let mut copy = CopyWriter::open(&PrivateDir::open(dir.path()).unwrap(), name).unwrap();
        let clock = Some(ClockOffset { offset_ns: -5, error_ns: 3 });
        let beat = Heartbeat { clock, trouble: Some("is not reached: cut".into()), ..Heartbeat::now() };
        copy.beat(&beat).unwrap();
        let place = Place { run: "night".into(), ranks: 2, ..Place::default() };
        let info = SessionInfo { host: "elm".into(), place: Some(Box::new(place)), ..SessionInfo::default() };
        let mut segment = Vec::new();
        put_segment(&mut segment, &info);
        copy.apply(&Change::Append { file: "00000000.gnntop", at: 0, bytes: &segment }).unwrap();
        struct Seen(Option<ClockOffset>);
        impl Sink for Seen {
            fn apply(&mut self, item: Item<'_>) {
                if let Item::Segment(info) = item {
                    self.0 = info.place.and_then(|place| place.clock);
                }
            }

            fn reset(&mut self) {}
        }
        let (mut live, mut seen) = (Live::follow(&dir.path().join(name)), Seen(None));
        live.poll(&mut seen, LONG);
        assert_eq!((seen.0, live.status().live), (clock, true));
        assert_eq!(live.status().warnings(), ["elm is not reached: cut"]);
        copy.beat(&Heartbeat { wall_ns: beat.wall_ns - 40_000_000_000, ..Heartbeat::default() }).unwrap();
        live.poll(&mut seen, LONG);
        assert_eq!(live.status().warnings(), ["nothing heard from elm for 40s"]);
        copy.end(None).unwrap();
        live.poll(&mut seen, LONG);
        assert!(!live.status().live && live.status().warnings().is_empty());
    }

    #[test]
    fn appended_events_are_read() {
        let (_dir, session, _lock) = session();
        session.write_segment(0, &fixture::segment("pna", 4711, 0));
        let (mut live, mut heard) = (Live::follow(session.path()), CollectedItems::default());
        assert!(poll(&mut live, &mut heard).changed);
        assert_eq!(live.status().title, "pna (pid 4711)");
        assert_eq!(poll(&mut live, &mut heard), Progress::default());
        session.append(0, &fixture::steps(0..3));
        poll(&mut live, &mut heard);
        let (half, rest) = fixture::steps(3..5).split_at(20).map_owned();
        session.append(0, &half);
        poll(&mut live, &mut heard);
        assert_eq!(heard.steps(), [1, 2, 3]);
        session.append(0, &rest);
        poll(&mut live, &mut heard);
        assert_eq!(heard.steps(), [1, 2, 3, 4, 5]);
        assert_eq!(live.status().state, SourceState::Running);
        assert!(live.status().warnings().is_empty());
    }

    #[test]
    fn read_segment_is_not_repeated_when_next_is_dropped() {
        let (_dir, session, _lock) = session();
        session.write_segment(3, &fixture::segment("pna", 4711, 3));
        let (mut live, mut heard) = (Live::follow(session.path()), CollectedItems::default());
        poll(&mut live, &mut heard);
        // Listed, but dropped by the publisher before it is opened.
        live.later.push_back(5);
        poll(&mut live, &mut heard);
        assert_eq!((heard.segments.len(), heard.lost_segments), (1, 0));
        session.write_segment(6, &fixture::segment("pna", 4711, 6));
        poll(&mut live, &mut heard);
        assert_eq!((heard.segments.len(), heard.lost_segments), (2, 2));
        assert_eq!(live.status().lost_segments, 2);
    }

    trait MapOwned {
        fn map_owned(self) -> (Vec<u8>, Vec<u8>);
    }

    impl MapOwned for (&[u8], &[u8]) {
        fn map_owned(self) -> (Vec<u8>, Vec<u8>) {
            (self.0.to_vec(), self.1.to_vec())
        }
    }

    #[test]
    fn an_old_segment_is_read_to_its_end_before_the_next() {
        let (_dir, session, _lock) = session();
        session.write_segment(4, &fixture::segment("pna", 4711, 4));
        let (mut live, mut heard) = (Live::follow(session.path()), CollectedItems::default());
        poll(&mut live, &mut heard);
        session.append(4, &fixture::steps(0..2));
        session.write_segment(5, &[fixture::segment("pna", 4711, 5), fixture::steps(2..4)].concat());
        poll(&mut live, &mut heard);
        assert_eq!(heard.steps(), [1, 2, 3, 4]);
        assert_eq!((heard.segments.len(), heard.gaps, live.status().lost_segments), (2, 0, 0));
    }

    #[test]
    fn segments_dropped_before_they_were_read_are_counted() {
        let (_dir, session, _lock) = session();
        session.write_segment(0, &[fixture::segment("pna", 4711, 0), fixture::steps(0..2)].concat());
        let (mut live, mut heard) = (Live::follow(session.path()), CollectedItems::default());
        poll(&mut live, &mut heard);
        session.remove_segment(0);
        session.write_segment(3, &[fixture::segment("pna", 4711, 3), fixture::steps(6..8)].concat());
        poll(&mut live, &mut heard);
        assert_eq!(heard.steps(), [1, 2, 7, 8]);
        assert_eq!((heard.lost_segments, live.status().lost_segments), (2, 2));
        assert_eq!(live.status().warnings(), ["2 segments were dropped unread"]);
    }

    #[test]
    fn normal_end_is_reported() {
        let (_dir, session, lock) = session();
        session.write_segment(0, &[fixture::segment("pna", 4711, 0), fixture::steps(0..1)].concat());
        let (mut live, mut heard) = (Live::follow(session.path()), CollectedItems::default());
        poll(&mut live, &mut heard);
        let mut end = Vec::new();
        put_end(&mut end, &End { t_ns: fixture::START_NS, reason: "done".to_owned() });
        session.append(0, &end);
        drop(lock);
        assert!(poll(&mut live, &mut heard).changed);
        assert_eq!(live.status().state, SourceState::Ended("ended: done".to_owned()));
        assert_eq!(poll(&mut live, &mut heard), Progress::default());
    }

    #[test]
    fn exit_record_is_read_after_end() {
        let (_dir, session, lock) = session();
        session.write_segment(0, &fixture::segment("pna", 4711, 0));
        let (mut live, mut heard) = (Live::follow(session.path()), CollectedItems::default());
        poll(&mut live, &mut heard);
        // Killed while it was writing a frame.
        session.append(0, &fixture::steps(0..2));
        session.append(0, &fixture::steps(2..4)[..30]);
        drop(lock);
        poll(&mut live, &mut heard);
        assert_eq!(live.status().state, SourceState::Ended("ended unexpectedly: killed?".to_owned()));
        crate::source::exit_record::add(session.path(), "The kernel killed it.", "out-of-memory").unwrap();
        assert!(poll(&mut live, &mut heard).changed);
        assert_eq!(live.status().state, SourceState::Ended("died: out of memory".to_owned()));
        assert_eq!(poll(&mut live, &mut heard), Progress::default());
        // A later viewer reads it too.
        let (mut late, mut heard) = (Live::follow(session.path()), CollectedItems::default());
        poll(&mut late, &mut heard);
        assert_eq!(late.status().state, SourceState::Ended("died: out of memory".to_owned()));
        assert_eq!(crate::source::exit_record::read(session.path()).as_deref(), Some("The kernel killed it."));
    }

    #[test]
    fn killed_publisher_is_noticed_and_all_events_read() {
        let (_dir, session, lock) = session();
        session.write_segment(0, &fixture::segment("pna", 4711, 0));
        let (mut live, mut heard) = (Live::follow(session.path()), CollectedItems::default());
        poll(&mut live, &mut heard);
        session.append(0, &fixture::steps(0..2));
        session.append(0, &fixture::steps(2..4)[..30]);
        drop(lock);
        poll(&mut live, &mut heard);
        assert_eq!(heard.steps(), [1, 2]);
        assert_eq!(heard.damages, 1);
        assert_eq!(live.status().state, SourceState::Ended("ended unexpectedly: killed?".to_owned()));
    }

    #[test]
    fn stopped_publisher_is_reported_as_alive() {
        let (_dir, session, lock) = session();
        session.write_segment(0, &[fixture::segment("pna", 4711, 0), fixture::steps(0..2)].concat());
        let (mut live, mut heard) = (Live::follow(session.path()), CollectedItems::default());
        let stopped = Stopped { wall_ns: 1_700_000_000_000_000_000, reason: "the disk was full".to_owned() };
        lock.report(Some(&stopped));
        poll(&mut live, &mut heard);
        let words = "published until 22:13:20 UTC, then the disk was full";
        assert_eq!(live.status().state, SourceState::Running);
        assert_eq!(live.status().warnings(), [words]);
        lock.report(None);
        session.write_segment(1, &[fixture::segment("pna", 4711, 1), fixture::steps(4..6)].concat());
        poll(&mut live, &mut heard);
        assert_eq!((live.status().warnings().len(), heard.steps()), (0, vec![1, 2, 5, 6]));
        lock.report(Some(&stopped));
        drop(lock);
        poll(&mut live, &mut heard);
        assert_eq!(live.status().state, SourceState::Ended(format!("ended; {words}")));
        let Some(Definition::Fact(Fact::NotRecorded { what, amount })) = heard.definitions.last() else { panic!() };
        assert_eq!((what.as_str(), amount.as_str()), ("what happened after 22:13:20 UTC", "the disk was full"));
    }

    #[test]
    fn removed_directory_ends_live_source() {
        let (_dir, session, _lock) = session();
        session.write_segment(0, &fixture::segment("pna", 4711, 0));
        let (mut live, mut heard) = (Live::follow(session.path()), CollectedItems::default());
        poll(&mut live, &mut heard);
        std::fs::remove_dir_all(session.path()).unwrap();
        poll(&mut live, &mut heard);
        assert_eq!(live.status().state, SourceState::Ended("its directory was removed".to_owned()));
    }

    #[test]
    fn linked_segment_ends_live_source() {
        let (_dir, session, _lock) = session();
        std::os::unix::fs::symlink("/etc/passwd", session.path().join("00000000.gnntop")).unwrap();
        let (mut live, mut heard) = (Live::follow(session.path()), CollectedItems::default());
        poll(&mut live, &mut heard);
        assert!(matches!(live.status().state, SourceState::Ended(why) if why.starts_with("cannot be read")));
    }

    #[test]
    fn small_budget_leaves_more() {
        let (_dir, session, _lock) = session();
        let mut bytes = fixture::segment("pna", 4711, 0);
        let steps = 60_000;
        (0..steps / 10).for_each(|at| bytes.extend(fixture::steps(at * 10..at * 10 + 10)));
        assert!(bytes.len() > 4 * CHUNK_LEN);
        session.write_segment(0, &bytes);
        let (mut live, mut heard) = (Live::follow(session.path()), CollectedItems::default());
        let mut polls = 1;
        while live.poll(&mut heard, Duration::ZERO).more {
            polls += 1;
        }
        assert!(polls >= 4, "{polls}");
        assert_eq!(heard.steps().len() as u64, steps);
    }
}

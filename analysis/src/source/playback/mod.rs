//! Plays a recording in real time: a clock, a position that moves with it, and items passed on when due.
//!
//! The recording is read a little ahead of the position. Blocks far before the position pass unchanged. A block around the
//! position is decoded, and its events are passed on in smaller blocks as they become due. Going back means starting over
//! and reading up to the new position as fast as possible. Input from a pipe is kept in a file meanwhile, and played as
//! that file once it is complete.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::polling::{Control, Progress, Source, SourceState, Status, Transport};
use super::recording::RecordingError;
use crate::stream::Sink;

mod outlines;
mod pacer;
mod played_part;
mod step_search;

use outlines::Outlines;
use played_part::{FeedResult, PipeInput, PlayedPart};
use step_search::StepSearch;

/// How far one frame step moves, in nanoseconds.
pub const FRAME_NS: u64 = 100_000_000;
/// The speeds that keys select; 1 is as recorded.
pub const SPEEDS: [f64; 10] = [0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 10.0, 20.0, 50.0, 100.0];
/// A longer pause between two polls (of a stopped viewer) counts as this much.
const LONGEST_TICK: Duration = Duration::from_millis(500);

/// A jump forward of at most this much is read through.
const NEAR_NS: u64 = 10_000_000_000;

/// Reads a clock: time since any fixed instant.
pub type Clock = Box<dyn Fn() -> Duration + Send>;

/// How a replay starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlaybackOptions {
    /// Initial speed; 1 is as recorded.
    pub speed: f64,
    /// Where to start, relative to the beginning of the recording.
    pub from: Duration,
    /// Whether to start over at the end.
    pub looping: bool,
}

impl Default for PlaybackOptions {
    fn default() -> Self {
        Self { speed: 1.0, from: Duration::ZERO, looping: false }
    }
}

/// A recording being played.
pub struct Playback {
    /// One recording, or those of the ranks of a run.
    paths: Vec<PathBuf>,
    /// What is kept of a recording that comes through a pipe.
    pipe_input: Option<PipeInput>,
    /// Parts that are read in parallel: several if recordings were concatenated.
    parts: Vec<PlayedPart>,
    clock: Clock,
    /// The clock at the last poll.
    last_tick: Duration,
    /// Relative to the start of the recording.
    position_ns: u64,
    total_ns: Option<u64>,
    speed: f64,
    paused: bool,
    looping: bool,
    /// Ends of the part that is repeated.
    repeated: (Option<u64>, Option<u64>),
    /// A search for a step.
    search: Option<StepSearch>,
    /// The step that was not found last, and the highest.
    missed_step: Option<(u64, u64)>,
    /// Whether the recording must be read again from its beginning before the next poll passes anything on.
    rewound: bool,
    /// Whether everything up to the position was passed on at the last poll.
    arrived: bool,
    /// Whether the end was reached.
    finished: bool,
    failed: Option<String>,
}

impl Playback {
    /// Opens the recording at `path` (`-` is standard input) and plays it on the system's clock.
    ///
    /// # Errors
    /// As for [`super::Recording::open`].
    pub fn open(path: PathBuf, options: PlaybackOptions) -> Result<Self, RecordingError> {
        Self::open_run(vec![path], options)
    }

    /// Opens the recordings of the ranks of a run, and plays them together. `-` must be the only path.
    ///
    /// # Errors
    /// If one of them cannot be opened, or is of another run than the first.
    pub fn open_run(paths: Vec<PathBuf>, options: PlaybackOptions) -> Result<Self, RecordingError> {
        let start = Instant::now();
        Self::open_all(paths, options, Box::new(move || start.elapsed()))
    }

    /// Like [`Playback::open`], on another clock.
    ///
    /// # Errors
    /// As for [`super::Recording::open`].
    #[cfg(test)]
    pub(crate) fn with_clock(path: PathBuf, options: PlaybackOptions, clock: Clock) -> Result<Self, RecordingError> {
        Self::open_all(vec![path], options, clock)
    }

    fn open_all(paths: Vec<PathBuf>, options: PlaybackOptions, clock: Clock) -> Result<Self, RecordingError> {
        let from_ns = u64::try_from(options.from.as_nanos()).unwrap_or(u64::MAX);
        let piped = if let [path] = paths.as_slice() { PlayedPart::open_pipe(path)? } else { None };
        let (strands, piped, total_ns) = match piped {
            Some((strand, piped)) => (vec![strand], Some(piped), None),
            None => {
                let outlines = Outlines::scan(&paths);
                let total_ns = outlines.total_ns(&paths);
                let strands = PlayedPart::open_all(&paths, None, &outlines, from_ns.min(total_ns.unwrap_or(u64::MAX)))?;
                outlines.refuse_other_runs(&paths)?;
                (strands, None, total_ns)
            }
        };
        let mut playback = Self {
            paths,
            pipe_input: piped,
            parts: strands,
            last_tick: clock(),
            clock,
            position_ns: from_ns.min(total_ns.unwrap_or(u64::MAX)),
            total_ns,
            speed: options.speed.clamp(SPEEDS[0], SPEEDS[SPEEDS.len() - 1]),
            paused: false,
            looping: options.looping,
            repeated: (None, None),
            search: None,
            missed_step: None,
            rewound: false,
            arrived: false,
            finished: false,
            failed: None,
        };
        playback.switch_to_file();
        Ok(playback)
    }

    /// Plays input from a pipe as a file from now on, if it is complete.
    fn switch_to_file(&mut self) {
        let file = self.pipe_input.as_ref().filter(|_| self.total_ns.is_none()).and_then(PipeInput::file);
        let Some(file) = file.filter(|file| !self.paths.contains(file)) else { return };
        self.paths = vec![file];
        let outlines = Outlines::scan(&self.paths);
        self.total_ns = outlines.total_ns(&self.paths);
        self.position_ns = self.clamped(self.position_ns);
        // Ranks that came one after another are read in parallel, from the beginning.
        if outlines.has_several_parts() {
            (self.rewound, self.arrived, self.finished) = (true, false, false);
        }
        self.finished &= !self.looping;
    }

    /// Moves the position with the clock, unless the data has not caught up with the position.
    fn tick(&mut self) {
        let now = (self.clock)();
        let passed = now.saturating_sub(self.last_tick).min(LONGEST_TICK);
        self.last_tick = now;
        if self.paused || self.finished || !self.arrived {
            return;
        }
        let moved_ns = (passed.as_nanos() as f64 * self.speed) as u64;
        let before_ns = self.position_ns;
        self.position_ns = self.clamped(before_ns.saturating_add(moved_ns));
        if let (Some(from_ns), Some(to_ns)) = self.repeated
            && before_ns < to_ns
            && to_ns <= self.position_ns
        {
            self.seek(from_ns);
        }
    }

    fn clamped(&self, position_ns: u64) -> u64 {
        position_ns.min(self.total_ns.unwrap_or(u64::MAX))
    }

    fn seek(&mut self, position_ns: u64) {
        let position_ns = self.clamped(position_ns);
        if position_ns < self.position_ns {
            if self.total_ns.is_none() {
                return; // Input from a pipe is gone.
            }
            self.rewound = true;
        }
        self.rewound |= position_ns > self.position_ns.saturating_add(NEAR_NS) && self.is_nearer_by_chunk(position_ns);
        self.position_ns = position_ns;
        self.arrived = false;
        self.finished = false;
    }

    /// Whether an unread chunk's end is before this position, so that the data up to it can be skipped.
    fn is_nearer_by_chunk(&self, position_ns: u64) -> bool {
        if self.total_ns.is_none() {
            return false;
        }
        let outlines = Outlines::scan(&self.paths);
        let lies_ahead = |(at, strand): (usize, &PlayedPart)| {
            let chunk = outlines.chunk_before_position(at, position_ns);
            chunk.is_some_and(|(chunks, chunk)| chunks.next_offset(chunk) > strand.offset())
        };
        self.parts.len() == self.paths.len() && self.parts.iter().enumerate().any(lies_ahead)
    }

    /// Marks one end of the part to be repeated, then the other, then clears both. Input from a pipe cannot be played again.
    fn mark(&mut self) {
        let here_ns = self.position_ns;
        self.repeated = match self.repeated {
            _ if self.total_ns.is_none() => (None, None),
            (None, _) => (Some(here_ns), None),
            (Some(from_ns), None) if from_ns != here_ns => (Some(from_ns.min(here_ns)), Some(from_ns.max(here_ns))),
            (Some(_), _) => (None, None),
        };
        if let (Some(from_ns), Some(_)) = self.repeated {
            self.seek(from_ns);
        }
    }

    /// Continues the search for a step, within the budget, and goes there. Returns whether the search is still running.
    fn continue_search(&mut self, budget: Duration) -> bool {
        let Some(search) = &mut self.search else { return false };
        let Some(found) = search.advance(budget) else { return true };
        self.search = None;
        self.missed_step = found.err();
        found.ok().or(self.total_ns).into_iter().for_each(|position_ns| self.seek(position_ns));
        false
    }

    /// Starts over at the beginning of the recording.
    fn reopen(&mut self, sink: &mut dyn Sink) {
        self.rewound = false;
        let title = self.pipe_input.as_ref().map(PipeInput::title);
        match PlayedPart::open_all(&self.paths, title, &Outlines::scan(&self.paths), self.position_ns) {
            Ok(strands) => {
                self.parts = strands;
                sink.reset();
            }
            Err(error) => self.failed = Some(error.to_string()),
        }
    }

    /// Reads all parts ahead of the position, within the budget. Reports whether all have reached the position.
    fn feed(&mut self, sink: &mut dyn Sink, budget: Duration) -> FeedResult {
        let began = Instant::now();
        let mut fed = FeedResult::End;
        for strand in &mut self.parts {
            let next = strand.feed(self.position_ns, sink, began, budget);
            fed = match (fed, next) {
                (FeedResult::Behind, _) | (_, FeedResult::Behind) => return FeedResult::Behind,
                (FeedResult::Waiting, _) | (_, FeedResult::Waiting) => FeedResult::Waiting,
                (FeedResult::End, FeedResult::End) => FeedResult::End,
                _ => FeedResult::Ahead,
            };
        }
        fed
    }

    /// Passes on what has become due by a position; `false` if there was nothing.
    fn release(&mut self, position_ns: u64, sink: &mut dyn Sink) -> bool {
        // All of them: `any` would stop at the first that has something.
        let released = self.parts.iter_mut().map(|strand| strand.release(position_ns, sink));
        released.filter(|any| *any).count() > 0
    }

    /// At the end of the recording: stops, or starts over.
    fn finish(&mut self) {
        if self.looping && self.total_ns.is_some_and(|total_ns| total_ns > 0) {
            self.seek(0);
        } else {
            self.finished = true;
        }
    }
}

impl Source for Playback {
    fn poll(&mut self, sink: &mut dyn Sink, budget: Duration) -> Progress {
        self.switch_to_file();
        self.tick();
        if self.continue_search(budget) {
            return Progress { changed: true, more: true };
        }
        if self.rewound {
            self.reopen(sink);
        }
        if self.finished || self.failed.is_some() {
            return Progress::default();
        }
        // What was held back goes first, so that nothing on its track overtakes it.
        let mut released = self.release(self.position_ns, sink);
        let fed = self.feed(sink, budget);
        released |= self.release(self.position_ns, sink);
        self.arrived = matches!(fed, FeedResult::Ahead | FeedResult::End);
        let is_empty = self.parts.iter().all(PlayedPart::is_empty);
        if fed == FeedResult::End && (is_empty || Some(self.position_ns) == self.total_ns) {
            self.release(u64::MAX, sink);
            self.finish();
        }
        let changed = released || fed == FeedResult::Behind || !self.paused;
        Progress { changed, more: fed == FeedResult::Behind }
    }

    fn status(&self) -> Status {
        let mut all = self.parts.iter().map(PlayedPart::status);
        let mut status = all.next().unwrap_or_default();
        for other in all {
            status.damage.add(&other.damage);
            status.left_out += other.left_out;
            status.newer_format = status.newer_format.max(other.newer_format);
        }
        status.state = match (&self.failed, self.finished) {
            (Some(why), _) => SourceState::Ended(why.clone()),
            (None, true) => status.state,
            (None, false) if matches!(status.state, SourceState::Ended(_)) => SourceState::Running,
            (None, false) => status.state,
        };
        status.ranks_in_turn = self.parts.iter().any(PlayedPart::is_in_turn);
        status.hint = self.pipe_input.as_ref().filter(|_| self.total_ns.is_none()).map(PipeInput::hint);
        status.transport = Some(Transport {
            position_ns: self.position_ns,
            total_ns: self.total_ns,
            speed: self.speed,
            paused: self.paused,
            looping: self.looping,
            repeated: self.repeated,
            seeking: !self.arrived || self.search.is_some(),
            missed_step: self.missed_step,
        });
        status
    }

    fn control(&mut self, control: Control) {
        self.missed_step = None;
        match control {
            Control::TogglePause if self.finished => {
                self.paused = false;
                self.seek(0);
            }
            Control::TogglePause => self.paused = !self.paused,
            Control::Faster => self.speed = SPEEDS.into_iter().find(|speed| *speed > self.speed).unwrap_or(self.speed),
            Control::Slower => {
                self.speed = SPEEDS.into_iter().rev().find(|speed| *speed < self.speed).unwrap_or(self.speed);
            }
            Control::StepFrames(frames) => {
                self.paused = true;
                let step_ns = frames.saturating_mul(FRAME_NS as i64);
                self.seek(self.position_ns.saturating_add_signed(step_ns));
            }
            Control::Seek(position_ns) => self.seek(position_ns),
            Control::SeekShare(share) => {
                if let Some(total_ns) = self.total_ns {
                    self.seek((total_ns as f64 * share.clamp(0.0, 1.0)) as u64);
                }
            }
            Control::SeekStep(step) if self.total_ns.is_some() => {
                // The ranks of a run take the same steps: the first one shows where that is.
                let outlines = Outlines::scan(&self.paths);
                self.search = self.paths.first().and_then(|path| StepSearch::begin(path, &outlines, step).ok());
            }
            Control::SeekStep(_) => (),
            Control::MarkRange => self.mark(),
            Control::ToggleLoop => self.looping = !self.looping,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::super::fixture::{self, CollectedItems, STEP_NS};
    use super::*;

    const LONG: Duration = Duration::from_secs(60);
    /// Ten seconds of steps of 10 ms, in blocks of one second, as a recorder writes them.
    const STEPS: u64 = 1000;

    struct Player {
        _dir: tempfile::TempDir,
        playback: Playback,
        collected: CollectedItems,
        now: Arc<Mutex<Duration>>,
    }

    impl Player {
        fn start(options: PlaybackOptions) -> Self {
            Self::new(&fixture::recording(STEPS, 100), options)
        }

        fn new(bytes: &[u8], options: PlaybackOptions) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("a.gnntop");
            std::fs::write(&path, bytes).unwrap();
            let now = Arc::new(Mutex::new(Duration::ZERO));
            let shared = Arc::clone(&now);
            let playback = Playback::with_clock(path, options, Box::new(move || *shared.lock().unwrap())).unwrap();
            let mut player = Self { _dir: dir, playback, collected: CollectedItems::default(), now };
            player.poll();
            player
        }

        fn poll(&mut self) -> Progress {
            self.playback.poll(&mut self.collected, LONG)
        }

        /// Lets time pass in ticks short enough to count in full.
        fn wait(&mut self, millis: u64) {
            for _ in 0..millis / 100 {
                *self.now.lock().unwrap() += Duration::from_millis(100);
                self.poll();
            }
        }

        fn control(&mut self, control: Control) {
            self.playback.control(control);
            self.poll();
        }

        fn steps(&self) -> u64 {
            let steps = self.collected.steps();
            assert_eq!(steps, (1..=steps.len() as u64).collect::<Vec<_>>(), "each step once, in order");
            assert_eq!(self.collected.gaps, 0);
            steps.len() as u64
        }

        fn transport(&self) -> Transport {
            self.playback.status().transport.unwrap()
        }
    }

    #[test]
    fn playback_passes_steps_when_due() {
        let mut player = Player::start(PlaybackOptions::default());
        assert_eq!(player.steps(), 0);
        player.wait(100);
        assert_eq!(player.steps(), 10);
        player.wait(1500);
        assert_eq!(player.steps(), 160);
        assert_eq!(player.transport().position_ns, 160 * STEP_NS);
        assert_eq!(player.transport().total_ns, Some(STEPS * STEP_NS));
        player.wait(10_000);
        assert_eq!((player.steps(), player.collected.ends.len()), (STEPS, 1));
        assert_eq!(player.playback.status().state, SourceState::Ended("end of the recording".to_owned()));
        assert_eq!(player.poll(), Progress::default());
    }

    #[test]
    fn playback_speed_scales_time() {
        let mut player = Player::start(PlaybackOptions { speed: 4.0, ..PlaybackOptions::default() });
        player.wait(500);
        assert_eq!(player.steps(), 200);
        player.control(Control::Slower);
        player.control(Control::Slower);
        assert_eq!(player.transport().speed, 1.0);
        player.wait(500);
        assert_eq!(player.steps(), 250);
        (0..20).for_each(|_| player.control(Control::Faster));
        assert_eq!(player.transport().speed, 100.0);
        (0..20).for_each(|_| player.control(Control::Slower));
        assert_eq!(player.transport().speed, 0.1);
    }

    #[test]
    fn pause_stops_and_frame_step_moves() {
        let mut player = Player::start(PlaybackOptions::default());
        player.wait(200);
        player.control(Control::TogglePause);
        player.wait(1000);
        assert_eq!((player.steps(), player.transport().paused), (20, true));
        player.control(Control::StepFrames(1));
        assert_eq!(player.steps(), 30);
        player.control(Control::StepFrames(-2));
        assert_eq!((player.steps(), player.collected.resets), (10, 1));
        player.control(Control::TogglePause);
        player.wait(100);
        assert_eq!(player.steps(), 20);
    }

    #[test]
    fn seek_forward_and_back() {
        let mut player = Player::start(PlaybackOptions::default());
        player.control(Control::Seek(7_005_000_000));
        assert_eq!((player.steps(), player.collected.resets), (700, 0));
        player.control(Control::SeekShare(0.25));
        assert_eq!((player.steps(), player.collected.resets), (250, 1));
        player.control(Control::Seek(u64::MAX));
        assert_eq!(player.steps(), STEPS);
        player.control(Control::SeekShare(0.0));
        assert_eq!((player.steps(), player.playback.status().state), (0, SourceState::Running));
    }

    #[test]
    fn playback_starts_at_position_and_loops() {
        let options = PlaybackOptions { from: Duration::from_secs(9), looping: true, speed: 1.0 };
        let mut player = Player::start(options);
        assert_eq!(player.steps(), 900);
        player.wait(1000);
        player.wait(500);
        assert_eq!(player.collected.resets, 1);
        assert!((30..60).contains(&player.steps()), "{}", player.steps());
        player.control(Control::ToggleLoop);
        player.wait(11_000);
        assert_eq!((player.steps(), player.collected.resets), (STEPS, 1));
        player.control(Control::TogglePause);
        assert_eq!((player.steps(), player.collected.resets), (0, 2), "the pause key plays an ended recording again");
    }

    #[test]
    fn seek_step_finds_any_step() {
        let mut player = Player::start(PlaybackOptions::default());
        player.control(Control::SeekStep(700));
        player.poll();
        assert_eq!((player.steps(), player.transport().position_ns), (700, 700 * STEP_NS));
        player.control(Control::SeekStep(300));
        player.poll();
        assert_eq!((player.steps(), player.collected.resets), (300, 1));
        player.control(Control::SeekStep(1_000_000));
        player.poll();
        assert_eq!(player.steps(), STEPS, "none is that high: the end");
        assert_eq!(player.transport().missed_step, Some((1_000_000, STEPS)));
        assert!(!player.transport().seeking);
    }

    #[test]
    fn marked_range_repeats() {
        let mut player = Player::start(PlaybackOptions::default());
        player.control(Control::Seek(2_000_000_000));
        player.control(Control::MarkRange);
        assert_eq!(player.transport().repeated, (Some(2_000_000_000), None));
        player.control(Control::MarkRange);
        assert_eq!(player.transport().repeated, (None, None), "a part without length does not count");
        player.control(Control::Seek(3_000_000_000));
        player.control(Control::MarkRange);
        player.control(Control::Seek(2_000_000_000));
        player.control(Control::MarkRange);
        assert_eq!(player.transport().repeated, (Some(2_000_000_000), Some(3_000_000_000)), "in either order");
        for _ in 0..5 {
            player.wait(900);
            let position_ns = player.transport().position_ns;
            assert!((2_000_000_000..3_000_000_000).contains(&position_ns), "{position_ns}");
        }
        player.control(Control::MarkRange);
        player.wait(2000);
        assert!(player.transport().position_ns > 3_000_000_000, "no longer");
    }

    #[test]
    fn small_budget_delays_clock() {
        let mut player = Player::start(PlaybackOptions::default());
        player.playback.control(Control::Seek(9_000_000_000));
        let mut polls = 0;
        while player.playback.poll(&mut player.collected, Duration::ZERO).more {
            *player.now.lock().unwrap() += Duration::from_millis(100);
            polls += 1;
        }
        assert!(polls > 5, "{polls}");
        assert_eq!(player.steps(), 900);
    }

    #[test]
    fn long_poll_pause_does_not_jump() {
        let mut player = Player::start(PlaybackOptions::default());
        *player.now.lock().unwrap() += Duration::from_secs(3600);
        player.poll();
        assert_eq!(player.steps(), 50);
    }

    #[test]
    fn damage_is_skipped_in_playback() {
        let mut bytes = fixture::recording(STEPS, 100);
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0xFF;
        let mut player = Player::new(&bytes, PlaybackOptions { speed: 10.0, ..PlaybackOptions::default() });
        player.wait(1200);
        assert_eq!((player.collected.steps().len() as u64, player.collected.damages), (STEPS - 100, 1));
        assert!(matches!(player.playback.status().state, SourceState::Ended(_)));
    }

    /// A pipe into which `first` has been written, and its writing end.
    fn piped(first: &[u8]) -> (Player, std::io::PipeWriter) {
        use std::io::Write;
        use std::os::fd::AsRawFd;
        let (reading, mut writing) = std::io::pipe().unwrap();
        let path = PathBuf::from(format!("/dev/fd/{}", reading.as_raw_fd()));
        let now = Arc::new(Mutex::new(Duration::ZERO));
        let shared = Arc::clone(&now);
        let playback = std::thread::scope(|scope| {
            scope.spawn(|| writing.write_all(first).unwrap());
            let clock = Box::new(move || *shared.lock().unwrap());
            Playback::with_clock(path, PlaybackOptions::default(), clock).unwrap()
        });
        let player = Player { _dir: tempfile::tempdir().unwrap(), playback, collected: CollectedItems::default(), now };
        (player, writing)
    }

    #[test]
    fn complete_pipe_becomes_file() {
        use std::io::Write;
        let bytes = fixture::recording(STEPS, 100);
        let (first, rest) = bytes.split_at(bytes.len() / 2);
        let (mut player, mut writing) = piped(first);
        player.poll();
        player.wait(1000);
        assert_eq!((player.steps(), player.transport().total_ns), (100, None));
        assert!(player.playback.status().hint.unwrap().contains("once all of it has arrived"));
        player.control(Control::Seek(0));
        player.control(Control::MarkRange);
        assert_eq!(
            (player.steps(), player.collected.resets, player.transport().repeated),
            (100, 0, (None, None)),
            "not yet"
        );
        writing.write_all(rest).unwrap();
        drop(writing);
        while player.transport().total_ns.is_none() {
            player.poll();
        }
        assert_eq!((player.transport().total_ns, player.playback.status().hint), (Some(STEPS * STEP_NS), None));
        assert_eq!((player.steps(), player.collected.resets), (100, 0), "it continues where it was");
        player.control(Control::Seek(500_000_000));
        assert_eq!((player.steps(), player.collected.resets), (50, 1), "backwards");
        player.control(Control::SeekStep(700));
        player.poll();
        assert_eq!(player.steps(), 700);
        assert!(player.playback.status().title.contains("/dev/fd/"), "{}", player.playback.status().title);
        player.wait(4000);
        assert_eq!((player.steps(), player.collected.ends.len()), (STEPS, 1));
    }

    #[test]
    fn a_pipe_that_has_ended_at_once_is_a_file_from_the_start() {
        let bytes = fixture::recording(50, 10);
        let (mut player, writing) = piped(&bytes);
        drop(writing);
        while player.transport().total_ns.is_none() {
            player.poll();
        }
        player.control(Control::SeekShare(1.0));
        player.control(Control::SeekShare(0.5));
        assert_eq!(player.steps(), 25);
    }
}

//! One part of a recording being played: its reader, and what is held back until it is due.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::super::pipe::Pipe;
use super::super::pipe_file::{MAX_BYTES, PipeFile};
use super::super::polling::{Source, Status};
use super::super::recording::{Recording, RecordingAdvance, RecordingError, STDIN};
use super::outlines::Outlines;
use super::pacer::Pacer;
use crate::stream::Sink;

/// How far [`PlayedPart::feed`] got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FeedResult {
    /// Far enough ahead of the position.
    Ahead,
    /// The budget was used up first.
    Behind,
    /// A pipe has no data now.
    Waiting,
    /// The recording ends first.
    End,
}

/// Input from a pipe that is kept.
pub(super) struct PipeInput {
    file: PipeFile,
    /// Its title.
    title: String,
}

impl PipeInput {
    /// The file with all of it; `None` while more may come, or if it is too long.
    pub(super) fn file(&self) -> Option<PathBuf> {
        self.file.is_complete().then(|| self.file.path().to_owned())
    }

    /// Its title.
    pub(super) fn title(&self) -> &str {
        &self.title
    }

    /// Why it cannot be played backwards.
    pub(super) fn hint(&self) -> String {
        match self.file.is_full() {
            true => format!("this pipe's input exceeds {} MiB, so it cannot be played backwards", MAX_BYTES >> 20),
            false => "a pipe's input can be played backwards once all of it has arrived".to_owned(),
        }
    }
}

/// One part of a recording.
pub(super) struct PlayedPart {
    recording: Recording,
    pacer: Pacer,
}

impl PlayedPart {
    /// Opens all parts of the recordings at `paths` that are to be read in parallel, with `title` instead of the path if it
    /// is given. Uses summaries for what is far before the position, if there are any.
    pub(super) fn open_all(
        paths: &[PathBuf],
        title: Option<&str>,
        outlines: &Outlines,
        position_ns: u64,
    ) -> Result<Vec<Self>, RecordingError> {
        let mut strands = Vec::new();
        for (at, (path, outline)) in paths.iter().zip(outlines.all()).enumerate() {
            let strand = |recording: Recording| Self {
                recording: recording.with_title(title),
                pacer: Pacer::new(outlines.start()),
            };
            match outline.as_ref().filter(|outline| outline.parts.len() > 1) {
                Some(outline) => {
                    for part in &outline.parts {
                        strands.push(strand(Recording::open_part(path, part)?));
                    }
                }
                None => {
                    let chunk = outlines.chunk_before_position(at, position_ns);
                    let near = chunk.and_then(|(chunks, chunk)| Recording::open_after(path, chunks, chunk));
                    strands.push(strand(near.map_or_else(|| Recording::open(path), Ok)?));
                }
            }
        }
        Ok(strands)
    }

    /// Opens a pipe so that its input can be played as a file once it is complete; `None` if this is not a pipe, or if
    /// there is no room for temporary files.
    pub(super) fn open_pipe(path: &Path) -> Result<Option<(Self, PipeInput)>, RecordingError> {
        let is_stdin = path == Path::new("-");
        // A file redirected by a shell (`< a.gnntop`) is read like a pipe.
        if !is_stdin && !path.metadata().is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
            return Ok(None);
        }
        let kept = if is_stdin {
            Pipe::with_file(io::stdin(), MAX_BYTES)
        } else {
            File::open(path).and_then(|open| Pipe::with_file(open, MAX_BYTES))
        };
        let Ok((pipe, spool)) = kept else { return Ok(None) };
        let title = if is_stdin { STDIN.to_owned() } else { path.display().to_string() };
        let recording = Recording::from_open_pipe(pipe, title.clone())?;
        spool.wait_briefly();
        Ok(Some((Self { recording, pacer: Pacer::default() }, PipeInput { file: spool, title })))
    }

    /// Passes on what has become due by this position; `false` if there was nothing.
    pub(super) fn release(&mut self, position_ns: u64, sink: &mut dyn Sink) -> bool {
        self.pacer.set_position(position_ns);
        self.pacer.release(sink)
    }

    /// Reads ahead of the position until `deadline`.
    pub(super) fn feed(
        &mut self,
        position_ns: u64,
        sink: &mut dyn Sink,
        began: Instant,
        budget: Duration,
    ) -> FeedResult {
        self.pacer.resume(sink);
        loop {
            self.pacer.set_position(position_ns);
            if self.pacer.is_ahead() {
                return FeedResult::Ahead;
            }
            match self.recording.advance(&mut self.pacer.paced_sink(sink)) {
                RecordingAdvance::Read => (),
                RecordingAdvance::Idle => return FeedResult::Waiting,
                RecordingAdvance::End => return FeedResult::End,
            }
            if began.elapsed() >= budget {
                return FeedResult::Behind;
            }
        }
    }

    /// How far its file was read, in bytes.
    pub(super) fn offset(&self) -> u64 {
        self.recording.offset()
    }

    /// Whether nothing is held back.
    pub(super) fn is_empty(&self) -> bool {
        self.pacer.is_empty()
    }

    /// Whether sessions that ran at the same time come one after another in it.
    pub(super) fn is_in_turn(&self) -> bool {
        self.pacer.is_in_turn()
    }

    /// What is known of the stretch.
    pub(super) fn status(&self) -> Status {
        self.recording.status()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::super::super::{Control, SourceState};
    use super::super::{Playback, PlaybackOptions};
    use super::*;
    use crate::ranks::Run;
    use crate::recorder::{RecorderOptions, RunRecorder};
    use gnntop_fixtures::{MS, ParallelRun, SECOND, each_item};

    /// A recording played into a run, on a clock that the test moves.
    struct Player {
        playback: Playback,
        now_ms: Arc<AtomicU64>,
        run: Run,
        _dir: tempfile::TempDir,
    }

    impl Player {
        fn play(bytes: &[u8]) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("run.gnntop");
            fs::write(&path, bytes).unwrap();
            let now_ms = Arc::new(AtomicU64::new(0));
            let clock = Arc::clone(&now_ms);
            let clock = Box::new(move || Duration::from_millis(clock.load(Ordering::Relaxed)));
            let playback = Playback::with_clock(path, PlaybackOptions::default(), clock).unwrap();
            let mut player = Self { playback, now_ms, run: Run::default(), _dir: dir };
            player.poll();
            player
        }

        fn poll(&mut self) {
            while self.playback.poll(&mut self.run, Duration::from_secs(1)).more {}
        }

        fn wait(&mut self, ms: u64) {
            for _ in 0..ms / 100 {
                self.now_ms.fetch_add(100, Ordering::Relaxed);
                self.poll();
            }
        }

        /// Number of steps so far on each rank.
        fn steps(&self) -> Vec<u64> {
            self.run.ranks().all().iter().map(|rank| rank.store.steps().total()).collect()
        }
    }

    /// Three ranks, one of them on a machine whose clock is far off.
    fn parallel() -> ParallelRun {
        let elsewhere = vec![(2, 5000 * SECOND as i64, Some(MS))];
        ParallelRun { ranks: 3, elsewhere, ..ParallelRun::default() }
    }

    /// A recording of the ranks, in turns of 300 ms.
    fn interleaved(parallel: &ParallelRun) -> Vec<u8> {
        let mut out = Vec::new();
        let mut recorder = RunRecorder::new(&mut out, RecorderOptions::default());
        let sessions = parallel.sessions();
        let longest = sessions.iter().map(Vec::len).max().unwrap();
        let mut readers: Vec<_> = sessions.iter().map(|_| gnntop_wire::StreamReader::new()).collect();
        for at in (0..longest).step_by(200) {
            for (rank, (stream, reader)) in (0u32..).zip(sessions.iter().zip(&mut readers)) {
                recorder.select_session(parallel.info(rank).session_id);
                reader.fill(&stream[at.min(stream.len())..(at + 200).min(stream.len())]);
                while let Some(item) = reader.next() {
                    recorder.apply(item);
                }
            }
            recorder.flush().unwrap();
        }
        out
    }

    #[test]
    fn ranks_play_in_parallel() {
        for bytes in [parallel().bytes(), interleaved(&parallel())] {
            let mut player = Player::play(&bytes);
            player.wait(1200);
            // The first step ends after 139 ms, the others each 40 ms later.
            assert_eq!(player.steps(), [27, 27, 27]);
            player.playback.control(Control::Seek(500 * MS));
            player.poll();
            assert_eq!(player.steps(), [10, 10, 10], "also backwards");
            player.playback.control(Control::SeekStep(40));
            player.poll();
            player.poll();
            assert_eq!(player.steps(), [40, 40, 40]);
            player.wait(3000);
            assert_eq!(player.steps(), [60, 60, 60]);
            assert!(matches!(player.playback.status().state, SourceState::Ended(_)), "{:?}", player.playback.status());
            assert!(player.run.members().iter().all(|member| member.store.losses().is_complete()));
            assert!(player.run.notes().is_empty(), "{:?}", player.run.notes());
        }
    }

    /// A recording of one rank, or of all in turn.
    fn recorded(sessions: &[(u128, Vec<u8>)], chunk_bytes: u64) -> Vec<u8> {
        let mut out = Vec::new();
        let options = RecorderOptions { chunk_bytes, ..RecorderOptions::default() };
        let mut recorder = RunRecorder::new(&mut out, options);
        let longest = sessions.iter().map(|(_, stream)| stream.len()).max().unwrap();
        let mut readers: Vec<_> = sessions.iter().map(|_| gnntop_wire::StreamReader::new()).collect();
        for at in (0..longest).step_by(200) {
            for ((id, stream), reader) in sessions.iter().zip(&mut readers) {
                recorder.select_session(*id);
                reader.fill(&stream[at.min(stream.len())..(at + 200).min(stream.len())]);
                while let Some(item) = reader.next() {
                    recorder.apply(item);
                }
            }
            recorder.flush().unwrap();
        }
        out
    }

    #[test]
    fn seek_uses_summaries_before_position() {
        let parallel = ParallelRun { steps: 1500, ..parallel() };
        let sessions: Vec<(u128, Vec<u8>)> =
            (0..3).map(|rank| (parallel.info(rank).session_id, parallel.session(rank))).collect();
        let [mut player, mut plain] = [2048, u64::MAX].map(|bytes| Player::play(&recorded(&sessions, bytes)));
        let totals = |player: &Player| {
            let status = player.playback.status().transport.unwrap();
            (status.total_ns, status.position_ns)
        };
        assert_eq!(totals(&player), totals(&plain));
        for position_ns in [50_000 * MS, 20_000 * MS, 21_000 * MS, 40_000 * MS, 3_000 * MS, 59_000 * MS] {
            for player in [&mut player, &mut plain] {
                player.playback.control(Control::TogglePause);
                player.playback.control(Control::Seek(position_ns));
                player.poll();
                player.poll();
                player.playback.control(Control::TogglePause);
            }
            assert_eq!((player.steps(), totals(&player)), (plain.steps(), totals(&plain)), "at {position_ns}");
            let past = |player: &Player| player.run.store().past().map_or(0, |past| past.steps);
            assert!(past(&plain) == 0 && (past(&player) > 0 || position_ns < 15_000 * MS), "at {position_ns}");
            assert!(!player.playback.status().ranks_in_turn);
            for (found, whole) in player.run.members().iter().zip(plain.run.members()) {
                let count = |store: &crate::store::Store| store.distribution("forward").map(|all| all.count());
                assert_eq!(count(&found.store), count(&whole.store));
                assert!(found.store.losses().is_complete(), "{:?}", found.store.losses());
            }
        }
        for player in [&mut player, &mut plain] {
            player.playback.control(Control::SeekStep(1200));
            (0..4).for_each(|_| player.poll());
        }
        assert_eq!((player.steps(), totals(&player)), (plain.steps(), totals(&plain)));
    }

    #[test]
    fn playback_starts_at_given_position() {
        let parallel = ParallelRun { steps: 1500, ..parallel() };
        let bytes = recorded(&[(parallel.info(0).session_id, parallel.session(0))], 2048);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.gnntop");
        fs::write(&path, &bytes).unwrap();
        let options = PlaybackOptions { from: Duration::from_secs(45), ..PlaybackOptions::default() };
        let mut playback = Playback::with_clock(path, options, Box::new(|| Duration::ZERO)).unwrap();
        let mut run = Run::default();
        while playback.poll(&mut run, Duration::from_secs(1)).more {}
        // The first step ends after 139 ms, the others each 40 ms later.
        assert_eq!(run.store().steps().total(), (45_000 - 139) / 40 + 1);
        assert!(run.store().past().unwrap().steps > 500, "{:?}", run.store().past());
    }

    #[test]
    fn rank_recordings_play_together() {
        let dir = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = (0..3)
            .map(|rank| {
                let path = dir.path().join(format!("rank{rank}.gnntop"));
                fs::write(&path, parallel().session(rank)).unwrap();
                path
            })
            .collect();
        let mut playback = Playback::open_run(paths, PlaybackOptions { speed: 100.0, ..Default::default() }).unwrap();
        let mut run = Run::default();
        while !matches!(playback.status().state, SourceState::Ended(_)) {
            playback.poll(&mut run, Duration::from_secs(1));
        }
        let steps: Vec<u64> = run.ranks().all().iter().map(|rank| rank.store.steps().total()).collect();
        assert_eq!((steps, run.notes()), (vec![60, 60, 60], Vec::<String>::new()));
    }

    #[test]
    fn late_rank_plays_late() {
        let late = ParallelRun { later_ns: SECOND, ..parallel() };
        let mut player = Player::play(&[parallel().session(0), late.session(1)].concat());
        player.wait(500);
        assert_eq!(player.steps()[0], 10);
        assert_eq!(player.steps().get(1).copied().unwrap_or(0), 0);
        player.wait(1000);
        assert_eq!(player.steps(), [35, 10]);
    }

    #[test]
    fn frames_after_damage_are_not_assigned_to_wrong_rank() {
        let mut bytes = interleaved(&parallel());
        let middle = bytes.len() / 2;
        bytes[middle..middle + 40].fill(0);
        let mut run = Run::default();
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.gnntop"), &bytes).unwrap();
        let mut recording = Recording::open(&dir.path().join("a.gnntop")).unwrap();
        recording.read_all(&mut run);
        assert_eq!(recording.status().damage.holes, 1);
        for (rank, member) in run.members().iter().enumerate() {
            let alone = {
                let mut alone = Run::default();
                each_item(&parallel().session(rank as u32), |item| alone.apply(item));
                alone
            };
            let store = &member.store;
            assert!(store.steps().total() > 30 && store.losses().repeated_blocks == 0, "{:?}", store.losses());
            assert_eq!(store.steps().last().unwrap().end_ns(), alone.store().steps().last().unwrap().end_ns());
        }
    }
}

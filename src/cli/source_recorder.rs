//! A source that is being recorded, with its progress and its warnings.

use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::Context;
use gnntop_analysis::figures;
use gnntop_analysis::recorder::{RecorderOptions, RunRecorder};
use gnntop_analysis::source::{Progress, Source, SourceState};
use gnntop_analysis::stream::Sink;
use gnntop_wire::{Definition, Item};

/// Time between two writes.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);
/// How long one look at the source may take: a bounded recording must not overshoot by much within one.
const POLL_BUDGET: Duration = Duration::from_millis(20);

/// A source that is being recorded.
pub(super) struct SourceRecorder<W: Write> {
    source: Box<dyn Source>,
    recorder: RunRecorder<W>,
    options: RecorderOptions,
    /// Marks and segments that recorders before this one left out.
    earlier_marks: u64,
    left_out: u64,
    next_flush: Instant,
}

impl<W: Write> SourceRecorder<W> {
    pub(super) fn new(source: Box<dyn Source>, out: W, options: RecorderOptions) -> Self {
        let recorder = RunRecorder::new(out, options.clone());
        Self { source, recorder, options, earlier_marks: 0, left_out: 0, next_flush: Instant::now() }
    }

    /// Bytes in the file.
    pub(super) fn written_bytes(&self) -> u64 {
        self.recorder.written_bytes()
    }

    /// The options of a recorder that continues what this one has written.
    pub(super) fn continuation_options(&self) -> RecorderOptions {
        RecorderOptions { window_ns: 0..=*self.options.window_ns.end(), ..self.options.clone() }
    }

    /// Continues with a recorder that has received everything this one has written.
    pub(super) fn continue_with(&mut self, mut recorder: RunRecorder<W>) {
        self.recorder.current_session().into_iter().for_each(|id| recorder.select_session(id));
        let before = std::mem::replace(&mut self.recorder, recorder);
        self.earlier_marks += before.skipped_marks();
        self.left_out += before.left_out();
    }

    /// Takes what has arrived, and writes it out once a second.
    pub(super) fn poll(&mut self) -> anyhow::Result<Progress> {
        let progress = self.source.poll(&mut self.recorder, POLL_BUDGET);
        // While there is more, the time in the stream alone decides best how to merge blocks.
        if !progress.more && Instant::now() >= self.next_flush {
            self.finish()?;
            self.next_flush = Instant::now() + FLUSH_INTERVAL;
        }
        Ok(progress)
    }

    /// Records these for the session that last sent events, in addition to what the source says.
    pub(super) fn add(&mut self, definition: Definition) {
        self.recorder.apply(Item::Definitions(vec![definition]));
    }

    /// Writes everything out.
    pub(super) fn finish(&mut self) -> anyhow::Result<()> {
        self.recorder.flush().context("cannot write the recording")
    }

    /// Writes everything out; what follows can be read without it.
    pub(super) fn begin_part(&mut self) -> anyhow::Result<()> {
        self.finish()?;
        self.recorder.begin_part();
        Ok(())
    }

    /// Whether it has not a single event.
    pub(super) fn is_empty(&self) -> bool {
        self.recorder.events() == 0
    }

    /// Why the recording is over, if it is.
    pub(super) fn end_reason(&self) -> Option<String> {
        if self.recorder.is_full() {
            return Some("reached --max-size".to_owned());
        }
        if self.recorder.is_done() {
            return Some("done".to_owned());
        }
        match self.source.status().state {
            SourceState::Ended(why) => Some(why),
            SourceState::Waiting | SourceState::Running => None,
        }
    }

    /// What was written so far, in words.
    pub(super) fn summary(&self, name: &str) -> String {
        let size = figures::bytes(self.recorder.written_bytes() as f64);
        let ranks = match self.recorder.sessions() {
            sessions @ 2.. => format!(" of {sessions} sessions"),
            _ => String::new(),
        };
        format!("{name}: {size}, {}{ranks}", figures::counted(self.recorder.events(), "event", "events"))
    }

    /// The marks before the window, in words.
    pub(super) fn describe_earlier_marks(&self) -> Option<String> {
        let marks = self.earlier_marks + self.recorder.skipped_marks();
        let (noun, verb) = if marks == 1 { ("mark", "is") } else { ("marks", "are") };
        (marks > 0).then(|| {
            format!("{} {noun} from before the window {verb} counted in the recording's facts", figures::count(marks))
        })
    }

    /// What could not be recorded.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = self.source.status().warnings();
        let left_out = self.left_out + self.recorder.left_out();
        if left_out > 0 {
            warnings.push(format!("left out: {} of other sessions", figures::counted(left_out, "segment", "segments")));
        }
        warnings
    }
}

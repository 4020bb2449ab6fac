//! The starts of a run that was restarted: one history, with the times in which it did not run.

use gnntop_wire::SessionInfo;

/// Most starts kept, the newest. Older ones are counted.
const MAX_ATTEMPTS: usize = 1000;

/// One start of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Its session id.
    pub session_id: u128,
    /// Its process id.
    pub pid: u32,
    /// Its host.
    pub host: String,
    /// When it began, on the clock of all events.
    pub start_ns: u64,
    /// Ordinal of its first step in the run's history.
    pub first_ordinal: u64,
    /// When its first step began; `None` until that step has ended.
    pub first_step_ns: Option<u64>,
    /// When its newest step ended.
    pub last_step_ns: Option<u64>,
    /// Steps of the run before the checkpoint from which it resumed; `None` if it does not report them.
    pub resumed: Option<u64>,
}

/// The starts of a run, oldest first.
#[derive(Clone, Debug, Default)]
pub struct Attempts {
    all: Vec<Attempt>,
    /// Older starts, which are no longer kept.
    left_out: u64,
    first_step_ns: Option<u64>,
    last_step_ns: Option<u64>,
    resumed: Option<u64>,
}

impl Attempts {
    /// Starts before the current one, oldest first, as far as they are kept.
    pub fn previous(&self) -> &[Attempt] {
        self.all.split_last().map_or(&[], |(_, earlier)| earlier)
    }

    /// All starts; none if there was only one.
    pub fn all(&self) -> Vec<Attempt> {
        let mut all = self.all.clone();
        if let Some(newest) = all.last_mut() {
            (newest.first_step_ns, newest.last_step_ns) = (self.first_step_ns, self.last_step_ns);
            newest.resumed = self.resumed;
        }
        all
    }

    /// Number of starts of the run, kept or not.
    pub fn count(&self) -> u64 {
        (self.all.len() as u64 + self.left_out).max(1)
    }

    /// Older starts that are no longer kept.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Ordinal of the first step of the newest start.
    pub(super) fn first_ordinal(&self) -> u64 {
        self.all.last().map_or(0, |newest| newest.first_ordinal)
    }

    /// Notes after how many steps of the run the newest start resumes.
    pub(super) fn set_resumed(&mut self, steps: u64) {
        self.resumed = Some(steps);
    }

    pub(super) fn is_restarted(&self) -> bool {
        !self.all.is_empty()
    }

    /// Notes a step of the newest start.
    #[inline]
    pub(super) fn note_step(&mut self, start_ns: u64, end_ns: u64) {
        self.first_step_ns.get_or_insert(start_ns);
        self.last_step_ns = self.last_step_ns.max(Some(end_ns));
    }

    /// Notes that the newest start has done steps up to this time.
    pub(super) fn note_steps_until(&mut self, end_ns: u64) {
        self.last_step_ns = self.last_step_ns.max(Some(end_ns));
    }

    /// Ends the newest start: it has no more events.
    pub(super) fn close(&mut self) {
        if let Some(newest) = self.all.last_mut() {
            (newest.first_step_ns, newest.last_step_ns) = (self.first_step_ns.take(), self.last_step_ns.take());
            newest.resumed = self.resumed.take();
        }
    }

    /// Adds a start.
    pub(super) fn push(&mut self, attempt: Attempt) {
        if self.all.len() >= MAX_ATTEMPTS {
            self.all.remove(0);
            self.left_out += 1;
        }
        self.all.push(attempt);
    }
}

impl Attempt {
    pub(super) fn from_session(info: &SessionInfo, start_ns: u64, first_ordinal: u64) -> Self {
        Self {
            session_id: info.session_id,
            pid: info.pid,
            host: info.host.clone(),
            start_ns,
            first_ordinal,
            first_step_ns: None,
            last_step_ns: None,
            resumed: None,
        }
    }
}

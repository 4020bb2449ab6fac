//! The publisher, its clocks, and whether it is still publishing.

use std::collections::{BTreeMap, VecDeque};
use std::mem::discriminant;

use gnntop_wire::{Anchor, End, Fact, FactKey, Framework, FrameworkName, Mode, SessionInfo};

/// Most clock steps that are listed; further ones are only counted.
const CLOCK_STEPS_KEPT: usize = 256;
/// Most facts of a kind that are kept; a session has about ten.
const FACTS_KEPT: usize = 128;
/// A wall clock that moved by this much against the monotonic one has stepped...
const STEP_NS: u64 = 50_000_000;
/// ...unless it may have been slewed: slewing is at most 1/2000, and this allows twice that.
const SLEW_DIVISOR: u64 = 1000;

/// Whether the session is still running.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SessionState {
    /// Unknown, as for a truncated recording.
    #[default]
    Unknown,
    /// The publisher is alive.
    Running,
    /// It ended normally.
    Ended(End),
    /// The publisher is gone without an end: it crashed or was killed.
    Gone,
}

/// A jump of the wall clock against the monotonic one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockStep {
    /// When it was detected, on the clock of all events.
    pub t_ns: u64,
    /// How far the wall clock jumped; negative when it went back.
    pub by_ns: i64,
}

/// Facts about the session.
#[derive(Clone, Debug, Default)]
pub struct StoredSession {
    info: Option<SessionInfo>,
    /// The first start of the run, if there were several.
    first: Option<SessionInfo>,
    state: SessionState,
    first_anchor: Option<Anchor>,
    last_anchor: Option<Anchor>,
    clock_steps: VecDeque<ClockStep>,
    clock_step_count: u64,
    suspended_ns: u64,
    segments: u64,
    /// Whether the first segment seen was not the session's first.
    is_cut: bool,
    facts: BTreeMap<FactKey, Fact>,
    died: Option<String>,
    death_cause: Option<String>,
}

impl StoredSession {
    /// Whether the data begins in the middle of the session, so that the first steps are not the warm-up.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The publisher, from the newest segment; `None` before the first.
    pub fn info(&self) -> Option<&SessionInfo> {
        self.info.as_ref()
    }

    /// The session whose clock all events use: the run's first start; `None` before the first segment.
    pub fn origin(&self) -> Option<&SessionInfo> {
        self.first.as_ref().or(self.info.as_ref())
    }

    /// What is known about the session, except why its program died.
    pub fn facts(&self) -> &BTreeMap<FactKey, Fact> {
        &self.facts
    }

    /// What the program is built on, if it says so.
    pub fn framework(&self) -> Option<&Framework> {
        self.facts.values().find_map(|fact| match fact {
            Fact::Framework(framework) => Some(framework),
            _ => None,
        })
    }

    /// Whether the program uses PyTorch.
    pub fn uses_torch(&self) -> bool {
        self.framework().is_some_and(|framework| framework.name == FrameworkName::Torch)
    }

    /// Whether the program is a Python program, whose stacks can be sampled.
    pub fn uses_python(&self) -> bool {
        let is_python = |name: &FrameworkName| matches!(name, FrameworkName::Torch | FrameworkName::Python);
        self.framework().is_some_and(|framework| is_python(&framework.name))
    }

    /// Whether the program only runs a model: its steps are batches, or calls.
    pub fn is_inference(&self) -> bool {
        self.facts.values().any(|fact| *fact == Fact::Mode(Mode::Inference))
    }

    /// Threads that the program computes with, if it says so.
    pub fn compute_threads(&self) -> Option<u64> {
        self.facts.values().find_map(|fact| match fact {
            Fact::ComputeThreads(threads) => Some(*threads),
            _ => None,
        })
    }

    /// Workers of each of the program's loaders, if it says so.
    pub fn loader_workers(&self) -> Option<u64> {
        self.facts.values().find_map(|fact| match fact {
            Fact::LoaderWorkers(workers) => Some(*workers),
            _ => None,
        })
    }

    /// The type of most of the model's parameters, and the share of them, in percent, that is in dense embeddings.
    pub fn parameters(&self) -> Option<(&str, u64)> {
        self.facts.values().find_map(|fact| match fact {
            Fact::Parameters { number_type, dense_embeddings } => Some((number_type.as_str(), *dense_embeddings)),
            _ => None,
        })
    }

    /// How many steps in a row have one mean time; 1 where each has its own.
    pub fn mean_of_steps(&self) -> u64 {
        let steps = self.facts.values().find_map(|fact| match fact {
            Fact::MeanOfSteps(steps) => Some(*steps),
            _ => None,
        });
        steps.unwrap_or(1).max(1)
    }

    /// What the program reports of its settings, such as `autocast off, compiled, AdamW foreach`.
    pub fn settings(&self) -> Option<&str> {
        self.other_fact("settings")
    }

    /// What is meant for debugging and was on in its first forward pass.
    pub fn debugging(&self) -> Option<&str> {
        self.other_fact("debugging")
    }

    /// Whether a library runs the training loop and calls the program in it: Lightning, or transformers' `Trainer`.
    pub fn has_loop_of_library(&self) -> bool {
        let is_one = |name: &str| matches!(name, "lightning" | "pytorch_lightning" | "transformers");
        self.other_fact("hooks").is_some_and(|hooked| hooked.split(", ").any(is_one))
    }

    /// Whether the program has imported the part of this library that gnntop hooks.
    pub fn uses_library(&self, library: &str) -> bool {
        self.other_fact("hooks").is_some_and(|hooked| hooked.split(", ").any(|name| name == library))
    }

    /// What the program says of itself under this key.
    fn other_fact(&self, key: &str) -> Option<&str> {
        self.facts.values().find_map(|fact| match fact {
            Fact::Other { key: of, text } | Fact::Note { key: of, text } if of == key => Some(text.as_str()),
            _ => None,
        })
    }

    /// Why the program died, in one paragraph, if its keeper added that.
    pub fn death_text(&self) -> Option<&str> {
        self.died.as_deref()
    }

    /// The cause as a keyword, such as `out-of-memory`.
    pub fn death_cause(&self) -> Option<&str> {
        self.death_cause.as_deref()
    }

    /// How a phase is inferred; `None` if it is measured directly.
    pub fn inferred(&self, phase: &str) -> Option<&str> {
        self.facts.values().find_map(|fact| match fact {
            Fact::Inferred { phase: of, how } if of == phase => Some(how.as_str()),
            _ => None,
        })
    }

    /// Notes that the next items continue figures over the time before.
    pub(super) fn note_past(&mut self) {
        self.is_cut = true;
    }

    /// Begins another start of the run, at `start` on the clock of all events.
    pub(super) fn begin_attempt(&mut self, info: SessionInfo, start: Anchor) {
        let before = self.info.replace(info);
        self.first = self.first.take().or(before);
        (self.state, self.died, self.death_cause) = (SessionState::Unknown, None, None);
        self.facts.retain(|_, fact| !matches!(fact, Fact::Resumed { .. }));
        self.last_anchor = Some(start);
        self.segments += 1;
    }

    /// Sets or replaces a fact.
    pub(super) fn set_fact(&mut self, fact: Fact) {
        // Kept separately: it comes from the program's keeper, not the program.
        if let Fact::Died { cause, text } = fact {
            (self.died, self.death_cause) = (Some(text), Some(cause));
            return;
        }
        let (key, kind) = (fact.key(), discriminant(&fact));
        let alike = self.facts.values().filter(|known| discriminant(*known) == kind).count();
        if alike < FACTS_KEPT || self.facts.contains_key(&key) {
            self.facts.insert(key, fact);
        }
    }

    /// Whether the session is still running.
    pub fn state(&self) -> &SessionState {
        &self.state
    }

    /// The earliest clock readings seen.
    pub fn first_anchor(&self) -> Option<&Anchor> {
        self.first_anchor.as_ref()
    }

    /// The newest clock readings.
    pub fn last_anchor(&self) -> Option<&Anchor> {
        self.last_anchor.as_ref()
    }

    /// Wall-clock time of an event in nanoseconds since 1970-01-01 UTC, by the newest anchor.
    pub fn wall_ns(&self, t_ns: u64) -> Option<u64> {
        let anchor = self.last_anchor.as_ref()?;
        let wall = i128::from(anchor.wall_ns) + i128::from(t_ns) - i128::from(anchor.monotonic_ns);
        u64::try_from(wall).ok()
    }

    /// Jumps of the wall clock, oldest first; at most the newest 256.
    pub fn clock_steps(&self) -> impl ExactSizeIterator<Item = &ClockStep> {
        self.clock_steps.iter()
    }

    /// Number of jumps of the wall clock so far.
    pub fn clock_step_count(&self) -> u64 {
        self.clock_step_count
    }

    /// How long the machine was suspended between the anchors seen.
    pub fn suspended_ns(&self) -> u64 {
        self.suspended_ns
    }

    /// Segments seen.
    pub fn segments(&self) -> u64 {
        self.segments
    }

    /// Applies a segment's opening. `false` if it belongs to a different session than the previous ones.
    pub(super) fn apply_segment(&mut self, info: SessionInfo) -> bool {
        if self.info.as_ref().is_some_and(|known| known.session_id != info.session_id) {
            return false;
        }
        self.is_cut |= self.segments == 0 && info.segment > 0;
        self.segments += 1;
        if info.start.wall_ns > 0 && self.last_anchor.is_none() {
            self.last_anchor = Some(info.start);
        }
        self.info = Some(info);
        true
    }

    pub(super) fn apply_anchor(&mut self, anchor: Anchor) {
        if let Some(before) = self.last_anchor.replace(anchor) {
            self.compare(&before, &anchor);
        }
        self.first_anchor.get_or_insert(anchor);
    }

    fn compare(&mut self, before: &Anchor, now: &Anchor) {
        let passed = |to: u64, from: u64| i128::from(to) - i128::from(from);
        let monotonic = passed(now.monotonic_ns, before.monotonic_ns);
        let suspended = u64::try_from(passed(now.boot_ns, before.boot_ns) - monotonic).unwrap_or(0);
        let suspended = if suspended >= STEP_NS { suspended } else { 0 };
        self.suspended_ns = self.suspended_ns.saturating_add(suspended);
        let by = passed(now.wall_ns, before.wall_ns) - monotonic - i128::from(suspended);
        let slewed = monotonic.unsigned_abs() / u128::from(SLEW_DIVISOR);
        if by.unsigned_abs() < slewed + u128::from(STEP_NS) {
            return;
        }
        self.clock_step_count += 1;
        if self.clock_steps.len() == CLOCK_STEPS_KEPT {
            self.clock_steps.pop_front();
        }
        let by_ns = i64::try_from(by).unwrap_or(if by < 0 { i64::MIN } else { i64::MAX });
        self.clock_steps.push_back(ClockStep { t_ns: now.monotonic_ns, by_ns });
    }

    pub(super) fn apply_end(&mut self, end: End) {
        self.state = SessionState::Ended(end);
    }

    /// Notes what the source knows about the publishing process; a normal end takes precedence. Returns whether that
    /// changed anything.
    pub(super) fn note_publisher(&mut self, alive: bool) -> bool {
        let state = if alive { SessionState::Running } else { SessionState::Gone };
        if matches!(self.state, SessionState::Ended(_)) || self.state == state {
            return false;
        }
        self.state = state;
        true
    }
}

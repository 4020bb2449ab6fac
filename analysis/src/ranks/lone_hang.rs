//! A process that does not advance and is no rank of several: what it does, since when, and the words for it.
//!
//! The rules are the watchdog's, with less patience between steps: nobody waits for the process but the person in front
//! of it.

use gnntop_wire::{NameId, Open, Quantity, StepId, WaitingCall};

use super::hang::RankActivity;
use super::watchdog::{FLOOR_NS, KNOWN_STEPS, LONGEST_TIMES, USUAL_STEPS, idle_ns, open, outside_ns, rank_activity};
use crate::figures::lasting;
use crate::store::{Distribution, GAP, SessionState, Stack, Store};

/// What was cut off by the end of the program ended this shortly before it.
const CUT_NS: u64 = 1_000_000_000;

/// A process that uses this much of a core computes.
const COMPUTES: f64 = 0.5;

/// A process that does not advance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoneHang {
    /// Time since the last step, in nanoseconds.
    pub for_ns: u64,
    /// Since when nothing has advanced, on the clock of all events.
    pub since_ns: u64,
    /// Duration of the usual step.
    pub usual_step_ns: u64,
    /// What it is doing.
    pub activity: RankActivity,
    /// Where in the program it is, by the newest stack taken meanwhile, and the frame below which it was called.
    pub place: Option<String>,
    /// The system call that it waits in.
    pub call: Option<String>,
    /// Whether the program is gone.
    pub is_over: bool,
}

/// What a process does, and since when.
struct LastActivity {
    activity: RankActivity,
    since_ns: u64,
    /// The name of its span.
    name: Option<NameId>,
    /// Its duration, if the end of the program has ended it.
    cut_ns: Option<u64>,
}

/// Checks whether a process that is no rank of several advances; `None` if it does, if it is one, or if it ended well. One
/// that was ended is judged as of its last moment.
pub fn find_lone_hang(store: &Store) -> Option<LoneHang> {
    let session = store.session();
    let is_over = match session.state() {
        SessionState::Ended(_) if session.death_text().is_none() => return None,
        SessionState::Ended(_) | SessionState::Gone => true,
        SessionState::Running | SessionState::Unknown => false,
    };
    let info = session.info()?;
    let is_rank = info.place.as_ref().is_some_and(|place| place.ranks > 1);
    // An imported recording has no process, and its end says nothing.
    let is_imported = info.pid == 0;
    if is_rank || is_imported || store.statistics().steps() < KNOWN_STEPS {
        return None;
    }
    let (last_end_ns, now_ns) = (store.steps().last()?.end_ns(), store.now_ns());
    let usual_step_ns = store.statistics().period().percentile(0.5)?;
    let doing = last_activity(store, last_end_ns, is_over);
    if now_ns.saturating_sub(doing.since_ns) < patience_ns(store, &doing, usual_step_ns) {
        return None;
    }
    let stack = store.stacks().iter().rev().find(|stack| !store.is_loader_stack(stack));
    let stack = stack.filter(|stack| stack.t_ns >= doing.since_ns);
    Some(LoneHang {
        for_ns: now_ns.saturating_sub(last_end_ns),
        since_ns: doing.since_ns,
        usual_step_ns,
        activity: doing.activity,
        place: stack.and_then(|stack| store.stack_place(stack)),
        call: stack.and_then(|stack| system_call(store, stack)),
        is_over,
    })
}

/// What it does since its last advance. What its loaders do counts only while it waits for them.
fn last_activity(store: &Store, last_end_ns: u64, is_over: bool) -> LastActivity {
    let (mut newest_ns, mut cut) = (last_end_ns, None);
    let now_ns = store.now_ns();
    let lane = store.training_track().and_then(|track| track.lane());
    lane.into_iter().for_each(|lane| {
        lane.each_box(last_end_ns..now_ns.saturating_add(1), |span, _| {
            let is_cut = is_over && span.end_ns.saturating_add(CUT_NS) >= now_ns;
            match is_cut && span.end_ns.saturating_sub(span.start_ns) >= FLOOR_NS {
                // The innermost of several is named.
                true if cut.is_none_or(|(_, start_ns)| start_ns < span.start_ns) => {
                    cut = Some((span.name, span.start_ns))
                }
                true => (),
                false => newest_ns = newest_ns.max(span.end_ns),
            }
        });
    });
    if let Some((name, since_ns)) = cut {
        let open = Open { name, since_ns, t_ns: now_ns, step: StepId::NONE };
        let cut_ns = Some(now_ns.saturating_sub(since_ns).saturating_sub(CUT_NS));
        return LastActivity { activity: rank_activity(store, &open), since_ns, name: Some(name), cut_ns };
    }
    let Some(open) = open(store) else {
        return LastActivity { activity: RankActivity::Between, since_ns: newest_ns, name: None, cut_ns: None };
    };
    let activity = rank_activity(store, open);
    let since_ns = match activity {
        RankActivity::Data(_) => now_ns.saturating_sub(idle_ns(store)),
        _ => newest_ns.max(open.since_ns),
    };
    LastActivity { activity, since_ns, name: Some(open.name), cut_ns: None }
}

/// How long this may last before it counts as a hang: ten usual steps and 3 s at least, and three times what it has taken
/// before. Work that was never seen gets ten minutes.
fn patience_ns(store: &Store, doing: &LastActivity, usual_step_ns: u64) -> u64 {
    let floor_ns = usual_step_ns.saturating_mul(USUAL_STEPS).max(FLOOR_NS);
    let Some(name) = doing.name else {
        let gap = store.phase(GAP).and_then(|gap| store.statistics().phase(gap.slot));
        let longest_ns = gap.and_then(Distribution::max_ns);
        // Work that no hook sees, such as an evaluation by hand, may come back; what waits for a lock computes nothing.
        let work_ns = if computes(store, doing.since_ns) {
            outside_ns(longest_ns.filter(|ns| *ns >= floor_ns))
        } else {
            longest_ns.unwrap_or(0).saturating_mul(LONGEST_TIMES)
        };
        return work_ns.max(floor_ns);
    };
    let seen = store.durations(name);
    let longest_ns = seen.and_then(Distribution::max_ns);
    // What was cut off is counted among the spans, and not among the phases of steps.
    let is_counted = doing.cut_ns.is_some_and(|cut_ns| longest_ns >= Some(cut_ns));
    let longest_ns = if is_counted { seen.and_then(longest_but_one) } else { longest_ns };
    let times = seen.map_or(0, Distribution::count).saturating_sub(u64::from(is_counted));
    // A span seen every few steps is part of a step.
    match doing.activity {
        RankActivity::In(_) if times < KNOWN_STEPS => outside_ns(longest_ns).max(floor_ns),
        _ => longest_ns.unwrap_or(0).saturating_mul(LONGEST_TIMES).max(floor_ns),
    }
}

/// Whether the process has used a CPU for most of the time since then.
fn computes(store: &Store, since_ns: u64) -> bool {
    let passed_ns = store.now_ns().saturating_sub(since_ns) as f64;
    let Some(signal) = store.signals().find(Quantity::ProcessCpuTime) else { return false };
    let before = signal.series.last_before(since_ns);
    let now = signal.series.last().and_then(|point| point.value());
    before.zip(now).is_some_and(|((_, before), now)| (now - before) as f64 >= COMPUTES * passed_ns)
}

/// The longest but one.
fn longest_but_one(seen: &Distribution) -> Option<u64> {
    let n = seen.count();
    if n > 1 { seen.percentile((n as f64 - 1.5) / n as f64) } else { None }
}

/// The system call in the innermost frame.
fn system_call(store: &Store, stack: &Stack) -> Option<String> {
    Some(WaitingCall::parse(store.name(*stack.frames.first()?))?.to_string())
}

impl LoneHang {
    /// A sentence: for how long there was no step, and where the program is: `no step for 12 s, in wait (train.py:6)`.
    pub fn sentence(&self) -> String {
        let time = lasting(self.for_ns);
        let when = if self.is_over { format!("no step in its last {time}") } else { format!("no step for {time}") };
        let place = self.place.as_deref().map(|place| place.split_once(", under ").map_or(place, |(place, _)| place));
        match (self.describe(), place) {
            (Some(doing), Some(place)) => format!("{when}, {doing} at {place}"),
            (Some(doing), None) => format!("{when}, {doing}"),
            (None, Some(place)) => format!("{when}, in {place}"),
            (None, None) => format!("{when}, between steps"),
        }
    }

    /// What it does; `None` between steps.
    fn describe(&self) -> Option<String> {
        match &self.activity {
            RankActivity::Together(name) | RankActivity::Neighbour(name) | RankActivity::In(name) => {
                Some(format!("in {name}"))
            }
            RankActivity::Data(None) => Some("waiting for data".to_owned()),
            RankActivity::Data(Some(loader)) => Some(format!("waiting for data ({loader})")),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use gnntop_wire::{Definition, Event, Fact, NameKind, StackThread, TrackId, TrackRole};

    use super::*;
    use gnntop_fixtures::{MS, SECOND, START_NS, StreamBuilder, each_item};

    /// A training that has done 60 steps of 40 ms, with 4 ms between them.
    struct Trained {
        stream: StreamBuilder,
        main: TrackId,
        t_ns: u64,
    }

    impl Trained {
        fn new() -> Self {
            let mut stream = StreamBuilder::new("train.py");
            let main = stream.track(TrackRole::Training, "main");
            let mut trained = Self { stream, main, t_ns: START_NS };
            (1..=60).for_each(|_| trained.step(4 * MS));
            trained
        }

        /// A step after a pause.
        fn step(&mut self, pause_ns: u64) {
            let start_ns = self.t_ns + pause_ns;
            for (name, from, to) in [("data wait", 0, 4), ("forward", 4, 14), ("backward", 14, 36)] {
                self.stream.phase(self.main, 1, name, start_ns + from * MS, start_ns + to * MS);
            }
            self.t_ns = start_ns + 36 * MS;
            self.stream.step(self.main, 1, start_ns, self.t_ns);
        }

        /// Something that the loop does between two steps.
        fn phase(&mut self, name: &str, ns: u64) {
            self.stream.phase(self.main, 1, name, self.t_ns, self.t_ns + ns);
            self.step(ns + MS);
        }

        /// What is said of it `after_ns` later, with this phase open meanwhile, if any.
        fn sentence(mut self, open: Option<&str>, after_ns: u64) -> Option<String> {
            let now_ns = self.t_ns + after_ns;
            if let Some(name) = open {
                let id = self.stream.name(NameKind::Phase, name);
                let open = Open { name: id, since_ns: self.t_ns + MS, t_ns: now_ns, step: StepId(1) };
                self.stream.event(self.main, Event::Open(open));
            }
            self.stream.anchor(now_ns);
            sentence(&self.stream.bytes())
        }

        /// What is said of it after its end 30 s later, which its keeper explains if it died.
        fn sentence_after_end(mut self, died: bool) -> Option<String> {
            self.stream.end(self.t_ns + 30 * SECOND);
            if died {
                let (cause, text) = ("asked".to_owned(), "it was asked to stop".to_owned());
                self.stream.define(Definition::Fact(Fact::Died { cause, text }));
            }
            sentence(&self.stream.bytes())
        }
    }

    fn sentence(bytes: &[u8]) -> Option<String> {
        let mut store = Store::new();
        each_item(bytes, |item| store.apply(item));
        find_lone_hang(&store).map(|hang| hang.sentence())
    }

    #[test]
    fn wait_between_steps_is_a_hang_after_three_seconds_with_its_place() {
        assert_eq!(Trained::new().sentence(None, 2900 * MS), None);
        assert_eq!(Trained::new().sentence(None, 4 * SECOND).as_deref(), Some("no step for 4 s, between steps"));
        let mut trained = Trained::new();
        let stacks = trained.stream.track(TrackRole::Stacks, "stacks of train");
        let frames = ["futex (<system call>)", "wait_for_lock (hang.py:6)", "main (hang.py:20)"];
        trained.stream.stack(stacks, trained.t_ns + SECOND, StackThread::Training, &frames);
        let said = trained.sentence(None, 12 * SECOND);
        assert_eq!(said.as_deref(), Some("no step for 12 s, in wait_for_lock (hang.py:6)"));
    }

    #[test]
    fn first_pause_that_computes_is_no_hang_for_ten_minutes() {
        let sentence = |cores: f64, after_ns: u64| {
            let mut trained = Trained::new();
            let sensors = trained.stream.track(TrackRole::Sensors, "sensors");
            let cpu = trained.stream.metric(Quantity::ProcessCpuTime);
            let from_ns = trained.t_ns;
            for at_ns in (0..=after_ns / SECOND).map(|second| second * SECOND) {
                trained.stream.sample(sensors, cpu, from_ns + at_ns, (at_ns as f64 * cores) as i64);
            }
            trained.sentence(None, after_ns)
        };
        assert_eq!(sentence(1.0, 400 * SECOND), None, "an evaluation that no hook sees");
        assert_eq!(sentence(1.0, 601 * SECOND).as_deref(), Some("no step for 10m 01s, between steps"));
        assert_eq!(sentence(0.05, 4 * SECOND).as_deref(), Some("no step for 4 s, between steps"));
    }

    #[test]
    fn hang_in_a_phase_or_a_collective_names_it() {
        for (open, words) in
            [("forward", "in forward"), ("all-reduce", "in all-reduce"), ("data wait", "waiting for data")]
        {
            assert_eq!(Trained::new().sentence(Some(open), 2 * SECOND), None, "{open}");
            assert_eq!(Trained::new().sentence(Some(open), 4 * SECOND), Some(format!("no step for 4 s, {words}")));
        }
    }

    #[test]
    fn loader_at_work_is_no_hang_only_while_the_loop_waits_for_it() {
        for (open, is_hang) in [("data wait", false), ("forward", true)] {
            let mut trained = Trained::new();
            let loader = trained.stream.track(TrackRole::Loader, "loader 0");
            trained.stream.span(loader, 1, "sample", trained.t_ns, trained.t_ns + 9 * SECOND);
            assert_eq!(trained.sentence(Some(open), 10 * SECOND).is_some(), is_hang, "{open}");
        }
    }

    #[test]
    fn work_that_has_taken_as_long_before_is_no_hang() {
        for name in ["validation", "checkpoint", "compile"] {
            let mut trained = Trained::new();
            trained.phase(name, 40 * SECOND);
            assert_eq!(trained.sentence(Some(name), 100 * SECOND), None, "{name}");
            let mut trained = Trained::new();
            trained.phase(name, 40 * SECOND);
            assert_eq!(trained.sentence(Some(name), 130 * SECOND), Some(format!("no step for 2m 10s, in {name}")));
            assert_eq!(Trained::new().sentence(Some(name), 50 * SECOND), None, "the first {name}");
        }
        let paused = || {
            let mut trained = Trained::new();
            trained.step(20 * SECOND);
            trained
        };
        assert_eq!(paused().sentence(None, 50 * SECOND), None, "a pause");
        assert_eq!(paused().sentence(None, 70 * SECOND).as_deref(), Some("no step for 70 s, between steps"));
    }

    #[test]
    fn ended_program_has_hung_only_if_it_died_meanwhile() {
        assert_eq!(Trained::new().sentence_after_end(false), None, "whatever it did after the training");
        let said = Trained::new().sentence_after_end(true);
        assert_eq!(said.as_deref(), Some("no step in its last 30 s, between steps"));
        let mut trained = Trained::new();
        trained.stream.phase(trained.main, 1, "forward", trained.t_ns + MS, trained.t_ns + 30 * SECOND - MS);
        let said = trained.sentence_after_end(true);
        assert_eq!(said.as_deref(), Some("no step in its last 30 s, in forward"), "the exception ended the phase");
        let mut trained = Trained::new();
        trained.stream.phase(trained.main, 1, "validation", trained.t_ns + MS, trained.t_ns + 28 * SECOND);
        assert_eq!(trained.sentence_after_end(true), None, "that was over");
    }

    #[test]
    fn few_steps_are_no_hang() {
        let mut stream = StreamBuilder::new("train.py");
        let main = stream.track(TrackRole::Training, "main");
        stream.step(main, 1, START_NS, START_NS + MS);
        stream.anchor(START_NS + 100 * SECOND);
        assert_eq!(sentence(&stream.bytes()), None);
    }
}

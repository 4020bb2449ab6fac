//! Where the sampled stacks of a phase, or of the gap, are: the program's own line, the library's function that it calls, and the
//! system call that it waits in. Stacks of a wait for a loader worker continue in the worker.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use gnntop_wire::{NameId, Origin, WaitingCall};

use super::number::Number;
use super::stated_numbers::StatedNumbers;
use crate::store::Store;

/// Places that are named.
const NAMED: usize = 3;
/// What is between a call of a module and its `forward`.
const MODULE_CALL: &str = "(torch/nn/modules/module.py:";
/// A line is worth a look first from this share of the stacks...
const MOSTLY: f64 = 0.5;
/// ...of which there are this many: one or two say little.
const FEWEST: u64 = 5;

/// A place in the program.
struct SampledPlace {
    text: String,
    /// The innermost frame of the program's own, with its line.
    line: Option<String>,
    /// Stacks that were taken there.
    stacks: u64,
}

/// The places of one phase.
pub(super) struct SampledPlaces {
    /// The most frequent first.
    places: Vec<SampledPlace>,
    /// Stacks of the phase.
    pub all: u64,
    /// Those that wait to write to another program, or to a terminal.
    pub writing: u64,
    /// Those that wait for time to pass, or for what another program sends.
    pub idle: u64,
    /// Whether no stacks are sampled of a program that has them.
    pub are_off: bool,
}

impl SampledPlaces {
    /// Those of the phase with this name, or of the gap.
    pub(super) fn in_phase(store: &Store, phase: &str) -> Self {
        let is_python = store.session().info().is_some_and(|info| info.origin == Origin::Python);
        let are_off = is_python && store.sampled().is_empty();
        let mut found = Self { places: Vec::new(), all: 0, writing: 0, idle: 0, are_off };
        for (frames, count) in store.sampled().stacks() {
            let Some((outermost, frames)) = frames.split_last().filter(|(_, frames)| !frames.is_empty()) else {
                continue;
            };
            if store.name(*outermost) == phase {
                found.add(store, frames, count);
            }
        }
        found.places.sort_by_key(|place| Reverse(place.stacks));
        found
    }

    fn add(&mut self, store: &Store, frames: &[NameId], count: u64) {
        let Some(place) = store.frames_place(frames).filter(|place| !stands_for_none(place)) else { return };
        let call = frames.first().and_then(|frame| WaitingCall::parse(store.name(*frame)));
        let called = called(store, frames, &place).map(|function| format!(", calling {function}"));
        let waits = call.map(|call| format!(", waiting in {call}"));
        let text = [Some(place), called, waits].into_iter().flatten().collect::<String>();
        self.all += count;
        self.writing += if call.is_some_and(|call| call.is_output()) { count } else { 0 };
        self.idle += if call.is_some_and(|call| call.is_idle()) { count } else { 0 };
        match self.places.iter_mut().find(|known| known.text == text) {
            Some(known) => known.stacks += count,
            None => {
                let line = store.own_frames(frames).next().map(str::to_owned);
                self.places.push(SampledPlace { text, line, stacks: count });
            }
        }
    }

    /// The program's line in which most of the time passes, if there is one.
    pub(super) fn line(&self) -> Option<&str> {
        let first = self.places.first().filter(|first| first.stacks as f64 >= MOSTLY * self.all as f64)?;
        if !self.are_enough() {
            return None;
        }
        first.line.as_deref()
    }

    /// Whether there are enough stacks to say where most of the time passes.
    pub(super) fn are_enough(&self) -> bool {
        self.all >= FEWEST
    }

    /// A line for each of the first places.
    pub(super) fn lines(&self, facts: &mut StatedNumbers, phase: &str) -> Vec<String> {
        let line = |SampledPlace { text, stacks, .. }: &SampledPlace| {
            let noun = if *stacks == 1 { "stack" } else { "stacks" };
            let stacks = facts.about(text, |facts| facts.count(Number::Stacks, *stacks));
            format!("{stacks} {noun} sampled in {phase}: in {text}")
        };
        self.places.iter().take(NAMED).map(line).collect()
    }
}

/// A function through which stacks of a phase go.
pub(super) struct StacksThrough {
    /// With its file, without its line.
    pub function: String,
    pub stacks: u64,
    /// Stacks of the phase.
    pub all: u64,
}

/// Of the functions of which this is true, the one through which most stacks of this phase go: of each stack the outermost.
pub(super) fn stacks_through(store: &Store, phase: &str, is_it: impl Fn(&str) -> bool) -> Option<StacksThrough> {
    let (mut all, mut through) = (0, BTreeMap::<String, u64>::new());
    for (frames, count) in store.sampled().stacks() {
        let Some((_, frames)) = frames.split_last().filter(|(of, _)| store.name(**of) == phase) else { continue };
        all += count;
        if let Some(frame) = frames.iter().rev().map(|frame| store.name(*frame)).find(|frame| is_it(frame)) {
            *through.entry(without_line(frame)).or_default() += count;
        }
    }
    let (function, stacks) = through.into_iter().max_by_key(|(_, stacks)| *stacks)?;
    Some(StacksThrough { function, stacks, all })
}

/// Whether this is said instead of a place, such as where frames could not be read in time: `(over before it was read)`.
fn stands_for_none(place: &str) -> bool {
    place.starts_with('(')
}

/// The library's function that the place calls, without its line, which changes from sample to sample.
fn called(store: &Store, frames: &[NameId], place: &str) -> Option<String> {
    let own = frames.iter().position(|frame| place.starts_with(store.name(*frame)))?;
    let mut called = frames[..own].iter().rev().map(|frame| store.name(*frame));
    let function = called.find(|function| !function.contains(MODULE_CALL))?;
    Some(function).filter(|function| WaitingCall::parse(function).is_none()).map(without_line)
}

fn without_line(frame: &str) -> String {
    frame.rsplit_once(':').map_or_else(|| frame.to_owned(), |(function, _)| format!("{function})"))
}

#[cfg(test)]
mod tests {
    use gnntop_fixtures::START_NS;
    use gnntop_fixtures::planned::StepPlan;
    use gnntop_wire::{Event, StackSample, TrackRole};

    use super::*;
    use crate::findings::tests::{store_of, stream};

    #[test]
    fn layers_are_named_and_not_what_calls_them() {
        let mut stream = stream(20, |_| StepPlan::default(), &[]);
        let track = stream.track(TrackRole::Samples, "stacks of train, sampled");
        let frames = [
            "forward",
            "Net.forward (net.py:14)",
            "Module._call_impl (torch/nn/modules/module.py:1798)",
            "GCNConv.forward (torch_geometric/nn/conv/gcn_conv.py:263)",
            "propagate (torch_geometric.nn.conv.gcn_conv_GCNConv_propagate_tqfgubmk.py:245)",
        ];
        let path = stream.path(&frames);
        stream.event(track, Event::StackSample(StackSample { path, t_ns: START_NS, count: 8, is_repeat: false }));
        let found = SampledPlaces::in_phase(&store_of(stream), "forward");
        let expected = "8 stacks sampled in forward: in Net.forward (net.py:14), calling GCNConv.forward (torch_geometric/nn/conv/gcn_conv.py)";
        assert_eq!(found.lines(&mut StatedNumbers::default(), "forward"), [expected]);
    }

    #[test]
    fn place_has_its_line_what_it_calls_and_what_it_waits_in() {
        let mut stream = stream(20, |_| StepPlan::default(), &[]);
        let track = stream.track(TrackRole::Samples, "stacks of train, sampled");
        let write = "write of a pipe (<system call>)";
        let log = |line| format!("log (wandb/sdk/wandb_run.py:{line})");
        let paths: [(&[&str], u64); 6] = [
            (&["gap", "main (train.py:9)", write], 30),
            (&["gap", "main (train.py:12)", &log(7)], 3),
            (&["gap", "main (train.py:12)", &log(9), "futex (<system call>)"], 2),
            (&["forward", "main (train.py:4)"], 50),
            (&["gap", "main (train.py:12)", &log(11)], 4),
            (&["gap", "(over before it was read)"], 90),
        ];
        for (frames, count) in paths {
            let path = stream.path(frames);
            stream.event(track, Event::StackSample(StackSample { path, t_ns: START_NS, count, is_repeat: false }));
        }
        let found = SampledPlaces::in_phase(&store_of(stream), "gap");
        assert_eq!((found.all, found.writing), (39, 30));
        let expected = [
            "30 stacks sampled in gap: in main (train.py:9), waiting in write of a pipe",
            "7 stacks sampled in gap: in main (train.py:12), calling log (wandb/sdk/wandb_run.py)",
            "2 stacks sampled in gap: in main (train.py:12), calling log (wandb/sdk/wandb_run.py), waiting in futex",
        ];
        assert_eq!(found.lines(&mut StatedNumbers::default(), "gap"), expected);
    }
}

//! What is recorded of generated loops.

use super::*;

mod aside;
mod inference;
mod lone;
mod loops;
mod table;

/// Keeps what is recorded, by a clock that ticks at every look.
#[derive(Debug, Default)]
struct Recorder {
    ticks: Ticks,
    open: Vec<(Name, Ticks)>,
    /// Everything that has ended, in the order in which it was recorded.
    spans: Vec<(Name, Ticks, Ticks)>,
    marks: Vec<(Name, Ticks, Ticks)>,
    held: Option<Vec<(Name, Ticks, Ticks)>>,
    /// How many steps had ended when all was kept back.
    deferred: Option<usize>,
    /// When each step ended.
    steps: Vec<Ticks>,
    epochs: Vec<u64>,
    batches: Vec<Option<Shape>>,
    /// Phases that are inferred, each time that this is said.
    inferred: Vec<Name>,
    inference: Vec<bool>,
}

impl Recorder {
    fn keep(&mut self, span: (Name, Ticks, Ticks)) {
        self.held.as_mut().unwrap_or(&mut self.spans).push(span);
    }

    /// The outermost spans of each step, in the order in which they began.
    fn phases(&self) -> Vec<Vec<Name>> {
        let mut begin = 0;
        let phases_of = |end: &Ticks| {
            let mut inside: Vec<_> = self.spans.iter().filter(|(_, b, e)| begin <= *b && e <= end).collect();
            begin = *end;
            inside.sort_by_key(|(_, begin, end)| (*begin, Ticks::MAX - end));
            let mut until = 0;
            let is_outer = |(name, begin, end): &(Name, Ticks, Ticks)| {
                let is_outer = *begin >= until;
                until = if is_outer { *end } else { until };
                is_outer.then_some(*name)
            };
            inside.into_iter().filter_map(is_outer).collect()
        };
        self.steps.iter().map(phases_of).collect()
    }
}

impl Record for Recorder {
    fn now(&mut self) -> Ticks {
        self.ticks += 1;
        self.ticks
    }

    fn begin(&mut self, name: Name) -> i32 {
        let now = self.now();
        self.open.push((name, now));
        self.open.len() as i32 - 1
    }

    fn depth(&self) -> i32 {
        self.open.len() as i32
    }

    fn end_to(&mut self, depth: i32) {
        while self.depth() > depth {
            let Some((name, begin)) = self.open.pop() else { return };
            let end = self.now();
            self.keep((name, begin, end));
        }
    }

    fn span(&mut self, name: Name, begin: Ticks, end: Ticks) {
        if begin != 0 && end >= begin {
            self.spans.push((name, begin, end));
        }
    }

    fn timed_mark(&mut self, name: Name, begin: Ticks, end: Ticks) {
        self.marks.push((name, begin, end));
    }

    fn hold(&mut self) {
        self.held.get_or_insert_default();
    }

    fn release(&mut self, until: Ticks) {
        let held = self.held.take().unwrap_or_default();
        let (ended, later): (Vec<_>, Vec<_>) = held.into_iter().partition(|(_, _, end)| *end <= until);
        self.spans.extend(ended);
        self.held = (until < Ticks::MAX).then_some(later);
    }

    fn defer(&mut self) {
        self.deferred.get_or_insert(self.steps.len());
    }

    fn merge(&mut self, steps: usize) {
        if let Some(deferred) = self.deferred {
            self.steps.truncate(deferred.max(self.steps.len().saturating_sub(steps)));
        }
    }

    fn publish(&mut self, are_steps: bool) {
        let Some(steps) = self.deferred.take() else { return };
        if !are_steps {
            self.steps.truncate(steps);
        }
    }

    fn insert(&mut self, name: Name, begin: Ticks, end: Ticks) {
        let place = self.spans.partition_point(|(_, _, other)| *other <= end);
        self.spans.insert(place, (name, begin, end));
    }

    fn inference(&mut self, is_inference: bool) {
        self.inference.push(is_inference);
    }

    fn inferred(&mut self, phase: Name) {
        self.inferred.push(phase);
    }

    fn epoch(&mut self, epoch: u64) {
        self.epochs.push(epoch);
    }

    fn batch(&mut self, batch: Option<Shape>) {
        self.batches.push(batch);
    }

    fn step(&mut self) -> i32 {
        let now = self.now();
        self.steps.push(now);
        self.steps.len() as i32
    }
}

/// A loop, and what hooks report while a program does one thing.
struct Program {
    training: Loop,
    to: Recorder,
}

impl Program {
    fn new() -> Self {
        Self { training: Loop::new(), to: Recorder::default() }
    }

    /// Does work with other work inside; returns whether it was recorded.
    fn does(&mut self, work: Work, inside: impl FnOnce(&mut Self)) -> bool {
        let token = self.training.begin(work, &mut self.to);
        inside(self);
        if let Some(token) = token {
            self.training.end(work, token, &mut self.to);
            self.training.settle(work, 1, &mut self.to);
            if work != Work::Fetch && self.training.is_surely_inference() {
                self.training.publish_inference(&mut self.to);
            }
        }
        token.is_some()
    }

    fn plainly(&mut self, work: Work) {
        assert!(self.does(work, |_| ()), "{work:?} is not recorded");
    }

    fn fetch(&mut self, shape: Option<Shape>) {
        self.plainly(Work::Fetch);
        self.training.fetched(shape, &mut self.to);
    }

    fn exhaust(&mut self) {
        self.plainly(Work::Fetch);
        self.training.exhausted();
    }

    /// A step of an optimizer with something inside; `raises` if its end is never reported.
    fn steps(&mut self, optimizer: OptimizerId, closure: Option<&mut dyn FnMut(&mut Self)>, raises: bool) {
        self.training.optimizer_begin(optimizer, closure.is_some(), &mut self.to);
        if let Some(closure) = closure {
            closure(self);
        }
        if raises {
            return;
        }
        if let Some((work, token)) = self.training.optimizer_end(optimizer, &mut self.to) {
            self.training.end(work, token, &mut self.to);
            self.training.settle(work, optimizer, &mut self.to);
        }
    }

    fn optimizer(&mut self) {
        self.steps(1, None, false);
    }

    /// A whole plain step.
    fn step(&mut self) {
        self.fetch(None);
        self.plainly(Work::Forward);
        self.plainly(Work::Backward);
        self.optimizer();
    }
}

#[test]
fn work_whose_end_is_never_told_is_over_when_a_model_runs() {
    let left = [Work::ZeroGrad, Work::Clip, Work::Unscale, Work::Transfer, Work::Collective];
    for work in left {
        let mut program = Program::new();
        program.step();
        program.training.begin(work, &mut program.to);
        assert!(!program.does(Work::Fetch, |_| ()), "{work:?}");
        program.plainly(Work::Backward);
        program.optimizer();
        program.step();
        assert_eq!(program.to.steps.len(), 3, "{work:?}");
    }
}

#[test]
fn what_a_compiler_traces_does_not_end_it() {
    let mut program = Program::new();
    program.step();
    let traced = |program: &mut Program| {
        assert!(!program.does(Work::Forward, |_| ()) && !program.does(Work::Gradients, |_| ()));
    };
    assert!(program.does(Work::Compile, traced));
}

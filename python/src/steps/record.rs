//! What the machine does with what it has understood.

/// Instants, in ticks of whatever clock; 0 for none.
pub(crate) type Ticks = u64;

/// Nodes, edges, graphs, seeds, samples and tokens of a batch; below 0 if unknown.
pub(crate) type Shape = [i64; 6];

/// The size of both batches; unknown if that of the second is.
pub(super) fn add_shapes(sum: Option<Shape>, shape: Option<Shape>) -> Option<Shape> {
    match (sum, shape) {
        (Some(sum), Some(shape)) => Some(std::array::from_fn(|at| add(sum[at], shape[at]))),
        (Some(_), None) => None,
        (None, shape) => shape,
    }
}

fn add(a: i64, b: i64) -> i64 {
    if a >= 0 && b >= 0 { a.saturating_add(b) } else { -1 }
}

/// What is recorded of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Name {
    DataWait,
    Sample,
    Gather,
    Transfer,
    Forward,
    Loss,
    Backward,
    AllReduce,
    Optimizer,
    Validation,
    Checkpoint,
    Compile,
    /// Experience is collected: a policy and an environment take turns.
    Rollout,
    /// The environment's part of it.
    Environment,
    /// Backward passes that send gradients to other ranks, whose phases are known only at their end.
    BackwardOfRanks,
    MicroBatch,
    Unscale,
    Clip,
    /// Marks at the end of an evaluation and of a checkpoint, with their durations.
    Validated,
    Saved,
    /// A mark where another thread has saved a checkpoint.
    SavedAside,
}

impl Name {
    /// How many there are.
    pub(crate) const COUNT: usize = Self::SavedAside as usize + 1;
}

/// Records what one thread does. The calls come in the order of time, and allocate nothing.
pub(crate) trait Record {
    /// The current time.
    fn now(&mut self) -> Ticks;
    /// Begins a span inside those that are open; returns how many these were.
    fn begin(&mut self, name: Name) -> i32;
    /// Number of open spans.
    fn depth(&self) -> i32;
    /// Ends open spans until this many are left.
    fn end_to(&mut self, depth: i32);
    /// Records a span after the fact; nothing without a begin, or if that is after the end.
    fn span(&mut self, name: Name, begin: Ticks, end: Ticks);
    /// Records a mark at the end of something that took this long; nothing without a begin, or if that is after the end.
    fn timed_mark(&mut self, name: Name, begin: Ticks, end: Ticks);
    /// From now on, what ends is kept back, because what will be recorded next has ended before it.
    fn hold(&mut self);
    /// Records what was kept back and had ended by then. If that is all, keeps no more.
    fn release(&mut self, until: Ticks);
    /// From now on keeps everything back, steps too: it is not sure yet that they are steps.
    fn defer(&mut self);
    /// Of the steps that are kept back, the last ones are part of one that has not ended.
    fn merge(&mut self, steps: usize);
    /// Records what was kept back, with the steps if they are some.
    fn publish(&mut self, are_steps: bool);
    /// Records a span among what is kept back, in the order of the ends.
    fn insert(&mut self, name: Name, begin: Ticks, end: Ticks);
    /// Says whether steps are batches of a model that is only run.
    fn inference(&mut self, is_inference: bool);
    /// Says that this phase, forward or optimizer, is inferred.
    fn inferred(&mut self, phase: Name);
    /// The next step belongs to this epoch.
    fn epoch(&mut self, epoch: u64);
    /// The size of the step's batches, until the next call; `None` if unknown.
    fn batch(&mut self, batch: Option<Shape>);
    /// Ends a step; returns its number, or 0 if nothing is recorded.
    fn step(&mut self) -> i32;
}

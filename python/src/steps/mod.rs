//! What a training loop does, understood from what it calls: phases, steps and batches, without Python and without torch.
//!
//! A hook reports the begin and the end of one piece of [`Work`]. [`Loop`] turns these into phases that never overlap, and
//! [`StepRule`](rule::StepRule) decides where a step ends. What comes out goes to a [`Record`].
//!
//! ```text
//!  hooks ─▶ begin(work), end(work), settle(work) ─▶ Loop ─▶ Record: spans, steps, batches, marks
//!                                                    └─▶ StepRule: does this end a step?
//! ```
//!
//! # States
//! The thread is in one state. Work that is not accepted is part of the work around it and is not recorded.
//!
//! | state | accepts | and is left |
//! |---|---|---|
//! | nothing | everything | |
//! | fetch | sample and gather, which take the place of the wait | at its end |
//! | transfer | | at its end |
//! | forward; also of a module that nothing trains, before the one that is trained | | at its end |
//! | evaluation | | at its end; the validation or rollout continues until the loop trains again |
//! | inference: a root is called and nothing has trained | | at its end |
//! | environment: it steps or is reset | | at its end; the rollout continues until the loop trains again |
//! | backward | | at its end |
//! | optimizer | unscale and clip, inside; a fetch: the optimizer has raised | at its end, or with the next step of the same optimizer, or of another one after a backward pass |
//! | pause: gradients are set to zero or clipped, ranks communicate, a checkpoint is written, code is compiled | | at its end |
//!
//! Every state accepts a checkpoint and a compilation: its phase ends there and continues afterwards. A closure is no state: forward
//! and backward are inside of it, and the optimizer has what follows each backward pass.
//!
//! # What is known only later
//! - *Loss* is recorded when backward, or another forward, begins: from the end of forward, or of gradients that are part of it.
//! - *Forward* that no hook reports is inferred when backward begins: from the last work that was recorded.
//! - *Validation* ends where the fetch of the next training batch begins, which is known when that batch is trained on. What ends
//!   in between is kept back, so that everything is recorded in the order of its end.
//! - *Rollouts* are such a phase, too, if an environment has stepped in it; they end with its last step.
//! - *Steps of a program that only runs a model* are kept back until it is sure that it does not train: see [`inference`].
//! - *Steps without an optimizer* are kept back until it is sure that none follows: see [`lone`].
//! - *Steps of an optimizer beside others that have not stepped* are kept back until one of these does, or is no longer expected.
//! - *Micro-batches* are recorded from the second accumulated step on, each at the end of its backward pass.

mod aside;
mod backward;
mod data;
mod forward;
mod inference;
mod lone;
mod optimizer;
mod pauses;
mod record;
mod rule;
#[cfg(test)]
mod tests;
mod unsure;
mod work;

pub(crate) use record::{Name, Record, Shape, Ticks};
pub(crate) use rule::OptimizerId;
pub(crate) use work::Work;

use rule::StepRule;
use unsure::{Inference, Lone, Waiting};

/// How deep work is inside of other work before memory is taken.
const DEEPEST: usize = 8;

/// What the thread is inside of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Nothing,
    Fetch,
    Transfer,
    Forward,
    Evaluation,
    /// A call of a root where nothing trains.
    Inference,
    /// An environment's step.
    Environment,
    Backward,
    Optimizer,
    /// Work that interrupts one of the others.
    Pause,
}

/// A span that was begun: its name, and the number of spans around it.
type Begun = (Name, i32);

/// What continues when the work that interrupts it has ended.
#[derive(Debug)]
struct Paused {
    /// What was returned when that work began.
    token: i32,
    state: State,
    phase: Option<Begun>,
    /// Whether the phase has ended meanwhile.
    is_interrupted: bool,
}

/// A step of an optimizer that has begun.
#[derive(Debug)]
struct OptimizerStep {
    optimizer: OptimizerId,
    work: Work,
    token: Option<i32>,
    /// Backward passes that had begun before.
    backwards: u64,
}

/// The training loop of one thread. See the [module](super).
#[derive(Debug)]
pub(crate) struct Loop {
    rule: StepRule,
    lone: Lone,
    inference: Inference,
    waiting: Waiting,
    /// The number of a step that ended where work began, until it is asked for.
    ended: Option<i32>,
    state: State,
    /// The phase of this state, and the states that were interrupted, the innermost last.
    phase: Option<Begun>,
    paused: Vec<Paused>,
    /// Steps of optimizers that have begun; they nest if an optimizer calls another.
    stepping: Vec<OptimizerStep>,
    steps_begun: u64,
    /// Backward passes that have begun, also those inside of other work.
    backwards_begun: u64,
    /// How deep in optimizers' closures the thread is, and backward passes in the running one.
    closures: u32,
    in_closure: u32,
    /// Whether a root module was called since the last backward pass, and whether a batch came.
    has_forward: bool,
    has_batch: bool,
    /// Whether the time since `rested` is forward, if a backward pass comes before a root's call.
    may_infer: bool,
    inferred: u32,
    /// Begin and end of what may be forward before gradients were set to zero; what came since is kept back. 0 for none.
    guess: (Ticks, Ticks),
    /// What this loop has done so far.
    sees_forward: bool,
    accumulates: bool,
    /// Backward passes since an optimizer stepped.
    micro_batches: u32,
    /// When no recorded work was left, when forward, backward, gradients before the loss, and the optimizer's step ended.
    rested: Ticks,
    computed: Ticks,
    differentiated: Ticks,
    penalised: Ticks,
    stepped: Ticks,
    closure_began: Ticks,
    saving: Ticks,
    fetch_began: Ticks,
    backward_began: Ticks,
    /// When the last gradients of a backward pass were sent to other ranks; 0 if none were.
    reducing: Ticks,
    /// When the validation or rollout began that is not over, when its last forward pass and its environment's last step
    /// ended, and whether it has called a root that is not in training mode.
    validation_began: Ticks,
    evaluated: Ticks,
    stepped_environment: Ticks,
    has_evaluated: bool,
    /// Whether there is an environment, and whether a step of one came last.
    has_environment: bool,
    follows_environment: bool,
    /// The phases of loading that the thread is in, the innermost last.
    loading: Vec<Begun>,
    /// Finished epochs, by the ends of a loader's data; whether one ended and no batch came since.
    epoch: u64,
    is_over: bool,
    steps: u64,
    /// The sizes of the last batch, of the step's batches so far, and of the last step.
    shape: Option<Shape>,
    sum: Option<Shape>,
    known: Option<Shape>,
    /// Whether this ends steps; else the program does.
    pub(crate) is_automatic: bool,
    /// Whether backward passes send gradients to other ranks, and [`reducing`](Self::reducing) is called then.
    pub(crate) has_peers: bool,
}

impl Loop {
    pub(crate) fn new() -> Self {
        Self {
            rule: StepRule::new(),
            lone: Lone::default(),
            inference: Inference::default(),
            waiting: Waiting::default(),
            ended: None,
            state: State::Nothing,
            phase: None,
            paused: Vec::with_capacity(DEEPEST),
            stepping: Vec::with_capacity(DEEPEST),
            steps_begun: 0,
            backwards_begun: 0,
            closures: 0,
            in_closure: 0,
            has_forward: false,
            has_batch: false,
            may_infer: false,
            inferred: 0,
            guess: (0, 0),
            sees_forward: false,
            accumulates: false,
            micro_batches: 0,
            rested: 0,
            computed: 0,
            differentiated: 0,
            penalised: 0,
            stepped: 0,
            closure_began: 0,
            saving: 0,
            fetch_began: 0,
            backward_began: 0,
            reducing: 0,
            validation_began: 0,
            evaluated: 0,
            stepped_environment: 0,
            has_evaluated: false,
            has_environment: false,
            follows_environment: false,
            loading: Vec::with_capacity(DEEPEST),
            epoch: 0,
            is_over: false,
            steps: 0,
            shape: None,
            sum: None,
            known: None,
            is_automatic: true,
            has_peers: false,
        }
    }

    /// Sets the optimizers that exist.
    pub(crate) fn expect(&mut self, optimizers: &[OptimizerId]) {
        self.rule.expect(optimizers);
    }

    /// Whether this work would be recorded now.
    #[inline]
    pub(crate) fn accepts(&self, work: Work) -> bool {
        match self.state {
            _ if matches!(work, Work::Checkpoint | Work::Compile) => true,
            State::Nothing => work != Work::Frozen || self.may_be_frozen(),
            State::Fetch => matches!(work, Work::Sample | Work::Gather),
            State::Optimizer => matches!(work, Work::Fetch | Work::Unscale | Work::Clip),
            _ => self.is_left_behind(work),
        }
    }

    /// Whether the end of the running work is never told: an exception from outside, as of a signal's handler, has left it
    /// between two lines of a hook. No model runs inside of it.
    #[inline]
    fn is_left_behind(&self, work: Work) -> bool {
        use Work::{Backward, Evaluation, Forward, ForwardWithoutGradients, Gradients};
        let is_small = match self.state {
            State::Transfer => true,
            State::Pause => {
                matches!(self.phase, Some((Name::Optimizer | Name::Unscale | Name::Clip | Name::AllReduce, _)))
            }
            _ => false,
        };
        is_small && matches!(work, Forward | ForwardWithoutGradients | Evaluation | Backward | Gradients)
    }

    /// Ends work that was left behind.
    #[cold]
    fn end_left_behind(&mut self, to: &mut impl Record) {
        match (self.paused.last(), self.phase) {
            (Some(paused), _) if self.state == State::Pause => self.pause_end(paused.token, to),
            (_, Some((_, depth))) => self.transfer_end(depth, to),
            _ => self.state = State::Nothing,
        }
    }

    /// Whether code is being compiled.
    #[inline]
    pub(crate) fn is_compiling(&self) -> bool {
        matches!(self.phase, Some((Name::Compile, _)))
    }

    /// Work begins. Returns what its end takes, or `None` if it is not recorded; its end is then not to be told.
    #[inline]
    pub(crate) fn begin(&mut self, work: Work, to: &mut impl Record) -> Option<i32> {
        while self.is_left_behind(work) {
            self.end_left_behind(to);
        }
        self.backwards_begun += u64::from(matches!(work, Work::Backward | Work::Gradients));
        if !self.accepts(work) {
            return None;
        }
        Some(match work {
            Work::Fetch => self.fetch_begin(to),
            Work::Sample => self.loading_begin(Name::Sample, to),
            Work::Gather => self.loading_begin(Name::Gather, to),
            Work::Transfer => self.transfer_begin(to),
            Work::Forward => self.forward_begin(true, to),
            // In the middle of a training step.
            Work::ForwardWithoutGradients | Work::Evaluation if self.has_forward => self.forward_begin(false, to),
            Work::ForwardWithoutGradients | Work::Evaluation if self.may_be_inference() => self.inference_begin(to),
            Work::ForwardWithoutGradients if self.may_be_policy() => self.policy_begin(to),
            Work::ForwardWithoutGradients => self.forward_begin(false, to),
            Work::Evaluation => self.evaluation_begin(to),
            Work::Backward | Work::Gradients => self.backward_begin(to),
            Work::Optimizer => self.step_begin(to),
            Work::Closure => self.closure_begin(to),
            Work::ZeroGrad => {
                self.lone_zero(to);
                self.pause_begin(Name::Optimizer, to)
            }
            Work::Unscale => self.part_begin(Name::Unscale, to),
            Work::Clip => self.part_begin(Name::Clip, to),
            Work::Collective => self.pause_begin(Name::AllReduce, to),
            Work::Checkpoint => self.save_begin(to),
            Work::Compile => self.pause_begin(Name::Compile, to),
            Work::Environment => self.environment_begin(to),
            Work::Frozen => self.enter(State::Forward, Name::Forward, to),
        })
    }

    /// The work is done, or has raised. [`settle`](Self::settle) or, for a fetch, [`fetched`](Self::fetched) is to follow.
    #[inline]
    pub(crate) fn end(&mut self, work: Work, token: i32, to: &mut impl Record) {
        match work {
            Work::Fetch => self.fetch_end(token, to),
            Work::Sample | Work::Gather => self.loading_end(token, to),
            Work::Transfer => self.transfer_end(token, to),
            Work::Forward | Work::ForwardWithoutGradients | Work::Evaluation => self.forward_end(token, to),
            Work::Frozen => self.leave(token, to),
            Work::Backward | Work::Gradients => self.backward_end(token, to),
            Work::Optimizer => self.leave(token, to),
            Work::Closure => self.closure_end(to),
            Work::Checkpoint => self.save_end(token, to),
            Work::Environment => self.environment_end(token, to),
            Work::ZeroGrad | Work::Unscale | Work::Clip | Work::Collective | Work::Compile => self.pause_end(token, to),
        }
    }

    /// What follows from work that has ended. If a step ended with it, returns its number, which is 0 if nothing is recorded.
    #[inline]
    pub(crate) fn settle(&mut self, work: Work, optimizer: OptimizerId, to: &mut impl Record) -> Option<i32> {
        match work {
            Work::Backward => self.differentiated(true, to),
            Work::Gradients => self.differentiated(false, to),
            Work::Optimizer | Work::Closure => self.stepped(optimizer, to),
            Work::ForwardWithoutGradients | Work::Evaluation => self.inference_called(to),
            _ => None,
        }
    }

    /// The number of the step that ended where the last work began, if one did.
    #[inline]
    pub(crate) fn take_ended(&mut self) -> Option<i32> {
        self.ended.take()
    }

    /// Begins a state and its phase.
    #[inline]
    fn enter(&mut self, state: State, name: Name, to: &mut impl Record) -> i32 {
        self.state = state;
        let depth = to.begin(name);
        self.phase = Some((name, depth));
        depth
    }

    /// Ends a state, its phase, and what is open inside.
    #[inline]
    fn leave(&mut self, depth: i32, to: &mut impl Record) {
        to.end_to(depth);
        self.state = State::Nothing;
        self.phase = None;
        self.paused.clear();
    }

    /// No recorded work is running: what follows may be a forward pass that is not reported.
    #[inline]
    fn rest(&mut self, to: &mut impl Record) {
        if !self.sees_forward {
            self.may_infer = true;
            self.rested = to.now();
        }
    }
}

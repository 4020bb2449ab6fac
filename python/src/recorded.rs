//! Where what is understood of a loop is recorded: on its thread's track, under these names.

use std::sync::OnceLock;

use gnntop_probe::{Fact, Mode, NameKind, Reported, after};

use crate::early::EarlyEvent;
use crate::steps::{Name, Record, Shape, Ticks};
use crate::thread::Thread;
use crate::{names, session, warning};

/// Where an inferred forward begins.
const FROM_ARRIVAL: &str =
    "from the batch's arrival to backward: no module was called that holds the optimizer's parameters";
/// Where an inferred step of an optimizer is.
const FROM_BACKWARD: &str = "from the end of backward to what begins next: no optimizer of torch's was called";

/// The numbers of the names. Registered with the first record, not before.
static NAMES: OnceLock<[i32; Name::COUNT]> = OnceLock::new();

/// The number of a name.
#[inline]
pub(crate) fn number(name: Name) -> i32 {
    NAMES.get_or_init(register)[name as usize]
}

#[cold]
fn register() -> [i32; Name::COUNT] {
    warning::set_panic_hook();
    session::watch_forks();
    use NameKind::{Phase, Span, Text};
    let validated = NameKind::Reported(Reported::Validation);
    [
        (Phase, "data wait"),
        (Phase, "sample"),
        (Phase, "gather"),
        (Phase, "transfer"),
        (Phase, "forward"),
        (Phase, "loss"),
        (Phase, "backward"),
        (Phase, "all-reduce"),
        (Phase, "optimizer"),
        (Phase, "validation"),
        (Phase, "checkpoint"),
        (Phase, "compile"),
        (Phase, "rollout"),
        (Phase, "environment"),
        (Span, "backward and all-reduce"),
        (Span, "micro-batch"),
        (Span, "unscale gradients"),
        (Span, "clip gradients"),
        (validated, "validation"),
        (Text, "checkpoint"),
        (Text, "checkpoint by another thread"),
    ]
    .map(|(kind, text)| names::register(kind, text))
}

impl Record for Thread {
    #[inline]
    fn now(&mut self) -> Ticks {
        after::ticks()
    }

    #[inline]
    fn begin(&mut self, name: Name) -> i32 {
        Self::begin(self, number(name))
    }

    #[inline]
    fn depth(&self) -> i32 {
        Self::depth(self)
    }

    #[inline]
    fn end_to(&mut self, depth: i32) {
        Self::end_to(self, depth);
    }

    #[inline]
    fn span(&mut self, name: Name, begin: Ticks, end: Ticks) {
        if begin != 0 && end >= begin {
            self.record_now(EarlyEvent::Span { name: number(name), begin, end });
        }
    }

    fn timed_mark(&mut self, name: Name, begin: Ticks, end: Ticks) {
        if begin != 0 && end >= begin {
            self.record_now(EarlyEvent::TimedMark { name: number(name), begin, end });
        }
    }

    fn hold(&mut self) {
        Self::hold(self);
    }

    fn release(&mut self, until: Ticks) {
        Self::release(self, until);
    }

    fn defer(&mut self) {
        Self::defer(self);
    }

    fn merge(&mut self, steps: usize) {
        Self::merge(self, steps);
    }

    fn publish(&mut self, are_steps: bool) {
        Self::publish(self, are_steps);
    }

    fn insert(&mut self, name: Name, begin: Ticks, end: Ticks) {
        Self::insert(self, EarlyEvent::Span { name: number(name), begin, end });
    }

    fn inference(&mut self, is_inference: bool) {
        session::fact(Fact::Mode(if is_inference { Mode::Inference } else { Mode::Training }));
    }

    fn inferred(&mut self, phase: Name) {
        let (phase, how) =
            if phase == Name::Optimizer { ("optimizer", FROM_BACKWARD) } else { ("forward", FROM_ARRIVAL) };
        session::fact(Fact::Inferred { phase: phase.to_owned(), how: how.to_owned() });
    }

    fn epoch(&mut self, epoch: u64) {
        self.set_epoch(epoch);
    }

    fn batch(&mut self, batch: Option<Shape>) {
        self.set_shape(batch.unwrap_or([-1; 6]));
    }

    fn step(&mut self) -> i32 {
        self.end_loop_step()
    }
}

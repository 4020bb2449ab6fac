//! What ends a step.
//!
//! A training loop is a sequence of events: fetches of a batch, backward passes (K) and optimizer steps (O). The rule
//! receives K and O and decides which of them ends a step. A fetch never does, so loaders that look ahead do no harm, and
//! several backward passes before one optimizer step are micro-batches of one step.

/// After this many backward passes without an optimizer step, none is waited for.
const LONE_BACKWARDS: u64 = 50;
/// The same if no optimizer exists that could step.
const LONE_WITHOUT_OPTIMIZER: u64 = 3;
/// After this many steps of one optimizer, others that have not stepped are no longer waited for.
const LEARNED_WITHIN: usize = 8;
/// After this many unordered steps of several optimizers, the search for an order starts again.
const FORGOTTEN_AFTER: usize = 64;

/// An optimizer, by its address; never 0.
pub(crate) type OptimizerId = u64;

/// What an optimizer's step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// A part of a step, or of none: nothing was computed for it.
    Part,
    /// A part of a step, if others that have not stepped yet do.
    Waits,
    /// The end of a step.
    Ends,
    /// The same, and so were those that have waited since the last one: the others do not step.
    EndsEach,
}

/// Decides whether an optimizer step ends a training step, and whether there are any.
#[derive(Debug)]
pub(super) struct StepRule {
    backwards: u64,
    /// Backward passes since the last optimizer step, and how many may follow one another.
    lone: u64,
    limit: u64,
    /// Whether an optimizer has stepped with gradients.
    has_stepped: bool,
    /// For each optimizer: how many backward passes there had been at its last step.
    seen: Vec<(OptimizerId, u64)>,
    cycle: Cycle,
}

impl StepRule {
    pub(super) fn new() -> Self {
        Self {
            backwards: 0,
            lone: 0,
            limit: LONE_BACKWARDS,
            has_stepped: false,
            seen: Vec::new(),
            cycle: Cycle::default(),
        }
    }

    /// Sets the optimizers, before the first of them steps.
    pub(super) fn expect(&mut self, optimizers: &[OptimizerId]) {
        self.cycle.expect(optimizers);
    }

    /// Notes the end of a backward pass, or of gradients that are only part of one, as for a penalty.
    pub(super) fn backward(&mut self, is_part: bool) {
        self.backwards += 1;
        self.lone += u64::from(!is_part);
    }

    /// The newest backward pass is the first that counts: those before were parts of it.
    pub(super) fn count_from_here(&mut self) {
        self.lone = 1;
    }

    /// Whether steps may end without an optimizer: none has stepped, or for a long time.
    pub(super) fn is_lone(&self) -> bool {
        !self.has_stepped || self.lone > self.limit
    }

    /// Whether there are optimizers.
    pub(super) fn has_optimizers(&self) -> bool {
        self.has_stepped || !self.cycle.expected.is_empty()
    }

    /// Whether steps do end without an optimizer.
    pub(super) fn is_sure(&self) -> bool {
        self.lone > if self.has_optimizers() { self.limit } else { LONE_WITHOUT_OPTIMIZER }
    }

    /// This optimizer steps inside of another one's step, so steps do not wait for its turn.
    pub(super) fn steps_inside(&mut self, optimizer: OptimizerId) {
        self.cycle.expected.remove(optimizer);
        self.cycle.missing.remove(optimizer);
    }

    /// How often what is known of the optimizers' order was forgotten: who waited before then does no longer.
    pub(super) fn lessons(&self) -> u64 {
        self.cycle.lessons
    }

    /// Notes that an optimizer has stepped, or a scaler skipped its step.
    pub(super) fn optimizer(&mut self, optimizer: OptimizerId) -> Turn {
        if self.replace_seen(optimizer) == self.backwards {
            return Turn::Part;
        }
        self.has_stepped = true;
        // A loop that accumulates more micro-batches than the limit is recognised here.
        self.limit = self.limit.max(2 * self.lone);
        self.lone = 0;
        if self.cycle.alone == Some(optimizer) { Turn::Ends } else { self.cycle.turn(optimizer) }
    }

    /// Notes that this optimizer has seen all backward passes so far; returns how many it had seen before.
    fn replace_seen(&mut self, optimizer: OptimizerId) -> u64 {
        match self.seen.iter_mut().find(|(known, _)| *known == optimizer) {
            Some((_, seen)) => std::mem::replace(seen, self.backwards),
            None => {
                self.seen.push((optimizer, self.backwards));
                0
            }
        }
    }
}

/// The order in which several optimizers take turns. The last of a turn ends the step.
#[derive(Debug, Default)]
struct Cycle {
    /// The only optimizer that steps; `None` if there are several, or it is not known yet.
    alone: Option<OptimizerId>,
    /// All that exist, and those of them that are expected to step.
    existing: Set,
    expected: Set,
    history: Vec<OptimizerId>,
    /// Those that have not stepped since the last step's end, while the order is being learned.
    missing: Set,
    /// The learned order, and the place in it of the next step. Empty while the order is being learned.
    period: Vec<OptimizerId>,
    place: usize,
    /// How often that has begun.
    lessons: u64,
}

impl Cycle {
    /// Sets the optimizers. Starts to learn again if that changes anything: those that are made after others have stepped are another
    /// training's and take over, and the old ones are not expected until they step.
    fn expect(&mut self, optimizers: &[OptimizerId]) {
        let before = std::mem::replace(&mut self.existing, optimizers.iter().copied().collect());
        if before == self.existing {
            return;
        }
        let is_new = |optimizer: &OptimizerId| !before.contains(optimizer);
        let has_new = self.existing.0.iter().any(is_new);
        let has_stepped = !(self.period.is_empty() && self.history.is_empty());
        let is_expected = |optimizer: &OptimizerId| match (has_stepped, has_new) {
            (false, _) => true,
            (true, true) => is_new(optimizer),
            (true, false) => self.expected.contains(optimizer),
        };
        let expected = self.existing.0.iter().copied().filter(is_expected).collect();
        if expected != self.expected {
            self.learn(expected);
        }
    }

    /// Notes that an optimizer has stepped.
    fn turn(&mut self, optimizer: OptimizerId) -> Turn {
        if let Some(next) = self.period.get(self.place) {
            if *next == optimizer {
                self.place = (self.place + 1) % self.period.len();
                return if self.place == 0 { Turn::Ends } else { Turn::Part };
            }
            // After one that stepped alone, another training may have begun.
            let mut expected = if self.alone.is_some() { Set::default() } else { std::mem::take(&mut self.expected) };
            expected.insert(optimizer);
            self.learn(expected);
        }
        self.turn_while_learning(optimizer)
    }

    fn learn(&mut self, expected: Set) {
        self.lessons += 1;
        self.missing = expected.clone();
        self.expected = expected;
        self.history.clear();
        self.period.clear();
        self.place = 0;
        self.alone = None;
    }

    fn turn_while_learning(&mut self, optimizer: OptimizerId) -> Turn {
        self.expected.insert(optimizer);
        self.history.push(optimizer);
        self.missing.remove(optimizer);
        let others_are_absent = self.forget_absent();
        if let Some(period) = shortest_period(&self.history).map(|len| &self.history[..len])
            && self.expected.is_all_of(period)
        {
            self.period.extend_from_slice(period);
            self.alone = if let [alone] = period { Some(*alone) } else { None };
            self.history.clear();
            self.missing.0.clear();
            return if others_are_absent && self.alone.is_some() { Turn::EndsEach } else { Turn::Ends };
        }
        if self.history.len() >= FORGOTTEN_AFTER {
            self.history.clear(); // no order: each turn of all of them is a step
        }
        if !self.missing.is_empty() {
            return Turn::Waits;
        }
        self.missing.clone_from(&self.expected);
        Turn::Ends
    }

    /// Stops waiting for optimizers that have taken no part in enough steps of the others; returns whether it does.
    fn forget_absent(&mut self) -> bool {
        let absent = self.expected.0.iter().filter(|optimizer| !self.history.contains(optimizer));
        if self.history.len() >= LEARNED_WITHIN && self.missing.0.iter().eq(absent) {
            let Self { expected, missing, .. } = self;
            expected.0.retain(|optimizer| !missing.0.contains(optimizer));
            return !std::mem::take(&mut missing.0).is_empty();
        }
        false
    }
}

/// A few optimizers, in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Set(Vec<OptimizerId>);

impl Set {
    fn insert(&mut self, optimizer: OptimizerId) {
        if let Err(place) = self.0.binary_search(&optimizer) {
            self.0.insert(place, optimizer);
        }
    }

    fn remove(&mut self, optimizer: OptimizerId) {
        if let Ok(place) = self.0.binary_search(&optimizer) {
            self.0.remove(place);
        }
    }

    fn contains(&self, optimizer: &OptimizerId) -> bool {
        self.0.binary_search(optimizer).is_ok()
    }

    /// Whether these are all of it, and nothing else.
    fn is_all_of(&self, optimizers: &[OptimizerId]) -> bool {
        let is_known = |optimizer: &OptimizerId| self.contains(optimizer);
        optimizers.iter().all(is_known) && self.0.iter().all(|optimizer| optimizers.contains(optimizer))
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<OptimizerId> for Set {
    fn from_iter<I: IntoIterator<Item = OptimizerId>>(optimizers: I) -> Self {
        let mut set = Self::default();
        optimizers.into_iter().for_each(|optimizer| set.insert(optimizer));
        set
    }
}

/// The length of the shortest pattern that the history fully repeats at least twice.
fn shortest_period(history: &[OptimizerId]) -> Option<usize> {
    let len = history.len();
    (1..=len / 2).find(|period| len.is_multiple_of(*period) && history[*period..] == history[..len - period])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places of the events, counted from 0, that end a step. D fetch, F forward, K backward, O optimizer (O1, O2: which).
    fn ends(events: &str, expected: &[OptimizerId]) -> Vec<usize> {
        let mut rule = StepRule::new();
        if !expected.is_empty() {
            rule.expect(expected);
        }
        let is_end = |event: &str| match event.split_at(1) {
            ("K", _) => {
                rule.backward(false);
                rule.has_stepped && rule.is_lone()
            }
            ("O", which) => {
                matches!(rule.optimizer(which.parse().unwrap_or(1)), Turn::Ends | Turn::EndsEach)
            }
            _ => false,
        };
        let ends = events.split_whitespace().map(is_end).enumerate();
        ends.filter(|(_, is_end)| *is_end).map(|(place, _)| place).collect()
    }

    #[test]
    fn one_optimizer_ends_each_step() {
        for (events, expected) in [
            ("D F K O D F K O", vec![3, 7]),
            ("D F K D F K O", vec![6]),        // two micro-batches
            ("D D F K O D F K O", vec![4, 8]), // a loader that looks ahead
            ("D F K D O F K D O", vec![4, 8]),
            ("O D F K O O", vec![4]),   // an optimizer without gradients ends nothing
            ("F K F K F K O", vec![6]), // a closure that is called three times
            ("D F K K O", vec![4]),     // two losses
        ] {
            assert_eq!(ends(events, &[1]), expected, "{events}");
            assert_eq!(ends(events, &[]), expected, "{events}, not expected");
        }
    }

    #[test]
    fn two_optimizers_in_turn_are_one_step() {
        assert_eq!(ends(&"D F K O1 F K O2 ".repeat(3), &[1, 2]), [6, 13, 20]);
        assert_eq!(ends(&"D F K O1 O2 ".repeat(4), &[1, 2]), [4, 9, 14, 19], "after one backward pass");
    }

    #[test]
    fn generator_that_steps_every_fifth_time_ends_the_step() {
        let turn = "D F K O1 ".repeat(5) + "F K O2 ";
        assert_eq!(ends(&turn.repeat(3), &[1, 2]), [22, 45, 68]);
    }

    #[test]
    fn order_is_learned_where_the_rare_optimizer_comes_first() {
        let turn = "D F K O1 ".to_owned() + &"F K O2 ".repeat(3);
        let found = ends(&turn.repeat(6), &[1, 2]);
        assert_eq!(found[found.len() - 4..], [38, 51, 64, 77]);
    }

    #[test]
    fn optimizer_that_never_steps_is_not_waited_for_long() {
        let found = ends(&"D F K O1 ".repeat(20), &[1, 2]);
        assert_eq!(found[found.len() - 12..], (8..20).map(|step| 4 * step + 3).collect::<Vec<_>>());
    }

    #[test]
    fn new_order_is_learned() {
        let found = ends(&("D F K O1 ".repeat(10) + &"D F K O1 F K O2 ".repeat(8)), &[1]);
        assert_eq!(found[..10], (0..10).map(|step| 4 * step + 3).collect::<Vec<_>>());
        assert!([18, 19].contains(&found.len()), "{found:?}");
    }

    #[test]
    fn trainings_one_after_the_other_lose_no_step() {
        let all_are_made_first: String = (1..=4).map(|fold| format!("D F K O{fold} ").repeat(5)).collect();
        assert_eq!(ends(&all_are_made_first, &[]).len(), 20);
        let mut rule = StepRule::new();
        for folds in 1..=4 {
            rule.expect(&(1..=folds).collect::<Vec<_>>()); // those before are kept
            for step in 0..5 {
                rule.backward(false);
                assert_eq!(rule.optimizer(folds), Turn::Ends, "step {step} of fold {folds}");
                rule.expect(&(1..=folds).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn trainings_of_one_step_whose_optimizers_stay_hide_no_later_step() {
        let mut rule = StepRule::new();
        for (optimizer, steps) in [(1, 5), (2, 1), (3, 40), (4, 1), (5, 1), (6, 2)] {
            rule.expect(&(1..=optimizer).collect::<Vec<_>>());
            for step in 0..steps {
                rule.backward(false);
                assert_eq!(rule.optimizer(optimizer), Turn::Ends, "step {step} of {optimizer}");
            }
        }
    }

    #[test]
    fn optimizer_that_is_gone_is_no_longer_waited_for() {
        let mut rule = StepRule::new();
        let step = |rule: &mut StepRule, optimizer| {
            rule.backward(false);
            matches!(rule.optimizer(optimizer), Turn::Ends | Turn::EndsEach)
        };
        rule.expect(&[1, 2]);
        let found: Vec<bool> = [1, 2, 1, 2].into_iter().map(|optimizer| step(&mut rule, optimizer)).collect();
        assert_eq!(found, [false, true, false, true]);
        rule.expect(&[1]);
        assert!(step(&mut rule, 1) && step(&mut rule, 1));
    }

    #[test]
    fn lone_backward_passes_are_sure_to_be_steps_in_the_end() {
        for (expected, limit) in [(&[][..], LONE_WITHOUT_OPTIMIZER), (&[1], LONE_BACKWARDS)] {
            let mut rule = StepRule::new();
            rule.expect(expected);
            (0..limit).for_each(|_| rule.backward(false));
            assert!(rule.is_lone() && !rule.is_sure(), "{expected:?}");
            rule.backward(false);
            assert!(rule.is_lone() && rule.is_sure(), "{expected:?}");
        }
        let lone = LONE_BACKWARDS as usize;
        let events = "K O ".to_owned() + &"K ".repeat(lone + 3);
        assert_eq!(ends(&events, &[1]), [1, lone + 2, lone + 3, lone + 4], "an optimizer that no longer steps");
    }

    #[test]
    fn many_micro_batches_are_learned() {
        let events = "K ".repeat(40) + "O " + &"K ".repeat(79) + "O";
        assert_eq!(ends(&events, &[]), [40, 120]);
    }

    #[test]
    fn shortest_period_repeats_at_least_twice() {
        for (history, period) in [
            (vec![], None),
            (vec![1], None),
            (vec![1, 1], Some(1)),
            (vec![1, 2], None),
            (vec![1, 2, 1], None),
            (vec![1, 2, 1, 2], Some(2)),
            (vec![1, 1, 2, 1, 1, 2], Some(3)),
        ] {
            assert_eq!(shortest_period(&history), period, "{history:?}");
        }
    }
}

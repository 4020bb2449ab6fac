//! A loss of the training that is no number any more, or has grown far beyond where it began: whatever the time goes into, it is lost.

use crate::figures::{counted, significant};
use crate::findings::evidence::StepEvidence;
use crate::findings::finding::{CheckOutcome, Confidence, Finding, FindingKind, Severity};
use crate::findings::number::Number;
use crate::store::{LoggedValue, Store, TimedValue};

/// A loss that was a number again after the first that was none must be none for this many values.
const IN_A_ROW: usize = 3;
/// Parts of the names of losses that are not of the training, and of those that rise in a training that goes well: of two networks
/// that play against each other.
const OTHERS: [&str; 7] = ["val", "eval", "test", "loss_d", "loss_g", "d_loss", "g_loss"];
/// Work of programs that learn from rewards, whose losses have no course to follow.
const ROLLOUTS: [&str; 2] = ["rollout", "environment"];

/// What it finds in a session.
pub(super) fn check(evidence: &StepEvidence<'_>) -> CheckOutcome {
    let store = evidence.store;
    let is_other = |name: &str| OTHERS.iter().any(|part| name.to_ascii_lowercase().contains(part));
    let Some(loss) = store.loss().filter(|loss| !is_other(loss.name)) else { return CheckOutcome::Nothing };
    let found = if is_not_finite(&loss) { not_finite(store, &loss) } else { diverging(store, &loss) };
    found.map_or(CheckOutcome::Nothing, CheckOutcome::from)
}

/// Whether it is no number at the end: since the first time, or for several values. Some programs log a NaN where they have none.
fn is_not_finite(loss: &LoggedValue<'_>) -> bool {
    let course = loss.course();
    let newest: Vec<f64> =
        loss.counter.series.points().rev().take(IN_A_ROW).filter_map(|point| point.value()).collect();
    let is_none = !newest.is_empty() && newest.iter().all(|value| !value.is_finite());
    let has_come_back = course.last != course.last_good;
    course.first_not_finite.is_some_and(|_| match has_come_back {
        true => is_none && newest.len() == IN_A_ROW,
        false => newest.first().is_some_and(|value| !value.is_finite()),
    })
}

fn not_finite(store: &Store, loss: &LoggedValue<'_>) -> Option<Finding> {
    let course = loss.course();
    let first = course.first_not_finite?;
    let mut finding = Finding::for_run(FindingKind::Divergence, Confidence::High, None, |facts| {
        let since = step_of(store, first).map(|step| format!(" since step {}", facts.count(Number::SinceStep, step)));
        format!("{} is {}{}", loss.name, first.value, since.unwrap_or_default())
    })
    .with_evidence_lines(|facts| {
        facts.count(Number::Times, course.not_finite);
        let good = course.last_good.map(|good| {
            facts.number(Number::From, good.value);
            match step_of(store, good) {
                Some(step) => {
                    let step = facts.count(Number::LastGoodStep, step);
                    format!("the last good step is {step}, with {}", significant(good.value))
                }
                None => format!("the last number was {}", significant(good.value)),
            }
        });
        let values = format!("{} that are no numbers", counted(course.not_finite, "value", "values"));
        [values].into_iter().chain(Some(good.unwrap_or_else(|| "no value before was a number".to_owned())))
    })
    .with_advice(
        "stop it, and start again from a checkpoint before that step with a lower learning rate or clipped gradients; \
         torch.autograd.detect_anomaly() names the operation",
    );
    finding.severity = Severity::Major;
    Some(finding)
}

/// A loss that is above where it began, and above several times its least value so far for a while.
fn diverging(store: &Store, loss: &LoggedValue<'_>) -> Option<Finding> {
    let course = loss.course();
    let (since, first, last, least) = (loss.diverges_since()?, course.first?, course.last?, course.least?);
    if last.value <= first.value.abs() || is_from_rewards(store) {
        return None;
    }
    let mut finding = Finding::for_run(FindingKind::Divergence, Confidence::Medium, None, |facts| {
        let step = step_of(store, since).map(|step| format!(" since step {}", facts.count(Number::SinceStep, step)));
        let (from, to) = (facts.number(Number::From, least.value), facts.number(Number::To, last.value));
        let (from, to) = (significant(from), significant(to));
        format!("{} diverges{}: it is {to}, after {from} at the least", loss.name, step.unwrap_or_default())
    })
    .with_evidence(format!(
        "ten values or more in a row are above four times its least mean so far; the first was {}",
        significant(first.value)
    ))
    .with_advice(
        "try a lower learning rate, a longer warm-up of it, or clipped gradients, from a checkpoint before that step",
    );
    finding.severity = Severity::Major;
    Some(finding)
}

fn is_from_rewards(store: &Store) -> bool {
    ROLLOUTS.iter().any(|name| store.phase(name).is_some())
}

fn step_of(store: &Store, timed: TimedValue) -> Option<u64> {
    store.step_before(timed.t_ns).map(|row| row.step().0)
}

#[cfg(test)]
mod tests {
    use gnntop_fixtures::{MS, START_NS, StreamBuilder, each_item};
    use gnntop_wire::TrackRole;
    use proptest::prelude::*;

    use super::*;
    use crate::findings::Judgement;

    /// Steps of 10 ms, after each of which the program logs the next of these values.
    fn found_of(name: &str, phase: &str, values: &[f64]) -> Option<Finding> {
        let mut stream = StreamBuilder::new("learns");
        let track = stream.track(TrackRole::Training, "train");
        for (step, value) in (1..).zip(values) {
            let start_ns = START_NS + step * 10 * MS;
            stream.phase(track, step, phase, start_ns, start_ns + 10 * MS);
            stream.step(track, step, start_ns, start_ns + 10 * MS);
            stream.counter(track, name, start_ns + 10 * MS + 1, *value);
        }
        stream.flush();
        let mut store = Store::default();
        each_item(&stream.bytes(), |item| store.apply(item));
        let found = Judgement::for_steps(&store, 0..u64::MAX).findings.found;
        found.into_iter().find(|finding| finding.kind == FindingKind::Divergence)
    }

    fn found(values: &[f64]) -> Option<Finding> {
        found_of("loss", "forward", values)
    }

    /// A loss that falls from 2 to 0.5.
    fn falling(steps: usize) -> Vec<f64> {
        (0..steps).map(|step| 0.5 + 1.5 / (1.0 + step as f64 / 10.0)).collect()
    }

    #[test]
    fn loss_that_is_no_number_names_the_last_good_step() {
        for (bad, text) in [(f64::NAN, "NaN"), (f64::INFINITY, "inf")] {
            let it = found(&[falling(60), vec![bad; 7]].concat()).unwrap();
            assert_eq!(it.summary, format!("loss is {text} since step 61"));
            assert!(it.severity == Severity::Major && it.confidence == Confidence::High, "{it:#?}");
            assert_eq!(
                [Number::SinceStep, Number::LastGoodStep, Number::Times].map(|number| it.fact(number)),
                [61.0, 60.0, 7.0].map(Some)
            );
            assert!(it.evidence[1].starts_with("the last good step is 60, with 0.7"), "{it:#?}");
        }
        assert!(found(&[falling(60), vec![f64::NAN]].concat()).is_some(), "one value, at which a program may stop");
        assert!(found(&[f64::NAN; 5]).unwrap().evidence[1].starts_with("no value before"));
    }

    #[test]
    fn loss_that_is_a_number_again_is_none() {
        assert_eq!(found(&[falling(60), vec![f64::NAN; 4], falling(30)].concat()), None);
        // NaN stands for "not known" between two that are.
        let placeholders: Vec<f64> = falling(60).into_iter().flat_map(|loss| [loss, f64::NAN]).collect();
        assert_eq!(found(&placeholders), None);
        assert!(found(&[placeholders, vec![f64::NAN; 2]].concat()).is_some(), "three in a row");
    }

    #[test]
    fn loss_that_grows_beyond_its_begin_diverges() {
        let grows: Vec<f64> = (0..40).map(|step| 0.5 * 1.2f64.powi(step)).collect();
        let it = found(&[falling(100), grows].concat()).unwrap();
        assert!(it.summary.starts_with("loss diverges since step 1"), "{it:#?}");
        assert_eq!((it.severity, it.confidence), (Severity::Major, Confidence::Medium));
        assert!(it.fact(Number::To).unwrap() > 100.0, "{it:#?}");
    }

    #[test]
    fn other_losses_and_rewards_say_nothing() {
        let grows: Vec<f64> = (0..80).map(|step| 0.5 * 1.1f64.powi(step)).collect();
        assert!(found(&grows).is_some());
        for name in ["val_loss", "loss_G", "accuracy", "lr"] {
            assert_eq!(found_of(name, "forward", &[grows.clone(), vec![f64::NAN; 9]].concat()), None, "{name}");
        }
        assert_eq!(found_of("loss", "rollout", &grows), None);
        assert!(
            found_of("loss", "rollout", &[grows, vec![f64::NAN; 9]].concat()).is_some(),
            "no number is wrong everywhere"
        );
    }

    #[test]
    fn loss_that_was_nearly_nothing_may_rise_again() {
        // A small set is learnt by heart, and its loss rises from a thousandth to a tenth of where it began.
        let learnt: Vec<f64> = (0..200).map(|step| 2.0 * 0.95f64.powi(step)).collect();
        assert_eq!(found(&[learnt, vec![0.2; 30]].concat()), None);
    }

    proptest! {
        #[test]
        fn falling_loss_with_noise_is_clean(noise in proptest::collection::vec(0.5f64..2.0, 300)) {
            let values: Vec<f64> = falling(300).iter().zip(&noise).map(|(loss, noise)| loss * noise).collect();
            prop_assert_eq!(found(&values), None);
        }
    }
}

//! What a person says about a trace, and what its annotations are by that and by their names.

use gnntop_wire::Place;
use gnntop_wire::phase::{DATA_WAIT, OPTIMIZER, STANDARD};

use super::read::STEP;

/// What is given besides the trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChromeOptions {
    /// Pairs of a phase and the annotation that is it.
    pub phases: Vec<(String, String)>,
    /// The annotation that marks steps; by default the profiler's own.
    pub step: Option<String>,
    /// The rank's place in its run; by default the trace's.
    pub place: Option<Place>,
    /// The run's id, the same for all its ranks.
    pub run: String,
}

/// Whether an annotation is a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepName {
    /// One with this number.
    Number(u64),
    /// The next one.
    Next,
}

impl ChromeOptions {
    /// Whether the annotation of this name is a step: `NAME`, or `NAME` and a number.
    pub(super) fn step(&self, name: &str) -> Option<StepName> {
        let rest = name.strip_prefix(self.step.as_deref().unwrap_or(STEP))?;
        let digits = rest.trim_start_matches(['#', ' ', '_', ':', '-']);
        match digits.parse() {
            Ok(number) => Some(StepName::Number(number)),
            Err(_) if rest.is_empty() && self.step.is_some() => Some(StepName::Next),
            Err(_) => None,
        }
    }

    /// The phase that an annotation of the training thread is, if any.
    pub(super) fn phase<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        let plain = name.trim_matches(|c: char| c == '#' || c.is_whitespace());
        let of_torch = || match name {
            _ if name.starts_with("enumerate(DataLoader)") => Some(DATA_WAIT),
            _ if name.starts_with("Optimizer.step") || name.starts_with("Optimizer.zero_grad") => Some(OPTIMIZER),
            _ => None,
        };
        let standard = || STANDARD.into_iter().find(|phase| plain.to_ascii_lowercase().replace('_', " ") == *phase);
        let said = self.phases.iter().find(|(_, text)| text == name).map(|(phase, _)| phase.as_str());
        said.or_else(standard).or_else(of_torch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_option_names_the_step_annotation() {
        let torch = ChromeOptions::default();
        assert_eq!(torch.step("ProfilerStep#12"), Some(StepName::Number(12)));
        assert_eq!((torch.step("ProfilerStep#"), torch.step("train 3")), (None, None));
        let own = ChromeOptions { step: Some("train".to_owned()), ..ChromeOptions::default() };
        let of = |name| own.step(name);
        assert_eq!(
            (of("train"), of("train 3"), of("train_4")),
            (Some(StepName::Next), Some(StepName::Number(3)), Some(StepName::Number(4)))
        );
        assert_eq!((of("training"), of("ProfilerStep#1")), (None, None));
    }
}

//! Where in the program a phase spends its time, by the stacks that are sampled: those of a wait for a loader worker continue in the
//! worker.

use gnntop_wire::Origin;

use crate::findings::evidence::StepEvidence;
use crate::findings::finding::Finding;
use crate::findings::number::Number;

/// Places that are named.
const NAMED: usize = 3;
/// A line is worth a look first from this share of the stacks.
const MOSTLY: f64 = 0.5;

/// A place in the program, and how many stacks were taken there.
struct SampledPlace {
    text: String,
    /// The innermost frame of the program's own, with its line.
    line: Option<String>,
    stacks: u64,
}

/// The places of all stacks that were taken in a phase, the most frequent first.
pub(super) struct SampledPlaces {
    phase: &'static str,
    places: Vec<SampledPlace>,
    /// Whether no stacks are sampled of a program that has them.
    are_off: bool,
}

impl SampledPlaces {
    pub(super) fn find(evidence: &StepEvidence<'_>, phase: &'static str) -> Self {
        let store = evidence.store;
        let mut places: Vec<SampledPlace> = Vec::new();
        for (frames, stacks) in store.sampled().stacks() {
            let Some((_, frames)) = frames.split_last().filter(|(outermost, _)| store.name(**outermost) == phase)
            else {
                continue;
            };
            let Some(text) = store.frames_place(frames) else { continue };
            match places.iter_mut().find(|known| known.text == text) {
                Some(known) => known.stacks += stacks,
                None => {
                    let line = store.own_frames(frames).next().map(str::to_owned);
                    places.push(SampledPlace { text, line, stacks });
                }
            }
        }
        places.sort_by_key(|place| std::cmp::Reverse(place.stacks));
        let is_python = store.session().info().is_some_and(|info| info.origin == Origin::Python);
        Self { phase, places, are_off: is_python && store.sampled().is_empty() }
    }

    fn all(&self) -> u64 {
        self.places.iter().map(|place| place.stacks).sum()
    }

    /// The program's line in which most of the time passes, if there is one.
    pub(super) fn line(&self) -> Option<&str> {
        let first = self.places.first().filter(|first| first.stacks as f64 >= MOSTLY * self.all() as f64)?;
        first.line.as_deref()
    }

    /// Adds the most frequent places, or how to learn them.
    pub(super) fn describe(&self, finding: Finding) -> Finding {
        let Some((first, others)) = self.places.split_first() else {
            return if self.are_off {
                finding.with_evidence("gnntop run --stacks 20 names the lines")
            } else {
                finding
            };
        };
        finding.with_evidence_from(|facts| {
            let mut stacks = |place: &SampledPlace| {
                facts.about(&place.text, |facts| facts.count(Number::Stacks, place.stacks)).to_string()
            };
            let of_first = stacks(first);
            let others = others.iter().take(NAMED - 1).map(|place| format!("; {} in {}", stacks(place), place.text));
            let others: String = others.collect();
            let all = crate::figures::count(self.all());
            format!("{of_first} of {all} stacks sampled in {}: in {}{others}", self.phase, first.text)
        })
    }
}

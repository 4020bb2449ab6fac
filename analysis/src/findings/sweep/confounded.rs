//! Factors that were changed together, so that their effects cannot be separated.

use super::configuration::Configuration;
use crate::figures::joined;
use crate::findings::finding::{Confidence, Finding, FindingKind, Severity};
use crate::findings::number::Number;

/// Factors that were changed together in a set of runs, so that their effects cannot be separated.
pub fn confounded(runs: &[Configuration]) -> Option<Finding> {
    let differing = |a: &Configuration, b: &Configuration| -> Vec<&'static str> {
        let known = a.factors.iter().filter_map(|(name, value)| Some((*name, value, b.factors.get(name)?)));
        known.filter(|(_, value, other)| value != other).map(|(name, ..)| name).collect()
    };
    // For each run: how it differs from the run that is most similar in everything except the ranks.
    let mut together: Vec<(String, Vec<&'static str>)> = Vec::new();
    for run in runs {
        let others = runs.iter().filter(|other| other.factors.get("ranks") != run.factors.get("ranks"));
        let nearest = others.map(|other| differing(run, other)).min_by_key(Vec::len);
        if let Some(factors) = nearest.filter(|factors| factors.len() > 1) {
            together.push((run.name.clone(), factors));
        }
    }
    let mut factors: Vec<&'static str> = together.iter().flat_map(|(_, factors)| factors.clone()).collect();
    factors.sort_unstable();
    factors.dedup();
    if factors.is_empty() {
        return None;
    }
    let finding = Finding::for_run(FindingKind::Confounded, Confidence::High, None, |facts| {
        facts.count(Number::Factors, factors.len() as u64);
        format!("{} were changed at once, so their effects cannot be separated", joined(&factors))
    });
    let mut finding = Finding { severity: Severity::Minor, count: together.len() as u64, ..finding };
    for run in runs.iter().take(8) {
        let values: Vec<String> =
            factors.iter().filter_map(|name| Some(format!("{name} {}", run.factors.get(name)?))).collect();
        finding = finding.with_evidence(format!("{}: {}", run.name, values.join(", ")));
    }
    Some(finding.with_advice("add a run that differs in only one of them"))
}

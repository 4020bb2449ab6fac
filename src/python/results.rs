//! What became of the results that `gnntop run --to` was to write into runs of trackers.

use std::collections::BTreeMap;

use super::answers::Answer;

/// A line for each tracker: whether any of the program's Pythons has written results there, or why none has.
pub fn lines(answers: &BTreeMap<u32, Answer>) -> Vec<String> {
    let mut outcomes: BTreeMap<&str, Option<&str>> = BTreeMap::new();
    for (tracker, why) in answers.values().flat_map(|answer| &answer.results) {
        // Often one rank alone has a run: what the others say counts only where none has written.
        let known = outcomes.entry(tracker).or_insert(why.as_deref());
        *known = known.and(why.as_deref());
    }
    let line = |(tracker, why): (&str, Option<&str>)| match why {
        None => format!("results are in the run of {tracker}"),
        Some(why) => format!("warning: results are not in {tracker}: {why}"),
    };
    outcomes.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_that_has_written_is_enough() {
        let answer = |results: &[(&str, Option<&str>)]| {
            let results = results.iter().map(|(name, why)| ((*name).to_owned(), why.map(str::to_owned))).collect();
            Answer { results, ..Answer::default() }
        };
        let closed = Some("it had no open run");
        let first = answer(&[("mlflow", closed), ("wandb", closed)]);
        let second = answer(&[("mlflow", closed), ("wandb", None)]);
        let expected = ["warning: results are not in mlflow: it had no open run", "results are in the run of wandb"];
        assert_eq!(lines(&BTreeMap::from([(1, first.clone()), (2, second.clone())])), expected);
        assert_eq!(lines(&BTreeMap::from([(1, second), (2, first)])), expected);
    }
}

//! Whether two runs did the same: the same batches, phases, ranks, machine and command, as far as these are recorded.

use gnntop_wire::Fact;
use serde::Serialize;

use super::sample::{RunSample, TimedPart, WorkUnit};
use crate::figures::{count, joined};
use crate::store::StepRow;

/// Medians that differ by less than this share have the same setting: nodes and edges of sampled batches vary.
const SAME: f64 = 0.05;
/// Most words of a command, and most facts, that are listed.
const LISTED: usize = 3;

/// Whether two runs did the same.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SetupComparison {
    /// What both have in common, as far as it is recorded.
    pub same: Vec<String>,
    /// Differences, starting with what affects their speed most.
    pub differences: Vec<String>,
}

impl SetupComparison {
    /// Describes it in one sentence.
    pub fn sentence(&self) -> String {
        match (self.differences.as_slice(), self.same.as_slice()) {
            ([], []) => "the recordings do not say what they ran".to_owned(),
            ([], same) => format!("both ran the same, as far as recorded: {}", same.join(", ")),
            (differences, _) => format!("the runs differ: {}", differences.join("; ")),
        }
    }

    pub(super) fn compare<'a>(first: &RunSample<'a>, second: &RunSample<'a>) -> Self {
        let mut found = Self::default();
        found.batches([first, second]);
        found.ranks([first, second]);
        found.phases([first, second]);
        found.facts([first, second]);
        found.commands([first, second]);
        found
    }

    fn batches(&mut self, both: [&RunSample<'_>; 2]) {
        let sized = |sample: &RunSample<'_>| {
            [WorkUnit::Seeds, WorkUnit::Graphs].into_iter().find_map(|unit| {
                let size = median(sample, |row| unit.size(row))?;
                Some((unit.as_str(), size))
            })
        };
        match both.map(sized) {
            [Some((unit, a)), Some((other, b))] if unit == other && a == b => {
                self.same.push(format!("batches of {} {unit}", count(a)));
                self.sizes(both);
            }
            [Some((unit, a)), Some((other, b))] if unit == other => {
                self.differences.push(format!("batches of {} and {} {unit}", count(a), count(b)));
            }
            [Some((unit, a)), Some((other, b))] => {
                self.differences.push(format!("batches of {} {unit} and of {} {other}", count(a), count(b)));
            }
            [Some(_), None] => self.differences.push("only A reports batch sizes".to_owned()),
            [None, Some(_)] => self.differences.push("only B reports batch sizes".to_owned()),
            [None, None] => (),
        }
    }

    /// Compares the contents of batches with the same number of graphs or seeds.
    fn sizes(&mut self, both: [&RunSample<'_>; 2]) {
        let edges = both.map(|sample| median(sample, |row| row.batch().edges));
        let nodes = both.map(|sample| median(sample, |row| row.batch().nodes));
        for (what, medians) in [("edges", edges), ("nodes", nodes)] {
            let [Some(a), Some(b)] = medians else { continue };
            if a.abs_diff(b) as f64 > SAME * a.max(b) as f64 {
                self.differences.push(format!("{} and {} {what} a batch", count(a), count(b)));
                return;
            }
        }
    }

    fn ranks(&mut self, both: [&RunSample<'_>; 2]) {
        let shape = |sample: &RunSample<'_>| {
            let place = sample.run.member().place();
            place.map_or((1, 1), |place| (place.copies.max(1), place.stages.max(1)))
        };
        let words = |(copies, stages): (u32, u32)| match (copies, stages) {
            (1, 1) => "1 rank".to_owned(),
            (copies, 1) => format!("{copies} ranks"),
            (1, stages) => format!("{stages} stages"),
            (copies, stages) => format!("{copies} copies of {stages} stages"),
        };
        let [a, b] = both.map(shape);
        if a != b {
            self.differences.push(format!("{} and {}", words(a), words(b)));
        } else if a != (1, 1) {
            self.same.push(words(a));
        }
        let device = |sample: &RunSample<'_>| sample.run.member().place().map(|place| place.device.clone());
        if let [Some(a), Some(b)] = both.map(device) {
            self.add_difference("device", &a, &b);
        }
    }

    fn phases(&mut self, both: [&RunSample<'_>; 2]) {
        let took = |sample: &RunSample<'_>, name: &str| !sample.times_ns(TimedPart::Phase(name)).is_empty();
        let only = |own: usize| -> Vec<&str> {
            let names = both[own].store().phases().iter().filter(|phase| !phase.is_gap());
            let names = names.map(|phase| phase.text.as_str());
            names.filter(|name| took(both[own], name) && !took(both[1 - own], name)).collect()
        };
        let mut differ = false;
        for (side, names) in [("A", only(0)), ("B", only(1))] {
            if !names.is_empty() {
                differ = true;
                let noun = if names.len() == 1 { "phase" } else { "phases" };
                self.differences.push(format!("only {side} has the {noun} {}", joined(&names)));
            }
        }
        let phases = both[0].store().phases().len() - 1;
        if !differ && phases > 0 {
            self.same.push("the same phases".to_owned());
        }
    }

    fn facts(&mut self, both: [&RunSample<'_>; 2]) {
        let [a, b] = both.map(|sample| sample.store().session().facts());
        let known = a.iter().filter(|(_, fact)| !matches!(fact, Fact::Inferred { .. }));
        let pairs = known.filter_map(|(key, of_a)| Some((key, of_a, b.get(key)?)));
        for (key, of_a, of_b) in pairs.filter(|(_, of_a, of_b)| of_a != of_b).take(LISTED) {
            self.add_difference(key.title(), &of_a.text(), &of_b.text());
        }
        let host = |sample: &RunSample<'_>| sample.store().session().info().map(|info| info.host.clone());
        if let [Some(a), Some(b)] = both.map(host) {
            self.add_difference("machine", &a, &b);
        }
    }

    fn add_difference(&mut self, what: &str, a: &str, b: &str) {
        if a != b && !a.is_empty() && !b.is_empty() {
            self.differences.push(format!("{what} {a} and {b}"));
        }
    }

    /// Finds the words that only one of the commands has; imported tables have no command.
    fn commands(&mut self, both: [&RunSample<'_>; 2]) {
        let words = |sample: &RunSample<'_>| -> Vec<String> {
            let info = sample.store().session().info().filter(|info| !info.origin.is_import());
            info.map(|info| without_gnntop(&info.command)).unwrap_or_default()
        };
        let [a, b] = both.map(words);
        if a.is_empty() || b.is_empty() {
            return;
        }
        if a == b {
            self.same.push("the same command".to_owned());
            return;
        }
        for (side, own, other) in [("A", &a, &b), ("B", &b, &a)] {
            let only: Vec<&str> = own.iter().filter(|word| !other.contains(word)).map(String::as_str).collect();
            if !only.is_empty() {
                let more = if only.len() > LISTED { " ..." } else { "" };
                let told = only[..only.len().min(LISTED)].join(" ");
                self.differences.push(format!("only the command of {side} has {told}{more}"));
            }
        }
    }
}

/// Options of `gnntop run` and `gnntop train`, and whether a value follows: they change nothing of what is run.
const OWN_OPTIONS: [(&str, bool); 9] = [
    ("--record", true),
    ("--keep", true),
    ("--slow", true),
    ("--name", true),
    ("--force", false),
    ("--plain", false),
    ("--wait", false),
    ("--detach", false),
    ("--no-sensors", false),
];

/// The words of a command without the part that is gnntop's: where its program is, `run --`, and what it records.
fn without_gnntop(command: &str) -> Vec<String> {
    let mut words: Vec<&str> = command.split_whitespace().collect();
    let is_own = |word: &&str| word.rsplit('/').next() == Some("gnntop");
    if !words.first().is_some_and(is_own) {
        return words.into_iter().map(str::to_owned).collect();
    }
    if let Some(at) = words.iter().position(|word| *word == "--") {
        return words.split_off(at + 1).into_iter().map(str::to_owned).collect();
    }
    let (mut kept, mut is_value) = (Vec::new(), false);
    for word in words.into_iter().skip(1).filter(|word| !["run", "train"].contains(word)) {
        let option = OWN_OPTIONS.iter().find(|(name, _)| word == *name);
        if !std::mem::replace(&mut is_value, option.is_some_and(|(_, takes_value)| *takes_value)) {
            let has_value = OWN_OPTIONS.iter().any(|(name, _)| word.split_once('=').is_some_and(|(of, _)| of == *name));
            kept.extend((option.is_none() && !has_value).then(|| word.to_owned()));
        }
    }
    kept
}

/// The median of a number over the steps; `None` if a step does not report it.
fn median(sample: &RunSample<'_>, number: impl Fn(&StepRow<'_>) -> Option<u64>) -> Option<u64> {
    let mut all: Vec<u64> = sample.rows.iter().map(number).collect::<Option<_>>()?;
    let middle = all.len() / 2;
    (!all.is_empty()).then(|| *all.select_nth_unstable(middle).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_of_gnntop_is_left_out_of_commands() {
        for (command, rest) in [
            ("/a/gnntop train pna --record a.gnntop --force --steps 9", "pna --steps 9"),
            ("/b/bin/gnntop run pna --record=b.gnntop --slow 5 --steps 9", "pna --steps 9"),
            ("gnntop run --record a.gnntop -- python train.py --record x", "python train.py --record x"),
            ("python train.py --force", "python train.py --force"),
        ] {
            assert_eq!(without_gnntop(command).join(" "), rest, "{command}");
        }
    }
}

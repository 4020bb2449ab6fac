//! What a study does: its settings, its runs and their order, and the names of their recordings.

use std::collections::BTreeSet;
use std::time::Duration;

use gnntop_analysis::catalogue::FigureId;

use super::published::{Claim, Published};

/// A study as its file describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// Its name, for titles and folders.
    pub name: String,
    /// What it is about, for the report.
    pub about: String,
    /// What every run starts.
    pub program: Program,
    /// The settings to compare; the first is the one that ratios refer to. Never empty, names differ.
    pub settings: Vec<StudySetting>,
    /// Runs of each setting with each seed, at least one.
    pub repeats: u32,
    /// Seeds, given to the program as `--seed`; none if the file names none.
    pub seeds: Vec<u64>,
    /// A run that takes longer is ended and counts as failed.
    pub time_limit: Option<Duration>,
    /// Values to compare with.
    pub published: Vec<Published>,
    /// Conclusions to compare with what is measured.
    pub claims: Vec<Claim>,
    /// Figures to draw.
    pub figures: Vec<FigurePlan>,
    /// Grams of CO2-equivalent per kilowatt-hour; without it, carbon is unknown.
    pub carbon_g_per_kwh: Option<f64>,
}

/// What a study starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// A built-in training.
    Workload(String),
    /// Any program with its first arguments.
    Command(Vec<String>),
}

/// One setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StudySetting {
    /// How the report calls it, such as `batch-size=512`.
    pub name: String,
    /// The name under which values were published; its own where it is not another, smaller size.
    pub like: String,
    /// The built-in training, where it is not the study's.
    pub workload: Option<String>,
    /// What is added to the program's arguments.
    pub words: Vec<String>,
    /// Steps at the start of its runs that are left out of their numbers.
    pub warm_up_steps: u64,
}

/// One run of a setting.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlannedRun {
    /// Which of [`Study::settings`].
    pub setting: usize,
    /// The seed, where the study gives any.
    pub seed: Option<u64>,
    /// Which repeat, from 1.
    pub repeat: u32,
}

/// Bars that a study's file asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FigurePlan {
    /// What they show.
    pub what: String,
    /// Measures of one unit, a bar each.
    pub measures: Vec<FigureId>,
    /// Settings by the names under which values are published; all if it is not given.
    pub settings: Option<Vec<String>>,
    /// Whether a setting's bars are stacked, as parts of a whole.
    pub is_stacked: bool,
}

impl Study {
    /// The figures that its claims, its drawings and its published values are about.
    pub fn wanted(&self) -> BTreeSet<&FigureId> {
        let claimed = self.claims.iter().flat_map(|claim| [&claim.first.measure, &claim.second.measure]);
        let published = self.published.iter().map(|published| &published.measure);
        claimed.chain(published).chain(self.figures.iter().flat_map(|plan| &plan.measures)).collect()
    }

    /// All runs in the order in which they are done: every setting once, then every setting again, so that what
    /// changes about the machine meanwhile affects all alike. Each round begins with another setting, so that none
    /// is always the first.
    pub fn runs(&self) -> Vec<PlannedRun> {
        let seeds: Vec<Option<u64>> = match self.seeds.as_slice() {
            [] => vec![None],
            seeds => seeds.iter().copied().map(Some).collect(),
        };
        let rounds = (1..=self.repeats).flat_map(|repeat| seeds.iter().map(move |seed| (repeat, *seed)));
        let count = self.settings.len();
        let round = |(number, (repeat, seed))| {
            (0..count).map(move |at| PlannedRun { setting: (at + number) % count, seed, repeat })
        };
        rounds.enumerate().flat_map(round).collect()
    }

    /// What a run starts: the program or workload, the setting's options, the seed.
    pub fn words(&self, run: &PlannedRun) -> Vec<String> {
        let setting = self.settings.get(run.setting);
        let mut words = match (&self.program, setting.and_then(|setting| setting.workload.as_ref())) {
            (Program::Workload(_), Some(own)) => vec![own.clone()],
            (Program::Workload(name), None) => vec![name.clone()],
            (Program::Command(words), _) => words.clone(),
        };
        words.extend(setting.into_iter().flat_map(|setting| setting.words.clone()));
        words.extend(run.seed.into_iter().flat_map(|seed| ["--seed".to_owned(), seed.to_string()]));
        words
    }

    /// The name of a run's recording: its setting, seed and repeat for people, and eight digits that change with
    /// what is started, so that a changed study does not take old recordings for its own.
    pub fn file_name(&self, run: &PlannedRun) -> String {
        let setting = self.settings.get(run.setting).map_or("", |setting| setting.name.as_str());
        let seed = run.seed.map_or_else(String::new, |seed| format!("-seed{seed}"));
        let digits = fingerprint(&self.words(run));
        format!("{}{seed}-r{}-{digits:08x}.gnntop", as_file_name(setting), run.repeat)
    }
}

/// A text as a part of a file's name: nothing in it means anything to a shell or a file system.
pub(super) fn as_file_name(text: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "=.,".contains(c) { c } else { '_' };
    let name: String = text.chars().map(safe).take(100).collect();
    if name.starts_with('.') { format!("_{name}") } else { name }
}

/// FNV-1a with 32 bits over the words, each ended by a zero; the same on every machine and in every version.
fn fingerprint(words: &[String]) -> u32 {
    let bytes = words.iter().flat_map(|word| word.bytes().chain([0]));
    bytes.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn study(settings: usize, repeats: u32, seeds: Vec<u64>) -> Study {
        let setting = |at: usize| {
            let name = format!("n={at}");
            StudySetting {
                like: name.clone(),
                name,
                workload: None,
                words: vec!["--n".to_owned(), at.to_string()],
                warm_up_steps: 0,
            }
        };
        Study {
            name: "a".to_owned(),
            about: String::new(),
            program: Program::Command(vec!["prog".to_owned()]),
            settings: (0..settings).map(setting).collect(),
            repeats,
            seeds,
            time_limit: None,
            published: Vec::new(),
            claims: Vec::new(),
            figures: Vec::new(),
            carbon_g_per_kwh: None,
        }
    }

    proptest! {
        #[test]
        fn runs_are_all_combinations_once_and_interleaved(
            settings in 1_usize..7, repeats in 1_u32..5, seeds in prop::collection::btree_set(any::<u64>(), 0..4)
        ) {
            let seeds: Vec<u64> = seeds.into_iter().collect();
            let study = study(settings, repeats, seeds.clone());
            let runs = study.runs();
            let all: BTreeSet<PlannedRun> = runs.iter().cloned().collect();
            prop_assert_eq!(all.len(), runs.len());
            prop_assert_eq!(runs.len(), settings * repeats as usize * seeds.len().max(1));
            for round in runs.chunks(settings) {
                let of_round: BTreeSet<usize> = round.iter().map(|run| run.setting).collect();
                prop_assert_eq!(of_round.len(), settings);
            }
            let names: BTreeSet<String> = runs.iter().map(|run| study.file_name(run)).collect();
            prop_assert_eq!(names.len(), runs.len());
        }
    }

    #[test]
    fn no_setting_is_always_the_first() {
        let order: Vec<usize> = study(3, 3, vec![]).runs().iter().map(|run| run.setting).collect();
        assert_eq!(order, [0, 1, 2, 1, 2, 0, 2, 0, 1]);
    }

    #[test]
    fn a_recording_is_named_after_its_setting_and_changes_with_what_is_started() {
        let mut study = study(2, 1, vec![7]);
        let run = study.runs().remove(1);
        assert_eq!(study.words(&run), ["prog", "--n", "1", "--seed", "7"]);
        let name = study.file_name(&run);
        assert!(name.starts_with("n=1-seed7-r1-") && name.ends_with(".gnntop"), "{name}");
        study.settings[1].words.push("--more".to_owned());
        assert_ne!(study.file_name(&run), name);
        assert_eq!(as_file_name("../a b|c"), "_.._a_b_c");
    }
}

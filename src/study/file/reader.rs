//! From the text of a study's file to the study: its program, its settings and their combinations.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use super::shown::{self, FileError, FileMistake, WrittenClaim, WrittenFigure, WrittenPublished, unknown_setting};
use crate::study::plan::{Program, Study, StudySetting, as_file_name};

/// More runs are a mistake.
const MOST_RUNS: usize = 10_000;

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WrittenStudy {
    name: Spanned<String>,
    #[serde(default)]
    about: String,
    workload: Option<Spanned<String>>,
    command: Option<Spanned<Vec<String>>>,
    #[serde(default)]
    options: Options,
    #[serde(default)]
    setting: Vec<WrittenSetting>,
    #[serde(default)]
    vary: Vary,
    repeats: Option<Spanned<u32>>,
    seeds: Option<Spanned<Vec<u64>>>,
    #[serde(default)]
    warm_up_steps: u64,
    time_limit_s: Option<Spanned<u64>>,
    #[serde(default)]
    published: Vec<WrittenPublished>,
    #[serde(default)]
    claim: Vec<WrittenClaim>,
    #[serde(default)]
    figure: Vec<WrittenFigure>,
    carbon_g_per_kwh: Option<Spanned<f64>>,
    #[serde(default)]
    quick: Quick,
}

type Options = BTreeMap<Spanned<String>, Scalar>;
type Vary = BTreeMap<Spanned<String>, Spanned<Vec<Scalar>>>;

/// What the quick size replaces; its options override all others.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Quick {
    #[serde(default)]
    options: Options,
    setting: Option<Vec<WrittenSetting>>,
    vary: Option<Vary>,
    repeats: Option<Spanned<u32>>,
    seeds: Option<Spanned<Vec<u64>>>,
    warm_up_steps: Option<u64>,
    time_limit_s: Option<Spanned<u64>>,
}

/// A setting that is not a combination of lists.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WrittenSetting {
    name: Spanned<String>,
    /// Name under which values were published.
    like: Option<Spanned<String>>,
    /// Its own built-in training.
    workload: Option<Spanned<String>>,
    #[serde(default)]
    options: Options,
    warm_up_steps: Option<u64>,
}

/// The value of an option.
#[derive(Clone, Deserialize)]
#[serde(untagged, expecting = "give a text, a number, true or false")]
enum Scalar {
    Flag(bool),
    Whole(i64),
    Number(f64),
    Text(String),
}

/// Reads a study; `is_quick` takes what its `[quick]` replaces. Workloads are checked by `check_workload`, which
/// says what is wrong with a name.
///
/// # Errors
/// With the line, when the text is no study.
pub fn read(
    text: &str,
    is_quick: bool,
    check_workload: impl Fn(&str) -> Result<(), String>,
) -> Result<Study, FileError> {
    parse(text, is_quick, check_workload).map_err(|FileMistake { at, what }| {
        let line = 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
        FileError { line, what }
    })
}

fn parse(text: &str, is_quick: bool, check: impl Fn(&str) -> Result<(), String>) -> Result<Study, FileMistake> {
    let mut written: WrittenStudy = toml::from_str(text).map_err(|error| FileMistake {
        at: error.span().map_or(0, |span| span.start),
        what: error.message().replace('\n', "; "),
    })?;
    let program = parse_program(&written, check)?;
    // Published values are about the full settings, whichever size is requested.
    let full = expand_settings(&written, &Options::new())?;
    let known: BTreeSet<&str> = full.iter().map(|setting| setting.like.as_str()).collect();
    let values = std::mem::take(&mut written.published);
    let published = values.into_iter().map(|one| shown::parse_published(one, &known)).collect::<Result<_, _>>()?;
    let claims = std::mem::take(&mut written.claim);
    let claims = claims.into_iter().map(|one| shown::parse_claim(one, &known)).collect::<Result<_, _>>()?;
    let figures = std::mem::take(&mut written.figure);
    let figures = figures.into_iter().map(|one| shown::parse_figure(one, &known)).collect::<Result<_, _>>()?;
    let last_word = if is_quick { written.make_quick() } else { Options::new() };
    check_likes(&written.setting, &known)?;
    let study = Study {
        settings: expand_settings(&written, &last_word)?,
        repeats: parse_repeats(written.repeats.as_ref())?,
        seeds: parse_seeds(written.seeds)?,
        time_limit: parse_time_limit(written.time_limit_s.as_ref())?,
        name: parse_name(&written.name)?,
        about: written.about,
        program,
        published,
        claims,
        figures,
        carbon_g_per_kwh: parse_carbon(written.carbon_g_per_kwh.as_ref())?,
    };
    let runs = study.settings.len().saturating_mul(study.repeats as usize).saturating_mul(study.seeds.len().max(1));
    if runs > MOST_RUNS {
        return Err(FileMistake::at(&written.name, format!("{runs} runs are more than the limit of {MOST_RUNS}")));
    }
    Ok(study)
}

impl WrittenStudy {
    /// Replaces what `[quick]` replaces, and returns the options that override all others.
    fn make_quick(&mut self) -> Options {
        let quick = std::mem::take(&mut self.quick);
        if let Some(setting) = quick.setting {
            self.setting = setting;
        }
        if let Some(vary) = quick.vary {
            self.vary = vary;
        }
        self.repeats = quick.repeats.or(self.repeats.take());
        self.seeds = quick.seeds.or(self.seeds.take());
        self.time_limit_s = quick.time_limit_s.or(self.time_limit_s.take());
        self.warm_up_steps = quick.warm_up_steps.unwrap_or(self.warm_up_steps);
        quick.options
    }
}

fn parse_name(name: &Spanned<String>) -> Result<String, FileMistake> {
    if name.get_ref().trim().is_empty() {
        return Err(FileMistake::at(name, "give the study a name"));
    }
    Ok(name.get_ref().clone())
}

fn parse_program(written: &WrittenStudy, check: impl Fn(&str) -> Result<(), String>) -> Result<Program, FileMistake> {
    let of_settings = written.setting.iter().chain(written.quick.setting.iter().flatten());
    let of_settings = of_settings.filter_map(|setting| setting.workload.as_ref());
    if let (Some(_), Some(name)) = (&written.command, of_settings.clone().next()) {
        return Err(FileMistake::at(name, "a study with a command has no workload"));
    }
    for name in written.workload.iter().chain(of_settings) {
        check(name.get_ref()).map_err(|what| FileMistake::at(name, what))?;
    }
    match (&written.workload, &written.command) {
        (Some(name), None) => Ok(Program::Workload(name.get_ref().clone())),
        (None, Some(words)) if words.get_ref().is_empty() => Err(FileMistake::at(words, "command is empty")),
        (None, Some(words)) => Ok(Program::Command(words.get_ref().clone())),
        _ => Err(FileMistake::at(
            &written.name,
            "give either workload = \"pna\" or command = [\"python\", \"train.py\"]",
        )),
    }
}

fn parse_repeats(repeats: Option<&Spanned<u32>>) -> Result<u32, FileMistake> {
    match repeats {
        Some(repeats) if *repeats.get_ref() == 0 => Err(FileMistake::at(repeats, "repeats is 0: give at least 1")),
        repeats => Ok(repeats.map_or(1, |repeats| *repeats.get_ref())),
    }
}

fn parse_seeds(seeds: Option<Spanned<Vec<u64>>>) -> Result<Vec<u64>, FileMistake> {
    let Some(seeds) = seeds else { return Ok(Vec::new()) };
    let different: BTreeSet<&u64> = seeds.get_ref().iter().collect();
    match seeds.get_ref().len() {
        0 => Err(FileMistake::at(&seeds, "seeds is empty: give some, or leave it out")),
        count if different.len() < count => Err(FileMistake::at(&seeds, "the same seed is given twice; see repeats")),
        _ => Ok(seeds.into_inner()),
    }
}

fn parse_time_limit(limit: Option<&Spanned<u64>>) -> Result<Option<Duration>, FileMistake> {
    match limit {
        Some(limit) if *limit.get_ref() == 0 => {
            Err(FileMistake::at(limit, "time-limit-s is 0: give seconds, or leave it out"))
        }
        limit => Ok(limit.map(|limit| Duration::from_secs(*limit.get_ref()))),
    }
}

fn parse_carbon(intensity: Option<&Spanned<f64>>) -> Result<Option<f64>, FileMistake> {
    match intensity {
        Some(grams) if !grams.get_ref().is_finite() || *grams.get_ref() < 0.0 => {
            Err(FileMistake::at(grams, "give grams of CO2-equivalent a kilowatt-hour, not negative"))
        }
        grams => Ok(grams.map(|grams| *grams.get_ref())),
    }
}

/// Every setting with every combination of what varies; options of `last_word` replace all others.
fn expand_settings(written: &WrittenStudy, last_word: &Options) -> Result<Vec<StudySetting>, FileMistake> {
    let combinations = combinations(&written.vary)?;
    let mut all: Vec<StudySetting> = Vec::new();
    let named: Vec<Option<&WrittenSetting>> =
        if written.setting.is_empty() { vec![None] } else { written.setting.iter().map(Some).collect() };
    for of in named {
        for combination in &combinations {
            let setting = expand_setting(written, of, combination, last_word)?;
            let place = of.map_or(&written.name, |of| &of.name);
            if all.iter().any(|one| as_file_name(&one.name) == as_file_name(&setting.name)) {
                return Err(FileMistake::at(place, format!("there are two settings called {}", setting.name)));
            }
            all.push(setting);
            if all.len() > MOST_RUNS {
                return Err(FileMistake::at(place, format!("there are more than {MOST_RUNS} settings")));
            }
        }
    }
    Ok(all)
}

/// One value for each option that varies.
type Combination<'a> = Vec<(&'a str, &'a Scalar)>;

/// All of them; the option that is written last changes fastest.
fn combinations<'a>(vary: &'a Vary) -> Result<Vec<Combination<'a>>, FileMistake> {
    let mut lists: Vec<_> = vary.iter().collect();
    lists.sort_by_key(|(option, _)| option.span().start);
    let mut all: Vec<Combination<'a>> = vec![Vec::new()];
    for (option, list) in lists {
        check_option(option)?;
        if list.get_ref().is_empty() {
            return Err(FileMistake::at(list, format!("the list of {} is empty", option.get_ref())));
        }
        if all.len().saturating_mul(list.get_ref().len()) > MOST_RUNS {
            return Err(FileMistake::at(list, format!("there are more than {MOST_RUNS} settings")));
        }
        let with = |before: Combination<'a>| {
            let value = move |value: &'a Scalar| [before.clone(), vec![(option.get_ref().as_str(), value)]].concat();
            list.get_ref().iter().map(value)
        };
        all = all.into_iter().flat_map(with).collect();
    }
    Ok(all)
}

fn expand_setting(
    written: &WrittenStudy,
    of: Option<&WrittenSetting>,
    combination: &Combination<'_>,
    last_word: &Options,
) -> Result<StudySetting, FileMistake> {
    let mut options: BTreeMap<&str, &Scalar> = BTreeMap::new();
    let own = of.map(|of| &of.options);
    for (option, value) in written.options.iter().chain(own.into_iter().flatten()) {
        check_option(option)?;
        options.insert(option.get_ref(), value);
    }
    options.extend(combination.iter().copied());
    for (option, value) in last_word {
        check_option(option)?;
        options.insert(option.get_ref(), value);
    }
    let varied = combination.iter().map(|(option, value)| format!("{option}={}", value.text()));
    let name: Vec<String> = of.map(|of| of.name.get_ref().clone()).into_iter().chain(varied).collect();
    let name = if name.is_empty() { "all".to_owned() } else { name.join(",") };
    let like = of.and_then(|of| of.like.as_ref()).map_or_else(|| name.clone(), |like| like.get_ref().clone());
    let words = options.iter().flat_map(|(option, value)| value.words(option)).collect();
    let warm_up_steps = of.and_then(|of| of.warm_up_steps).unwrap_or(written.warm_up_steps);
    let workload = of.and_then(|of| of.workload.as_ref()).map(|name| name.get_ref().clone());
    Ok(StudySetting { name, like, workload, words, warm_up_steps })
}

fn check_option(option: &Spanned<String>) -> Result<(), FileMistake> {
    let name = option.get_ref();
    let is_option =
        !name.is_empty() && !name.starts_with('-') && name.chars().all(|c| c.is_ascii_graphic() && c != '=');
    if !is_option {
        return Err(FileMistake::at(
            option,
            format!("{name:?} is not an option: write it without leading dashes, such as batch-size"),
        ));
    }
    if name == "seed" {
        return Err(FileMistake::at(option, "give seeds as seeds = [1, 2], so that runs can be distinguished"));
    }
    Ok(())
}

impl Scalar {
    fn text(&self) -> String {
        match self {
            Self::Flag(flag) => flag.to_string(),
            Self::Whole(number) => number.to_string(),
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text.clone(),
        }
    }

    /// The option on a command line; a flag that is false is not there.
    fn words(&self, option: &str) -> Vec<String> {
        match self {
            Self::Flag(false) => Vec::new(),
            Self::Flag(true) => vec![format!("--{option}")],
            value => vec![format!("--{option}"), value.text()],
        }
    }
}

fn check_likes(settings: &[WrittenSetting], known: &BTreeSet<&str>) -> Result<(), FileMistake> {
    let unknown =
        settings.iter().filter_map(|one| one.like.as_ref()).find(|like| !known.contains(like.get_ref().as_str()));
    unknown.map_or(Ok(()), |like| Err(FileMistake::at(like, unknown_setting(like.get_ref(), known))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::Expected;

    const WHOLE: &str = r#"
name = "sizes"
command = ["prog", "first"]
repeats = 2
seeds = [1, 2]
warm-up-steps = 5
time-limit-s = 60

[options]
fast = true
slow = false
rate = 0.5

[vary]
width = [8, 16]
batch = ["a", "b"]

[[published]]
what = "median step"
measure = "step.p50"
unit = "ms"
source = "a table"
values = { "width=8,batch=a" = 1.0, "width=16,batch=a" = 2.5 }

[quick]
options = { rate = 0.25 }
vary = { width = [1] }
repeats = 1
"#;

    fn checked(text: &str, is_quick: bool) -> Result<Study, String> {
        let check = |name: &str| if name == "pna" { Ok(()) } else { Err(format!("no workload is called {name}")) };
        read(text, is_quick, check).map_err(|error| error.to_string())
    }

    #[test]
    fn complete_file_is_parsed() {
        let study = checked(WHOLE, false).unwrap();
        let names: Vec<&str> = study.settings.iter().map(|setting| setting.name.as_str()).collect();
        assert_eq!(names, ["width=8,batch=a", "width=8,batch=b", "width=16,batch=a", "width=16,batch=b"]);
        assert_eq!(study.settings[0].words, ["--batch", "a", "--fast", "--rate", "0.5", "--width", "8"]);
        assert_eq!((study.repeats, study.seeds.as_slice()), (2, &[1, 2][..]));
        assert!(study.settings.iter().all(|setting| setting.warm_up_steps == 5));
        assert_eq!(study.time_limit, Some(Duration::from_secs(60)));
        assert_eq!(study.published[0].values["width=16,batch=a"], 2.5);
    }

    #[test]
    fn quick_replaces_lists_and_overrides_options() {
        let study = checked(WHOLE, true).unwrap();
        assert_eq!(study.settings.len(), 1);
        assert_eq!(study.settings[0].words, ["--fast", "--rate", "0.25", "--width", "1"]);
        assert_eq!((study.repeats, study.seeds.len()), (1, 2));
    }

    #[test]
    fn like_refers_to_the_published_setting() {
        let text = r#"
name = "a"
workload = "pna"
[[setting]]
name = "512"
options = { batch-size = 512 }
[[quick.setting]]
name = "64"
like = "512"
options = { batch-size = 64 }
"#;
        let setting = |is_quick| checked(text, is_quick).unwrap().settings.remove(0);
        assert_eq!((setting(false).name.as_str(), setting(false).like.as_str()), ("512", "512"));
        assert_eq!((setting(true).name.as_str(), setting(true).like.as_str()), ("64", "512"));
        assert_eq!(setting(true).words, ["--batch-size", "64"]);
    }

    #[test]
    fn a_setting_can_have_a_warm_up_of_its_own() {
        let text = r#"
name = "a"
workload = "pna"
warm-up-steps = 4
[[setting]]
name = "one"
[[setting]]
name = "two"
warm-up-steps = 9
[quick]
warm-up-steps = 2
"#;
        let left_out = |is_quick| {
            let settings = checked(text, is_quick).unwrap().settings;
            settings.iter().map(|setting| setting.warm_up_steps).collect::<Vec<u64>>()
        };
        assert_eq!((left_out(false), left_out(true)), (vec![4, 9], vec![2, 9]));
    }

    #[test]
    fn mistake_is_reported_with_line() {
        let cases = [
            ("name = 'a'\nworklod = 'pna'", 2, "unknown field `worklod`"),
            ("name = 'a'\nworkload = 'pnb'", 2, "no workload is called pnb"),
            ("name = 'a'", 1, "give either workload"),
            ("name = 'a'\nworkload = 'pna'\ncommand = ['x']", 1, "give either workload"),
            ("name = 'a'\nworkload = 'pna'\n[[setting]]\nname = 'b'\nworkload = 'pnb'", 5, "no workload is called pnb"),
            ("name = 'a'\ncommand = ['x']\n[[setting]]\nname = 'b'\nworkload = 'pna'", 5, "has no workload"),
            ("name = 'a'\ncommand = []", 2, "command is empty"),
            ("name = ' '\ncommand = ['x']", 1, "give the study a name"),
            ("name = 'a'\ncommand = ['x']\nrepeats = 0", 3, "at least 1"),
            ("name = 'a'\ncommand = ['x']\nseeds = []", 3, "seeds is empty"),
            ("name = 'a'\ncommand = ['x']\nseeds = [3, 3]", 3, "twice"),
            ("name = 'a'\ncommand = ['x']\n[vary]\nb = [1]\nc = []", 5, "the list of c is empty"),
            ("name = 'a'\ncommand = ['x']\n[vary]\nb = [1, 1]", 1, "two settings called b=1"),
            ("name = 'a'\ncommand = ['x']\n[options]\n--b = 1", 4, "without leading dashes"),
            ("name = 'a'\ncommand = ['x']\n[options]\nseed = 1", 4, "seeds = [1, 2]"),
            ("name = 'a'\ncommand = ['x']\n[options]\nb = [1]", 4, "give a text, a number, true or false"),
            ("name = 'a'\ncommand = ['x']\ntime-limit-s = 0", 3, "time-limit-s is 0"),
            ("name = 'a'\ncommand = ['x']\nrepeats = 20000", 1, "20000 runs"),
        ];
        for (text, line, what) in cases {
            let error = checked(text, false).unwrap_err();
            assert!(error.starts_with(&format!("line {line}: ")) && error.contains(what), "{text}:\n{error}");
        }
        let claim = "[[claim]]\nsays = 'x'\nfirst = { setting = 'b=1', measure = 'step.p50' }\nsecond = \
                     { setting = 'b=2', measure = 'step.p90' }\nexpect = 'more'\n";
        let figure = "[[figure]]\nwhat = 'x'\nmeasures = ['step.p50', 'step.p90']\nsettings = ['b=2']\n";
        let shown = |text: String| checked(&format!("name = 'a'\ncommand = ['x']\n[vary]\nb = [1, 2]\n{text}"), false);
        let study = shown(format!("{claim}{figure}")).unwrap();
        assert_eq!(
            (study.claims[0].expected, &*study.claims[0].second.measure.to_string()),
            (Expected::More, "step.p90")
        );
        assert_eq!(study.figures[0].settings.as_deref(), Some(&["b=2".to_owned()][..]));
        for (from, to, line, what) in [
            ("'b=1'", "'b=3'", 7, "there is no setting b=3; settings are: b=1; b=2"),
            ("'step.p90'", "'epochs.count'", 8, "step.p50 and epochs.count cannot be compared"),
            ("'step.p90'", "'step.peak'", 8, "step has no peak: use p50 (any percentile), mean"),
            ("'step.p90'", "'step'", 8, "\"step\" is no figure: give NAME.STATISTIC"),
            ("'more'", "'much'", 9, "unknown variant"),
        ] {
            let error = shown(claim.replace(from, to)).unwrap_err();
            assert!(error.starts_with(&format!("line {line}: ")) && error.contains(what), "{error}");
        }
        for (from, to, line, what) in [
            ("['step.p50', 'step.p90']", "[]", 7, "name at least one measure"),
            ("'step.p90'", "'finding.spike.count'", 7, "finding.spike.count has another unit than the first"),
            ("'b=2'", "'b=9'", 8, "there is no setting b=9"),
        ] {
            let error = shown(figure.replace(from, to)).unwrap_err();
            assert!(error.starts_with(&format!("line {line}: ")) && error.contains(what), "{error}");
        }
        let wrong = WHOLE.replace("step.p50", "step.peak");
        assert!(checked(&wrong, false).unwrap_err().contains("step has no peak"));
        let wrong = WHOLE.replace(r#""width=16,batch=a" = 2.5"#, "x = 2.5");
        assert!(checked(&wrong, false).unwrap_err().contains("line 23: there is no setting x"));
    }

    #[test]
    fn shipped_studies_are_parsed() {
        for (text, settings, quick) in [
            (include_str!("../../../workloads/studies/pna.toml"), 10, 10),
            (include_str!("../../../workloads/studies/cora.toml"), 5, 5),
            (include_str!("../../../workloads/studies/reddit.toml"), 40, 16),
            (include_str!("../../../workloads/studies/vig.toml"), 13, 13),
        ] {
            let read = |is_quick| read(text, is_quick, |_| Ok(())).unwrap();
            assert_eq!((read(false).settings.len(), read(true).settings.len()), (settings, quick));
            assert!(!read(true).published.is_empty());
            // Claims and publications name only settings that the quick size has, too.
            let likes: Vec<String> = read(true).settings.into_iter().map(|setting| setting.like).collect();
            let of_claims = read(true).claims.into_iter().flat_map(|claim| [claim.first.setting, claim.second.setting]);
            let of_figures = read(true).figures.into_iter().filter_map(|figure| figure.settings).flatten();
            let missing: Vec<String> = of_claims.chain(of_figures).filter(|name| !likes.contains(name)).collect();
            assert!(missing.is_empty(), "{missing:?}");
        }
    }
}

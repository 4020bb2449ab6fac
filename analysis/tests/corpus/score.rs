//! What was found in a run of the corpus beside what is to be found, and the table of all.

use std::collections::{BTreeMap, BTreeSet};

use gnntop_analysis::findings::{self, Finding, FindingKind};
use gnntop_analysis::store::Store;
use gnntop_fixtures::each_item;

use super::case::{Case, Strength};

/// What was found in one run, and what is wrong with it.
#[derive(Debug)]
pub struct Scored {
    pub class: &'static str,
    pub strength: Strength,
    pub amount: String,
    pub name: String,
    /// Whether all that the case expects was found.
    pub is_found: bool,
    /// What was missed, or found and is not there, or said wrongly.
    pub wrong: Vec<String>,
}

/// Looks for findings in a run.
pub fn score_case(case: &Case) -> Scored {
    let mut store = Store::new();
    each_item(&case.stream, |item| store.apply(item));
    let found = findings::all_findings(&store).found;
    let verdict = findings::verdict(&store);
    let kinds: BTreeSet<FindingKind> = found.iter().map(|finding| finding.kind).collect();
    let missed: Vec<String> =
        case.expect.iter().filter(|kind| !kinds.contains(kind)).map(|kind| format!("missed {}", kind.id())).collect();
    let is_found = missed.is_empty();
    let mut wrong = if case.strength == Strength::Below { Vec::new() } else { missed };
    let is_true = |kind: &FindingKind| case.expect.contains(kind) || case.allowed.contains(kind);
    let told_falsely = found.iter().filter(|finding| !is_true(&finding.kind));
    wrong.extend(told_falsely.map(|finding| format!("false {}: {}", finding.kind.id(), finding.summary)));
    wrong.extend(wrong_texts(case, &found, &verdict));
    wrong.extend(double_counted(&found));
    let bare = found.iter().filter(|finding| finding.facts.is_empty());
    wrong.extend(bare.map(|finding| format!("no numbers of {}", finding.summary)));
    if case.strength != Strength::Below {
        wrong.extend(case.spikes.as_ref().and_then(|steps| wrong_places(steps, &found)));
    }
    Scored {
        class: case.class,
        strength: case.strength,
        amount: case.amount.clone(),
        name: case.name(),
        is_found,
        wrong,
    }
}

fn wrong_texts(case: &Case, found: &[Finding], verdict: &str) -> Vec<String> {
    let mut text = format!("{verdict}\n");
    for finding in found {
        text += &format!("{}\n{}\n{}\n", finding.summary, finding.evidence.join("\n"), finding.advice.join("\n"));
    }
    let missing =
        case.expected_texts.iter().filter(|words| case.strength != Strength::Below && !text.contains(words.as_str()));
    let missing = missing.map(|words| format!("does not say {words:?}: {text}"));
    let said = case
        .forbidden_texts
        .iter()
        .filter(|words| text.contains(**words))
        .map(|words| format!("says {words:?}: {text}"));
    missing.chain(said).collect()
}

/// Findings whose shares add up to more than the time there is; a GPU's idle time passes beside that of the run.
fn double_counted(found: &[Finding]) -> Option<String> {
    let of_the_run = found.iter().filter(|finding| finding.kind != FindingKind::GpuIdle);
    let sum: f64 = of_the_run.filter_map(|finding| finding.share).sum();
    (sum > 1.0 + 1e-6).then(|| format!("the findings take {sum:.2} of the time: {found:#?}"))
}

fn wrong_places(steps: &[u64], found: &[Finding]) -> Option<String> {
    let spikes = found.iter().filter(|finding| finding.kind == FindingKind::Spike);
    let places: Vec<u64> = spikes.flat_map(|spike| &spike.places).map(|place| place.ordinals.start + 1).collect();
    (places != steps).then(|| format!("spikes at {places:?} instead of {steps:?}"))
}

/// The table of `docs/findings.md`: a row a class.
pub fn table(scored: &[Scored]) -> String {
    let mut classes: BTreeMap<&str, Vec<&Scored>> = BTreeMap::new();
    scored.iter().for_each(|one| classes.entry(one.class).or_default().push(one));
    let mut out = "| class | runs | just below | at | above | wrong |\n|---|---|---|---|---|---|\n".to_owned();
    for (class, runs) in classes {
        let wrong = runs.iter().filter(|one| !one.wrong.is_empty()).count();
        let cell = |strength: Strength| {
            let of_strength: Vec<String> =
                runs.iter().filter(|one| one.strength == strength).map(|one| describe(one)).collect();
            if of_strength.is_empty() { "-".to_owned() } else { of_strength.join(", ") }
        };
        let [below, at, above] = Strength::GROWING.map(cell);
        out += &format!("| {class} | {} | {below} | {at} | {above} | {wrong} |\n", runs.len());
    }
    let clean = scored.iter().filter(|one| one.strength == Strength::Clean);
    let (clean, disturbed) = clean.fold((0, 0), |sum, one| (sum.0 + 1, sum.1 + usize::from(!one.wrong.is_empty())));
    let upper: Vec<&Scored> = scored.iter().filter(|one| one.strength >= Strength::At).collect();
    let found = upper.iter().filter(|one| one.is_found).count();
    out + &format!(
        "\n{} runs. Clean: {clean}, with a finding: {disturbed}. At the two upper strengths: {}, found: {found}.\n",
        scored.len(),
        upper.len()
    )
}

fn describe(one: &Scored) -> String {
    format!("{} {}", one.amount, if one.is_found { "found" } else { "silent" })
}

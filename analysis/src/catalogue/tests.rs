//! What the catalogue gives of made-up runs, whose numbers are known.

use gnntop_fixtures::device::DeviceRun;
use gnntop_fixtures::{MS, ParallelRun, START_NS, StreamBuilder, TrainingRun, each_item};
use gnntop_wire::TrackRole;

use super::names::COMPARED;
use super::{Catalogue, FigureId, Measured, Population, Statistic};
use crate::ranks::Run;
use crate::store::Store;

fn store(bytes: &[u8]) -> Store {
    let mut store = Store::new();
    each_item(bytes, |item| store.apply(item));
    store
}

fn get(store: &Store, text: &str) -> Measured {
    let id: FigureId = text.parse().unwrap();
    Catalogue::new(store).get(&id).unwrap_or_else(|why| panic!("{text}: {why}"))
}

#[test]
fn a_figure_has_its_value_interval_and_population() {
    let store = store(&TrainingRun { steps: 400, ..TrainingRun::default() }.bytes());
    let p50 = get(&store, "backward.p50");
    let (low, high) = p50.interval.unwrap();
    assert!(low <= p50.value && p50.value <= high, "{p50:?}");
    assert_eq!(p50.population, Population::Samples { count: 400, nouns: ["step", "steps"] });
    assert_eq!(get(&store, "layer_0.p50").population, Population::Samples { count: 400, nouns: ["span", "spans"] });
    assert!(get(&store, "backward.mean").interval.is_some() && get(&store, "gap.share").interval.is_none());
    assert_eq!(get(&store, "steps.count").value, 400.0);
    // The gap of a millisecond is before the step, and in its period.
    let difference = get(&store, "period.p50").value - get(&store, "step.p50").value;
    assert!((0.9e6..=1.1e6).contains(&difference), "{difference}");
}

#[test]
fn listed_figures_parse_from_their_text() {
    for bytes in [TrainingRun::default().bytes(), DeviceRun::default().bytes()] {
        let store = store(&bytes);
        let catalogue = Catalogue::new(&store);
        let listed = catalogue.list();
        assert!(listed.len() > 100, "{}", listed.len());
        for (id, measured) in listed {
            let parsed: FigureId = id.to_string().parse().unwrap();
            assert_eq!(catalogue.resolve(&parsed).as_ref(), Ok(&id), "{id}");
            assert_eq!(catalogue.get(&parsed).unwrap(), measured, "{id}");
        }
    }
}

#[test]
fn listing_compares_each_name_a_few_times_however_many_there_are() {
    let mut stream = StreamBuilder::new("named");
    let track = stream.track(TrackRole::Training, "main");
    for n in 0..500 {
        stream.span(track, 0, &format!("layer {n}"), START_NS, START_NS + MS);
        stream.counter(track, &format!("counter {n}"), START_NS, 1.0);
        stream.mark(track, &format!("mark {n}"), START_NS);
    }
    let store = store(&stream.bytes());
    let figures = Catalogue::new(&store).list();
    assert!(figures.len() > 5000, "{}", figures.len());
    assert!(COMPARED.get() < 2 * figures.len(), "{} names were compared for {} figures", COMPARED.get(), figures.len());
}

#[test]
fn skipped_steps_are_in_no_step_figure() {
    let store = store(&TrainingRun { steps: 100, ..TrainingRun::default() }.bytes());
    let catalogue = Catalogue::new(&store).with_skipped_steps(30);
    for text in ["steps.count", "period.count", "work.count", "backward.count"] {
        assert_eq!(catalogue.get(&text.parse().unwrap()).unwrap().value, 70.0, "{text}");
    }
}

#[test]
fn figures_of_chosen_steps_are_of_these_alone() {
    let store = store(&TrainingRun { steps: 400, ..TrainingRun::default() }.bytes());
    let rows = store.steps().rows(200..250).collect();
    let catalogue = Catalogue::new(&store).with_steps(rows);
    let get = |text: &str| catalogue.get(&text.parse().unwrap());
    for text in ["steps.count", "period.count", "work.count", "backward.count"] {
        assert_eq!(get(text).unwrap().value, 50.0, "{text}");
    }
    let classes = ["full_batch.count", "partial_batch.count"].map(|text| get(text).unwrap().value);
    assert_eq!(classes, [48.0, 2.0]);
    for text in ["energy.per_step", "energy.per_epoch", "energy.total", "carbon.per_step"] {
        let why = get(text).unwrap_err().to_string();
        assert_eq!(why, "energy is known of the whole recording, not of these steps alone", "{text}");
    }
}

#[test]
fn a_device_has_figures_of_its_own() {
    let store = store(&DeviceRun::default().bytes());
    // The host hands forward over in 0.6 ms, the device takes 6 ms for it.
    assert!(get(&store, "forward.p50").value < 1e6 && get(&store, "device.forward.p50").value > 5e6);
    assert!((1u64 << 30) as f64 <= get(&store, "device.memory.peak").value);
    let id: FigureId = "device.forward.p50".parse().unwrap();
    let host = self::store(&TrainingRun::default().bytes());
    assert_eq!(Catalogue::new(&host).get(&id).unwrap_err().to_string(), "no device was timed");
}

#[test]
fn resolve_accepts_any_spelling_and_refuses_wrong_names() {
    let store = store(&TrainingRun::default().bytes());
    let resolved = |text: &str| Catalogue::new(&store).resolve(&text.parse().unwrap()).map(|id| id.to_string());
    for text in ["data_wait.p50", "data-wait.p50", "data wait.p50", "Data_Wait.p50"] {
        assert_eq!(resolved(text), Ok("data_wait.p50".to_owned()));
    }
    assert_eq!(resolved("all-reduce.p50"), Ok("all-reduce.p50".to_owned()), "a phase that this run does not have");
    let refused = |text| resolved(text).unwrap_err().to_string();
    assert!(refused("foward.p99").contains("did you mean forward?"), "{}", refused("foward.p99"));
    assert!(refused("dta_wait.p99").contains("did you mean data_wait?"));
    assert!(refused("nowhere.p50").contains("there are data_wait, forward"), "{}", refused("nowhere.p50"));
}

/// The page of the documentation is printed from the catalogue: `GNNTOP_PRINT=1 cargo test -p gnntop-analysis page` writes it.
#[test]
fn the_page_of_the_documentation_lists_every_figure() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/figures.md");
    if std::env::var_os("GNNTOP_PRINT").is_some() {
        std::fs::write(path, super::page()).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(written == super::page(), "docs/figures.md is not what the catalogue prints; write it with GNNTOP_PRINT=1");
}

#[test]
fn traced_steps_are_in_no_figure() {
    let mut stream = StreamBuilder::new("test");
    let main = stream.track(TrackRole::Training, "main");
    for number in 0..100 {
        let (begin_ns, is_traced) = (START_NS + number * 60 * MS, number % 50 == 20);
        let end_ns = begin_ns + if is_traced { 50 * MS } else { 10 * MS };
        stream.phase(main, number, "forward", begin_ns, end_ns);
        match is_traced {
            true => stream.traced_step(main, number, begin_ns, end_ns),
            false => stream.step(main, number, begin_ns, end_ns),
        }
    }
    let store = store(&stream.bytes());
    for text in ["steps.count", "work.count", "between.count"] {
        assert_eq!(get(&store, text).value, 98.0, "{text}");
    }
    assert_eq!((get(&store, "outliers.count").value, get(&store, "work.max").value), (0.0, (10 * MS) as f64));
}

#[test]
fn unfinished_epoch_is_not_counted() {
    let killed = TrainingRun { steps: 60, ends: false, ..TrainingRun::default() };
    let ended = TrainingRun { ends: true, ..killed.clone() };
    // Two epochs of 25 steps, and 10 steps of a third.
    let epochs = |run: &TrainingRun| get(&store(&run.bytes()), "epoch.p50").population;
    assert_eq!(epochs(&killed), Population::Samples { count: 1, nouns: ["epoch", "epochs"] });
    assert_eq!(epochs(&ended), Population::Samples { count: 2, nouns: ["epoch", "epochs"] });
    let all_skipped = store(&killed.bytes());
    let all_skipped = Catalogue::new(&all_skipped).with_skipped_steps(60);
    assert!(all_skipped.get(&"epoch.p50".parse().unwrap()).is_err());
}

#[test]
fn each_rank_has_the_share_of_each_phase_and_every_figure_of_a_run_is_found_again() {
    let mut run = Run::default();
    ParallelRun::default().sessions().iter().for_each(|bytes| each_item(bytes, |item| run.apply(item)));
    let catalogue = Catalogue::with_run(&run);
    let listed = catalogue.list();
    let is_share = |id: &FigureId| id.to_string().starts_with("rank.1.") && id.to_string().ends_with("forward.share");
    let (_, share) = listed.iter().find(|(id, _)| is_share(id)).expect("rank.1.forward.share is listed");
    let rank = *run.ranks().get(1).unwrap();
    let slot = rank.store.phase("forward").unwrap().slot;
    assert_eq!(Some(share.value), rank.store.statistics().share(slot));
    for (id, measured) in &listed {
        let parsed: FigureId = id.to_string().parse().unwrap();
        assert_eq!(catalogue.resolve(&parsed).map(|id| catalogue.get(&id).unwrap()).as_ref(), Ok(measured), "{id}");
    }
    let why = |text: &str| catalogue.get(&text.parse().unwrap()).unwrap_err().to_string();
    assert_eq!(why("rank.9.forward.share"), "the run has no such rank");
}

#[test]
fn skipped_steps_are_in_no_rank_figure() {
    let slow = (0..2).map(|rank| (rank, 1..11, "forward", 100 * MS)).collect();
    let parallel = ParallelRun { slow, ..ParallelRun::default() };
    let mut run = Run::default();
    parallel.sessions().iter().for_each(|bytes| each_item(bytes, |item| run.apply(item)));
    let get =
        |skip: u64, text: &str| Catalogue::with_run(&run).with_skipped_steps(skip).get(&text.parse().unwrap()).unwrap();
    let steps = |count| Population::Samples { count, nouns: ["step", "steps"] };
    for text in ["run.steps.per_s", "run.skew.p50", "rank.1.steps.count", "rank.1.period.p50", "rank.1.own.p50"] {
        assert_eq!(get(10, text).population, steps(50), "{text}");
    }
    assert!(get(10, "run.steps.per_s").value > 1.4 * get(0, "run.steps.per_s").value);
    assert_eq!(get(10, "rank.1.steps.count").value, 50.0);
}

#[test]
fn names_that_differ_in_a_space_or_in_what_has_them_are_told_apart() {
    let mut stream = StreamBuilder::new("test");
    let main = stream.track(TrackRole::Training, "main");
    for number in 0..20 {
        let begin_ns = START_NS + number * 60 * MS;
        for (at, text) in ["a b", "a_b", "gap"].into_iter().enumerate() {
            let from_ns = begin_ns + (0..at as u64).map(|of| (of + 1) * MS).sum::<u64>();
            stream.phase(main, number, text, from_ns, from_ns + (at as u64 + 1) * MS);
        }
        stream.span(main, number, "a b", begin_ns, begin_ns + 10 * MS);
        stream.step(main, number, begin_ns, begin_ns + 20 * MS);
    }
    let store = store(&stream.bytes());
    let catalogue = Catalogue::new(&store);
    let max_ms = |subject, name| catalogue.subject(subject, name).whole(Statistic::Max).unwrap() / MS;
    let phases = [("a b", 1), ("a_b", 2), ("own gap", 3)];
    phases.iter().for_each(|(name, ms)| assert_eq!(max_ms("NAME", name), *ms, "{name}"));
    assert_eq!(max_ms("span.SPAN", "a b"), 10);
    assert_eq!(catalogue.value("a_b.max"), Some(2.0 * MS as f64));
    assert!(catalogue.value("gap.min").unwrap() >= 14.0 * MS as f64, "the gap is what no phase has");
}

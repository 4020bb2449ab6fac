//! Reports as a whole.

use gnntop_fixtures::any::any_stream;
use proptest::test_runner::Config as ProptestConfig;
use serde_json::Value;

use super::{Document, Options, Report, to_csv};
use gnntop_analysis::catalogue::Catalogue;
use gnntop_analysis::store::{Limits, Store};
use gnntop_fixtures::{MS, TrainingRun, each_item};
use gnntop_wire::{Definition, Fact, put_definitions};

fn store(bytes: &[u8], limits: Limits) -> Store {
    let mut store = Store::with_limits(limits);
    each_item(bytes, |item| store.apply(item));
    store
}

fn report(run: &TrainingRun, options: &Options) -> Report {
    report_on(&store(&run.bytes(), Limits::default()), options)
}

fn report_on(store: &Store, options: &Options) -> Report {
    Report::new(&options.apply_to(Catalogue::new(store)), options)
}

fn text(report: &Report) -> String {
    Document::from_reports(&[("a.gnntop", report)]).to_text()
}

fn json(report: &Report) -> Value {
    serde_json::from_str(&report.to_json().unwrap()).unwrap()
}

#[test]
fn text_fits_80_columns() {
    let run = TrainingRun { spikes: vec![(30, "backward", 84 * MS)], ..TrainingRun::default() };
    let text = text(&report(&run, &Options::default()));
    for part in [
        "pna on bench, 2026-01-02 03:04 UTC\n4.09 s, 100 steps, 4 epochs; ended; loss 1 to 0.010\n",
        "outside steps: 100 ms before the first step, 1.00 ms after the last\npna --batch-size 256\n",
        "\nbackward-bound (56 %); 1 spike (2.2 %); 4 partial batches; data wait 9.8 %\n",
        "Findings\n ! spikes (certain, 2.2 %): step 30 took 123 ms",
        "Steps to look at\n  Step 30, 124 ms, 3.1 x the median: spikes: step 30 took 123 ms",
        "\ndata wait    100  3.90 ms  4.00 ms ",
        "\nan edge     5.32 µs        5.41 µs\n",
        "\nqueue      100     0  1.50    0    3\n",
        "  steps            25.1/s\n",
        "  process CPU      mean 1.50 cores",
        "  GPU              none: libnvidia-ml.so.1 not found",
        "Energy\n  of               the devices\n  gpu              - libnvidia-ml.so.1 not found",
        "  in all           - nothing is known",
        "  not counted      disks, network, fans, power supply",
        "  process          4711\n",
        "  begin            2026-01-02 03:04:05 UTC\n",
        "Lost\n  nothing\n",
        "Not measured\n  memory by phase: the program does not count its allocations",
    ] {
        assert!(text.contains(part), "{part:?} is missing in\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let phases = text.lines().skip_while(|line| !line.starts_with("phase ")).take_while(|line| !line.is_empty());
    let phases: Vec<&str> = phases.collect();
    assert_eq!(
        phases[0].split_whitespace().collect::<Vec<_>>(),
        ["phase", "count", "mean", "p50", "p90", "p99", "max", "total", "share"]
    );
    assert!(phases[5].starts_with("gap") && phases[6].starts_with("period") && phases[7].starts_with("step"), "{text}");
}

#[test]
fn program_facts_named_like_ours_are_only_listed() {
    let own = ["not recorded: x", "framework", "inferred forward", "stacks", "died", "died of"];
    let mut bytes = TrainingRun::default().bytes();
    let own_fact = |key: &str| Definition::Fact(Fact::Other { key: key.to_owned(), text: "PyTorch 77".to_owned() });
    put_definitions(&mut bytes, &own.map(own_fact));
    let report = report_on(&store(&bytes, Limits::default()), &Options::default());
    assert_eq!(text(&report).matches("PyTorch 77").count(), own.len(), "a row each, and nothing else");
    let own = json(&report);
    assert_eq!((&own["session"]["died"], &own["session"]["died_of"]), (&Value::Null, &Value::Null));
    assert!(own["phases"].as_array().unwrap().iter().all(|phase| phase["inferred"].is_null()), "{own}");
    let lost = Fact::NotRecorded { what: "spans nested too deep".to_owned(), amount: "36".to_owned() };
    let ours = [Fact::Framework("candle 0.9".into()), lost].map(Definition::Fact);
    put_definitions(&mut bytes, &ours);
    let report = report_on(&store(&bytes, Limits::default()), &Options::default());
    assert_eq!(json(&report)["session"]["facts"]["framework"], "candle 0.9");
    assert!(text(&report).contains("Lost\n  not recorded: spans nested too deep: 36\n"), "{}", text(&report));
}

#[test]
fn json_has_units_in_its_names_and_null_for_what_is_absent() {
    let options = Options { percentiles: vec![50.0, 99.9], ..Options::default() };
    let json = json(&report(&TrainingRun::default(), &options));
    assert_eq!(json["schema_version"], 1);
    assert_eq!(json["session"]["state"], "ended");
    let backward = &json["phases"][2];
    assert_eq!(backward["name"], "backward");
    assert_eq!(backward["max_ns"], 22 * MS);
    assert!(backward["p99_9_ns"].is_u64() && backward["p50_ns"].is_u64() && backward["p90_ns"].is_null());
    assert_eq!(json["throughput"]["seeds_per_s"], Value::Null);
    assert!((json["hardware"]["process_cpu"]["mean_cores"].as_f64().unwrap() - 1.5).abs() < 1e-6);
    assert_eq!(json["hardware"]["machine_memory_used"]["mean_bytes"], Value::Null);
    assert_eq!(json["hardware"]["machine_memory_used"]["reason"], "not recorded");
    assert_eq!(json["hardware"]["no_gpu_reason"], "libnvidia-ml.so.1 not found");
    assert_eq!(json["losses"]["dropped_events"], 0);
}

#[test]
fn phases_and_gap_add_up_to_the_period() {
    let json = json(&report(&TrainingRun::default(), &Options::default()));
    let totals: Vec<u64> =
        json["phases"].as_array().unwrap().iter().map(|line| line["total_ns"].as_u64().unwrap()).collect();
    let [phases @ .., period, step] = totals.as_slice() else { panic!("{totals:?}") };
    assert_eq!(phases.iter().sum::<u64>(), *period);
    assert_eq!(json["steps"]["tiled_ns"], *period);
    assert!(step < period, "the gap lies before the step");
}

#[test]
fn skipped_steps_are_not_in_the_numbers() {
    let run =
        TrainingRun { spikes: vec![(1, "forward", 900 * MS), (5, "forward", 700 * MS)], ..TrainingRun::default() };
    let options = Options { skip_steps: 5, ..Options::default() };
    let (all, skipped) = (report(&run, &Options::default()), report(&run, &options));
    let forward = |report: &Report| report.phases[1].durations.max_ns.unwrap();
    assert_eq!((forward(&all), forward(&skipped)), (910 * MS, 10 * MS));
    assert_eq!((skipped.steps.total, skipped.steps.reported, skipped.steps.skipped), (100, 95, 5));
    assert_eq!(skipped.steps.reason, None);
    assert!(text(&skipped).contains("; without the first 5"));
}

#[test]
fn a_report_that_lacks_rows_says_so() {
    let run = TrainingRun { steps: 10_000, has_hardware: false, ..TrainingRun::default() };
    let store = store(&run.bytes(), Limits { step_rows: 10, ..Limits::default() });
    let options = Options { skip_steps: 5, ..Options::default() };
    let steps = report_on(&store, &options).steps;
    assert!(steps.reported < 9_995 && steps.reason.unwrap().contains("only the newest"));
    assert_eq!(report_on(&store, &Options::default()).steps.reported, 10_000);
}

#[test]
fn an_empty_store_makes_a_report_too() {
    let report = report_on(&Store::new(), &Options::default());
    let text = text(&report);
    assert!(text.contains("no steps yet") && text.contains("steps: none were published"), "{text}");
    assert_eq!(json(&report)["phases"], Value::Array(Vec::new()));
}

#[test]
fn a_loss_that_is_not_a_number_becomes_null() {
    use gnntop_wire::{Event, Step, StepId, TrackRole};
    let mut stream = gnntop_fixtures::StreamBuilder::new("nan");
    let track = stream.track(TrackRole::Training, "main");
    let step = Step { step: StepId(1), start_ns: 9, end_ns: 12, loss: Some(f64::NAN), ..Step::default() };
    stream.event(track, Event::Step(step));
    let report = report_on(&store(&stream.bytes(), Limits::default()), &Options::default());
    assert!(text(&report).contains("loss NaN to NaN"));
    assert_eq!(json(&report)["steps"]["last_loss"], Value::Null);
}

#[test]
fn links_of_findings_lead_to_their_steps() {
    let run = TrainingRun { spikes: vec![(30, "backward", 84 * MS)], ..TrainingRun::default() };
    let page = Document::from_reports(&[("a.gnntop", &report(&run, &Options::default()))]).to_html();
    let links: Vec<&str> = page.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(!links.is_empty());
    for link in links {
        assert_eq!(page.matches(&format!("id=\"{link}\"")).count(), 1, "{link}");
    }
    assert!(page.contains(">Step 30<b>"), "{page}");
}

#[test]
fn verdict_and_findings_come_before_all_tables() {
    let run = TrainingRun { spikes: vec![(30, "backward", 84 * MS)], ..TrainingRun::default() };
    let report = report(&run, &Options::default());
    let document = Document::from_reports(&[("a.gnntop", &report)]);
    let texts = [document.to_markdown(), document.to_html(), document.to_text()];
    for (text, table) in texts.iter().zip(["| phase", "<table", "\nphase "]) {
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} is missing in {text}"));
        assert!(at("backward-bound") < at("step 30 took") && at("step 30 took") < at(table), "{text}");
    }
}

fn several() -> [Report; 3] {
    let hostile = TrainingRun {
        name: "<script>alert('x')</script> | **bold**",
        phases: vec![("data wait", MS), ("forward", 10 * MS)],
        ..TrainingRun::default()
    };
    let report_of = |run: &TrainingRun| report(run, &Options::default());
    [report_on(&Store::new(), &Options::default()), report_of(&TrainingRun::default()), report_of(&hostile)]
}

fn named(reports: &[Report]) -> Vec<(&str, &Report)> {
    ["empty.gnntop", "a,\"b\".gnntop", "=1+1"].into_iter().zip(reports).collect()
}

#[test]
fn page_is_self_contained_and_escapes_names() {
    let reports = several();
    for page in
        [Document::from_reports(&named(&reports)).to_html(), Document::from_reports(&named(&reports)[2..]).to_html()]
    {
        assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
        assert!(page.len() < 300_000, "{}", page.len());
        let fetched = ["src=", "@import", "url(", "http://", "https://", "javascript:"];
        let own = page.replace(include_str!("document/page.js"), "");
        assert!(fetched.iter().all(|word| !page.contains(word)), "{page}");
        assert_eq!(page.matches("<script").count(), 1, "{page}");
        assert!(own.contains("<script>\n</script>"), "our own and nothing else: {page}");
        assert!(page.split("href=").skip(1).all(|link| link.starts_with("\"#")), "{page}");
        assert!(page.contains("&lt;script&gt;alert(&#39;x&#39;)") && page.contains("<svg"), "{page}");
        assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    }
}

#[test]
fn a_page_on_a_long_run_stays_small() {
    let spikes = (1..2000).map(|n| (n * 10, "forward", 300 * MS)).collect();
    let run = TrainingRun { steps: 20_000, spikes, has_hardware: false, ..TrainingRun::default() };
    let page = Document::from_reports(&[("long", &report(&run, &Options::default()))]).to_html();
    let dots = page.matches("class=\"dot warning\"").count();
    assert!(page.len() < 300_000 && (100..=600).contains(&dots), "{}, {dots}", page.len());
}

#[test]
fn markdown_tables_have_equal_rows() {
    let reports = several();
    let page = Document::from_reports(&named(&reports)).to_markdown();
    let cells = |line: &str| line.replace("\\|", "").matches('|').count();
    let lines: Vec<&str> = page.lines().collect();
    for table in lines.split(|line| !line.starts_with('|')).filter(|table| !table.is_empty()) {
        assert!(table.len() > 1 && table.iter().all(|line| cells(line) == cells(table[0])), "{table:#?}");
    }
    assert!(page.contains("\\<script\\>") && page.contains("| forward | p99 | - | 10.0 ms | 10.0 ms |"), "{page}");
}

#[test]
fn a_sheet_has_one_figure_a_line_and_no_formula() {
    let store = store(&TrainingRun::default().bytes(), Limits::default());
    let figures = || Catalogue::new(&store).with_percentiles(&[50.0, 99.9]).list();
    let sheet = to_csv(&[("a,\"b\".gnntop".to_owned(), figures()), ("=1+1".to_owned(), figures())]);
    let mut reader = csv::Reader::from_reader(sheet.as_bytes());
    let rows: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>().unwrap();
    assert!(rows.len() > 100 && rows.iter().all(|row| row.len() == 7 && row[2].parse::<f64>().is_ok()));
    assert!(rows.iter().any(|row| &row[0] == "'=1+1"));
    let find = |figure: &str| rows.iter().find(|row| &row[0] == "a,\"b\".gnntop" && &row[1] == figure).unwrap();
    let backward = find("backward.p50");
    assert_eq!([&backward[2], &backward[3], &backward[6]], ["22000000", "ns", "100 steps"]);
    assert!(backward[4].parse::<f64>().unwrap() <= backward[5].parse::<f64>().unwrap());
    assert_eq!(&find("partial_batch.count")[2], "4");
    assert!(sheet.contains("period.p99.9,") && !sheet.contains("period.p90"), "{sheet}");
}

#[test]
fn findings_state_their_numbers_in_json() {
    let json = json(&report(&TrainingRun::default(), &Options::default()));
    let found = json["findings"]["found"].as_array().unwrap();
    let partial = found.iter().find(|finding| finding["kind"] == "partial-batch").unwrap();
    assert_eq!(partial["facts"][0], serde_json::json!({ "name": "steps", "value": 4.0, "unit": "count" }));
    assert!(partial["summary"].as_str().unwrap().starts_with("4 of "), "{partial}");
}

#[test]
fn step_classes_are_separated_with_cost_by_edge() {
    let json = json(&report(&TrainingRun::default(), &Options::default()));
    let kinds = json["classes"].as_array().unwrap();
    let names: Vec<&str> = kinds.iter().map(|kind| kind["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["full batch", "partial batch"]);
    assert_eq!([&kinds[0]["count"], &kinds[1]["count"]], [96, 4]);
    assert!(kinds[0]["per_edge_ns"].as_f64().unwrap() < kinds[1]["per_edge_ns"].as_f64().unwrap());
    assert!(kinds[0]["p50_ci_ns"][0].as_u64() <= kinds[0]["p50_ns"].as_u64());
}

proptest::proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn report_of_any_stream_does_not_panic(stream in any_stream(100)) {
        let options = Options { skip_steps: 2, ..Options::default() };
        let report = report_on(&store(&stream.build().bytes(), Limits::default()), &options);
        proptest::prop_assert!(report.to_json().is_ok() && !text(&report).is_empty());
    }
}

#[test]
fn figures_of_a_narrow_page_are_not_broken() {
    let page = Document::from_reports(&[("a.gnntop", &report(&TrainingRun::default(), &Options::default()))]).to_html();
    // `anywhere` lets columns shrink until each digit has a line of its own.
    assert!(!page.contains("overflow-wrap:anywhere"));
    for part in [".finding h3 b,.steps h3 b,output,.scale span{white-space:nowrap}", "th,td{padding:.25rem .7rem;"] {
        assert!(page.contains(part), "{part}");
    }
}

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Metric, NumberDataPoint, ResourceMetrics, number_data_point,
};

use super::*;
use gnntop_analysis::findings::judge_run;
use gnntop_fixtures::{MS, ParallelRun, START_NS, StreamBuilder, TrainingRun, each_item, session_info};
use gnntop_wire::{SignalKind, TrackRole, Unit};

fn run_of(sessions: &[Vec<u8>]) -> Run {
    let mut run = Run::default();
    sessions.iter().for_each(|stream| each_item(stream, |item| run.apply(item)));
    run
}

fn encoded(run: &Run, resource: &OtlpResource) -> Value {
    encode(run, &judge_run(run), &Assumptions::default(), resource).unwrap()
}

/// What the protocol's own types make of the request.
fn request(body: &Value) -> Vec<ResourceMetrics> {
    serde_json::from_value::<ExportMetricsServiceRequest>(body.clone()).unwrap().resource_metrics
}

fn metric<'m>(of: &'m ResourceMetrics, name: &str) -> &'m Metric {
    let mut all = of.scope_metrics[0].metrics.iter();
    all.find(|metric| metric.name == name).unwrap_or_else(|| panic!("no {name}"))
}

fn attribute<'v>(body: &'v Value, at: usize, key: &str) -> &'v Value {
    let all = body["resourceMetrics"][at]["resource"]["attributes"].as_array().unwrap();
    all.iter().find(|attribute| attribute["key"] == key).map_or(&Value::Null, |attribute| &attribute["value"])
}

/// Whether everything of `ours` is in `theirs`: a field with a wrong name would be ignored by whoever reads it.
fn assert_within(ours: &Value, theirs: &Value, place: &str) {
    match (ours, theirs) {
        (Value::Object(fields), Value::Object(known)) => {
            for (name, value) in fields {
                let theirs = known.get(name).unwrap_or_else(|| panic!("{place} has no {name}: {theirs}"));
                assert_within(value, theirs, &format!("{place}.{name}"));
            }
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            assert_eq!(ours.len(), theirs.len(), "{place}");
            ours.iter().zip(theirs).for_each(|(ours, theirs)| assert_within(ours, theirs, place));
        }
        // 64-bit integers may be read as numbers too.
        (Value::String(text), Value::Number(number)) => assert_eq!(*text, number.to_string(), "{place}"),
        _ => assert_eq!(ours, theirs, "{place}"),
    }
}

#[test]
fn request_is_what_the_protocols_types_write() {
    let training = run_of(&[TrainingRun { has_hardware: true, graphs: 8, ..TrainingRun::default() }.bytes()]);
    for run in [training, run_of(&ParallelRun::default().sessions())] {
        let body = encoded(&run, &OtlpResource::default());
        let read: ExportMetricsServiceRequest = serde_json::from_value(body.clone()).unwrap();
        assert_within(&body, &serde_json::to_value(read).unwrap(), "request");
    }
}

#[test]
fn figures_are_those_of_the_session() {
    let run = run_of(&[TrainingRun { graphs: 8, ..TrainingRun::default() }.bytes()]);
    let all = request(&encoded(&run, &OtlpResource::default()));
    let statistics = run.store().statistics();
    let Some(Data::Sum(steps)) = &metric(&all[0], "gnntop.steps").data else { panic!("no sum") };
    assert!(steps.is_monotonic && steps.aggregation_temporality() == AggregationTemporality::Cumulative);
    let start_ns = run.store().session().origin().unwrap().start.wall_ns;
    assert_eq!(steps.data_points[0].start_time_unix_nano, start_ns);
    assert!(steps.data_points[0].time_unix_nano > start_ns);
    let number = serde_json::to_value(&steps.data_points[0]).unwrap();
    assert_eq!(number["asInt"].as_str().map(str::to_owned), Some(statistics.steps().to_string()), "{number}");
    let Some(Data::ExponentialHistogram(periods)) = &metric(&all[0], "gnntop.step.period").data else {
        panic!("no histogram")
    };
    let point = &periods.data_points[0];
    let in_buckets: u64 = point.positive.as_ref().unwrap().bucket_counts.iter().sum();
    assert_eq!((point.count, in_buckets + point.zero_count), (statistics.steps(), statistics.steps()));
    assert_eq!(point.sum, Some(statistics.period().total_ns() as f64 / 1e9));
    assert_eq!(point.max, statistics.period().max_ns().map(|ns| ns as f64 / 1e9));
    let Some(Data::ExponentialHistogram(phases)) = &metric(&all[0], "gnntop.phase.duration").data else {
        panic!("no histogram")
    };
    let without_gap = run.store().phases().iter().filter(|phase| !phase.is_gap()).count();
    assert_eq!(phases.data_points.len(), without_gap);
    assert!(matches!(metric(&all[0], "gnntop.finding.count").data, Some(Data::Gauge(_))));
}

#[test]
fn each_rank_is_a_resource_and_their_machine_is_one() {
    let run = run_of(&ParallelRun { ranks: 3, ..ParallelRun::default() }.sessions());
    let body = encoded(&run, &OtlpResource::default());
    let ranks: Vec<&Value> = (0..)
        .take(body["resourceMetrics"].as_array().unwrap().len())
        .map(|at| attribute(&body, at, "gnntop.rank"))
        .collect();
    let known: Vec<&Value> = ranks.into_iter().filter(|rank| !rank.is_null()).collect();
    assert_eq!(known, [&json!({"intValue": "0"}), &json!({"intValue": "1"}), &json!({"intValue": "2"})]);
    assert_eq!(attribute(&body, 0, "gnntop.run")["stringValue"], "job-17");
    assert_eq!(attribute(&body, 0, "service.instance.id")["stringValue"], "job-17/0");
    let instances: HashSet<String> = (0..body["resourceMetrics"].as_array().unwrap().len())
        .map(|at| attribute(&body, at, "service.instance.id").to_string())
        .collect();
    assert_eq!(instances.len(), body["resourceMetrics"].as_array().unwrap().len(), "each has its own");
    let elsewhere = OtlpResource { host: Some("no such host".to_owned()), ..OtlpResource::default() };
    assert!(encode(&run, &Judgement::default(), &Assumptions::default(), &elsewhere).is_none());
}

/// 20 s of a program on a machine with a counter for its processor and a GPU.
fn measured() -> Run {
    let mut stream = StreamBuilder::from_info(&session_info("pna"));
    let sensors = stream.track(TrackRole::Sensors, "sensors");
    let mut read = |name: &str, unit, kind, value: &dyn Fn(i64) -> i64| {
        let signal = stream.signal(name, unit, kind);
        (0..=200).for_each(|n| stream.sample(sensors, signal, START_NS + n * 100 * MS, value(n as i64)));
    };
    let (counter, gauge) = (SignalKind::Counter, SignalKind::Gauge);
    read("cpu.0.energy", Unit::Microjoules, counter, &|n| n * 10_000_000);
    read("machine.cpu.busy", Unit::Nanoseconds, counter, &|n| n * 200_000_000);
    read("machine.cpu.0.busy", Unit::Nanoseconds, counter, &|n| n * 100_000_000);
    read("process.cpu_time", Unit::Nanoseconds, counter, &|n| n * 100_000_000);
    read("process.cpu_time.user", Unit::Nanoseconds, counter, &|n| 7 + n * 90_000_000);
    read("process.rss", Unit::Bytes, gauge, &|n| 1_000_000 + n);
    read("gpu.0.util", Unit::MilliPercent, gauge, &|_| 50_000);
    read("gpu.1.util", Unit::MilliPercent, gauge, &|_| 25_000);
    run_of(&[stream.bytes()])
}

#[test]
fn readings_have_the_names_and_units_of_the_conventions() {
    let run = measured();
    let all = request(&encoded(&run, &OtlpResource::default()));
    let points = |at: usize, name: &str| {
        let metric = metric(&all[at], name);
        let points = match metric.data.as_ref().unwrap() {
            Data::Sum(sum) => &sum.data_points,
            Data::Gauge(gauge) => &gauge.data_points,
            _ => panic!("{name} is a histogram"),
        };
        let point = |point: &NumberDataPoint| match point.value {
            Some(number_data_point::Value::AsDouble(value)) => {
                let all = point.attributes.iter().map(|one| format!("{}={:?}", one.key, one.value));
                (all.collect::<String>(), value)
            }
            _ => panic!("{name}"),
        };
        (metric.unit.clone(), points.iter().map(point).collect::<Vec<_>>())
    };
    let (unit, cpu) = points(0, "process.cpu.time");
    assert!(unit == "s" && cpu.len() == 1 && (cpu[0].1 - 18.0).abs() < 1e-9 && cpu[0].0.contains("user"), "{cpu:?}");
    assert_eq!(points(0, "process.memory.usage").1[0].1, 1_000_200.0);
    let (unit, gpus) = points(1, "hw.gpu.utilization");
    assert!(unit == "1" && gpus[0].0.contains("gpu.0") && gpus[1].0.contains("gpu.1"), "{gpus:?}");
    assert_eq!([gpus[0].1, gpus[1].1], [0.5, 0.25]);
    let (unit, energy) = points(1, "hw.energy");
    let processor = energy.iter().find(|(of, _)| of.contains("hw.type") && of.contains("\"cpu\"")).unwrap();
    assert!(unit == "J" && (processor.1 - 2000.0).abs() < 1.0 && processor.0.contains("gnntop.source"), "{energy:?}");
    assert!(
        all[0].scope_metrics[0].metrics.iter().all(|metric| !metric.name.starts_with("hw.")),
        "of the machine alone"
    );
    let single_cores = |metric: &Metric| metric.name.contains("core") || metric.name == "gnntop.machine.cpu.0.busy";
    assert!(!all[1].scope_metrics[0].metrics.iter().any(single_cores));
}

#[test]
fn own_attributes_replace_ours_and_the_service_has_its_variable() {
    let run = run_of(&[TrainingRun::default().bytes()]);
    let attributes = vec![("host.name".to_owned(), "node7".to_owned()), ("service.name".to_owned(), "lab".to_owned())];
    let own = OtlpResource { attributes: attributes.clone(), ..OtlpResource::default() };
    let body = encoded(&run, &own);
    assert_eq!(attribute(&body, 0, "host.name")["stringValue"], "node7");
    assert_eq!(attribute(&body, 0, "service.name")["stringValue"], "lab");
    let named = OtlpResource { service_name: Some("pna".to_owned()), attributes, host: None };
    let body = encoded(&run, &named);
    assert_eq!(attribute(&body, 0, "service.name")["stringValue"], "pna");
    let text = body["resourceMetrics"][0]["resource"].to_string();
    assert_eq!(text.matches("service.name").count(), 1, "{text}");
}

#[test]
fn empty_run_has_no_request() {
    let (run, nothing) = (Run::default(), OtlpResource::default());
    assert!(encode(&run, &Judgement::default(), &Assumptions::default(), &nothing).is_none());
}

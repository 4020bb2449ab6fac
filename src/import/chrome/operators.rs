//! What a trace spends its time in: each operator's own time, without that of the operators it calls, and each kernel's.

use std::collections::HashMap;
use std::path::Path;

use super::options::ChromeOptions;
use super::read::{CompleteEvent, CompleteKind, Trace};
use super::steps::TraceSteps;
use crate::import::input::Input;
use crate::import::outcome::ImportError;

/// An operator on the CPU, or a kernel or copy on a GPU, over all steps of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Operator {
    /// Its name.
    pub name: String,
    /// Whether a GPU ran it.
    pub is_kernel: bool,
    /// How often it ran.
    pub calls: u64,
    /// Its own time, without that of the operators it called, in microseconds.
    pub own_us: f64,
}

/// The operators of a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Operators {
    /// Number of traced steps.
    pub steps: u64,
    /// Time of these steps, in microseconds.
    pub steps_us: f64,
    /// Time of the training thread within the steps and outside every operator, in microseconds: Python, and waiting.
    pub outside_us: f64,
    /// All of them, those with the most time first.
    pub all: Vec<Operator>,
}

/// Adds up the operators of the trace at `path`, which may be packed with gzip.
///
/// # Errors
/// If the file cannot be read or is not a trace.
pub fn operators(path: &Path) -> Result<Operators, ImportError> {
    let input = Input::open(path)?;
    let mut trace = Trace::read(input.text()?).map_err(|error| input.useless(format!("is not a trace: {error}")))?;
    // Outer events first: at the same time they begin before what is inside them.
    let order =
        |a: &CompleteEvent, b: &CompleteEvent| a.start_us.total_cmp(&b.start_us).then(b.end_us.total_cmp(&a.end_us));
    trace.events.sort_unstable_by(order);
    let steps = TraceSteps::new(&trace, &ChromeOptions::default());
    Ok(sum_operators(&trace, &steps))
}

fn sum_operators(trace: &Trace, steps: &TraceSteps) -> Operators {
    let is_step =
        |event: &CompleteEvent| Some(event.track) == steps.track && steps.find(event.start_us, event.end_us).is_some();
    let own_us = own_times(trace, &|event| event.sort == CompleteKind::Annotation && is_step(event));
    let mut sums: HashMap<(u16, bool), (u64, f64)> = HashMap::new();
    let mut found = Operators { steps: steps.all.len() as u64, ..Operators::default() };
    for (event, own_us) in trace.events.iter().zip(own_us) {
        if event.sort == CompleteKind::Annotation && is_step(event) {
            found.steps_us += event.end_us - event.start_us;
            found.outside_us += own_us;
            continue;
        }
        let sum = sums.entry((event.name, event.sort.is_of_gpu())).or_default();
        *sum = (sum.0 + 1, sum.1 + own_us.max(0.0));
    }
    let named = |((name, is_kernel), (calls, own_us)): ((u16, bool), (u64, f64))| Operator {
        name: trace.names[usize::from(name)].clone(),
        is_kernel,
        calls,
        own_us,
    };
    found.all = sums.into_iter().map(named).collect();
    found.all.sort_by(|a, b| b.own_us.total_cmp(&a.own_us).then_with(|| a.name.cmp(&b.name)));
    found
}

/// For each event, in the order of their starts: its time without that of the events inside it on its track.
fn own_times(trace: &Trace, is_step: &dyn Fn(&CompleteEvent) -> bool) -> Vec<f64> {
    let mut own: Vec<f64> = trace.events.iter().map(|event| event.end_us - event.start_us).collect();
    // By track: the events around the next one, outermost first.
    let mut around: Vec<Vec<usize>> = vec![Vec::new(); trace.tracks.len()];
    for (at, event) in trace.events.iter().enumerate() {
        let open = &mut around[usize::from(event.track)];
        while open.last().is_some_and(|outer| trace.events[*outer].end_us <= event.start_us) {
            open.pop();
        }
        if let Some(outer) = open.last() {
            // torch ends a step's annotation a little before the optimizer's, which began inside it.
            own[*outer] -= event.end_us.min(trace.events[*outer].end_us) - event.start_us;
        }
        if is_step(event) {
            open.clear();
        }
        open.push(at);
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operators_in(events: &[(&str, &str, u64, u64, u64)]) -> Operators {
        let event = |(name, cat, tid, ts, dur): &(&str, &str, u64, u64, u64)| {
            format!(r#"{{"ph":"X","cat":"{cat}","name":"{name}","pid":1,"tid":{tid},"ts":{ts},"dur":{dur}}}"#)
        };
        let text = format!(r#"{{"traceEvents":[{}]}}"#, events.iter().map(event).collect::<Vec<_>>().join(","));
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace.json");
        std::fs::write(&path, text).unwrap();
        operators(&path).unwrap()
    }

    #[test]
    fn own_time_excludes_inner_operators() {
        let found = operators_in(&[
            ("ProfilerStep#7", "user_annotation", 1, 0, 100),
            ("aten::linear", "cpu_op", 1, 10, 40),
            ("aten::addmm", "cpu_op", 1, 15, 30),
            ("aten::relu", "cpu_op", 1, 60, 20),
            ("aten::addmm", "cpu_op", 2, 0, 50),
            ("gemm", "kernel", 7, 20, 25),
        ]);
        assert_eq!((found.steps, found.steps_us, found.outside_us), (1, 100.0, 40.0));
        let told: Vec<_> = found.all.iter().map(|o| (o.name.as_str(), o.is_kernel, o.calls, o.own_us)).collect();
        assert_eq!(
            told,
            [
                ("aten::addmm", false, 2, 80.0),
                ("gemm", true, 1, 25.0),
                ("aten::relu", false, 1, 20.0),
                ("aten::linear", false, 1, 10.0)
            ]
        );
    }

    #[test]
    fn overlapping_events_are_counted_once() {
        // As torch writes it where a step ends inside an optimizer's hook.
        let found = operators_in(&[
            ("ProfilerStep#7", "user_annotation", 1, 0, 100),
            ("Optimizer.step#Adam.step", "user_annotation", 1, 80, 25),
            ("ProfilerStep#8", "user_annotation", 1, 101, 99),
            ("aten::mm", "cpu_op", 1, 110, 50),
        ]);
        assert_eq!((found.steps, found.steps_us, found.outside_us), (2, 199.0, 129.0));
        assert_eq!(found.all[0].own_us, 50.0);
        assert!(found.all.iter().all(|operator| operator.own_us >= 0.0));
    }

    #[test]
    fn operators_of_trace_without_steps() {
        let found = operators_in(&[("aten::mm", "cpu_op", 1, 0, 50)]);
        assert_eq!((found.steps, found.all.len()), (0, 1));
    }
}

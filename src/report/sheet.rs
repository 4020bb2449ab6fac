//! Reports as CSV: one number a line, with its recording, section, name, statistic and unit, for a sheet or a plot.

use super::sections::Report;
use super::sections::durations::Durations;
use super::sections::energy::{Energy, Joules};
use super::sections::hardware::Figure;
use super::sections::ranks::RunReport;
use gnntop_analysis::energy::Scope;

const HEAD: &str = "recording,section,name,statistic,value,unit\n";

/// Reports with the names of their recordings, under one head.
pub fn to_csv(reports: &[(&str, &Report)]) -> String {
    let mut out = HEAD.to_owned();
    for (name, report) in reports {
        write(&mut Lines { out: &mut out, recording: name }, report);
    }
    out
}

struct Lines<'a> {
    out: &'a mut String,
    recording: &'a str,
}

impl Lines<'_> {
    fn line(&mut self, section: &str, name: &str, statistic: &str, value: Option<f64>, unit: &str) {
        // What was not measured has no line.
        if let Some(value) = value.filter(|value| value.is_finite()) {
            let texts = [self.recording, section, name, statistic].map(quoted).join(",");
            *self.out += &format!("{texts},{value},{unit}\n");
        }
    }

    fn durations(&mut self, section: &str, name: &str, durations: &Durations) {
        let ns = |ns: Option<u64>| ns.map(|ns| ns as f64);
        self.line(section, name, "count", Some(durations.count as f64), "");
        self.line(section, name, "mean", durations.mean_ns, "ns");
        self.line(section, name, "mean_ci", durations.mean_ci_ns, "ns");
        self.line(section, name, "sd", durations.sd_ns, "ns");
        self.line(section, name, "min", ns(durations.min_ns), "ns");
        for (percentage, value) in &durations.percentiles.0 {
            self.line(section, name, &format!("p{percentage}"), ns(*value), "ns");
        }
        for (percentage, interval) in &durations.intervals.0 {
            self.line(section, name, &format!("p{percentage}_ci_low"), ns(interval.map(|i| i.0)), "ns");
            self.line(section, name, &format!("p{percentage}_ci_high"), ns(interval.map(|i| i.1)), "ns");
        }
        self.line(section, name, "max", ns(durations.max_ns), "ns");
        self.line(section, name, "total", Some(durations.total_ns as f64), "ns");
    }

    fn joules(&mut self, name: &str, scope: Scope, joules: Option<&Joules>) {
        let scope = scope.word();
        let Some(joules) = joules else { return };
        let numbers = [("total", joules.joules), ("lo", joules.lo_joules), ("hi", joules.hi_joules)];
        for (statistic, value) in numbers.into_iter().chain([("pm95", joules.pm95_joules)]) {
            self.line("energy", name, &format!("{scope}_{statistic}"), Some(value), "J");
        }
        self.line("energy", name, &format!("{scope}_coverage"), Some(joules.coverage), "");
    }

    fn figure(&mut self, name: &str, figure: &Figure) {
        self.line("hardware", name, "mean", figure.mean, figure.unit);
        self.line("hardware", name, "max", figure.max, figure.unit);
    }
}

fn write_run(lines: &mut Lines<'_>, run: &RunReport) {
    let ns = |ns: Option<u64>| ns.map(|ns| ns as f64);
    lines.line("run", "seeds", "mean", run.throughput.seeds_per_s, "1/s");
    lines.line("run", "graphs", "mean", run.throughput.graphs_per_s, "1/s");
    lines.line("run", "efficiency", "mean", run.efficiency, "");
    for (statistic, value) in [("p50", run.skew_p50_ns), ("p90", run.skew_p90_ns), ("max", run.skew_max_ns)] {
        lines.line("run", "skew", statistic, ns(value), "ns");
    }
    for rank in &run.ranks {
        let name = format!("rank {}", rank.rank);
        lines.line("rank", &name, "steps", Some(rank.steps as f64), "");
        lines.line("rank", &name, "period_p50", ns(rank.period_p50_ns), "ns");
        lines.line("rank", &name, "own_p50", ns(rank.own_p50_ns), "ns");
        lines.line("rank", &name, "wait_share", rank.wait_share, "");
        lines.line("rank", &name, "reduce_share", rank.reduce_share, "");
        lines.line("rank", &name, "slowest_share", rank.slowest_share, "");
        for (phase, share) in &rank.phases {
            lines.line("rank", &name, &format!("share of {phase}"), Some(*share), "");
        }
    }
}

fn write(lines: &mut Lines<'_>, report: &Report) {
    report.run.iter().for_each(|run| write_run(lines, run));
    for phase in &report.phases {
        lines.durations("phase", &phase.name, &phase.durations);
        lines.line("phase", &phase.name, "share", phase.share, "");
    }
    for class in &report.classes {
        lines.durations("kind of step", class.name, &class.durations);
        let costs = [class.per_graph_ns, class.per_node_ns, class.per_edge_ns, class.per_seed_ns];
        for (what, ns) in ["graph", "node", "edge", "seed"].into_iter().zip(costs) {
            lines.line("kind of step", class.name, &format!("per_{what}"), ns, "ns");
        }
    }
    report.spans.iter().for_each(|span| lines.durations("span", &span.name, &span.durations));
    let t = &report.throughput;
    let rates = [t.steps_per_s, t.graphs_per_s, t.nodes_per_s, t.edges_per_s, t.seeds_per_s];
    for (what, rate) in ["steps", "graphs", "nodes", "edges", "seeds"].into_iter().zip(rates) {
        lines.line("throughput", what, "mean", rate, "1/s");
    }
    for counter in &report.counters {
        lines.line("counter", &counter.name, "mean", counter.mean, "");
        lines.line("counter", &counter.name, "last", counter.last, "");
    }
    lines.line("memory", "live", "max", report.memory.peak_live_bytes.map(|n| n as f64), "bytes");
    let h = &report.hardware;
    lines.figure("process CPU", &h.process_cpu);
    lines.figure("process memory", &h.process_rss);
    lines.figure("machine CPU", &h.machine_cpu);
    lines.figure("machine steal", &h.machine_steal);
    lines.figure("machine memory", &h.machine_memory_used);
    for gpu in &h.gpus {
        let name = |what: &str| format!("GPU {} {what}", gpu.index);
        lines.figure(&name("utilisation"), &gpu.utilisation);
        lines.figure(&name("memory"), &gpu.memory_used);
        lines.figure(&name("power"), &gpu.power);
    }
    energy(lines, &report.energy);
    for finding in &report.findings.found {
        lines.line("finding", finding.kind.id(), "count", Some(finding.count as f64), "");
        lines.line("finding", finding.kind.id(), "share", finding.share, "");
    }
}

/// Energy of components and of all, in both scopes, and the figures that depend on the shown scope.
fn energy(lines: &mut Lines<'_>, energy: &Energy) {
    let total = &energy.total;
    let all = std::iter::once(("in all", &total.device, &total.job));
    let components = energy.components.iter().map(|one| (one.name.as_str(), &one.device, &one.job));
    for (name, device, job) in components.chain(all) {
        lines.joules(name, Scope::Device, device.as_ref());
        lines.joules(name, Scope::Job, job.as_ref());
    }
    lines.joules("a step", energy.scope, energy.step.as_ref());
    for epoch in &energy.epochs {
        lines.joules(&format!("epoch {}", epoch.epoch), energy.scope, Some(&epoch.energy));
    }
    let kilograms = energy.carbon.kilograms;
    for (at, statistic) in ["total", "lo", "hi"].into_iter().enumerate() {
        lines.line(
            "energy",
            "carbon",
            &format!("{}_{statistic}", energy.scope.word()),
            kilograms.map(|kg| kg[at]),
            "kg CO2e",
        );
    }
}

/// The text as a cell. What a sheet would take for a formula gets an apostrophe before it.
fn quoted(text: &str) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let clean = if clean.starts_with(['=', '+', '-', '@']) { format!("'{clean}") } else { clean };
    if clean.contains([',', '"']) { format!("\"{}\"", clean.replace('"', "\"\"")) } else { clean }
}

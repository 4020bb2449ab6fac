//! A device's own time in a report: its phases by its own clock, beside the host's, and which clock says what.

use serde::Serialize;

use super::durations;
use super::phases::{PhaseLine, phase_lines};
use crate::report::document::Block;
use gnntop_analysis::catalogue::{Catalogue, Statistic};
use gnntop_analysis::figures::{count, counted, duration};

/// The subjects of its figures: phases, period and step.
const SUBJECTS: [&str; 3] = ["device.PHASE", "device.period", "device.step"];

/// What a device did, by its own clock. The other phases of the report are the host's.
#[derive(Clone, Debug, Serialize)]
pub struct Device {
    /// Its track's name, such as `stream of cuda:0`.
    pub name: String,
    /// `device`: the clock of the durations below.
    pub clock: &'static str,
    /// How far the device's clock may be off on the host's, either way, as last reported. Durations do not depend on
    /// it.
    pub error_ns: Option<u64>,
    /// The most that this was.
    pub largest_error_ns: u64,
    /// What the host's clock says of phases in the same run, in words.
    pub host_clock: &'static str,
    /// Whether the host waits for the device at both ends of every phase.
    pub is_synchronised: bool,
    /// Steps that the numbers are about.
    pub steps: u64,
    /// Spans and steps that went untimed: no mark was free, the device was lost, or the session ended first.
    pub untimed: u64,
    /// Its phases, its gap, in which it did nothing of any phase, and its step; by its clock.
    pub phases: Vec<PhaseLine>,
}

impl Device {
    /// `None` if the program has no device timed.
    pub(in crate::report) fn new(figures: &Catalogue<'_>, percentages: &[f64]) -> Option<Self> {
        let (device, statistics) = (figures.store().device()?, figures.device_statistics()?);
        let track = figures.store().track(device.track());
        let clock_error = figures.subject("device.clock_error", "");
        let whole = |figure| figures.value(figure).unwrap_or(0.0) as u64;
        Some(Self {
            name: track.map(|track| track.text.clone()).unwrap_or_default(),
            clock: "device",
            error_ns: clock_error.whole(Statistic::Last),
            largest_error_ns: clock_error.whole(Statistic::Max).unwrap_or(0),
            host_clock: device.describe_host_clock(),
            is_synchronised: device.is_synchronised(),
            steps: whole("device.steps.count"),
            untimed: whole("device.untimed.count"),
            phases: phase_lines(figures, statistics, SUBJECTS, percentages),
        })
    }

    /// Which clock says what, in a line.
    fn clocks(&self) -> String {
        let error = |ns: Option<u64>| ns.map_or_else(|| "unknown".to_owned(), duration);
        let mut text = format!(
            "{}: {} by the device clock ± {} (at most ± {}); above, {}",
            self.name,
            counted(self.steps, "step", "steps"),
            error(self.error_ns),
            error(Some(self.largest_error_ns)),
            self.host_clock,
        );
        if self.untimed > 0 {
            text += &format!("; {} spans untimed", count(self.untimed));
        }
        text
    }
}

/// The section, for below the host's phases; nothing if the program has no device timed.
pub(in crate::report) fn blocks(device: Option<&Device>) -> Vec<Block> {
    let Some(device) = device else { return Vec::new() };
    let lines = device.phases.iter().map(|line| (line.name.clone(), &line.durations, line.share));
    let mut blocks = vec![Block::heading("Phases on the device")];
    blocks.extend(durations::table("on device", lines));
    blocks.push(Block::Paragraph(device.clocks()));
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Document, Options, Report};
    use gnntop_analysis::store::Store;
    use gnntop_fixtures::device::DeviceRun;
    use gnntop_fixtures::{MS, each_item};

    fn report(run: &DeviceRun, options: &Options) -> Report {
        let mut store = Store::new();
        each_item(&run.bytes(), |item| store.apply(item));
        Report::new(&options.apply_to(Catalogue::new(&store)), options)
    }

    fn text(report: &Report) -> String {
        Document::from_reports(&[("", report)]).to_text()
    }

    #[test]
    fn both_clocks_are_reported_and_named() {
        let report = report(&DeviceRun { untimed: 9, ..DeviceRun::default() }, &Options::default());
        let text = text(&report);
        for part in [
            "backward-bound (55 %) on the device",
            "\non device ",
            "stream of cuda:0: 39 steps by the device clock ± 12.3 µs",
            "when work was handed over; 4 spans untimed",
            "device memory of",
            "in tensors       at most 1.50 GiB, 300 MiB after a step",
            "85 % of it unused",
            "allocations      not counted by its pool",
        ] {
            assert!(text.contains(part), "{part:?} is missing in\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let json: serde_json::Value = serde_json::from_str(&report.to_json().unwrap()).unwrap();
        let device = &json["device"];
        assert_eq!((device["clock"].as_str(), device["error_ns"].as_u64()), (Some("device"), Some(12_300)));
        assert_eq!((device["untimed"].as_u64(), device["is_synchronised"].as_bool()), (Some(4), Some(false)));
        let of = |phases: &serde_json::Value| phases.as_array().unwrap()[0]["min_ns"].as_u64().unwrap();
        assert_eq!((of(&device["phases"]), of(&json["phases"])), (6 * MS, 600_000));
        assert_eq!(json["memory"]["device"]["kinds"].as_array().unwrap().len(), 6);
        assert_eq!(json["memory"]["device"]["phases"][1]["peak_bytes"].as_u64(), Some(1_500 << 20));
    }

    #[test]
    fn a_run_that_waits_for_its_device_says_so() {
        let report = report(&DeviceRun { is_synchronised: true, ..DeviceRun::default() }, &Options::default());
        assert!(text(&report).contains("above, host, waiting for the device"), "{}", text(&report));
    }

    #[test]
    fn device_without_times_is_named_and_missing_device_is_null() {
        let silent = report(&DeviceRun { is_timed: false, ..DeviceRun::default() }, &Options::default());
        assert!(text(&silent).contains("0 steps by the device clock ± unknown"), "{}", text(&silent));
        let mut store = Store::new();
        each_item(&gnntop_fixtures::TrainingRun::default().bytes(), |item| store.apply(item));
        let json = Report::new(&Catalogue::new(&store), &Options::default()).to_json().unwrap();
        assert!(json.contains("\"device\": null"), "{json}");
    }

    #[test]
    fn steps_left_out_are_left_out_of_the_device_too() {
        let options = Options { skip_steps: 30, ..Options::default() };
        assert_eq!(report(&DeviceRun::default(), &options).device.unwrap().steps, 10);
    }
}

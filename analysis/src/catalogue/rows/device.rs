//! What a device did, by its own clock.

use crate::catalogue::context::Catalogue;
use crate::catalogue::measured::{AbsentFigure, FoundValue, STEPS};
use crate::catalogue::names::find_named;
use crate::catalogue::row::{Names, Row, shared_durations};
use crate::catalogue::statistic::Statistic;
use crate::figures::FigureUnit;
use crate::store::StepStatistics;

use super::steps::steps_figure;

pub(in crate::catalogue) const ROWS: &[Row] = &[
    Row {
        subject: "device.steps",
        about: "steps that the device was timed in",
        names: Names::None,
        statistics: |_| vec![(Statistic::Count, FigureUnit::Count)],
        get: |context, _, _| FoundValue::from_everything(Some(steps(context)?.steps() as f64), UNTIMED),
    },
    Row {
        subject: "device.step",
        about: "a step by the device's clock",
        names: Names::None,
        statistics: |_| shared_durations(),
        get: |context, _, statistic| steps_figure(steps(context)?, statistic, StepStatistics::step),
    },
    Row {
        subject: "device.period",
        about: "the same with the gap before it",
        names: Names::None,
        statistics: |_| shared_durations(),
        get: |context, _, statistic| steps_figure(steps(context)?, statistic, StepStatistics::period),
    },
    Row {
        subject: "device.PHASE",
        about: "a phase by the device's clock; `device.gap`, in which it was in no phase",
        names: Names::Program(|context| match context.device_statistics() {
            Some(_) => context.store.phases().iter().map(|phase| phase.text.clone()).collect(),
            None => Vec::new(),
        }),
        statistics: |_| shared_durations(),
        get: |context, name, statistic| {
            let steps = steps(context)?;
            let phase = find_named(context.store.phases(), |phase| &phase.text, name);
            let Some((phase, all)) = phase.and_then(|phase| Some((phase, steps.phase(phase.slot)?))) else {
                return AbsentFigure::because("the device has no such phase");
            };
            match statistic {
                Statistic::Share => FoundValue::from_count(steps.share(phase.slot), steps.steps(), STEPS, UNTIMED),
                _ => FoundValue::from_durations(all, statistic, STEPS),
            }
        },
    },
    Row {
        subject: "device.untimed",
        about: "spans and steps of the device that went untimed",
        names: Names::None,
        statistics: |_| vec![(Statistic::Count, FigureUnit::Count)],
        get: |context, _, _| {
            let track = context.store.device().and_then(|device| context.store.track(device.track()));
            FoundValue::from_everything(track.map(|track| track.dropped as f64), UNTIMED)
        },
    },
    Row {
        subject: "device.clock_error",
        about: "how far the device's clock may be off on the host's, either way",
        names: Names::None,
        statistics: |_| vec![(Statistic::Last, FigureUnit::Time), (Statistic::Max, FigureUnit::Time)],
        get: |context, _, statistic| {
            let device = context.store.device();
            let ns = match statistic {
                Statistic::Max => device.map(|device| device.largest_error_ns()),
                _ => device.and_then(|device| device.error_ns()),
            };
            FoundValue::from_everything(ns.map(|ns| ns as f64), UNTIMED)
        },
    },
];

const UNTIMED: &str = "no device was timed";

fn steps<'c>(context: &'c Catalogue<'_>) -> Result<&'c StepStatistics, AbsentFigure> {
    match context.device_statistics() {
        Some(steps) => Ok(steps),
        None => AbsentFigure::because(UNTIMED),
    }
}

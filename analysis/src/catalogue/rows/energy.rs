//! Energy in the scope that is shown, the job's or the devices', and its carbon.

use crate::catalogue::context::Catalogue;
use crate::catalogue::measured::{AbsentFigure, FigureResult, FoundValue};
use crate::catalogue::names::find_named;
use crate::catalogue::row::{Names, Row};
use crate::catalogue::statistic::Statistic;
use crate::energy::{ComponentEnergy, EnergyFigure, EnergyScope};
use crate::figures::FigureUnit;

pub(in crate::catalogue) const ROWS: &[Row] = &[
    Row {
        subject: "energy",
        about: "energy of all known components together, of the job where it is known, else of the devices; between its \
                bounds. The epoch is the median whole one without the first",
        names: Names::None,
        statistics: |_| {
            [Statistic::Total, Statistic::PerStep, Statistic::PerEpoch].map(|of| (of, FigureUnit::Energy)).to_vec()
        },
        get: |context, _, statistic| match statistic {
            Statistic::PerStep => energy_figure(context.step_energy(), NO_STEP),
            Statistic::PerEpoch => energy_figure(epoch(context), NO_EPOCH),
            _ => energy_figure(total(context, context.energy_scope()), UNKNOWN),
        },
    },
    Row {
        subject: "energy.epoch.EPOCH",
        about: "energy of one of the newest epochs, of which the first and the last may not be whole",
        names: Names::Own("0", |context| context.epochs_energy().iter().map(|(epoch, ..)| epoch.to_string()).collect()),
        statistics: |name| match name.parse::<u64>() {
            Ok(_) => vec![(Statistic::Total, FigureUnit::Energy)],
            Err(_) => Vec::new(),
        },
        get: |context, name, _| {
            let mut epochs = context.epochs_energy().iter();
            let found = epochs.find(|(epoch, ..)| name.parse() == Ok(*epoch)).map(|(.., figure)| *figure);
            energy_figure(found, "no energy is known of this epoch")
        },
    },
    Row {
        subject: "energy.measured",
        about: "the part of the energy that a counter or sensor measured",
        names: Names::None,
        statistics: |_| vec![(Statistic::Share, FigureUnit::Share)],
        get: |context, _, _| {
            FoundValue::from_everything(total(context, context.energy_scope()).map(|figure| figure.coverage()), UNKNOWN)
        },
    },
    Row {
        subject: "energy.device.COMPONENT",
        about: "energy of a whole component, such as `gpu_0`, or of `all` that are known",
        names: Names::Own("gpu_0", components_and_all),
        statistics: |_| vec![(Statistic::Total, FigureUnit::Energy)],
        get: |context, name, _| energy_figure(component(context, name, EnergyScope::Device), UNKNOWN_PART),
    },
    Row {
        subject: "energy.job.COMPONENT",
        about: "what the job used of it",
        names: Names::Own("gpu_0", components_and_all),
        statistics: |_| vec![(Statistic::Total, FigureUnit::Energy)],
        get: |context, name, _| energy_figure(component(context, name, EnergyScope::Job), UNKNOWN_PART),
    },
    Row {
        subject: "energy.idle.COMPONENT",
        about: "energy of a processor while none of its threads ran",
        names: Names::Own("cpu_0", components),
        statistics: |_| vec![(Statistic::Total, FigureUnit::Energy)],
        get: |context, name, _| {
            let component = find_component(context, name);
            energy_figure(component.and_then(|of| context.energy().idle(of, context.store.session_ns())), UNKNOWN_PART)
        },
    },
    Row {
        subject: "energy.phase.COMPONENT.PHASE",
        about: "energy of a counted component in the steps, divided among their phases and the gap; its mean is a phase's \
                fitted power",
        names: Names::Program(phases_of_components),
        statistics: |_| vec![(Statistic::Total, FigureUnit::Energy), (Statistic::Mean, FigureUnit::Power)],
        get: |context, name, statistic| {
            let (component, phase) = name.split_once('.').unwrap_or((name, ""));
            let all = context.energy().components.iter().zip(context.phases_energy());
            let phases = find_named(all, |(of, _)| &of.name, component).map(|(_, phases)| phases);
            let found = find_named(phases.into_iter().flatten(), |(text, _)| text, phase).map(|(_, figure)| figure);
            let value = match statistic {
                Statistic::Mean => found.and_then(|figure| figure.watts),
                _ => found.map(|figure| figure.joules),
            };
            FoundValue::from_everything(value, UNKNOWN_PART)
        },
    },
    Row {
        subject: "energy.HARDWARE",
        about: "the part of the known energy that goes to cpu, gpu or memory",
        names: Names::Own("gpu", |_| HARDWARE.map(str::to_owned).to_vec()),
        statistics: |name| match HARDWARE.contains(&name) {
            true => vec![(Statistic::Total, FigureUnit::Energy), (Statistic::Share, FigureUnit::Share)],
            false => Vec::new(),
        },
        get: |context, name, statistic| {
            let all: f64 = HARDWARE.iter().filter_map(|of| hardware(context, of)).sum();
            let joules = hardware(context, name).filter(|_| all > 0.0);
            let of = if statistic == Statistic::Share { all } else { 1.0 };
            FoundValue::from_everything(joules.map(|joules| joules / of), UNKNOWN_PART)
        },
    },
    Row {
        subject: "carbon",
        about: "CO2-equivalent of the energy, under the assumptions on carbon and PUE",
        names: Names::None,
        statistics: |_| {
            [Statistic::Total, Statistic::PerStep, Statistic::PerEpoch].map(|of| (of, FigureUnit::Carbon)).to_vec()
        },
        get: carbon,
    },
];

const UNKNOWN: &str = "no energy is known";
const UNKNOWN_PART: &str = "no energy of it is known";
const NO_STEP: &str = "no energy of steps is known";
const NO_EPOCH: &str = "no energy of a whole epoch is known";
/// All components together.
const ALL: &str = "all";
/// Components by the word that their names begin with.
const HARDWARE: [&str; 3] = ["cpu", "gpu", "memory"];

fn energy_figure(figure: Option<EnergyFigure>, missing: &str) -> FigureResult {
    let interval = figure.map(|figure| (figure.lo, figure.hi));
    Ok(FoundValue { interval, ..FoundValue::from_everything(figure.map(|figure| figure.joules), missing)? })
}

fn components(context: &Catalogue<'_>) -> Vec<String> {
    context.energy().components.iter().map(|component| component.name.clone()).collect()
}

fn components_and_all(context: &Catalogue<'_>) -> Vec<String> {
    [components(context), vec![ALL.to_owned()]].concat()
}

fn phases_of_components(context: &Catalogue<'_>) -> Vec<String> {
    let all = context.energy().components.iter().zip(context.phases_energy());
    let phases = all.flat_map(|(of, phases)| phases.iter().map(|(phase, _)| format!("{}.{phase}", of.name)));
    phases.collect()
}

fn find_component<'c>(context: &'c Catalogue<'_>, name: &str) -> Option<&'c ComponentEnergy> {
    find_named(&context.energy().components, |component| &component.name, name)
}

fn component(context: &Catalogue<'_>, name: &str, scope: EnergyScope) -> Option<EnergyFigure> {
    match name {
        ALL => total(context, scope),
        _ => context.energy().figure(find_component(context, name)?, scope, context.store.session_ns()),
    }
}

fn total(context: &Catalogue<'_>, scope: EnergyScope) -> Option<EnergyFigure> {
    context.total_energy(scope).map(|(figure, _)| figure)
}

/// The energy of the components of a kind, in joules.
fn hardware(context: &Catalogue<'_>, word: &str) -> Option<f64> {
    let named = context.energy().components.iter().filter(|component| component.name.starts_with(word));
    let figure = |component| context.energy().figure(component, context.energy_scope(), context.store.session_ns());
    named.filter_map(figure).map(|figure| figure.joules).reduce(|a, b| a + b)
}

/// The median whole epoch without the first one, or the only one.
fn epoch(context: &Catalogue<'_>) -> Option<EnergyFigure> {
    let epochs: Vec<_> = context.epochs_energy().iter().filter(|(_, is_whole, _)| *is_whole).collect();
    let first = context.store.steps().row(0).map(|row| row.epoch());
    let has_first = epochs.len() > 1 && epochs.first().map(|(epoch, ..)| *epoch) == first;
    let mut later: Vec<EnergyFigure> =
        epochs.into_iter().skip(usize::from(has_first)).map(|(.., figure)| *figure).collect();
    later.sort_by(|a, b| a.joules.total_cmp(&b.joules));
    later.get(later.len().saturating_sub(1) / 2).copied()
}

fn carbon(context: &Catalogue<'_>, _: &str, statistic: Statistic) -> FigureResult {
    let (figure, missing) = match statistic {
        Statistic::PerStep => (context.step_energy(), NO_STEP),
        Statistic::PerEpoch => (epoch(context), NO_EPOCH),
        _ => (total(context, context.energy_scope()), UNKNOWN),
    };
    let found = energy_figure(figure, missing)?;
    let intensity = context.carbon_intensity().map_err(|why| AbsentFigure(why.to_string()))?;
    let grams = |joules: f64| intensity.kilograms(joules, context.assumptions().pue_or_one()) * 1e3;
    let interval = found.interval.map(|(low, high)| (grams(low), grams(high)));
    Ok(FoundValue { value: grams(found.value), interval, ..found })
}

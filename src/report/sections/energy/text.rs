//! Energy and carbon in words, the same on the screen and in a report.

use super::figures::{Carbon, Doubt, Energy, Joules, PhaseEnergy};
use crate::report::document::{Block, ComparisonTable};
use gnntop_analysis::energy::{EnergyScope, Label, kilowatt_hours, watt_hours};
use gnntop_analysis::figures::{percent, quantity, scaled};

/// Time without known energy is reported from this share on: sensors begin a little after the program.
const WORTH_REPORTING: f64 = 0.02;
/// Newest epochs in the text; JSON has more.
const EPOCHS_WRITTEN: usize = 8;

/// The section: a row for each quantity, a column for each recording. Phases are given of one recording only.
pub(in crate::report) fn blocks(runs: &[(&str, &Energy)]) -> Vec<Block> {
    let written: Vec<(&str, Vec<(String, String)>)> = runs.iter().map(|(name, energy)| (*name, rows(energy))).collect();
    let columns: Vec<(&str, &[(String, String)])> =
        written.iter().map(|(name, rows)| (*name, rows.as_slice())).collect();
    if let [(_, rows)] = written.as_slice() {
        let head = std::iter::once(vec![String::new(); 2]);
        let rows = head.chain(rows.iter().map(|(about, text)| vec![about.clone(), text.clone()])).collect();
        return vec![Block::heading("Energy"), Block::Facts(rows)];
    }
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in written.iter().flat_map(|(_, rows)| rows).filter(|(name, _)| !name.starts_with(' ')) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let mut table = ComparisonTable::new("energy", &columns);
    for name in names {
        table.row(name, |rows| rows.iter().find(|(about, _)| about == name).map(|(_, text)| text.clone()));
    }
    std::iter::once(Block::heading("Energy")).chain(table.table()).collect()
}

/// Whose energy it is.
pub fn title(energy: &Energy) -> &'static str {
    if energy.scope == EnergyScope::Job { "energy of the job" } else { "energy of the devices" }
}

/// The lines, each with its label; labels of phases, which follow their component, begin with spaces.
fn rows(energy: &Energy) -> Vec<(String, String)> {
    let whose = if energy.scope == EnergyScope::Job { "the job" } else { "the devices" };
    let mut rows = vec![("of".to_owned(), whose.to_owned())];
    for component in &energy.components {
        let absent = component.no_job_reason.as_deref().filter(|_| energy.scope == EnergyScope::Job);
        let absent = absent.or(component.reason.as_deref()).unwrap_or("not known");
        let shown = if energy.scope == EnergyScope::Job { &component.job } else { &component.device };
        let told = shown.as_ref().map(|joules| format!("{}; {}", describe_joules(joules), component.source));
        rows.push((component.name.clone(), told.unwrap_or_else(|| format!("- {absent}"))));
        rows.extend(component.idle.iter().map(|idle| (format!("{} idle", component.name), describe_joules(idle))));
        rows.extend(component.doubt.iter().map(|doubt| (format!("{} doubt", component.name), doubt_in_words(doubt))));
        let phase = |phase: &PhaseEnergy| (format!("  {}", phase.name), phase_in_words(phase));
        rows.extend(component.phases.iter().map(phase));
    }
    let all = energy.in_scope().map_or_else(|| "- nothing is known".to_owned(), total_in_words);
    rows.push(("in all".to_owned(), all));
    rows.extend(energy.step.iter().map(|step| ("a step".to_owned(), describe_joules(step))));
    for epoch in &energy.epochs[energy.epochs.len().saturating_sub(EPOCHS_WRITTEN)..] {
        let part = if epoch.is_whole { "" } else { "; incomplete" };
        rows.push((format!("epoch {}", epoch.epoch), format!("{}{part}", describe_joules(&epoch.energy))));
    }
    let carbon = carbon_in_words(&energy.carbon).unwrap_or_else(|reason| format!("- {reason}"));
    rows.push(("carbon".to_owned(), carbon));
    rows.push(("not counted".to_owned(), energy.not_counted.join(", ")));
    rows
}

/// Energy with its interval and label. A model has its band instead of an interval.
pub fn describe_joules(joules: &Joules) -> String {
    let energy = energy_in_words(joules.joules);
    let label = joules.label.as_str();
    let provisional = if joules.is_provisional { ", provisional" } else { "" };
    // Hard bounds of what was counted are ten times too wide to be read as an error.
    if joules.label == Label::Modelled && joules.coverage <= 0.0 {
        return format!(
            "{energy} ({} to {}) {label}{provisional}",
            bound(joules.lo_joules, joules.joules),
            bound(joules.hi_joules, joules.joules)
        );
    }
    let share = if joules.joules > 0.0 { joules.pm95_joules / joules.joules } else { 0.0 };
    format!("{energy} ± {} {label}{provisional}", percent(share))
}

/// A bound of an energy: a bare number of joules, with its unit where joules are too large for the energy itself.
fn bound(joules: f64, energy: f64) -> String {
    if energy != 0.0 && energy < 0.01 { scaled(joules, "J") } else { quantity(joules) }
}

/// The same of a sum, with the share that comes from counters: a job's share of a processor is modelled, of what was counted.
pub fn total_in_words(joules: &Joules) -> String {
    let unknown = joules.unknown_share;
    let unknown = if unknown >= WORTH_REPORTING {
        format!("; {} of the time is not known", percent(unknown))
    } else {
        String::new()
    };
    let measured = if joules.coverage > 0.0 { percent(joules.coverage) } else { "0 %".to_owned() };
    format!("{} ({measured} from counters){unknown}", describe_joules(joules))
}

/// Joules, and beyond a watt-hour what people pay for.
fn energy_in_words(joules: f64) -> String {
    match watt_hours(joules) {
        wh if wh >= 1000.0 => format!("{} = {}", scaled(joules, "J"), scaled(kilowatt_hours(joules), "kWh")),
        wh if wh >= 1.0 => format!("{} = {}", scaled(joules, "J"), scaled(wh, "Wh")),
        _ => scaled(joules, "J"),
    }
}

/// Energy of a phase, its power, and how it was found.
pub fn phase_in_words(phase: &PhaseEnergy) -> String {
    let watts = phase.watts.map(|watts| format!(", {}", scaled(watts, "W"))).unwrap_or_default();
    let by = if phase.by == "fitted" { "fitted" } else { "by duration" };
    format!("{}{watts}, {by}", scaled(phase.joules, "J"))
}

/// How a counter and the power beside it disagree.
pub fn doubt_in_words(doubt: &Doubt) -> String {
    let Doubt { compared, apart, counted_joules, integrated_joules } = *doubt;
    let (counted, added_up) = (scaled(counted_joules, "J"), scaled(integrated_joules, "J"));
    format!(
        "its counter and its power are over 25 % apart in {apart} of {compared} half-minutes, at worst {counted} and {added_up}"
    )
}

/// A mass, and its bounds in the same unit.
fn mass(kilograms: f64, bounds: [f64; 2]) -> String {
    const UNITS: [(f64, &str); 4] = [(1.0, "kg"), (1e-3, "g"), (1e-6, "mg"), (1e-9, "ug")];
    let fits = UNITS.iter().find(|(size, _)| kilograms >= *size);
    let (size, unit) = fits.copied().unwrap_or(UNITS[3]);
    let [lo, hi] = bounds.map(|kilograms| quantity(kilograms / size));
    format!("{} {unit} CO2e ({lo} to {hi})", quantity(kilograms / size))
}

/// Carbon with its intensity, year, basis and source.
///
/// # Errors
/// Where there is none, with the reason.
pub fn carbon_in_words(carbon: &Carbon) -> Result<String, String> {
    let (Some([kg, lo, hi]), Some(intensity)) = (carbon.kilograms, &carbon.intensity) else {
        return Err(carbon.reason.clone().unwrap_or_else(|| "not known".to_owned()));
    };
    let set = if carbon.is_pue_given { "" } else { " (not set)" };
    Ok(format!("{}; {intensity}; PUE {}{set}", mass(kg, [lo, hi]), carbon.pue))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_unit_and_their_scale() {
        assert_eq!(energy_in_words(0.4472), "0.447 J");
        assert_eq!(energy_in_words(4750.0), "4.75 kJ = 1.32 Wh");
        assert_eq!(energy_in_words(7.2e6), "7.20 MJ = 2 kWh");
        assert_eq!(mass(4.1e-7, [1.2e-7, 1.3e-6]), "410 ug CO2e (120 to 1.30 k)");
        assert_eq!(mass(12.0, [6.0, 24.0]), "12 kg CO2e (6 to 24)");
        assert_eq!(mass(0.0, [0.0, 0.0]), "0 ug CO2e (0 to 0)");
        let doubt = Doubt { compared: 4, apart: 1, counted_joules: 187.0, integrated_joules: 327.0 };
        assert!(doubt_in_words(&doubt).ends_with("in 1 of 4 half-minutes, at worst 187 J and 327 J"));
    }
}

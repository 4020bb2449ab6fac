//! The assumptions behind energy and carbon: from flags, else from the settings file. A recording holds raw readings,
//! so they can all be changed afterwards.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use gnntop_analysis::energy::{Assumptions, Basis, IntensitySeries};

/// The rest of a longer file is not read.
const LONGEST_FILE: u64 = 16 << 20;

/// Watts, and grams per kilowatt-hour, must be within these.
const NUMBERS: std::ops::RangeInclusive<f64> = 0.0..=1e6;
/// Energy of a building per joule of its machines must be within these.
const PUES: std::ops::RangeInclusive<f64> = 1.0..=10.0;

/// Assumptions about power and electricity.
#[derive(Clone, Debug, Default, PartialEq, clap::Args, Deserialize)]
#[command(next_help_heading = "Energy and carbon")]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct EnergyArguments {
    /// Thermal design power of one processor socket, in watts, instead of a table or a guess
    #[arg(long, value_name = "WATTS", value_parser = parse_number)]
    pub tdp: Option<f64>,
    /// Power of the processors, in watts, instead of a counter or model
    #[arg(long, value_name = "WATTS", value_parser = parse_number)]
    pub cpu_watts: Option<f64>,
    /// Power of the memory, in watts, instead of a counter or model
    #[arg(long, value_name = "WATTS", value_parser = parse_number)]
    pub ram_watts: Option<f64>,
    /// Where the electricity comes from: a country (DEU), state (US-TX), province (CA-QC) or cloud region (europe-west4)
    #[arg(long, value_name = "REGION")]
    pub region: Option<String>,
    /// Grams of CO2-equivalent per kilowatt-hour, instead of the region's figure
    #[arg(long, value_name = "G", value_parser = parse_number)]
    pub carbon_intensity: Option<f64>,
    /// Carbon intensity over time, as lines of `TIME,G`, such as `2026-11-21T10:00:00Z,31.5`
    #[arg(long, value_name = "FILE", conflicts_with = "carbon_intensity")]
    pub carbon_intensity_file: Option<PathBuf>,
    /// Emissions to count: `lifecycle`, or `direct` for those at the power plant [default: lifecycle]
    #[arg(long)]
    pub basis: Option<Basis>,
    /// Power usage effectiveness: the building's energy per joule of its machines, 1 or more [default: 1]
    #[arg(long, value_name = "RATIO", value_parser = parse_pue)]
    pub pue: Option<f64>,
    /// Idle energy of a measured processor: `apart`, or `share` to add the job's part [default: apart]
    #[arg(long)]
    pub idle: Option<Idle>,
}

/// Who bears the idle energy of a measured processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Idle {
    /// Reported separately
    Apart,
    /// Add the job's part to the job
    Share,
}

impl EnergyArguments {
    /// These, completed by `file`. A flag also overrides what the file has instead of it.
    pub(super) fn merged_over(&self, file: &Self) -> Self {
        let says_cpu = self.tdp.is_some() || self.cpu_watts.is_some();
        let own_figure = self.carbon_intensity.is_some() || self.carbon_intensity_file.is_some();
        let says_carbon = self.region.is_some() || own_figure;
        let cpu = if says_cpu { self } else { file };
        let carbon = if says_carbon { self } else { file };
        Self {
            tdp: cpu.tdp,
            cpu_watts: cpu.cpu_watts,
            ram_watts: self.ram_watts.or(file.ram_watts),
            region: carbon.region.clone(),
            carbon_intensity: carbon.carbon_intensity,
            carbon_intensity_file: carbon.carbon_intensity_file.clone(),
            basis: self.basis.or(file.basis),
            pue: self.pue.or(file.pue),
            idle: self.idle.or(file.idle),
        }
    }

    /// The assumptions, checked: an unknown region is an error, not a missing number.
    ///
    /// # Errors
    /// If a number or the region is invalid, with what to give.
    pub(super) fn assumptions(&self) -> Result<Assumptions, String> {
        let numbers = [
            ("tdp", self.tdp),
            ("cpu-watts", self.cpu_watts),
            ("ram-watts", self.ram_watts),
            ("carbon-intensity", self.carbon_intensity),
        ];
        for (name, value) in numbers {
            value
                .map_or(Ok(0.0), |value| parse_within(&NUMBERS, value, NUMBER_HINT))
                .map_err(|why| format!("{name}: {why}"))?;
        }
        self.pue.map_or(Ok(1.0), |value| parse_within(&PUES, value, PUE_HINT)).map_err(|why| format!("pue: {why}"))?;
        let assumptions = Assumptions {
            tdp_watts: self.tdp,
            cpu_watts: self.cpu_watts,
            ram_watts: self.ram_watts,
            region: self.region.clone(),
            g_per_kwh: self.carbon_intensity,
            g_over_time: self.carbon_intensity_file.as_deref().map(read_series).transpose()?,
            basis: self.basis.unwrap_or_default(),
            pue: self.pue,
            shares_idle: self.idle == Some(Idle::Share),
        };
        if self.region.is_some() {
            assumptions.intensity().map_err(|why| why.to_string())?;
        }
        Ok(assumptions)
    }
}

/// Reads a file of carbon intensity over time.
fn read_series(path: &Path) -> Result<Arc<IntensitySeries>, String> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(LONGEST_FILE).read_to_string(&mut text));
    read.map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let series = IntensitySeries::parse(&path.display().to_string(), &text).map_err(|error| error.to_string())?;
    Ok(Arc::new(series))
}

const NUMBER_HINT: &str = "give a number from 0 to a million";
const PUE_HINT: &str = "give a number from 1 to 10, such as 1.1 for a large data centre";

fn parse_number(text: &str) -> Result<f64, String> {
    parse_within(&NUMBERS, text.parse().unwrap_or(f64::NAN), NUMBER_HINT)
}

fn parse_pue(text: &str) -> Result<f64, String> {
    parse_within(&PUES, text.parse().unwrap_or(f64::NAN), PUE_HINT)
}

fn parse_within(range: &std::ops::RangeInclusive<f64>, number: f64, hint: &str) -> Result<f64, String> {
    if range.contains(&number) { Ok(number) } else { Err(hint.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flag_overrides_conflicting_setting_of_the_file() {
        let file = EnergyArguments {
            cpu_watts: Some(80.0),
            carbon_intensity: Some(500.0),
            pue: Some(1.2),
            ..EnergyArguments::default()
        };
        let flags = EnergyArguments { tdp: Some(200.0), region: Some("CA-QC".into()), ..EnergyArguments::default() };
        let both = flags.merged_over(&file).assumptions().unwrap();
        assert_eq!((both.tdp_watts, both.cpu_watts, both.pue), (Some(200.0), None, Some(1.2)));
        assert_eq!(both.intensity().unwrap().region, "CA-QC");
        let alone = EnergyArguments::default().merged_over(&file).assumptions().unwrap();
        assert_eq!((alone.cpu_watts, alone.g_per_kwh), (Some(80.0), Some(500.0)));
    }

    #[test]
    fn impossible_assumptions_are_refused() {
        let told = |arguments: EnergyArguments| arguments.assumptions().unwrap_err();
        assert!(told(EnergyArguments { tdp: Some(-1.0), ..EnergyArguments::default() }).starts_with("tdp: give"));
        assert!(told(EnergyArguments { pue: Some(0.5), ..EnergyArguments::default() }).starts_with("pue: give"));
        let nowhere = EnergyArguments { region: Some("Atlantis".into()), ..EnergyArguments::default() };
        assert!(told(nowhere).contains("no carbon intensity is known for `Atlantis`"));
    }
}

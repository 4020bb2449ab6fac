//! Flags under which energy and carbon are computed. A recording holds raw readings, so they can be changed afterwards.

use crate::energy::{Assumptions, Basis};

/// What is assumed about power and electricity.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Energy and carbon")]
pub(super) struct EnergyArguments {
    /// Thermal design power of one processor socket, in watts, in the place of a table or a guess
    #[arg(long, value_name = "WATTS", value_parser = watts)]
    tdp: Option<f64>,
    /// Power of the processors, in watts, in the place of a counter or model
    #[arg(long, value_name = "WATTS", value_parser = watts)]
    cpu_watts: Option<f64>,
    /// Power of the memory, in watts, in the place of a counter or model
    #[arg(long, value_name = "WATTS", value_parser = watts)]
    ram_watts: Option<f64>,
    /// Where the electricity comes from: a country (DEU), state (US-TX), province (CA-QC) or cloud region (europe-west4)
    #[arg(long, value_name = "REGION")]
    region: Option<String>,
    /// Grams of CO2-equivalent in a kilowatt-hour, in the place of a region's figure
    #[arg(long, value_name = "G", value_parser = watts)]
    carbon_intensity: Option<f64>,
    /// What counts as carbon: `lifecycle`, or `direct` for the stack alone
    #[arg(long, default_value = "lifecycle")]
    basis: Basis,
    /// Energy of the building for each joule of its machines, 1 or more
    #[arg(long, value_name = "RATIO", value_parser = pue)]
    pue: Option<f64>,
    /// Who bears the idle energy of a measured processor: `apart`, or `share` to give the job its part
    #[arg(long, value_name = "apart|share", default_value = "apart", value_parser = ["apart", "share"])]
    idle: String,
}

impl EnergyArguments {
    /// The assumptions, checked: a region that nobody knows is an error, not a missing number.
    pub(super) fn assumptions(&self) -> anyhow::Result<Assumptions> {
        let assumptions = Assumptions {
            tdp_watts: self.tdp,
            cpu_watts: self.cpu_watts,
            ram_watts: self.ram_watts,
            region: self.region.clone(),
            g_per_kwh: self.carbon_intensity,
            basis: self.basis,
            pue: self.pue,
            shares_idle: self.idle == "share",
        };
        if self.region.is_some() {
            assumptions.intensity().map_err(anyhow::Error::msg)?;
        }
        Ok(assumptions)
    }
}

fn watts(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.0..=1e6).contains(number));
    number.ok_or_else(|| "give a number from 0 to a million".to_owned())
}

fn pue(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (1.0..=10.0).contains(number));
    number.ok_or_else(|| "give a number from 1 to 10, such as 1.1 of a large data centre".to_owned())
}

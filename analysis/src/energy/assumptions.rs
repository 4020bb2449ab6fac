//! Assumptions that a person may make about a run, before or after it: the recording has raw readings, so all of them can
//! be changed.

use std::sync::Arc;

use super::carbon::{Basis, Intensity, IntensityError};
use super::carbon_series::IntensitySeries;

/// Assumptions under which energy and carbon are computed.
#[derive(Clone, Debug, PartialEq)]
pub struct Assumptions {
    /// Thermal design power of one socket in watts, instead of a table or a guess.
    pub tdp_watts: Option<f64>,
    /// Power of the processors in watts, instead of a counter or model.
    pub cpu_watts: Option<f64>,
    /// Power of the memory in watts, instead of a counter or model.
    pub ram_watts: Option<f64>,
    /// Region of the electricity, such as `CA-QC` or `DEU`.
    pub region: Option<String>,
    /// Grams of CO2-equivalent per kilowatt-hour, instead of a region's figure.
    pub g_per_kwh: Option<f64>,
    /// The same over time.
    pub g_over_time: Option<Arc<IntensitySeries>>,
    /// What counts as carbon.
    pub basis: Basis,
    /// Energy of the building for each joule of its machines: at least 1.
    pub pue: Option<f64>,
    /// Whether the job bears its share of the processors' idle energy.
    pub shares_idle: bool,
}

impl Default for Assumptions {
    fn default() -> Self {
        Self {
            tdp_watts: None,
            cpu_watts: None,
            ram_watts: None,
            region: None,
            g_per_kwh: None,
            g_over_time: None,
            basis: Basis::Lifecycle,
            pue: None,
            shares_idle: false,
        }
    }
}

impl Assumptions {
    /// The PUE to use: 1 if none is given.
    pub fn pue_or_one(&self) -> f64 {
        self.pue.unwrap_or(1.0)
    }

    /// Carbon intensity under these assumptions, unless it varies with time.
    ///
    /// # Errors
    /// If no region is given, or nothing is known about it.
    pub fn intensity(&self) -> Result<Intensity, IntensityError> {
        match (self.g_per_kwh, &self.region) {
            (Some(g_per_kwh), _) => Ok(Intensity::from_user(g_per_kwh)),
            (None, Some(region)) => Intensity::for_region(region, self.basis),
            (None, None) => Err(IntensityError::NotGiven),
        }
    }
}

//! Carbon per kilowatt-hour of a region, on one basis, with its year and source. Without a region there is no number.
//!
//! The basis says what counts: Quebec's electricity is 31 g/kWh over the life cycle, and 4 g/kWh at the stack.
//! `tables/NOTICE.md` gives the sources of the figures.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::units::kilowatt_hours;

/// What counts as the carbon of electricity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// Including construction, fuel and waste of power stations.
    #[default]
    Lifecycle,
    /// Only what leaves the stack.
    Direct,
}

impl Basis {
    /// `lifecycle` or `direct`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lifecycle => "lifecycle",
            Self::Direct => "direct",
        }
    }
}

/// Why there is no carbon per kilowatt-hour.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum IntensityError {
    /// It is no basis.
    #[error("the basis must be `lifecycle` or `direct`")]
    UnknownBasis,
    /// The figure of this region is on another basis.
    #[error("{0} has only a {1} figure: give --basis {1}")]
    OtherBasis(String, &'static str),
    /// Nothing is known of this region.
    #[error(
        "no carbon intensity is known for `{0}`: give an ISO country (DEU), a state (US-TX), a province (CA-QC), \
         a cloud region (europe-west4), or --carbon-intensity"
    )]
    UnknownRegion(String),
    /// Neither a region nor a figure was given.
    #[error("give the electricity's region with --region, or --carbon-intensity")]
    NotGiven,
    /// The session's clock is known, and not what time it was.
    #[error("it is unknown when the session ran")]
    UnknownTime,
    /// The file with this name has figures for other times.
    #[error("{0} does not cover the time of the run")]
    NotCovered(String),
}

impl FromStr for Basis {
    type Err = IntensityError;

    fn from_str(text: &str) -> Result<Self, IntensityError> {
        match text {
            "lifecycle" => Ok(Self::Lifecycle),
            "direct" => Ok(Self::Direct),
            _ => Err(IntensityError::UnknownBasis),
        }
    }
}

/// Carbon intensity of electricity.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Intensity {
    /// The region, such as `CA-QC`; empty if the user gave the figure.
    pub region: String,
    /// Its name, such as `Quebec`.
    pub name: String,
    /// Grams of CO2-equivalent per kilowatt-hour.
    pub g_per_kwh: f64,
    /// Year of the figure; `None` if the user gave it.
    pub year: Option<u16>,
    /// Basis of the figure; `None` if the user gave it.
    pub basis: Option<Basis>,
    /// Source of the figure, as text.
    pub source: &'static str,
    /// A caveat for readers, such as that a country's figure is used for a state.
    pub note: Option<String>,
}

impl fmt::Display for Intensity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Some(year), Some(basis)) = (self.year, self.basis) else {
            write!(f, "{} g/kWh ({})", self.g_per_kwh, self.source)?;
            return self.note.iter().try_for_each(|note| write!(f, "; {note}"));
        };
        write!(f, "{} {} g/kWh ({year}, {}, {})", self.region, self.g_per_kwh, basis.as_str(), self.source)?;
        self.note.iter().try_for_each(|note| write!(f, "; {note}"))
    }
}

impl Intensity {
    /// A figure given by the user.
    pub fn from_user(g_per_kwh: f64) -> Self {
        let (region, name) = (String::new(), String::new());
        Self { region, name, g_per_kwh, year: None, basis: None, source: "as given", note: None }
    }

    /// The mean over the time of a run, from a person's own file with this name.
    pub fn over_time(g_per_kwh: f64, file: &str) -> Self {
        let rounded = (g_per_kwh * 1e3).round() / 1e3;
        Self { source: "mean over the run's energy", note: Some(file.to_owned()), ..Self::from_user(rounded) }
    }

    /// The figure of a region on a basis. A part of a country without a figure falls back to the country, with a note.
    ///
    /// # Errors
    /// If nothing is known about the region, with what to do.
    pub fn for_region(region: &str, basis: Basis) -> Result<Self, IntensityError> {
        if let Some(found) = find(region, basis) {
            return Ok(found);
        }
        let other = if basis == Basis::Lifecycle { Basis::Direct } else { Basis::Lifecycle };
        let country =
            region.split_once('-').and_then(|(country, _)| alpha_3(country)).filter(|_| find(region, other).is_some());
        if let Some(mut found) = country.and_then(|country| find(country, basis)) {
            found.note = Some(format!("{region} has only a {} figure: its country's is used instead", other.as_str()));
            return Ok(found);
        }
        Err(match find(region, other) {
            Some(_) => IntensityError::OtherBasis(region.to_owned(), other.as_str()),
            None => IntensityError::UnknownRegion(region.to_owned()),
        })
    }

    /// Kilograms of CO2-equivalent for energy in joules at a device, in a building with this PUE.
    pub fn kilograms(&self, joules: f64, pue: f64) -> f64 {
        kilowatt_hours(joules) * pue * self.g_per_kwh / 1000.0
    }
}

/// The countries whose parts are known.
fn alpha_3(alpha_2: &str) -> Option<&'static str> {
    match alpha_2.to_ascii_uppercase().as_str() {
        "US" => Some("USA"),
        "CN" => Some("CHN"),
        "CA" => Some("CAN"),
        _ => None,
    }
}

fn find(region: &str, basis: Basis) -> Option<Intensity> {
    let mut rows = include_str!("tables/intensity.csv").lines().skip(1);
    rows.find_map(|row| {
        let mut fields = row.split(',');
        let (code, name) = (fields.next()?, fields.next()?);
        let (g_per_kwh, year, of, source) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        if !code.eq_ignore_ascii_case(region) || of != basis.as_str() {
            return None;
        }
        Some(Intensity {
            region: code.to_owned(),
            name: name.to_owned(),
            g_per_kwh: g_per_kwh.parse().ok()?,
            year: year.parse().ok(),
            basis: Some(basis),
            source: describe_source(source),
            note: None,
        })
    })
}

fn describe_source(source: &str) -> &'static str {
    match source {
        "owid" => "Our World in Data from Ember, CC BY 4.0",
        "egrid" => "US EPA eGRID",
        "cer" => "derived from the Canada Energy Regulator's mix",
        "mee" => "MEE and NBS of China, CO2 alone",
        "entsoe" => "Khepri from ENTSO-E, CC BY 4.0",
        "google" => "Google region-carbon-info, Apache-2.0",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KWH: f64 = 3.6e6;

    #[test]
    fn kilograms_per_kilowatt_hour_by_region() {
        let quebec = Intensity::for_region("CA-QC", Basis::Lifecycle).unwrap();
        assert!((quebec.kilograms(KWH, 1.0) - 0.03123).abs() < 1e-9);
        assert!((quebec.kilograms(KWH, 1.5) - 0.046845).abs() < 1e-9);
        let direct = Intensity::for_region("ca-qc", Basis::Direct).unwrap();
        assert!((direct.kilograms(KWH, 1.0) - 0.00394).abs() < 1e-9);
        assert!(quebec.to_string().starts_with("CA-QC 31.23 g/kWh (2023, lifecycle, derived"), "{quebec}");
    }

    #[test]
    fn unknown_region_is_error() {
        let unknown = Intensity::for_region("Atlantis", Basis::Lifecycle).unwrap_err();
        assert!(unknown.to_string().contains("--carbon-intensity"), "{unknown}");
        assert!(Intensity::for_region("CAF", Basis::Lifecycle).is_err(), "0 there means unknown");
        assert!(Intensity::for_region("", Basis::Direct).is_err());
        let other = Intensity::for_region("DEU", Basis::Direct).unwrap_err();
        assert!(other.to_string().contains("--basis lifecycle"), "{other}");
        assert!(Intensity::for_region("US-XX", Basis::Lifecycle).is_err(), "a country is used only for its parts");
    }

    #[test]
    fn state_falls_back_to_country_with_note() {
        let texas = Intensity::for_region("US-TX", Basis::Lifecycle).unwrap();
        assert_eq!(texas.region, "USA");
        assert!(texas.to_string().contains("US-TX has only a direct figure"));
        assert_eq!(Intensity::for_region("US-TX", Basis::Direct).unwrap().g_per_kwh, 349.801);
    }

    #[test]
    fn every_region_row_is_found() {
        for row in include_str!("tables/intensity.csv").lines().skip(1) {
            let fields: Vec<&str> = row.split(',').collect();
            assert_eq!(fields.len(), 6, "{row}");
            let found = find(fields[0], fields[4].parse().unwrap()).unwrap();
            assert!(found.g_per_kwh > 0.0 && found.year.is_some() && found.source != "unknown", "{row}");
        }
    }
}

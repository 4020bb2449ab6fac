//! Energy in units for people.

/// Joules in a watt-hour.
const JOULES_IN_WH: f64 = 3600.0;

/// Microjoules as joules.
pub fn joules(uj: u64) -> f64 {
    uj as f64 / 1e6
}

/// Joules as watt-hours.
pub fn watt_hours(joules: f64) -> f64 {
    joules / JOULES_IN_WH
}

/// Joules as kilowatt-hours: one has exactly 3.6e6 joules.
pub fn kilowatt_hours(joules: f64) -> f64 {
    joules / 3.6e6
}

/// Energy of a power over a time, in microjoules, rounded. 0 for NaN.
pub(super) fn energy_uj(watts: f64, ns: u64) -> u64 {
    // Saturates, and is 0 for NaN.
    (watts * ns as f64 / 1e3).round() as u64
}

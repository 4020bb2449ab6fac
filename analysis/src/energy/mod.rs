//! The arithmetic of energy, from raw counter readings to joules with their bounds. It knows no stream, store or screen.
//!
//! ```text
//! reading ─▶ counter.rs (wraps, resets, stale values) ─▶ line.rs (knots: time, energy so far) ─┬─ between two times
//! busy CPU ─▶ model.rs (no counter: power by load) ───▶ line.rs                               │
//!             profile.rs (phases over time) ─▶ fit.rs (power by phase) ─▶ shape.rs ───────────┤
//!             holdout.rs, bounds.rs (how wrong may that be) ──────────────────────────────────┴─▶ account.rs
//! joules ─▶ carbon.rs (intensity of a region, its basis, its source), carbon_series.rs (over time)
//! ```
//!
//! Energy is counted in whole microjoules, so that the parts of a run add up to the run exactly; joules and the rest of
//! what people read come at the very end ([`joules`], [`watt_hours`]). The formulas and their figures are in
//! `docs/energy.md`.

mod account;
mod assumptions;
mod bounds;
mod carbon;
mod carbon_series;
mod counter;
mod cross_check;
mod fit;
mod holdout;
mod label;
mod line;
mod model;
mod profile;
mod shape;

pub use account::{Account, Figure, PhaseFigure, PhaseShare, Source};
pub use assumptions::Assumptions;
pub use bounds::PowerRange;
pub use carbon::{Basis, Intensity};
pub use carbon_series::IntensitySeries;
pub use counter::{Advance, Counter, CounterRules, GapReason};
pub use cross_check::CrossCheck;
pub use fit::{Fit, FitRefusal};
pub use holdout::HoldOut;
pub use label::Label;
pub use line::{Knot, Line};
pub use model::{Model, Processor};
pub use profile::{PhaseSpan, Profile};
pub use shape::Shape;

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

/// Joules as kilowatt-hours: exactly 3.6e6 of them in one.
pub fn kilowatt_hours(joules: f64) -> f64 {
    joules / 3.6e6
}

/// Energy of a power over a time, in microjoules, rounded. 0 where it is no number.
fn energy_uj(watts: f64, ns: u64) -> u64 {
    // Saturates, and is 0 for NaN.
    (watts * ns as f64 / 1e3).round() as u64
}

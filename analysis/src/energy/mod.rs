//! The arithmetic of energy, from raw counter readings to joules with their bounds. It knows no stream, store or screen.
//!
//! ```text
//! reading ─▶ counter.rs (wraps, resets, stale values) ─▶ line.rs (knots: time, energy so far) ─┬─ between two times
//! busy CPU ─▶ model.rs (no counter: power by load) ───▶ line.rs                               │
//!             profile.rs (phases over time) ─▶ fit.rs (power by phase) ─▶ shape.rs ───────────┤
//!             shape.rs, line.rs (how wrong may that be) ──────────────────────────────────────┴─▶ account.rs
//! inputs.rs (a session's data as plain figures) ─▶ components.rs (the best source for each) ─▶ book.rs (by component and scope)
//! joules ─▶ carbon.rs (intensity of a region, its basis, its source), carbon_series.rs (over time)
//! ```
//!
//! Energy is counted in whole microjoules, so that the parts of a run add up to the run exactly. Conversion to joules and
//! other units for people comes at the very end ([`joules`], [`watt_hours`]). The formulas and their figures are in
//! `docs/energy.md`.

mod account;
mod assumptions;
mod book;
mod carbon;
mod carbon_series;
mod component;
mod components;
mod counter;
mod cross_check;
mod fit;
mod inputs;
mod line;
mod model;
mod profile;
mod shape;
mod units;

pub use account::{Account, EnergyFigure, EnergySource, Label, PhaseFigure, PhaseShare};
pub use assumptions::Assumptions;
pub use book::EnergyBook;
pub use carbon::{Basis, Intensity, IntensityError};
pub use carbon_series::{IntensitySeries, SeriesError};
pub use component::{ComponentEnergy, ComponentKind, EnergyScope, NoEnergy, PhasedTime};
pub use counter::{CounterAdvance, CounterReader, CounterRules, GapReason};
pub use cross_check::CrossCheck;
pub use fit::{Fit, FitRefusal};
pub use inputs::{CounterInputs, CounterOrigin, EnergyInputs, GpuInputs, MemoryInputs, ProcessorInputs};
pub use line::{EnergyLine, Knot, PowerRange};
pub use model::{Model, ModelOrigin, Processor};
pub use profile::{PhaseSpan, Profile};
pub use shape::{EnergyShape, HoldOut};
pub use units::{joules, kilowatt_hours, watt_hours};

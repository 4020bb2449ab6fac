//! Pictures of a report as HTML and SVG, one a file. Drawings stretch with the page and text does not; colours are classes
//! of the page's style, so that they follow light and dark.

mod bars;
mod energy;
pub(in crate::report) mod finding;
pub(in crate::report) mod flames;
pub(in crate::report) mod hardware;
pub(in crate::report) mod interval;
pub(in crate::report) mod last_steps;
pub(in crate::report) mod percentiles;
mod phase_keys;
mod plot;
pub(in crate::report) mod repeated;
pub(in crate::report) mod shares;
pub(in crate::report) mod step_times;

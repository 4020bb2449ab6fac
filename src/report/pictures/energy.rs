//! Energy by component.

use super::bars::{Bar, bars};
use crate::report::sections::energy::{Component, Energy};
use gnntop_analysis::energy::Scope;
use gnntop_analysis::figures::quantity;

/// Joules of the components that have any, in the report's scope.
pub(super) fn of_components(energy: &Energy) -> String {
    let joules = |component: &Component| match energy.scope {
        Scope::Job => component.job.as_ref().map(|all| all.joules),
        Scope::Device => component.device.as_ref().map(|all| all.joules),
    };
    let bar = |component: &Component| {
        let value = joules(component)?;
        let text = format!("{} J, {}", quantity(value), component.source);
        Some(Bar { name: component.name.clone(), value, text, class: "series" })
    };
    bars(&energy.components.iter().filter_map(bar).collect::<Vec<Bar>>(), None)
}

//! Columns of measured values that nothing reads as they are.

use gnntop_wire::{Metric, Quantity, SignalKind};

use super::mapping::{Mapping, Role};
use super::metric;

/// Characters of a name that are compared with those of known ones.
const LONGEST: usize = 100;

/// Why a column of measured values will be of no use, and what to do; `None` if it is of use.
pub(super) fn unread_signal_warning(mapping: &Mapping) -> Option<String> {
    let (name, counts_up) = match &mapping.role {
        Role::Signal(name) => (name, false),
        Role::Total(name) | Role::Cumulative(name) => (name, true),
        _ => return None,
    };
    let Mapping { role, column, .. } = mapping;
    let Some(quantity) = metric::parse(name).map(Metric::quantity) else {
        // A name may be as long as its file's author likes.
        let start: String = name.chars().take(LONGEST).collect();
        let near = Quantity::ALL.iter().map(|quantity| quantity.with_instance(0).to_string());
        let near = near.map(|known| (strsim::levenshtein(&known, &start), known)).min_by_key(|(letters, _)| *letters);
        let near = near.filter(|(letters, _)| *letters <= name.len().div_ceil(3).max(3)).map(|(_, known)| known);
        let instead = near.map_or_else(String::new, |near| format!("did you mean {near}? "));
        return Some(format!(
            "no view reads a signal called {name}, so {column} appears only in exports: {instead}docs/import.md lists the names; counter:{name} shows it as it is"
        ));
    };
    let is_counter = quantity.kind() == SignalKind::Counter;
    if is_counter != counts_up {
        let right = if is_counter { "total (what was counted in each step) or cumulative" } else { "signal" };
        return Some(format!("{role} is read as a {right}: give --column with that role for {column}"));
    }
    let unit = quantity.unit();
    let given = mapping.scale.map(|scale| scale.unit).filter(|given| *given != unit);
    given.map(|given| format!("{column} is in {given:?}, but {name} is read in {unit:?}: check its unit"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warning_for(text: &str) -> Option<String> {
        unread_signal_warning(&Mapping::parse(text).unwrap())
    }

    #[test]
    fn unknown_signal_name_is_reported_with_suggestion() {
        for fine in
            ["signal:gpu.3.util=u:%", "total:cpu.energy=e:J", "cumulative:gpu.0.energy=e:mJ", "duration=step_ms"]
        {
            assert_eq!(warning_for(fine), None, "{fine}");
        }
        let said = |text: &str| warning_for(text).unwrap();
        assert!(said("signal:gpu.util=u:%").contains("did you mean gpu.0.util?"));
        assert!(!said("signal:moon.phase=u:%").contains("did you mean"));
        assert!(said("signal:gpu.0.energy=e:J").contains("is read as a total"));
        assert!(said("signal:gpu.0.util=u:W").contains("check its unit"));
    }
}

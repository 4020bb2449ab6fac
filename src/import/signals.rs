//! The names under which views, findings and reports look for measured values: whatever else a column is called, nothing
//! reads it. docs/import.md has the same list.

use gnntop_wire::Unit;

use super::mapping::{Mapping, Role};

/// Names, with `N` for a number, their unit, and whether they count up.
const READ: [(&str, Unit, bool); 33] = [
    ("process.cpu_time", Unit::Nanoseconds, true),
    ("process.rss", Unit::Bytes, false),
    ("process.rss.peak", Unit::Bytes, false),
    ("process.swap", Unit::Bytes, false),
    ("process.threads", Unit::Count, false),
    ("process.faults.minor", Unit::Count, true),
    ("process.faults.major", Unit::Count, true),
    ("process.io.read_bytes", Unit::Bytes, true),
    ("process.io.write_bytes", Unit::Bytes, true),
    ("process.main_thread.cpu_wait", Unit::Nanoseconds, true),
    ("machine.cpu.busy", Unit::Nanoseconds, true),
    ("machine.cpu.steal", Unit::Nanoseconds, true),
    ("machine.cpu.N.busy", Unit::Nanoseconds, true),
    ("machine.cpu.threads", Unit::Count, false),
    ("machine.memory.used", Unit::Bytes, false),
    ("machine.memory.total", Unit::Bytes, false),
    ("machine.memory.available", Unit::Bytes, false),
    ("machine.swap.used", Unit::Bytes, false),
    ("machine.pressure.cpu.some", Unit::Nanoseconds, true),
    ("machine.pressure.memory.some", Unit::Nanoseconds, true),
    ("machine.disk.read_bytes", Unit::Bytes, true),
    ("machine.disk.write_bytes", Unit::Bytes, true),
    ("machine.network.received_bytes", Unit::Bytes, true),
    ("machine.network.sent_bytes", Unit::Bytes, true),
    ("gpu.N.util", Unit::MilliPercent, false),
    ("gpu.N.memory.used", Unit::Bytes, false),
    ("gpu.N.memory.total", Unit::Bytes, false),
    ("gpu.N.power", Unit::Milliwatts, false),
    ("gpu.N.temperature", Unit::MilliCelsius, false),
    ("gpu.N.clock.sm", Unit::Megahertz, false),
    ("gpu.N.energy", Unit::Microjoules, true),
    ("cpu.N.energy", Unit::Microjoules, true),
    ("dram.N.energy", Unit::Microjoules, true),
];

/// Characters of a name that are compared with those of known ones.
const LONGEST: usize = 100;

/// Why a column of measured values will be of no use, and what to do; `None` if it is of use.
pub(super) fn doubt(mapping: &Mapping) -> Option<String> {
    let (name, counts_up) = match &mapping.role {
        Role::Signal(name) => (name, false),
        Role::Total(name) | Role::Cumulative(name) => (name, true),
        _ => return None,
    };
    let Mapping { role, column, .. } = mapping;
    let Some((_, unit, is_counter)) = READ.iter().find(|(known, ..)| matches(known, name)) else {
        // A name may be as long as its file's author likes.
        let start: String = name.chars().take(LONGEST).collect();
        let near = READ.iter().map(|(known, ..)| known.replace('N', "0"));
        let near = near.map(|known| (strsim::levenshtein(&known, &start), known)).min_by_key(|(letters, _)| *letters);
        let near = near.filter(|(letters, _)| *letters <= name.len().div_ceil(3).max(3)).map(|(_, known)| known);
        let instead = near.map_or_else(String::new, |near| format!("did you mean {near}? "));
        return Some(format!(
            "no view reads a signal called {name}, so {column} appears only in exports: {instead}docs/import.md lists the names; counter:{name} shows it as it is"
        ));
    };
    if *is_counter != counts_up {
        let right = if *is_counter { "total (what was counted in each step) or cumulative" } else { "signal" };
        return Some(format!("{role} is read as a {right}: give --column with that role for {column}"));
    }
    let given = mapping.scale.map(|scale| scale.unit).filter(|given| given != unit);
    given.map(|given| format!("{column} is in {given:?}, but {name} is read in {unit:?}: check its unit"))
}

/// Whether a name is known, with a number for its `N`. Energy of a single component needs no number.
fn matches(known: &str, name: &str) -> bool {
    let part = |(known, part): (&str, &str)| known == part || known == "N" && part.parse::<u32>().is_ok();
    let alone = known.ends_with("energy") && !known.starts_with("gpu");
    let same = known.split('.').count() == name.split('.').count() && known.split('.').zip(name.split('.')).all(part);
    same || alone && known.replace(".N", "") == name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doubt_of(text: &str) -> Option<String> {
        doubt(&Mapping::parse(text).unwrap())
    }

    #[test]
    fn names_that_nothing_reads_are_told_with_the_likely_one() {
        for fine in
            ["signal:gpu.3.util=u:%", "total:cpu.energy=e:J", "cumulative:gpu.0.energy=e:mJ", "duration=step_ms"]
        {
            assert_eq!(doubt_of(fine), None, "{fine}");
        }
        let said = |text: &str| doubt_of(text).unwrap();
        assert!(said("signal:gpu.util=u:%").contains("did you mean gpu.0.util?"));
        assert!(!said("signal:moon.phase=u:%").contains("did you mean"));
        assert!(said("signal:gpu.0.energy=e:J").contains("is read as a total"));
        assert!(said("signal:gpu.0.util=u:W").contains("check its unit"));
    }
}

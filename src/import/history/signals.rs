//! Readings of hardware, by the names that trackers give them, as signals of ours.

use crate::import::units::UnitScale;

/// What a tracker calls a reading: what is before and after a GPU's number, our name for it, and its unit.
const GPUS: [(&str, &str, &str, &str); 10] = [
    ("gpu.", ".gpu", "util", "%"),
    ("gpu.", ".powerWatts", "power", "W"),
    ("gpu.", ".memoryAllocatedBytes", "memory.used", "B"),
    ("gpu.", ".temp", "temperature", "C"),
    ("system/gpu_", "_utilization_percentage", "util", "%"),
    ("system/gpu_", "_power_usage_watts", "power", "W"),
    ("gpu/", "/utilization", "util", "%"),
    ("gpu/", "/power", "power", "W"),
    ("gpu/", "/temp", "temperature", "C"),
    ("gpu/", "/allocated_memory", "memory.used", "GiB"),
];
/// Readings of other things.
const OTHERS: [(&str, &str, &str); 1] = [("proc.memory.rssMB", "process.rss", "MiB")];

/// Our name of a reading, and what its values are multiplied by; `None` if nothing here reads it.
pub(super) fn signal(name: &str) -> Option<(String, UnitScale)> {
    let gpu = GPUS.iter().find_map(|(before, after, ours, unit)| {
        let number: u32 = name.strip_prefix(before)?.strip_suffix(after)?.parse().ok()?;
        Some((format!("gpu.{number}.{ours}"), *unit))
    });
    let other =
        || OTHERS.iter().find(|(theirs, _, _)| *theirs == name).map(|(_, ours, unit)| ((*ours).to_owned(), *unit));
    let (ours, unit) = gpu.or_else(other)?;
    Some((ours, UnitScale::from_name(unit)?))
}

/// Whether values of this name are readings of hardware, which MLflow keeps among the others.
pub(super) fn is_reading(name: &str) -> bool {
    name.starts_with("system/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_of_trackers_have_our_names_and_units() {
        for name in ["gpu.1.gpu", "system/gpu_1_utilization_percentage", "gpu/1/utilization"] {
            let (ours, scale) = signal(name).unwrap();
            assert_eq!((ours.as_str(), scale.factor), ("gpu.1.util", 1e3), "{name}");
        }
        assert_eq!(signal("gpu/mean_utilization"), None);
        assert_eq!(signal("proc.memory.rssMB").unwrap().0, "process.rss");
    }
}

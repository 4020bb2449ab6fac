//! What a column of a table means, and in which unit it is.
//!
//! A mapping is written `ROLE=COLUMN` or `ROLE=COLUMN:UNIT`. Where the unit is left out it is read from the end of
//! the column's name, as in `step_ms`. What a measured column measures is known by the name that is given for it;
//! docs/import.md lists the names.

use std::fmt;

use gnntop_wire::{AnyMetric, Metric, Quantity, SignalKind, Unit};

use super::outcome::ImportError;
use super::units::UnitScale;

/// What a column is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// The step's number.
    Step,
    /// The epoch.
    Epoch,
    /// When the step began.
    Start,
    /// When the step ended.
    End,
    /// How long it took; in a table with a row for each phase, how long that took.
    Duration,
    /// The loss.
    Loss,
    /// Graphs in the batch.
    Graphs,
    /// Nodes in the batch.
    Nodes,
    /// Directed edges in the batch.
    Edges,
    /// Seed nodes of the batch.
    Seeds,
    /// Which phase of the step a row is about.
    PhaseName,
    /// Time in a phase inside the step, after those that were named before.
    Phase(String),
    /// Time in a phase just before the step.
    Before(String),
    /// A measured value at the end of the step.
    Signal(String),
    /// What was counted during the step, to be added up.
    Total(String),
    /// What was counted since some time before the run, such as an energy counter's own reading.
    Cumulative(String),
    /// A number of the program's own.
    Counter(String),
}

/// What else graphs are called in `--column ROLE=COLUMN`: each image or sample of a batch is one.
const ALSO_GRAPHS: [&str; 3] = ["images", "samples", "sequences"];
/// What begins the role of a time that counts since the start.
const RUNNING: &str = "cumulative:";

/// Roles without a name.
const PLAIN: [(&str, Role); 11] = [
    ("step", Role::Step),
    ("epoch", Role::Epoch),
    ("start", Role::Start),
    ("end", Role::End),
    ("duration", Role::Duration),
    ("loss", Role::Loss),
    ("graphs", Role::Graphs),
    ("nodes", Role::Nodes),
    ("edges", Role::Edges),
    ("seeds", Role::Seeds),
    ("phase", Role::PhaseName),
];

impl Role {
    fn parse(text: &str) -> Option<Self> {
        if let Some((_, role)) = PLAIN.iter().find(|(name, _)| *name == text) {
            return Some(role.clone());
        }
        if ALSO_GRAPHS.contains(&text) {
            return Some(Self::Graphs);
        }
        let (kind, name) = text.split_once(':').filter(|(_, name)| !name.is_empty())?;
        let role = match kind {
            "phase" => Self::Phase,
            "before" => Self::Before,
            "signal" => Self::Signal,
            "total" => Self::Total,
            "cumulative" => Self::Cumulative,
            "counter" => Self::Counter,
            _ => return None,
        };
        Some(role(name.to_owned()))
    }

    /// What the column measures, if that is known.
    fn quantity(&self) -> Option<Quantity> {
        match self {
            Self::Signal(name) | Self::Total(name) | Self::Cumulative(name) => Some(parse_metric(name)?.quantity()),
            _ => None,
        }
    }

    /// Whether the column holds how long something took.
    pub(super) fn is_time(&self) -> bool {
        matches!(self, Self::Duration | Self::Phase(_) | Self::Before(_))
    }

    /// Whether the column contains points in time: ISO 8601 has no unit, and a number's size shows it.
    pub(super) fn is_stamp(&self) -> bool {
        matches!(self, Self::Start | Self::End)
    }
}

/// As it is written in a mapping.
impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Phase(name) => write!(f, "phase:{name}"),
            Self::Before(name) => write!(f, "before:{name}"),
            Self::Signal(name) => write!(f, "signal:{name}"),
            Self::Total(name) => write!(f, "total:{name}"),
            Self::Cumulative(name) => write!(f, "cumulative:{name}"),
            Self::Counter(name) => write!(f, "counter:{name}"),
            plain => f.write_str(PLAIN.iter().find(|(_, role)| role == plain).map_or("", |(name, _)| name)),
        }
    }
}

/// One column and what it means.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapping {
    /// What it is.
    pub role: Role,
    /// Its name in the table's head.
    pub column: String,
    /// How to read its numbers. Those of steps, epochs, losses and batches have no unit, and a time stamp may have none.
    pub scale: Option<UnitScale>,
    /// Whether a time counts since the start, so that a step's part is what it grew by.
    pub is_cumulative: bool,
}

impl Mapping {
    /// Reads `ROLE=COLUMN` or `ROLE=COLUMN:UNIT`.
    ///
    /// # Errors
    /// When the role or the unit is not known, or a duration has none.
    pub fn parse(text: &str) -> Result<Self, ImportError> {
        let wrong = |reason| ImportError::Mapping { text: text.to_owned(), reason };
        let (role, column) = text.split_once('=').ok_or_else(|| wrong("give ROLE=COLUMN or ROLE=COLUMN:UNIT"))?;
        let (role, is_running) = parse_role(role.trim()).ok_or_else(|| {
            wrong(
                "unknown role: use step, epoch, start, end, duration, loss, graphs, nodes, edges, seeds, phase, phase:NAME, before:NAME, signal:NAME, total:NAME, cumulative:NAME, cumulative:phase:NAME, cumulative:before:NAME, cumulative:duration, counter:NAME",
            )
        })?;
        let (column, scale) = match column.trim().rsplit_once(':') {
            Some((column, unit)) => {
                (column, Some(UnitScale::from_name(unit).ok_or_else(|| wrong("the unit is not known"))?))
            }
            None => (column.trim(), UnitScale::from_column(column.trim())),
        };
        let scale = scale.filter(|scale| !role.is_stamp() || scale.is_time());
        if role.is_time() && !scale.is_some_and(|scale| scale.is_time()) {
            return Err(wrong("a time needs its unit: end it with :ns, :us, :ms or :s"));
        }
        let scale = scale.map(|scale| role.quantity().map_or(scale, |quantity| scale.to(quantity.unit())));
        Ok(Self { role, column: column.to_owned(), scale, is_cumulative: is_running })
    }

    /// Its role as it is given.
    pub(super) fn role_in_words(&self) -> String {
        format!("{}{}", if self.is_cumulative { RUNNING } else { "" }, self.role)
    }

    /// What a number of the column is multiplied by.
    pub fn factor(&self) -> f64 {
        self.scale.map_or(1.0, |scale| scale.factor)
    }

    /// What was made of the column, for a person.
    pub(super) fn describe(&self) -> String {
        let (role, column) = (self.role_in_words(), &self.column);
        match self.scale {
            Some(scale) => format!("{column} as {role} in {}", scale.name),
            None => format!("{column} as {role}"),
        }
    }
}

/// A role, and whether it is a time that counts since the start.
fn parse_role(text: &str) -> Option<(Role, bool)> {
    let running = text.strip_prefix(RUNNING).and_then(Role::parse).filter(Role::is_time);
    running.map(|role| (role, true)).or_else(|| Some((Role::parse(text)?, false)))
}

/// What a table with a single processor may call its energy.
const ALONE: [(&str, Quantity); 2] = [("cpu.energy", Quantity::CpuEnergy), ("dram.energy", Quantity::DramEnergy)];

/// The metric with this name.
pub(super) fn parse_metric(name: &str) -> Option<Metric> {
    let alone = ALONE.iter().find(|(alone, _)| *alone == name).map(|(_, energy)| energy.with_instance(0));
    alone.or_else(|| name.parse().ok())
}

/// What a column measures: the metric with this name if its values are of that kind and unit, or in no known unit.
pub(super) fn column_metric(name: &str, unit: Option<Unit>, kind: SignalKind) -> AnyMetric {
    let fits = |quantity: Quantity| quantity.kind() == kind && unit.is_none_or(|unit| unit == quantity.unit());
    match parse_metric(name).filter(|metric| fits(metric.quantity())) {
        Some(metric) => metric.into(),
        None => AnyMetric::Other { name: name.to_owned(), unit: unit.unwrap_or(Unit::Count), kind },
    }
}

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
    let Some(quantity) = parse_metric(name).map(Metric::quantity) else {
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

    #[test]
    fn mappings_are_parsed_with_units() {
        let of = |text: &str| Mapping::parse(text).map(|m| (m.role.clone(), m.column.clone(), m.factor())).unwrap();
        assert_eq!(of("duration=step_ms"), (Role::Duration, "step_ms".into(), 1e6));
        assert_eq!(of("phase:forward=fwd:us"), (Role::Phase("forward".into()), "fwd".into(), 1e3));
        assert_eq!(
            of("total:cpu.energy=cpu_energy:kWh"),
            (Role::Total("cpu.energy".into()), "cpu_energy".into(), 3.6e12)
        );
        assert_eq!(of("signal:machine.memory.used=ram_used_mb").2, 1_048_576.0);
        assert_eq!(of("end=when"), (Role::End, "when".into(), 1.0));
        for (wrong, why) in [
            ("forward", "give ROLE=COLUMN"),
            ("banana=a", "unknown role"),
            ("phase:=a_ms", "unknown role"),
            ("duration=step", "a time needs its unit"),
            ("duration=step:kWh", "a time needs its unit"),
            ("duration=step:weeks", "the unit is not known"),
        ] {
            let said = Mapping::parse(wrong).unwrap_err().to_string();
            assert!(said.contains(why), "{wrong}: {said}");
        }
    }

    #[test]
    fn cumulative_role_is_parsed() {
        let of = |text: &str| Mapping::parse(text).unwrap();
        let wait = of("cumulative:before:data wait=wait_total_ms");
        assert_eq!((wait.role.clone(), wait.is_cumulative), (Role::Before("data wait".into()), true));
        assert_eq!(wait.role_in_words(), "cumulative:before:data wait");
        assert!(of("cumulative:duration=elapsed:s").is_cumulative && !of("cumulative:cpu.energy=e:J").is_cumulative);
        assert_eq!(of("images=n").role, Role::Graphs);
    }

    #[test]
    fn roles_round_trip() {
        for role in ["step", "phase", "phase:forward", "before:data wait", "cumulative:cpu.0.energy", "end"] {
            assert_eq!(Role::parse(role).unwrap().to_string(), role);
        }
    }

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

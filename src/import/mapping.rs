//! Which column of a table means what, and in which unit it is.
//!
//! A mapping is written `ROLE=COLUMN` or `ROLE=COLUMN:UNIT`. Where the unit is left out it is read from the end of
//! the column's name, as in `step_ms`.

use gnntop_wire::Unit;
use gnntop_wire::phase::STANDARD;

use super::error::ImportError;

/// What a column is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// The step's number.
    Step,
    /// The epoch.
    Epoch,
    /// When the step ended.
    End,
    /// How long it took.
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
    /// Time in a phase inside the step, after those that were named before.
    Phase(String),
    /// Time in a phase just before the step.
    Before(String),
    /// A measured value at the end of the step.
    Signal(String),
    /// What was counted since the step before, to be added up.
    Total(String),
    /// A number of the program's own.
    Counter(String),
}

impl Role {
    fn parse(text: &str) -> Option<Self> {
        let named = |prefix: &str| text.strip_prefix(prefix).filter(|name| !name.is_empty()).map(str::to_owned);
        Some(match text {
            "step" => Self::Step,
            "epoch" => Self::Epoch,
            "end" => Self::End,
            "duration" => Self::Duration,
            "loss" => Self::Loss,
            "graphs" => Self::Graphs,
            "nodes" => Self::Nodes,
            "edges" => Self::Edges,
            "seeds" => Self::Seeds,
            _ => {
                let phase = named("phase:").map(Self::Phase).or_else(|| named("before:").map(Self::Before));
                let signal = || named("signal:").map(Self::Signal).or_else(|| named("total:").map(Self::Total));
                return phase.or_else(signal).or_else(|| named("counter:").map(Self::Counter));
            }
        })
    }

    /// Whether the column holds a time.
    fn is_time(&self) -> bool {
        matches!(self, Self::End | Self::Duration | Self::Phase(_) | Self::Before(_))
    }
}

/// What a column's number is multiplied by to give a raw value in a unit of the stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// The unit of the raw value.
    pub unit: Unit,
    /// Raw value of 1.
    pub factor: f64,
}

/// Units as people write them.
const SCALES: [(&str, Unit, f64); 25] = [
    ("ns", Unit::Nanoseconds, 1.0),
    ("us", Unit::Nanoseconds, 1e3),
    ("ms", Unit::Nanoseconds, 1e6),
    ("s", Unit::Nanoseconds, 1e9),
    ("count", Unit::Count, 1.0),
    ("%", Unit::MilliPercent, 1e3),
    ("pct", Unit::MilliPercent, 1e3),
    ("b", Unit::Bytes, 1.0),
    ("bytes", Unit::Bytes, 1.0),
    ("kb", Unit::Bytes, 1024.0),
    ("kib", Unit::Bytes, 1024.0),
    ("mb", Unit::Bytes, 1_048_576.0),
    ("mib", Unit::Bytes, 1_048_576.0),
    ("gb", Unit::Bytes, 1_073_741_824.0),
    ("gib", Unit::Bytes, 1_073_741_824.0),
    ("mw", Unit::Milliwatts, 1.0),
    ("w", Unit::Milliwatts, 1e3),
    ("uj", Unit::Microjoules, 1.0),
    ("mj", Unit::Microjoules, 1e3),
    ("j", Unit::Microjoules, 1e6),
    ("wh", Unit::Microjoules, 3.6e9),
    ("kwh", Unit::Microjoules, 3.6e12),
    ("mhz", Unit::Megahertz, 1.0),
    ("c", Unit::MilliCelsius, 1e3),
    ("bits", Unit::Bits, 1.0),
];

impl Scale {
    fn named(text: &str) -> Option<Self> {
        let lower = text.to_ascii_lowercase();
        SCALES.iter().find(|(name, ..)| *name == lower).map(|(_, unit, factor)| Self { unit: *unit, factor: *factor })
    }

    /// By the end of a column's name, such as `_ms`.
    fn of_column(column: &str) -> Option<Self> {
        Self::named(column.rsplit_once('_')?.1)
    }
}

/// One column and what it means.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapping {
    /// What it is.
    pub role: Role,
    /// Its name in the table's head.
    pub column: String,
    /// How to read its numbers; those of steps, epochs, losses and batches are taken as they are.
    pub scale: Scale,
}

impl Mapping {
    /// Reads `ROLE=COLUMN` or `ROLE=COLUMN:UNIT`.
    ///
    /// # Errors
    /// When the role or the unit is not known, or a time has none.
    pub fn parse(text: &str) -> Result<Self, ImportError> {
        let wrong = |reason| ImportError::Mapping { text: text.to_owned(), reason };
        let (role, column) = text.split_once('=').ok_or_else(|| wrong("give ROLE=COLUMN or ROLE=COLUMN:UNIT"))?;
        let role = Role::parse(role.trim()).ok_or_else(|| {
            wrong(
                "the role is none of step, epoch, end, duration, loss, graphs, nodes, edges, seeds, phase:NAME, before:NAME, signal:NAME, total:NAME, counter:NAME",
            )
        })?;
        let (column, scale) = match column.trim().rsplit_once(':') {
            Some((column, unit)) => (column, Some(Scale::named(unit).ok_or_else(|| wrong("the unit is not known"))?)),
            None => (column.trim(), Scale::of_column(column.trim())),
        };
        let is_ns = |scale: &Scale| scale.unit == Unit::Nanoseconds;
        if role.is_time() && !scale.as_ref().is_some_and(is_ns) {
            return Err(wrong("a time needs its unit: end it with :ns, :us, :ms or :s"));
        }
        let plain = Scale { unit: Unit::Count, factor: 1.0 };
        Ok(Self { role, column: column.to_owned(), scale: scale.unwrap_or(plain) })
    }

    /// What the columns of a table mean by their names, as far as that is plain.
    pub fn guess(columns: &[String]) -> Vec<Self> {
        let mut found: Vec<Self> = columns.iter().filter_map(|column| Self::of_column(column)).collect();
        // The phases of a step in the order in which it runs through them, whatever the table's order.
        let order = |mapping: &Self| match &mapping.role {
            Role::Phase(name) | Role::Before(name) => STANDARD.iter().position(|standard| standard == name),
            _ => None,
        };
        found.sort_by_key(order);
        found
    }

    fn of_column(column: &str) -> Option<Self> {
        let lower = column.to_ascii_lowercase();
        let plain = match lower.as_str() {
            "step" | "step_idx" | "global_step" | "iteration" | "iter" => Some(Role::Step),
            "epoch" => Some(Role::Epoch),
            "loss" | "train_loss" => Some(Role::Loss),
            "graphs" | "batch_num_graphs" | "num_graphs" => Some(Role::Graphs),
            "nodes" | "batch_num_nodes" | "num_nodes" => Some(Role::Nodes),
            "edges" | "batch_num_edges" | "num_edges" => Some(Role::Edges),
            "seeds" | "num_seeds" => Some(Role::Seeds),
            _ => None,
        };
        let unit = || Scale::of_column(&lower).filter(|scale| scale.unit == Unit::Nanoseconds);
        let role = plain.or_else(|| {
            unit()?;
            let stem = lower.rsplit_once('_')?.0;
            Some(match stem {
                "step" | "batch" | "iteration" | "duration" => Role::Duration,
                "timestamp" | "end" | "time" => Role::End,
                "data_wait" | "data" | "wait" => Role::Before(gnntop_wire::phase::DATA_WAIT.to_owned()),
                _ => Role::Phase(STANDARD.iter().find(|name| name.replace([' ', '-'], "_") == stem)?.to_string()),
            })
        })?;
        let scale = unit().filter(|_| role.is_time()).unwrap_or(Scale { unit: Unit::Count, factor: 1.0 });
        Some(Self { role, column: column.to_owned(), scale })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_read_with_their_units() {
        let of = |text: &str| Mapping::parse(text).map(|m| (m.role, m.column, m.scale.factor)).unwrap();
        assert_eq!(of("duration=step_ms"), (Role::Duration, "step_ms".into(), 1e6));
        assert_eq!(of("phase:forward=fwd:us"), (Role::Phase("forward".into()), "fwd".into(), 1e3));
        assert_eq!(
            of("total:cpu.energy=cpu_energy:kWh"),
            (Role::Total("cpu.energy".into()), "cpu_energy".into(), 3.6e12)
        );
        assert_eq!(of("signal:machine.memory.used=ram_used_mb").2, 1_048_576.0);
        for (wrong, why) in [
            ("forward", "give ROLE=COLUMN"),
            ("banana=a", "the role is none of"),
            ("phase:=a_ms", "the role is none of"),
            ("duration=step", "a time needs its unit"),
            ("duration=step:kWh", "a time needs its unit"),
            ("duration=step:weeks", "the unit is not known"),
        ] {
            let said = Mapping::parse(wrong).unwrap_err().to_string();
            assert!(said.contains(why), "{wrong}: {said}");
        }
    }

    #[test]
    fn plain_names_are_guessed_in_the_order_of_a_step() {
        let columns = [
            "run_num",
            "epoch",
            "step_idx",
            "timestamp_s",
            "step_ms",
            "optimizer_ms",
            "forward_ms",
            "batch_num_edges",
            "ram_used_mb",
        ];
        let guessed = Mapping::guess(&columns.map(str::to_owned));
        let roles: Vec<Role> = guessed.into_iter().map(|mapping| mapping.role).collect();
        let phase = |name: &str| Role::Phase(name.into());
        let expected =
            [Role::Epoch, Role::Step, Role::End, Role::Duration, Role::Edges, phase("forward"), phase("optimizer")];
        assert_eq!(roles, expected);
    }
}

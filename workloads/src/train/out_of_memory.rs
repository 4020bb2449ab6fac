//! The error when a GPU runs out of memory: in one line where, how much, and what holds it.

use std::fmt;

use gnntop_probe::device::MemoryReport;

const MIB: u64 = 1 << 20;
/// How many holders are named.
const HOLDERS: usize = 3;

/// A GPU's memory when it ran out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// The device, such as `cuda:0`.
    pub device: String,
    /// The memory in use, by holder.
    pub memory: MemoryReport,
    /// The request in bytes; `None` if the library that asked does not report it.
    pub asked_bytes: Option<u64>,
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MemoryReport { now, peak, phase, step, holders } = &self.memory;
        let mib = |bytes: u64| format!("{} MiB", grouped(bytes.div_ceil(MIB)));
        write!(f, "{} ran out of memory in {} of step {step}: ", self.device, phase.as_deref().unwrap_or("no phase"))?;
        match self.asked_bytes {
            Some(bytes) => write!(f, "{} asked for", mib(bytes))?,
            None => write!(f, "more asked for than was left (candle does not report how much)")?,
        }
        write!(f, "; tensors: peak {}, now {}; {} reserved", mib(*peak), mib(now.used), mib(now.reserved))?;
        write!(f, "; {} of {} free", mib(now.free), mib(now.total))?;
        let largest: Vec<String> =
            holders.iter().take(HOLDERS).map(|(kind, bytes)| format!("{kind} {}", mib(*bytes))).collect();
        if largest.is_empty() {
            f.write_str("; no earlier step was measured, so the holders are unknown")?;
        } else {
            write!(f, "; largest in the last measured step: {}", largest.join(", "))?;
        }
        f.write_str("; take a smaller batch or model")
    }
}

/// A number with a comma every three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use gnntop_probe::device::PoolUse;

    use super::*;

    #[test]
    fn the_line_says_where_how_much_and_who() {
        let now =
            PoolUse { used: 3 * MIB, reserved: 39_000 * MIB, free: MIB / 2, total: 40_960 * MIB, ..PoolUse::default() };
        let holders = vec![("activations", 30_000 * MIB), ("batch", MIB), ("parameters", 16 * MIB), ("gradients", 1)];
        let memory = MemoryReport { now, peak: 38_000 * MIB, phase: Some("backward".to_owned()), step: 12, holders };
        let text = OutOfMemory { device: "cuda:0".to_owned(), memory, asked_bytes: Some(1 << 30) }.to_string();
        assert_eq!(
            text,
            "cuda:0 ran out of memory in backward of step 12: 1,024 MiB asked for; tensors: peak 38,000 MiB, \
             now 3 MiB; 39,000 MiB reserved; 1 MiB of 40,960 MiB free; largest in the last measured step: \
             activations 30,000 MiB, batch 1 MiB, parameters 16 MiB; take a smaller batch or model"
        );
    }

    #[test]
    fn what_is_not_known_is_said_to_be() {
        let text =
            OutOfMemory { device: String::new(), memory: MemoryReport::default(), asked_bytes: None }.to_string();
        assert!(text.contains("in no phase of step 0: more asked for than was left"), "{text}");
        assert!(text.contains("no earlier step was measured"), "{text}");
    }
}

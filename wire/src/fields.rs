//! Records that both rows and entries of the past use.

use crate::event::{PhaseMemory, ThreadUsage};
use crate::ids::NameId;
use crate::varint::{Cursor, Malformed};

/// A thread's page faults and context switches.
pub(crate) fn parse_usage(p: &mut Cursor<'_>) -> Result<ThreadUsage, Malformed> {
    Ok(ThreadUsage {
        minor_faults: p.u64()?,
        major_faults: p.u64()?,
        voluntary_switches: p.u64()?,
        involuntary_switches: p.u64()?,
    })
}

/// The memory totals of a phase, after its name and time.
pub(crate) fn parse_memory(p: &mut Cursor<'_>, phase: NameId, t_ns: u64) -> Result<PhaseMemory, Malformed> {
    Ok(PhaseMemory {
        phase,
        t_ns,
        allocated_bytes: p.u64()?,
        allocated_count: p.u64()?,
        freed_bytes: p.u64()?,
        freed_count: p.u64()?,
        live_bytes: p.u64()?,
        peak_bytes: p.u64()?,
    })
}

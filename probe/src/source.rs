//! What the drain thread empties: a thread's ring, the marks on a device's stream, the rings of worker processes.

use gnntop_wire::Definition;
use quanta::Clock;

use crate::clock::ClockMap;

/// A track of the stream or several, as the drain thread sees them.
pub(crate) trait Source: Send {
    /// What the stream is to say of it, since the last call.
    fn take_definitions(&mut self) -> Vec<Definition>;

    /// Whether what it gives is worth a block only twice a second.
    fn is_slow(&self) -> bool {
        false
    }

    /// Takes what is there now; full blocks go to `out` at once. Never waits.
    fn drain(&mut self, map: &ClockMap, clock: &Clock, out: &mut Vec<u8>);

    /// Closes the block and appends it to `out`.
    fn finish(&mut self, out: &mut Vec<u8>);

    /// The session ends at this time of `CLOCK_MONOTONIC`, in nanoseconds: what has not come will not come.
    fn end(&mut self, _t_ns: u64) {}

    /// Whether nothing more will come and everything was written.
    fn is_over(&self) -> bool;
}

//! What the drain thread empties: thread rings, the marks on a device's stream, the rings of worker processes.

use gnntop_wire::Definition;
use quanta::Clock;

use crate::clock::ClockMap;

/// One or more tracks of the stream, as the drain thread sees them.
pub(crate) trait Source: Send {
    /// Definitions to be written, since the last call.
    fn take_definitions(&mut self) -> Vec<Definition>;

    /// Whether its events are worth a block only twice a second.
    fn is_slow(&self) -> bool {
        false
    }

    /// Takes what is available now; full blocks go to `out` at once. Never waits.
    fn drain(&mut self, map: &ClockMap, clock: &Clock, out: &mut Vec<u8>);

    /// Closes the block and appends it to `out`.
    fn finish(&mut self, out: &mut Vec<u8>);

    /// Makes the next block readable without those before it, which were not written. Called after [`Source::finish`].
    fn begin_again(&mut self);

    /// Called when what follows is the first that is written, and what was before is lost.
    fn begin_late(&mut self) {}

    /// Called when the session ends, at this time of `CLOCK_MONOTONIC` in nanoseconds: nothing arrives after it.
    fn end(&mut self, _t_ns: u64) {}

    /// Whether nothing more comes and everything was written.
    fn is_over(&self) -> bool;
}

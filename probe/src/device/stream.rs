//! What a device's stream must be able to do for its work to be timed.

/// One stream of a device: it does what it is given in the order in which it was given it, and has a clock of its own.
///
/// Marks are numbered from 0. One thread records; another asks, about marks that were recorded.
pub trait Stream: Send + Sync {
    /// Marks that there are. They are made when the stream is opened, never later.
    fn marks(&self) -> u32;

    /// Puts a mark behind all work handed over so far; one that is already on the stream moves there. Never waits. `false`
    /// where the stream takes no marks just now, as while a graph is captured on it.
    ///
    /// # Errors
    /// The device is lost.
    fn record(&self, mark: u32) -> Result<bool, Lost>;

    /// Whether the device has reached a mark, where it was last recorded. Never waits. A no may be older than the question
    /// by [`ANSWER_LAG_NS`].
    ///
    /// # Errors
    /// The device is lost.
    fn is_reached(&self, mark: u32) -> Result<bool, Lost>;

    /// Nanoseconds from one mark to a later one by the device's clock; both have been reached.
    ///
    /// # Errors
    /// The device is lost.
    fn between_ns(&self, from: u32, to: u32) -> Result<f64, Lost>;

    /// How finely [`between_ns`](Self::between_ns) counts, in nanoseconds. CUDA documents half a microsecond.
    fn resolution_ns(&self) -> f64 {
        500.0
    }

    /// Waits until the device has done everything. Only called where a program asks for it ([`Attach::synchronise`](super::Attach::synchronise)).
    ///
    /// # Errors
    /// The device is lost.
    fn wait(&self) -> Result<(), Lost>;
}

/// The host sees what a device has done when the device's write has come to it: by so much a no may be out of date.
pub const ANSWER_LAG_NS: u64 = 20_000;

/// Why a device can no longer be asked, in words for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Lost(pub String);

//! What a device's stream must do for its work to be timed.

/// One stream of a device: it runs its work in the order of submission, and has its own clock.
///
/// Marks are numbered from 0. One thread records marks; another polls those that were recorded.
pub trait Stream: Send + Sync {
    /// Number of marks. All are made when the stream is opened.
    fn marks(&self) -> u32;

    /// Puts a mark after all work submitted so far; a mark that is already on the stream moves there. Never waits. Returns
    /// `false` if the stream takes no marks now, as while a graph is captured on it.
    ///
    /// # Errors
    /// The device is lost.
    fn record(&self, mark: u32) -> Result<bool, Lost>;

    /// Whether the device has reached a mark, at the place where it was last recorded. Never waits. `false` may be out of
    /// date by up to [`ANSWER_LAG_NS`].
    ///
    /// # Errors
    /// The device is lost.
    fn is_reached(&self, mark: u32) -> Result<bool, Lost>;

    /// Nanoseconds from one mark to a later one by the device's clock. Both must have been reached.
    ///
    /// # Errors
    /// The device is lost.
    fn between_ns(&self, from: u32, to: u32) -> Result<f64, Lost>;

    /// Resolution of [`between_ns`](Self::between_ns), in nanoseconds. CUDA documents half a microsecond.
    fn resolution_ns(&self) -> f64 {
        500.0
    }

    /// Waits until the device has finished. Only called if the program asks for it ([`Attach::synchronise`](super::Attach::synchronise)).
    ///
    /// # Errors
    /// The device is lost.
    fn wait(&self) -> Result<(), Lost>;
}

/// How far a "not reached" may be out of date: the host sees what a device has done only once the device's write arrives.
pub const ANSWER_LAG_NS: u64 = 20_000;

/// Why a device can no longer be used, as text for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Lost(pub String);

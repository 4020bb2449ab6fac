//! A thread's waits for devices, which its steps report.

/// What a thread has waited for devices in the current step, and how often it has read values on the CPU so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DeviceWaits {
    pub(crate) times: u64,
    pub(crate) ns: u64,
    pub(crate) reads: u64,
    steps: u64,
}

impl DeviceWaits {
    /// After this many steps it is said how many values are read.
    const STEPS: u64 = 50;

    /// A step has ended. Returns how often the thread has waited in it and how long, and once how many values a step reads.
    pub(crate) fn end_step(&mut self) -> (Option<(u64, u64)>, Option<f64>) {
        let waits = (self.times > 0).then_some((self.times, self.ns));
        (self.times, self.ns) = (0, 0);
        self.steps += 1;
        let is_due = self.steps == Self::STEPS && self.reads > 0;
        (waits, is_due.then(|| self.reads as f64 / Self::STEPS as f64))
    }
}

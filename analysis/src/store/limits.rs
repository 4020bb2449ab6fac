//! Limits on what a store keeps.

/// Which events a store takes. Two threads that read the same stream can take a part each, see
/// [`Store::take_spans_from`](super::Store::take_spans_from).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventSelection {
    /// All of them.
    #[default]
    All,
    /// Everything except durations by the names of spans, and boxes.
    WithoutSpans,
    /// Those alone.
    SpansAlone,
}

/// Limits on what a store keeps. Everything beyond is reduced to counts and running figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Names, each at most 1 KiB long and all together at most 16 MiB.
    pub names: usize,
    /// Tracks.
    pub tracks: usize,
    /// Signals.
    pub signals: usize,
    /// Counters.
    pub counters: usize,
    /// Rows of the step table. It may hold up to 4,096 more.
    pub step_rows: usize,
    /// Groups of older steps, each reduced to its worst and its median step.
    pub step_groups: usize,
    /// Span names with percentiles.
    pub span_histograms: usize,
    /// Points per signal or counter; fewer if there are very many signals or counters.
    pub series_points: usize,
    /// Marks.
    pub marks: usize,
    /// Single allocations.
    pub allocations: usize,
    /// Spans kept as boxes, over all tracks, 24 bytes each. May be exceeded until the older tracks are next written to.
    pub boxes: usize,
    /// The events that are taken at all.
    pub selection: EventSelection,
}

impl Limits {
    /// The limits of each of `stores` stores that together keep about as much as one with these limits. Every share is
    /// large enough to show the newest steps and about a minute of readings.
    pub fn shared_by(self, stores: usize) -> Self {
        let share = |whole: usize, least: usize| (whole / stores.max(1)).max(least.min(whole));
        Self {
            names: share(self.names, 1 << 12),
            tracks: share(self.tracks, 1 << 8),
            signals: share(self.signals, 1 << 8),
            counters: share(self.counters, 1 << 6),
            step_rows: share(self.step_rows, 1 << 12),
            step_groups: share(self.step_groups, 1 << 8),
            span_histograms: share(self.span_histograms, 1 << 6),
            series_points: share(self.series_points, 600),
            marks: share(self.marks, 1 << 9),
            allocations: share(self.allocations, 1 << 9),
            boxes: share(self.boxes, 1 << 13),
            selection: self.selection,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            names: 1 << 16,
            tracks: 1 << 12,
            signals: 1 << 12,
            counters: 1 << 10,
            step_rows: 1 << 18,
            step_groups: 1 << 16,
            span_histograms: 512,
            series_points: 18_000,
            marks: 1 << 14,
            allocations: 1 << 14,
            boxes: 1 << 18,
            selection: EventSelection::All,
        }
    }
}

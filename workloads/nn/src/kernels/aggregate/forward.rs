//! The four aggregates of every node, from the rows of its in-neighbours.

use std::ops::Range;

use super::sections::{LANES, SectionLayout, load, store};
use crate::kernels::Element;
use gnntop_data::graph::Adjacency;
use gnntop_data::tasks::{run_tasks, split_rows};

/// Variance at and below which the standard deviation counts as 0 (PyTorch Geometric's `StdAggregation`).
const MIN_VARIANCE: f64 = 1e-5;

/// What the forward kernel writes.
#[derive(Debug)]
pub struct Aggregates<'a, T> {
    /// `[nodes, stride]`: on entry the mean section holds `t`, the targets' own part of the messages; on return the
    /// four sections hold the aggregates. Other columns are left alone.
    pub values: &'a mut [T],
    /// `[nodes, width]`: mean of `q` over the in-neighbours, which the gradient of std needs.
    pub centre: &'a mut [T],
    /// `[nodes, 2 width]`: numbers of the edges that hold the minimum and the maximum.
    pub holders: &'a mut [u32],
}

/// The same columns of everything that belongs to one target.
struct TargetRow<'a, T> {
    mean: &'a mut [T],
    min: &'a mut [T],
    max: &'a mut [T],
    std: &'a mut [T],
    centre: &'a mut [T],
    min_edge: &'a mut [u32],
    max_edge: &'a mut [u32],
}

/// Aggregates `messages`, the `q` of every node, `[nodes, width]`, over the in-neighbours of every node.
///
/// # Panics
/// If a slice does not have the length that `adjacency` and `layout` ask for.
pub fn aggregate<T: Element>(adjacency: &Adjacency, layout: SectionLayout, messages: &[T], out: Aggregates<'_, T>) {
    let ranges = adjacency.target_ranges();
    let tasks = ranges
        .iter()
        .zip(split_rows(out.values, ranges, layout.stride))
        .zip(split_rows(out.centre, ranges, layout.width))
        .zip(split_rows(out.holders, ranges, 2 * layout.width));
    run_tasks(tasks, |(((range, values), centre), holders)| {
        let out = Aggregates { values, centre, holders };
        pulp::Arch::new().dispatch(AggregateRange { adjacency, layout, messages, range: range.clone(), out });
    });
}

/// One range of targets; a hub among them is spread over all threads by columns. A type and not a closure, because
/// only a method that is always inlined is compiled for the vector instructions that the dispatch finds.
struct AggregateRange<'a, T> {
    adjacency: &'a Adjacency,
    layout: SectionLayout,
    messages: &'a [T],
    range: Range<usize>,
    out: Aggregates<'a, T>,
}

impl<T: Element> pulp::NullaryFnOnce for AggregateRange<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let width = self.layout.width;
        if width == 0 {
            return;
        }
        let rows = self.out.values.chunks_exact_mut(self.layout.stride);
        let rows = rows.zip(self.out.centre.chunks_exact_mut(width)).zip(self.out.holders.chunks_exact_mut(2 * width));
        for (target, ((values, centre), holders)) in self.range.zip(rows) {
            let [mean, min, max, std] = self.layout.sections_mut(values);
            let (min_edge, max_edge) = holders.split_at_mut(width);
            let row = TargetRow { mean, min, max, std, centre, min_edge, max_edge };
            let incoming = Incoming::new(self.adjacency, self.messages, width, target);
            if self.adjacency.is_hub(incoming.sources.len()) {
                aggregate_hub(&incoming, row);
            } else {
                incoming.aggregate(0, row);
            }
        }
    }
}

fn aggregate_hub<T: Element>(incoming: &Incoming<'_, T>, row: TargetRow<'_, T>) {
    let values = row.mean.chunks_mut(LANES).zip(row.min.chunks_mut(LANES));
    let values = values.zip(row.max.chunks_mut(LANES)).zip(row.std.chunks_mut(LANES));
    let edges = row.min_edge.chunks_mut(LANES).zip(row.max_edge.chunks_mut(LANES));
    let columns = values.zip(row.centre.chunks_mut(LANES)).zip(edges).enumerate();
    run_tasks(columns, |(chunk, (((((mean, min), max), std), centre), (min_edge, max_edge)))| {
        let part = TargetRow { mean, min, max, std, centre, min_edge, max_edge };
        incoming.aggregate(chunk * LANES, part);
    });
}

/// The messages into one target.
struct Incoming<'a, T> {
    messages: &'a [T],
    width: usize,
    sources: &'a [u32],
    /// Number of the edge from `sources[0]`; the others follow.
    first_edge: u32,
}

impl<'a, T: Element> Incoming<'a, T> {
    #[inline(always)]
    fn new(adjacency: &'a Adjacency, messages: &'a [T], width: usize, target: usize) -> Self {
        let edges = adjacency.incoming(target);
        Self { messages, width, first_edge: edges.start as u32, sources: &adjacency.sources()[edges] }
    }

    /// The columns that `row` holds, of which the first is column `first` of the messages.
    #[inline(always)]
    fn aggregate(&self, first: usize, mut row: TargetRow<'_, T>) {
        if self.sources.is_empty() {
            for section in [row.mean, row.min, row.max, row.std, row.centre] {
                section.fill(T::zero());
            }
            row.min_edge.fill(0);
            row.max_edge.fill(0);
            return;
        }
        let columns = row.mean.len();
        let blocks = columns - columns % LANES;
        for column in (0..blocks).step_by(LANES) {
            self.aggregate_block::<LANES>(first, column, &mut row);
        }
        for column in blocks..columns {
            self.aggregate_block::<1>(first, column, &mut row);
        }
    }

    /// `N` columns from `column` of the row on. Everything stays in registers while the edges go by, twice: the
    /// second time for the spread around the mean.
    #[inline(always)]
    fn aggregate_block<const N: usize>(&self, first: usize, column: usize, row: &mut TargetRow<'_, T>) {
        let place = |source: u32| source as usize * self.width + first + column;
        let mut sum: [T; N] = load(self.messages, place(self.sources[0]));
        let (mut min, mut max) = (sum, sum);
        let (mut min_edge, mut max_edge) = ([self.first_edge; N], [self.first_edge; N]);
        for (edge, &source) in (self.first_edge + 1..).zip(&self.sources[1..]) {
            let value: [T; N] = load(self.messages, place(source));
            for lane in 0..N {
                sum[lane] += value[lane];
                let (less, more) = (value[lane] < min[lane], value[lane] > max[lane]);
                min[lane] = if less { value[lane] } else { min[lane] };
                max[lane] = if more { value[lane] } else { max[lane] };
                min_edge[lane] = if less { edge } else { min_edge[lane] };
                max_edge[lane] = if more { edge } else { max_edge[lane] };
            }
        }
        let degree = T::from_f64(self.sources.len() as f64);
        let mut spread = [T::zero(); N];
        for lane in 0..N {
            sum[lane] /= degree;
        }
        let (centre, mut mean): ([T; N], [T; N]) = (sum, load(row.mean, column));
        for &source in self.sources {
            let value: [T; N] = load(self.messages, place(source));
            for lane in 0..N {
                let distance = value[lane] - centre[lane];
                spread[lane] += distance * distance;
            }
        }
        for lane in 0..N {
            spread[lane] = deviation(spread[lane] / degree);
            min[lane] += mean[lane];
            max[lane] += mean[lane];
            mean[lane] += centre[lane];
        }
        store(row.mean, column, mean);
        store(row.min, column, min);
        store(row.max, column, max);
        store(row.std, column, spread);
        store(row.centre, column, centre);
        store(row.min_edge, column, min_edge);
        store(row.max_edge, column, max_edge);
    }
}

/// Standard deviation, cut to 0 where the variance is at most [`MIN_VARIANCE`]. NaN stays NaN.
#[inline(always)]
fn deviation<T: Element>(variance: T) -> T {
    let root = variance.square_root();
    if root <= T::from_f64(MIN_VARIANCE.sqrt()) { T::zero() } else { root }
}

//! Gradients of the aggregates: first those of a target alone, then those along the edges.

use std::ops::Range;

use super::sections::{LANES, SectionLayout, load, store};
use crate::kernels::Element;
use gnntop_data::graph::Adjacency;
use gnntop_data::tasks::{run_tasks, split_rows};

/// Backward, first half, for the targets `range`: the gradient of their own part `t`, and in `gradient` the weights
/// with which the second half passes gradients along the edges.
///
/// `values` and `gradient` are the rows of `range`, `[range, stride]`: the aggregates and their upstream gradient.
/// On return the mean section of `gradient` is divided by the degree and its std section by degree times std (0
/// where std was cut to 0); `own`, `[range, width]`, is the gradient of `t`.
///
/// # Panics
/// If a slice is shorter than the range asks for.
pub fn gradient_of_targets<T: Element>(
    adjacency: &Adjacency,
    layout: SectionLayout,
    range: Range<usize>,
    values: &[T],
    gradient: &mut [T],
    own: &mut [T],
) {
    pulp::Arch::new().dispatch(WeighRange { adjacency, layout, range, values, gradient, own });
}

/// The work of [`gradient_of_targets`].
struct WeighRange<'a, T> {
    adjacency: &'a Adjacency,
    layout: SectionLayout,
    range: Range<usize>,
    values: &'a [T],
    gradient: &'a mut [T],
    own: &'a mut [T],
}

impl<T: Element> pulp::NullaryFnOnce for WeighRange<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let layout = self.layout;
        if layout.width == 0 {
            return;
        }
        let rows = self.values.chunks_exact(layout.stride).zip(self.gradient.chunks_exact_mut(layout.stride));
        for ((target, (values, gradient)), own) in self.range.zip(rows).zip(self.own.chunks_exact_mut(layout.width)) {
            let edges = self.adjacency.in_degree(target);
            if edges == 0 {
                own.fill(T::zero());
                continue;
            }
            let degree = T::from_f64(edges as f64);
            let [_, _, _, std] = layout.sections(values);
            let [mean, min, max, std_gradient] = layout.sections_mut(gradient);
            for (((own, mean), min), max) in own.iter_mut().zip(mean).zip(min).zip(max) {
                *own = *mean + *min + *max;
                *mean /= degree;
            }
            for (gradient, &std) in std_gradient.iter_mut().zip(std) {
                *gradient = if std > T::zero() { *gradient / (degree * std) } else { T::zero() };
            }
        }
    }
}

/// What the second half of the backward kernel reads.
#[derive(Debug)]
pub struct Saved<'a, T> {
    /// `q` of every node, `[nodes, width]`.
    pub messages: &'a [T],
    /// As the forward kernel left it, `[nodes, width]`.
    pub centre: &'a [T],
    /// As the forward kernel left it, `[nodes, 2 width]`.
    pub holders: &'a [u32],
    /// As [`gradient_of_targets`] left it, `[nodes, stride]`.
    pub gradient: &'a [T],
}

/// Backward, second half: the gradient of `q` for every node, `[nodes, width]`. Each node gathers over its
/// outgoing edges, so that no two threads write the same row and the sum has a fixed order.
///
/// # Panics
/// If a slice does not have the length that `adjacency` and `layout` ask for.
pub fn gradient_of_messages<T: Element>(
    adjacency: &Adjacency,
    layout: SectionLayout,
    saved: &Saved<'_, T>,
    out: &mut [T],
) {
    let width = layout.width;
    if width == 0 {
        return;
    }
    let ranges = adjacency.source_ranges();
    run_tasks(ranges.iter().zip(split_rows(out, ranges, width)), |(range, rows)| {
        pulp::Arch::new().dispatch(GatherRange {
            range: range.clone(),
            rows,
            outgoing: Outgoing { adjacency, layout, saved },
        });
    });
}

/// One range of sources; a hub among them is spread over all threads by columns.
struct GatherRange<'a, T> {
    range: Range<usize>,
    rows: &'a mut [T],
    outgoing: Outgoing<'a, T>,
}

impl<T: Element> pulp::NullaryFnOnce for GatherRange<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let outgoing = &self.outgoing;
        for (source, row) in self.range.zip(self.rows.chunks_exact_mut(outgoing.layout.width)) {
            if outgoing.adjacency.is_hub(outgoing.adjacency.outgoing(source).len()) {
                let columns = row.chunks_mut(LANES).enumerate();
                run_tasks(columns, |(chunk, part)| outgoing.gather(source, chunk * LANES, part));
            } else {
                outgoing.gather(source, 0, row);
            }
        }
    }
}

/// Gradients of the sources along their outgoing edges.
struct Outgoing<'a, T> {
    adjacency: &'a Adjacency,
    layout: SectionLayout,
    saved: &'a Saved<'a, T>,
}

impl<T: Element> Outgoing<'_, T> {
    /// Gradient of the columns of one source that `out` holds, the first of which is column `first`.
    #[inline(always)]
    fn gather(&self, source: usize, first: usize, out: &mut [T]) {
        let columns = out.len();
        let blocks = columns - columns % LANES;
        for column in (0..blocks).step_by(LANES) {
            store(out, column, self.gather_block::<LANES>(source, first + column));
        }
        for column in blocks..columns {
            store(out, column, self.gather_block::<1>(source, first + column));
        }
    }

    /// `N` columns from `column` on.
    #[inline(always)]
    fn gather_block<const N: usize>(&self, source: usize, column: usize) -> [T; N] {
        let (width, saved) = (self.layout.width, self.saved);
        let message = load::<T, N>(saved.messages, source * width + column);
        let mut sum = [T::zero(); N];
        for &(target, edge) in self.adjacency.outgoing(source) {
            let target = target as usize;
            let row = target * self.layout.stride + self.layout.offset + column;
            let mean = load::<T, N>(saved.gradient, row);
            let min = load::<T, N>(saved.gradient, row + width);
            let max = load::<T, N>(saved.gradient, row + 2 * width);
            let std = load::<T, N>(saved.gradient, row + 3 * width);
            let centre = load::<T, N>(saved.centre, target * width + column);
            let min_edge = load::<u32, N>(saved.holders, target * 2 * width + column);
            let max_edge = load::<u32, N>(saved.holders, target * 2 * width + width + column);
            for lane in 0..N {
                let from_min = if min_edge[lane] == edge { min[lane] } else { T::zero() };
                let from_max = if max_edge[lane] == edge { max[lane] } else { T::zero() };
                sum[lane] += mean[lane] + std[lane] * (message[lane] - centre[lane]) + from_min + from_max;
            }
        }
        sum
    }
}

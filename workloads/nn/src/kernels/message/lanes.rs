//! The inner loops: some columns of many rows at once, in registers. They know rows by their numbers only, so there is
//! one of each for a number type, whatever the operator and the direction. They are types and not closures, because
//! only a method that is always inlined is compiled for the vector instructions that the dispatch finds.

#![expect(clippy::needless_range_loop, reason = "fixed-size lanes: the form that stays in registers, see `aggregate`")]

use std::ops::Range;

use candle_core::WithDType;

use super::registers::{load, load_wide, narrowed, store, widened};
use crate::kernels::{Stored, prefetch_row};
use gnntop_data::graph::Extreme;

/// Edges that go by while a block of columns stays in registers: their rows stay in the nearest caches until the last
/// block has been through.
const EDGES: usize = 32;

/// Columns of the widest block.
const WIDE: usize = 64;
/// Columns of a common block: a cache line of f32.
const LANES: usize = 16;

/// Elements by which a buffer of sums exceeds the columns, so that a whole block may be read at its end.
pub(in crate::kernels) const PADDING: usize = LANES;

/// Bytes of rows that are asked for before they are needed.
const BYTES_AHEAD: usize = 8192;

/// Rows that are asked for before they are needed.
pub(super) fn rows_ahead<T>(width: usize) -> usize {
    (BYTES_AHEAD / (width * size_of::<T>()).max(1)).clamp(2, EDGES)
}

/// Rows of a matrix that go into some nodes, one for each edge.
#[derive(Clone, Copy)]
pub(in crate::kernels) struct Gathered<'a, T> {
    pub x: &'a [T],
    /// Elements of a row.
    pub width: usize,
    /// The row of each edge; there may be more than edges, to fetch them early.
    pub rows: &'a [u32],
    /// Where the edges of each node end.
    pub ends: &'a [usize],
}

impl<T> Gathered<'_, T> {
    /// Calls for the rows of the edges that come a little later than `edges`.
    #[inline(always)]
    fn fetch_after(&self, edges: &Range<usize>) {
        let ahead = rows_ahead::<T>(self.width);
        for edge in edges.clone() {
            if let Some(&row) = self.rows.get(edge + ahead) {
                prefetch_row(self.x, row as usize * self.width, self.width);
            }
        }
    }
}

/// Calls `$run` with `$N` lanes for blocks that cover the columns, with the first column of each and the number of
/// columns wanted; the last block may be wider than the rest.
macro_rules! for_blocks {
    ($columns:expr, |$column:ident, $count:ident, $N:ident| $run:expr) => {
        let columns: Range<usize> = $columns;
        let mut $column = columns.start;
        while $column < columns.end {
            let left = columns.end - $column;
            let $count = if left >= WIDE {
                const $N: usize = WIDE;
                let $count = WIDE;
                $run;
                $count
            } else if left > 8 {
                const $N: usize = LANES;
                let $count = left.min(LANES);
                $run;
                $count
            } else if left > 4 {
                const $N: usize = 8;
                let $count = left;
                $run;
                $count
            } else {
                const $N: usize = 4;
                let $count = left;
                $run;
                $count
            };
            $column += $count;
        }
    };
}

/// Where the results of a batch of nodes go.
pub(in crate::kernels) enum Target<'a, T> {
    /// A row for each node.
    Rows(&'a mut [T]),
    /// Only the buffer of the loop: there is one node, of which this is a part. Whether it is the first part.
    Part(bool),
}

/// The sum of the rows of each node, each times a factor, stored as `O`.
pub(in crate::kernels) struct AddRows<'a, T: Stored, O> {
    pub gathered: Gathered<'a, T>,
    /// Groups of columns, each with a factor for each edge.
    pub heads: usize,
    /// `[heads, edges]`
    pub factors: &'a [T::Wide],
    /// Whether each sum is divided by the number of rows.
    pub mean: bool,
    /// `[width + PADDING]`
    pub sum: &'a mut [T::Wide],
    pub target: Target<'a, O>,
}

impl<T: Stored, O: Stored<Wide = T::Wide>> pulp::NullaryFnOnce for AddRows<'_, T, O> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        match (&self.target, self.heads, self.gathered.width) {
            (Target::Rows(_), 1, ..=4) => self.narrow::<4, false>(),
            (Target::Rows(_), 1, 5..=8) => self.narrow::<8, false>(),
            (Target::Rows(_), 1, LANES) => self.narrow::<LANES, true>(),
            (Target::Rows(_), 1, 9..LANES) => self.narrow::<LANES, false>(),
            _ => self.in_blocks(),
        }
    }
}

impl<T: Stored, O: Stored<Wide = T::Wide>> AddRows<'_, T, O> {
    /// Rows of at most `N` columns, or of just as many where `EXACT`, which is less work for each edge: a node's sum
    /// stays in registers from its first edge to its last.
    #[inline(always)]
    fn narrow<const N: usize, const EXACT: bool>(self) {
        let Target::Rows(out) = self.target else { return };
        let Gathered { x, width, rows, ends } = self.gathered;
        let exact = x.as_chunks::<N>().0;
        let mut begin = 0;
        for (out, &end) in out.chunks_exact_mut(width).zip(ends) {
            let mut total = [T::Wide::default(); N];
            for (&row, &factor) in rows[begin..end].iter().zip(&self.factors[begin..end]) {
                let row = if EXACT {
                    widened(&exact[row as usize])
                } else {
                    load_wide::<T, N>(x, row as usize * width, width)
                };
                for lane in 0..N {
                    total[lane] += factor * row[lane];
                }
            }
            if self.mean {
                let divisor = T::Wide::from_f64((end - begin).max(1) as f64);
                for lane in 0..N {
                    total[lane] /= divisor;
                }
            }
            store(out, 0, width, narrowed::<O, N>(total));
            begin = end;
        }
    }

    /// Rows of any width: block by block, some edges at a time.
    #[inline(always)]
    fn in_blocks(mut self) {
        let mut begin = 0;
        for node in 0..self.gathered.ends.len() {
            let end = self.gathered.ends[node];
            let mut first = begin;
            loop {
                let last = end.min(first + EDGES);
                self.gathered.fetch_after(&(first..last));
                let resumed = first > begin || matches!(self.target, Target::Part(false));
                let finished = (last == end).then_some(end - begin);
                self.add(node, first..last, resumed, finished);
                first = last;
                if first == end {
                    break;
                }
            }
            begin = end;
        }
    }

    /// Adds the rows of some edges, to what `sum` holds where `resumed`. The result goes to `sum`, or to the node's row
    /// where it is `finished`, with the number of rows in all.
    #[inline(always)]
    fn add(&mut self, node: usize, edges: Range<usize>, resumed: bool, finished: Option<usize>) {
        let (x, width) = (self.gathered.x, self.gathered.width);
        let all = self.factors.len() / self.heads;
        let group = width / self.heads;
        let rows = &self.gathered.rows[edges.clone()];
        for head in 0..self.heads {
            let factors = &self.factors[head * all..][edges.clone()];
            for_blocks!(head * group..(head + 1) * group, |column, count, N| {
                let mut total = if resumed { load::<T::Wide, N>(self.sum, column) } else { [T::Wide::default(); N] };
                for (&row, &factor) in rows.iter().zip(factors) {
                    let row = load_wide::<T, N>(x, row as usize * width + column, count);
                    for lane in 0..N {
                        total[lane] += factor * row[lane];
                    }
                }
                match (&mut self.target, finished) {
                    (Target::Rows(out), Some(edges)) => {
                        let divisor = T::Wide::from_f64(if self.mean { edges.max(1) as f64 } else { 1.0 });
                        for lane in 0..N {
                            total[lane] /= divisor;
                        }
                        store(out, node * width + column, count, narrowed::<O, N>(total));
                    }
                    _ => store(self.sum, column, count, total),
                }
            });
        }
    }
}

/// The extremum of the rows of each node, and the edge that holds it.
pub(super) struct TakeRows<'a, T: Stored> {
    pub gathered: Gathered<'a, T>,
    pub extreme: Extreme,
    /// The number of each edge.
    pub edges: &'a [u32],
    /// `[width + PADDING]`, and so are the holders.
    pub best: &'a mut [T::Wide],
    pub holder: &'a mut [u32],
    pub target: Target<'a, T>,
    /// `[nodes, width]`, if the target has rows.
    pub holders: &'a mut [u32],
}

impl<T: Stored> pulp::NullaryFnOnce for TakeRows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        match self.extreme {
            Extreme::Max => self.run(Extreme::Max),
            Extreme::Min => self.run(Extreme::Min),
        }
    }
}

impl<T: Stored> TakeRows<'_, T> {
    /// All nodes; those without edges are left alone.
    #[inline(always)]
    fn run(mut self, extreme: Extreme) {
        let mut begin = 0;
        for node in 0..self.gathered.ends.len() {
            let end = self.gathered.ends[node];
            for first in (begin..end).step_by(EDGES) {
                let last = end.min(first + EDGES);
                self.gathered.fetch_after(&(first..last));
                let resumed = first > begin || matches!(self.target, Target::Part(false));
                self.take(extreme, node, first..last, resumed, last == end);
            }
            begin = end;
        }
    }

    #[inline(always)]
    fn take(&mut self, extreme: Extreme, node: usize, edges: Range<usize>, resumed: bool, finished: bool) {
        let (x, width) = (self.gathered.x, self.gathered.width);
        let (rows, edges) = (&self.gathered.rows[edges.clone()], &self.edges[edges]);
        for_blocks!(0..width, |column, count, N| {
            let (mut value, mut holder) = if resumed {
                (load::<T::Wide, N>(self.best, column), load::<u32, N>(self.holder, column))
            } else {
                (load_wide::<T, N>(x, rows[0] as usize * width + column, count), [edges[0]; N])
            };
            for (&row, &edge) in rows.iter().zip(edges) {
                let row = load_wide::<T, N>(x, row as usize * width + column, count);
                for lane in 0..N {
                    let replaces = extreme.replaces(row[lane], value[lane]);
                    value[lane] = if replaces { row[lane] } else { value[lane] };
                    holder[lane] = if replaces { edge } else { holder[lane] };
                }
            }
            match (&mut self.target, finished) {
                (Target::Rows(out), true) => {
                    store(out, node * width + column, count, narrowed::<T, N>(value));
                    store(self.holders, node * width + column, count, holder);
                }
                _ => {
                    store(self.best, column, count, value);
                    store(self.holder, column, count, holder);
                }
            }
        });
    }
}

/// The sums of the products of two rows for each edge, head by head.
pub(super) struct Dots<'a, T> {
    pub left: &'a [T],
    pub right: &'a [T],
    /// The row of each edge in either.
    pub rows: [&'a [u32]; 2],
    pub heads: usize,
    /// Columns of a head.
    pub width: usize,
    /// `[edges, heads]`
    pub out: &'a mut [T],
}

impl<T: Stored> pulp::NullaryFnOnce for Dots<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let total = self.heads * self.width;
        let [left_rows, right_rows] = self.rows;
        let ahead = rows_ahead::<T>(total);
        for (edge, out) in self.out.chunks_exact_mut(self.heads).enumerate() {
            for (rows, data) in [(left_rows, self.left), (right_rows, self.right)] {
                if let Some(&row) = rows.get(edge + ahead) {
                    prefetch_row(data, row as usize * total, total);
                }
            }
            let left = &self.left[left_rows[edge] as usize * total..][..total];
            let right = &self.right[right_rows[edge] as usize * total..][..total];
            for head in 0..self.heads {
                let columns = head * self.width..(head + 1) * self.width;
                out[head] = T::narrow(dot(&left[columns.clone()], &right[columns]));
            }
        }
    }
}

/// In lanes, the lanes then pairwise, then the remainder: a fixed order. Several sums side by side, so that none waits
/// for the one before.
#[inline(always)]
fn dot<T: Stored>(a: &[T], b: &[T]) -> T::Wide {
    let mut sums = [T::Wide::default(); WIDE];
    let (a_blocks, a_rest) = a.as_chunks::<WIDE>();
    let (b_blocks, b_rest) = b.as_chunks::<WIDE>();
    for (a, b) in a_blocks.iter().zip(b_blocks) {
        for lane in 0..WIDE {
            sums[lane] += a[lane].widen() * b[lane].widen();
        }
    }
    let mut lanes = [T::Wide::default(); LANES];
    for lane in 0..LANES {
        lanes[lane] = (sums[lane] + sums[LANES + lane]) + (sums[2 * LANES + lane] + sums[3 * LANES + lane]);
    }
    let (a_blocks, a_rest) = a_rest.as_chunks::<LANES>();
    let (b_blocks, b_rest) = b_rest.as_chunks::<LANES>();
    for (a, b) in a_blocks.iter().zip(b_blocks) {
        for lane in 0..LANES {
            lanes[lane] += a[lane].widen() * b[lane].widen();
        }
    }
    let mut half = LANES;
    while half > 1 {
        half /= 2;
        for lane in 0..half {
            let upper = lanes[lane + half];
            lanes[lane] += upper;
        }
    }
    let rest = a_rest.iter().zip(b_rest);
    rest.fold(lanes[0], |sum, (a, b)| sum + a.widen() * b.widen())
}

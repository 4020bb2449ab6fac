//! The gradient of a maximum or minimum: all of it to the edge that holds it.

use std::marker::PhantomData;

use super::extreme::NOBODY;
use super::messages::{Messages, Rows};
use crate::kernels::Stored;
use gnntop_data::graph::{Adjacency, EdgeOp};
use gnntop_data::tasks::{run_tasks, split_rows};

/// The result of the forward pass, and its gradient.
#[derive(Clone, Copy)]
pub(in crate::kernels) struct ExtremeGradient<'a, T: Stored> {
    pub adjacency: &'a Adjacency,
    pub messages: &'a Messages<'a, T>,
    /// `[targets, heads * width]`
    pub holders: &'a [u32],
    /// `[targets, heads * width]`
    pub gradient: &'a [T],
}

/// Columns that one thread takes: a cache line of f32, so that no two write to the same one.
const LANES: usize = 16;

impl<T: Stored> ExtremeGradient<'_, T> {
    /// Gradient of an `lhs` at the sources, `[sources, heads * width]`. Threads share the work by columns, so that
    /// each element is summed by one thread in the order of the targets.
    pub fn of_sources(&self) -> Vec<T> {
        let total = self.messages.columns.total();
        let mut sums = vec![T::Wide::default(); self.adjacency.source_nodes() * total];
        let shared = SharedColumns::new(&mut sums, total);
        run_tasks(0..total.div_ceil(LANES), |block| {
            let columns = block * LANES..total.min((block + 1) * LANES);
            for row in (0..self.holders.len()).step_by(total) {
                for column in columns.clone() {
                    let holder = self.holders[row + column];
                    if holder != NOBODY {
                        let source = self.adjacency.sources()[holder as usize] as usize;
                        let value = self.for_lhs(row + column, holder as usize, column);
                        // SAFETY: this task is the only one that has these columns.
                        unsafe { shared.add(source, column, value) };
                    }
                }
            }
        });
        T::narrow_all(sums)
    }

    /// Gradient of an operand at the edges, of `rhs` or, for [`EdgeOp::CopyLhs`], of `lhs`: `[edges, heads * width]`,
    /// or `[edges, heads]` where `per_head`.
    pub fn of_edges(&self) -> Vec<T> {
        let columns = self.messages.columns;
        let (total, width) = (columns.total(), if self.messages.per_head { columns.heads } else { columns.total() });
        let mut sums = vec![T::Wide::default(); self.adjacency.edges() * width];
        let targets = self.adjacency.target_ranges();
        let edges = self.adjacency.edges_of_ranges();
        run_tasks(targets.iter().zip(&edges).zip(split_rows(&mut sums, &edges, width)), |((targets, edges), sums)| {
            for place in targets.start * total..targets.end * total {
                let (holder, column) = (self.holders[place], place % total);
                if holder != NOBODY {
                    let to = if self.messages.per_head { column / columns.width } else { column };
                    sums[(holder as usize - edges.start) * width + to] += self.for_rhs(place, holder as usize, column);
                }
            }
        });
        T::narrow_all(sums)
    }

    #[inline]
    fn for_lhs(&self, place: usize, edge: usize, column: usize) -> T::Wide {
        let gradient = self.gradient[place].widen();
        match self.messages.op {
            EdgeOp::Mul => gradient * self.rhs(edge, column),
            EdgeOp::Div => gradient / self.rhs(edge, column),
            _ => gradient,
        }
    }

    #[inline]
    fn for_rhs(&self, place: usize, edge: usize, column: usize) -> T::Wide {
        let gradient = self.gradient[place].widen();
        match self.messages.op {
            EdgeOp::Sub => T::Wide::default() - gradient,
            EdgeOp::Mul => gradient * self.lhs(edge, column),
            EdgeOp::Div => {
                let divisor = self.rhs(edge, column);
                T::Wide::default() - gradient * self.lhs(edge, column) / (divisor * divisor)
            }
            _ => gradient,
        }
    }

    fn lhs(&self, edge: usize, column: usize) -> T::Wide {
        let source = self.adjacency.sources()[edge] as usize;
        self.messages.lhs.data[source * self.messages.columns.total() + column].widen()
    }

    fn rhs(&self, edge: usize, column: usize) -> T::Wide {
        let (Rows { data, .. }, columns) = (self.messages.rhs, self.messages.columns);
        let place = if self.messages.per_head {
            edge * columns.heads + column / columns.width
        } else {
            edge * columns.total() + column
        };
        data[place].widen()
    }
}

/// A row-major matrix of which each thread writes its own columns.
struct SharedColumns<'a, W> {
    data: *mut W,
    length: usize,
    stride: usize,
    matrix: PhantomData<&'a mut [W]>,
}

// SAFETY: the only access is `add`, whose callers ensure that no two threads touch the same column; the matrix stays
// borrowed for as long as this lives.
unsafe impl<W: Send> Sync for SharedColumns<'_, W> {}

impl<'a, W: Copy + std::ops::AddAssign> SharedColumns<'a, W> {
    fn new(matrix: &'a mut [W], stride: usize) -> Self {
        Self { data: matrix.as_mut_ptr(), length: matrix.len(), stride, matrix: PhantomData }
    }

    /// Adds to one element.
    ///
    /// # Safety
    /// No other thread accesses this column meanwhile.
    unsafe fn add(&self, row: usize, column: usize, value: W) {
        let place = row * self.stride + column;
        assert!(column < self.stride && place < self.length, "element ({row}, {column}) is outside the matrix");
        // SAFETY: `place` is inside the matrix, which is borrowed uniquely by `self`; by the contract of this
        // function no other thread accesses the element.
        unsafe { *self.data.add(place) += value };
    }
}

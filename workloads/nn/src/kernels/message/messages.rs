//! The messages of all edges, as operands on plain slices.

use crate::kernels::Stored;
use gnntop_data::graph::{Columns, EdgeOp, Endpoint};

/// One operand of all messages.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a, T> {
    /// Row-major.
    pub data: &'a [T],
    /// Whose rows they are.
    pub at: Endpoint,
    /// The row in `data` of each of these, where it is not the one with its own number.
    pub numbers: Option<&'a [u32]>,
}

impl<'a, T> Rows<'a, T> {
    /// A row for each, in order.
    #[must_use]
    pub fn new(data: &'a [T], at: Endpoint) -> Self {
        Self { data, at, numbers: None }
    }
}

/// The messages of all edges. An operand that `op` does not read may be empty.
#[derive(Clone, Copy)]
pub struct Messages<'a, T: Stored> {
    /// How the operands are combined.
    pub op: EdgeOp,
    /// Columns of a message.
    pub columns: Columns,
    /// `[rows, heads * width]`
    pub lhs: Rows<'a, T>,
    /// `[rows, heads * width]`, or `[rows, heads]` where `per_head`.
    pub rhs: Rows<'a, T>,
    /// Whether `rhs` has one value for all columns of a head.
    pub per_head: bool,
    /// A factor of all messages into a destination, `[targets]`.
    pub scale: Option<&'a [T::Wide]>,
}

impl<'a, T: Stored> Messages<'a, T> {
    /// Messages that are the rows of one operand, `[rows, total]`.
    #[must_use]
    pub fn copies(total: usize, data: &'a [T], at: Endpoint) -> Self {
        let (lhs, rhs) = (Rows::new(data, at), Rows::new(&[], at));
        Self { op: EdgeOp::CopyLhs, columns: Columns::flat(total), lhs, rhs, per_head: false, scale: None }
    }

    /// Values of a message that are stored for each edge: for [`EdgeOp::Dot`] one for each head.
    pub(in crate::kernels) fn stored_width(&self) -> usize {
        if self.op == EdgeOp::Dot { self.columns.heads } else { self.columns.total() }
    }

    /// Whether a message is a row of `lhs` times one factor for each head, which the fast kernels compute.
    pub(super) fn is_scaled_row(&self) -> bool {
        self.op == EdgeOp::CopyLhs || (self.op == EdgeOp::Mul && self.per_head)
    }

    /// Writes the message of one edge, whatever the operator: from the row `left` of `lhs` and the row `right` of `rhs`.
    pub(super) fn write(&self, left: u32, right: u32, destination: u32, out: &mut [T::Wide]) {
        let Columns { heads, width } = self.columns;
        let left = &self.lhs.data[left as usize * heads * width..][..heads * width];
        let right = right as usize;
        if self.op == EdgeOp::CopyLhs {
            out.iter_mut().zip(left).for_each(|(out, left)| *out = left.widen());
        } else if self.per_head {
            for (head, &right) in self.rhs.data[right * heads..][..heads].iter().enumerate() {
                let columns = head * width..(head + 1) * width;
                combine(self.op, &left[columns.clone()], std::iter::repeat(right), &mut out[columns]);
            }
        } else {
            combine(self.op, left, self.rhs.data[right * left.len()..].iter().copied(), out);
        }
        if let Some(scale) = self.scale {
            out.iter_mut().for_each(|out| *out *= scale[destination as usize]);
        }
    }
}

fn combine<T: Stored>(op: EdgeOp, left: &[T], right: impl Iterator<Item = T>, out: &mut [T::Wide]) {
    let all = out.iter_mut().zip(left.iter().zip(right).map(|(left, right)| (left.widen(), right.widen())));
    match op {
        EdgeOp::CopyLhs => all.for_each(|(out, (left, _))| *out = left),
        EdgeOp::CopyRhs => all.for_each(|(out, (_, right))| *out = right),
        EdgeOp::Add => all.for_each(|(out, (left, right))| *out = left + right),
        EdgeOp::Sub => all.for_each(|(out, (left, right))| *out = left - right),
        EdgeOp::Mul | EdgeOp::Dot => all.for_each(|(out, (left, right))| *out = left * right),
        EdgeOp::Div => all.for_each(|(out, (left, right))| *out = left / right),
    }
}

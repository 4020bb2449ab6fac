//! The mean over in-neighbours on plain slices, for models that keep their activations in their own buffers.

use super::gradient::inverse_degrees;
use super::message::{Messages, Rows, sum_rows};
use super::selected::Values;
use super::{Selected, Stored, Wide};
use gnntop_data::graph::{Adjacency, Direction, Endpoint};

/// Mean of the rows of the sources, `x`, over the edges into every target, `[targets, width]`; 0 for a target without
/// edges.
///
/// # Panics
/// If a slice is shorter than that.
pub fn mean_of_sources<T: Wide>(adjacency: &Adjacency, x: Selected<'_, T>, out: &mut [T]) {
    match x.values() {
        Values::Exact(values) => mean_of_rows(adjacency, values, x, out),
        Values::Rounded(values) => mean_of_rows(adjacency, values, x, out),
    }
}

/// `values` are those of `x`.
fn mean_of_rows<T: Wide, S: Stored<Wide = T>>(adjacency: &Adjacency, values: &[S], x: Selected<'_, T>, out: &mut [T]) {
    let messages = Messages::copies(x.width(), values, Endpoint::Source);
    let lhs = Rows { numbers: x.numbers(), ..messages.lhs };
    sum_rows(adjacency, Direction::Incoming, &Messages { lhs, ..messages }, true, out);
}

/// Gradient of `x` of [`mean_of_sources`], `[sources, width]`, from that of its result, `[targets, width]`.
///
/// # Panics
/// If a slice is shorter than that.
pub fn gradient_of_mean<T: Wide>(adjacency: &Adjacency, width: usize, gradient: &[T], out: &mut [T]) {
    let factors = inverse_degrees::<T>(adjacency);
    let messages = Messages::copies(width, gradient, Endpoint::Destination);
    sum_rows(adjacency, Direction::Outgoing, &Messages { scale: Some(&factors), ..messages }, false, out);
}

//! The arithmetic of [`fused_mlp`](super::fused::fused_mlp) on a run of nodes, for the vectors of any instruction set.
//!
//! Nodes come in groups of [`GROUP`], `[groups, columns, GROUP]`: the values of a few nodes are adjacent, and each
//! column of them is one vector or a few. `weights` are `[hidden, COLUMNS + 4]`: of each hidden unit its row of M, its
//! c, and its column of W.

#![expect(
    clippy::needless_range_loop,
    reason = "fixed-size lanes: the form that stays in registers, as in kernels::aggregate"
)]

use super::CHANNELS;
use super::lanes::{GROUP, Kernel, Lanes, Vectorised};

/// The result, `[groups, 3, GROUP]`, from `inputs` `[groups, COLUMNS, GROUP]`.
pub(super) struct Forward<'a, T, const COLUMNS: usize> {
    pub(super) inputs: &'a [T],
    pub(super) weights: &'a [T],
    pub(super) out: &'a mut [T],
}

impl<T: Vectorised, const COLUMNS: usize> Kernel<T> for Forward<'_, T, COLUMNS> {
    #[inline(always)]
    fn run<L: Lanes<Number = T>>(self, lanes: L) {
        let groups = self.inputs.chunks_exact(COLUMNS * GROUP).zip(self.out.chunks_exact_mut(CHANNELS * GROUP));
        for (inputs, out) in groups {
            let (inputs, out) = (L::vectors(inputs), L::vectors_mut(out));
            for vector in 0..L::PER_GROUP {
                let columns = load::<L, COLUMNS>(lanes, inputs, vector);
                let sums = forward_vector(lanes, columns, self.weights);
                for channel in 0..CHANNELS {
                    out[channel * L::PER_GROUP + vector] = sums[channel];
                }
            }
        }
    }
}

/// Vector `vector` of each column of a group.
#[inline(always)]
fn load<L: Lanes, const COLUMNS: usize>(lanes: L, group: &[L::Vector], vector: usize) -> [L::Vector; COLUMNS] {
    let mut columns = [lanes.splat(L::Number::default()); COLUMNS];
    for column in 0..COLUMNS {
        columns[column] = group[column * L::PER_GROUP + vector];
    }
    columns
}

/// One vector of nodes, whose columns and results stay in registers while the hidden units go by.
#[inline(always)]
fn forward_vector<L: Lanes, const COLUMNS: usize>(
    lanes: L,
    columns: [L::Vector; COLUMNS],
    weights: &[L::Number],
) -> [L::Vector; CHANNELS] {
    let mut sums = [lanes.splat(L::Number::default()); CHANNELS];
    for unit in weights.chunks_exact(COLUMNS + 1 + CHANNELS) {
        let mut hidden = lanes.splat(unit[COLUMNS]);
        for column in 0..COLUMNS {
            hidden = lanes.multiply_add(lanes.splat(unit[column]), columns[column], hidden);
        }
        let activation = lanes.gelu(hidden);
        for channel in 0..CHANNELS {
            sums[channel] = lanes.multiply_add(lanes.splat(unit[COLUMNS + 1 + channel]), activation, sums[channel]);
        }
    }
    sums
}

/// The gradients: adds to `of_inputs`, `[groups, COLUMNS, GROUP]`, in the first `MOVING` columns, and to `of_weights`.
/// `of_out`, `[groups, 3, GROUP]`, is 0 where there is no node.
pub(super) struct Backward<'a, T, const COLUMNS: usize, const MOVING: usize> {
    pub(super) inputs: &'a [T],
    pub(super) weights: &'a [T],
    pub(super) of_out: &'a [T],
    pub(super) of_inputs: &'a mut [T],
    pub(super) of_weights: &'a mut [T],
}

impl<T: Vectorised, const COLUMNS: usize, const MOVING: usize> Kernel<T> for Backward<'_, T, COLUMNS, MOVING> {
    #[inline(always)]
    fn run<L: Lanes<Number = T>>(self, lanes: L) {
        let units = self.weights.chunks_exact(COLUMNS + 1 + CHANNELS);
        for (weights, of_weights) in units.zip(self.of_weights.chunks_exact_mut(COLUMNS + 1 + CHANNELS)) {
            let mut unit = Unit::<L, COLUMNS>::new(lanes, weights);
            let groups = self.inputs.chunks_exact(COLUMNS * GROUP).zip(self.of_out.chunks_exact(CHANNELS * GROUP));
            for ((inputs, of_out), of_inputs) in groups.zip(self.of_inputs.chunks_exact_mut(COLUMNS * GROUP)) {
                let (inputs, of_out) = (L::vectors(inputs), L::vectors(of_out));
                let of_inputs = L::vectors_mut(of_inputs);
                for vector in 0..L::PER_GROUP {
                    let columns = load::<L, COLUMNS>(lanes, inputs, vector);
                    let of_hidden = unit.backward(lanes, columns, load::<L, CHANNELS>(lanes, of_out, vector));
                    for column in 0..MOVING {
                        let sum = &mut of_inputs[column * L::PER_GROUP + vector];
                        *sum = lanes.multiply_add(unit.row[column], of_hidden, *sum);
                    }
                }
            }
            unit.add_gradients(lanes, of_weights);
        }
    }
}

/// The weights of one hidden unit and their gradients, which stay in registers while the nodes go by.
struct Unit<L: Lanes, const COLUMNS: usize> {
    row: [L::Vector; COLUMNS],
    offset: L::Vector,
    output: [L::Vector; CHANNELS],
    of_row: [L::Vector; COLUMNS],
    of_offset: L::Vector,
    of_output: [L::Vector; CHANNELS],
}

impl<L: Lanes, const COLUMNS: usize> Unit<L, COLUMNS> {
    #[inline(always)]
    fn new(lanes: L, weights: &[L::Number]) -> Self {
        let zero = lanes.splat(L::Number::default());
        let (mut row, mut output) = ([zero; COLUMNS], [zero; CHANNELS]);
        for column in 0..COLUMNS {
            row[column] = lanes.splat(weights[column]);
        }
        for channel in 0..CHANNELS {
            output[channel] = lanes.splat(weights[COLUMNS + 1 + channel]);
        }
        let offset = lanes.splat(weights[COLUMNS]);
        Self { row, offset, output, of_row: [zero; COLUMNS], of_offset: zero, of_output: [zero; CHANNELS] }
    }

    /// Adds to the gradients of the weights; returns that of the hidden value.
    #[inline(always)]
    fn backward(&mut self, lanes: L, columns: [L::Vector; COLUMNS], of_out: [L::Vector; CHANNELS]) -> L::Vector {
        let mut hidden = self.offset;
        for column in 0..COLUMNS {
            hidden = lanes.multiply_add(self.row[column], columns[column], hidden);
        }
        let (activation, slope) = lanes.gelu_and_slope(hidden);
        let mut upstream = lanes.splat(L::Number::default());
        for channel in 0..CHANNELS {
            upstream = lanes.multiply_add(self.output[channel], of_out[channel], upstream);
            self.of_output[channel] = lanes.multiply_add(activation, of_out[channel], self.of_output[channel]);
        }
        let of_hidden = lanes.multiply(upstream, slope);
        self.of_offset = lanes.add(self.of_offset, of_hidden);
        for column in 0..COLUMNS {
            self.of_row[column] = lanes.multiply_add(of_hidden, columns[column], self.of_row[column]);
        }
        of_hidden
    }

    #[inline(always)]
    fn add_gradients(&self, lanes: L, gradients: &mut [L::Number]) {
        for column in 0..COLUMNS {
            gradients[column] += lanes.sum(self.of_row[column]);
        }
        gradients[COLUMNS] += lanes.sum(self.of_offset);
        for channel in 0..CHANNELS {
            gradients[COLUMNS + 1 + channel] += lanes.sum(self.of_output[channel]);
        }
    }
}

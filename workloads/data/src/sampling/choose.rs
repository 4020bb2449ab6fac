//! Choosing in-neighbours: some of a node's edges, uniformly and without replacement.
//!
//! Floyd's algorithm (Bentley and Floyd, 1987) chooses `k` of `d` positions with `k` random numbers: for each `j` from
//! `d - k` to `d - 1` it draws one of `0..=j`, and takes `j` itself where that one is taken already. Small `k` looks
//! through what is taken, large `k` marks it.

use super::random::Random;
use crate::nodes::Csr;

/// Most edges a node that are checked against each other; beyond, they are marked in a set.
const COMPARED: usize = 32;

/// Nodes that are worked on together, so that vector instructions check all of them at once, and their edges are
/// fetched from memory while the next nodes are worked on: that is where the time goes.
const LANES: usize = 16;

/// How the edges of a hop are chosen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Choice<'a> {
    pub graph: &'a Csr,
    /// Whether every node has an edge from itself besides its edges in the graph, after them.
    pub self_loops: bool,
    /// Most edges a node.
    pub fanout: usize,
    pub random: Random,
}

impl Choice<'_> {
    /// Edges that `node` can choose from.
    #[inline]
    pub fn degree(&self, node: u32) -> usize {
        self.graph.neighbours(node).len() + usize::from(self.self_loops)
    }

    /// Edges that `node` chooses.
    #[inline]
    pub fn chosen(&self, node: u32) -> usize {
        self.degree(node).min(self.fanout)
    }

    /// Writes the sources of the edges that `targets` choose to `out`, target after target. The first of them is edge
    /// `first` of the hop, which says where in the random sequence it is.
    pub fn choose(&self, targets: &[u32], first: u64, out: &mut [u32], taken: &mut Taken) {
        let (mut filling, mut waiting) = (NodeLanes::default(), NodeLanes::default());
        let mut slot = 0;
        for &node in targets {
            let degree = self.degree(node);
            let end = slot + degree.min(self.fanout);
            if degree <= self.fanout {
                self.take_all(node, &mut out[slot..end]);
            } else if self.fanout > COMPARED {
                self.choose_marking(node, first + slot as u64, &mut out[slot..end], taken);
            } else {
                filling.push(node, self.graph.row_start()[node as usize], degree, slot);
                if filling.len == LANES {
                    self.draw(&mut filling, first);
                    self.read(&waiting, out);
                    std::mem::swap(&mut filling, &mut waiting);
                    filling.len = 0;
                }
            }
            slot = end;
        }
        self.read(&waiting, out);
        if filling.len > 0 {
            self.draw(&mut filling, first);
            self.read(&filling, out);
        }
    }

    fn take_all(&self, node: u32, out: &mut [u32]) {
        let neighbours = self.graph.neighbours(node);
        out[..neighbours.len()].copy_from_slice(neighbours);
        if self.self_loops {
            out[neighbours.len()] = node;
        }
    }

    /// Floyd's algorithm for every node of the group.
    fn draw(&self, group: &mut NodeLanes, first: u64) {
        let fanout = self.fanout as u32;
        let mut last = group.degree.map(|degree| degree - fanout);
        let mut random = group.slot.map(|slot| self.random.from(first + slot as u64));
        for index in 0..self.fanout {
            let (before, rest) = group.position.split_at_mut(index);
            let mut drawn = [0u32; LANES];
            for lane in 0..LANES {
                drawn[lane] = random[lane].below(last[lane] + 1);
            }
            let mut is_taken = [0u32; LANES];
            for earlier in before {
                for lane in 0..LANES {
                    is_taken[lane] |= if earlier[lane] == drawn[lane] { u32::MAX } else { 0 };
                }
            }
            for lane in 0..LANES {
                rest[0][lane] = (drawn[lane] & !is_taken[lane]) | (last[lane] & is_taken[lane]);
                last[lane] += 1;
            }
            for (&start, &position) in group.start.iter().zip(&rest[0]) {
                prefetch(self.graph.sources(), start as usize + position as usize);
            }
        }
    }

    /// Writes the sources of the edges that were drawn.
    fn read(&self, group: &NodeLanes, out: &mut [u32]) {
        let sources = self.graph.sources();
        for lane in 0..group.len {
            let (node, start, slot) = (group.node[lane], group.start[lane], group.slot[lane]);
            let neighbours = group.degree[lane] - u32::from(self.self_loops);
            for (out, position) in out[slot..slot + self.fanout].iter_mut().zip(&group.position) {
                let position = position[lane];
                *out = if position < neighbours { sources[(start + position) as usize] } else { node };
            }
        }
    }

    /// Floyd's algorithm for one node with many edges to choose.
    fn choose_marking(&self, node: u32, first: u64, out: &mut [u32], taken: &mut Taken) {
        let neighbours = self.graph.neighbours(node);
        let degree = self.degree(node);
        taken.make_room(degree);
        let mut random = self.random.from(first);
        for (index, slot) in out.iter_mut().enumerate() {
            let last = (degree - self.fanout + index) as u32;
            let drawn = random.below(last + 1);
            *slot = if taken.mark(drawn) { drawn } else { last };
            taken.mark(*slot);
        }
        for slot in out {
            taken.unmark(*slot);
            *slot = neighbours.get(*slot as usize).copied().unwrap_or(node);
        }
    }
}

/// Nodes that are worked on together. Places that no node has taken hold one that is never written out.
struct NodeLanes {
    node: [u32; LANES],
    /// Where the node's edges begin in the graph.
    start: [u32; LANES],
    degree: [u32; LANES],
    /// Where the node's edges begin in the output.
    slot: [usize; LANES],
    len: usize,
    /// The edges that each has drawn, as positions among its own.
    position: [[u32; LANES]; COMPARED],
}

impl Default for NodeLanes {
    fn default() -> Self {
        Self {
            node: [0; LANES],
            start: [0; LANES],
            degree: [COMPARED as u32; LANES],
            slot: [0; LANES],
            len: 0,
            position: [[0; LANES]; COMPARED],
        }
    }
}

impl NodeLanes {
    #[inline]
    fn push(&mut self, node: u32, start: u32, degree: usize, slot: usize) {
        let lane = self.len;
        (self.node[lane], self.start[lane], self.degree[lane], self.slot[lane]) = (node, start, degree as u32, slot);
        self.len += 1;
    }
}

/// Prefetches a value. A hint: without CPU support, or if there is no such value, nothing happens.
#[inline(always)]
fn prefetch(values: &[u32], index: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a prefetch reads nothing that the program can see and cannot fault, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(values.as_ptr().wrapping_add(index).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (values, index);
}

/// A set of positions that is empty between nodes.
#[derive(Debug, Clone, Default)]
pub(super) struct Taken {
    words: Vec<u64>,
}

impl Taken {
    fn make_room(&mut self, positions: usize) {
        if self.words.len() * 64 < positions {
            self.words.resize(positions.div_ceil(64), 0);
        }
    }

    /// Marks a position; whether it was free.
    fn mark(&mut self, position: u32) -> bool {
        let (word, bit) = (&mut self.words[position as usize / 64], 1 << (position % 64));
        let was_free = *word & bit == 0;
        *word |= bit;
        was_free
    }

    fn unmark(&mut self, position: u32) {
        self.words[position as usize / 64] &= !(1 << (position % 64));
    }
}

//! Choosing in-neighbours: some of a node's edges, uniformly and without replacement.
//!
//! Floyd's algorithm (Bentley and Floyd, 1987) chooses `k` of `d` positions with `k` random numbers: for each `j` from
//! `d - k` to `d - 1` it draws one of `0..=j`, and takes `j` itself where that one is taken already. Small `k` looks
//! through what is taken, large `k` marks it.

use super::random::Random;
use crate::nodes::Csr;

/// Most edges a node that are checked against each other; beyond, they are marked in a set.
const COMPARED: usize = 32;

/// Nodes that are worked on together, so that what is checked for one is checked for all by vector instructions, and
/// the edges of all are under way from memory at once.
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
        let mut group = Group::default();
        let mut slot = 0;
        for &node in targets {
            let degree = self.degree(node);
            let end = slot + degree.min(self.fanout);
            if degree <= self.fanout {
                self.take_all(node, &mut out[slot..end]);
            } else if self.fanout > COMPARED {
                self.choose_marking(node, first + slot as u64, &mut out[slot..end], taken);
            } else {
                group.push(node, degree, slot);
                if group.len == LANES {
                    self.choose_together(&mut group, first, out);
                }
            }
            slot = end;
        }
        if group.len > 0 {
            self.choose_together(&mut group, first, out);
        }
    }

    fn take_all(&self, node: u32, out: &mut [u32]) {
        let neighbours = self.graph.neighbours(node);
        out[..neighbours.len()].copy_from_slice(neighbours);
        if self.self_loops {
            out[neighbours.len()] = node;
        }
    }

    /// Floyd's algorithm for each node of the group, and an empty group.
    fn choose_together(&self, group: &mut Group, first: u64, out: &mut [u32]) {
        let fanout = self.fanout;
        let mut position = [[0u32; LANES]; COMPARED];
        for index in 0..fanout {
            let (before, rest) = position.split_at_mut(index);
            let drawn = &mut rest[0];
            let mut last = [0; LANES];
            for lane in 0..LANES {
                last[lane] = group.degree[lane] - fanout as u32 + index as u32;
                let number = first + group.slot[lane] as u64 + index as u64;
                drawn[lane] = self.random.below(number, last[lane] + 1);
            }
            let mut is_taken = [0u32; LANES];
            for earlier in before {
                for lane in 0..LANES {
                    is_taken[lane] |= u32::from(earlier[lane] == drawn[lane]);
                }
            }
            for lane in 0..LANES {
                drawn[lane] = if is_taken[lane] != 0 { last[lane] } else { drawn[lane] };
            }
        }
        for lane in 0..group.len {
            let (node, slot) = (group.node[lane], group.slot[lane]);
            let neighbours = self.graph.neighbours(node);
            for (out, position) in out[slot..slot + fanout].iter_mut().zip(&position) {
                *out = neighbours.get(position[lane] as usize).copied().unwrap_or(node);
            }
        }
        *group = Group::default();
    }

    /// Floyd's algorithm for one node with many edges to choose.
    fn choose_marking(&self, node: u32, first: u64, out: &mut [u32], taken: &mut Taken) {
        let neighbours = self.graph.neighbours(node);
        let degree = self.degree(node);
        taken.make_room(degree);
        for (index, slot) in out.iter_mut().enumerate() {
            let last = (degree - self.fanout + index) as u32;
            let drawn = self.random.below(first + index as u64, last + 1);
            *slot = if taken.mark(drawn) { drawn } else { last };
            taken.mark(*slot);
        }
        for slot in out {
            taken.unmark(*slot);
            *slot = neighbours.get(*slot as usize).copied().unwrap_or(node);
        }
    }
}

/// Nodes that wait to be worked on together. Places that no node has taken hold one that is never written out.
struct Group {
    node: [u32; LANES],
    degree: [u32; LANES],
    /// Where the node's edges begin in the output.
    slot: [usize; LANES],
    len: usize,
}

impl Default for Group {
    fn default() -> Self {
        Self { node: [0; LANES], degree: [COMPARED as u32; LANES], slot: [0; LANES], len: 0 }
    }
}

impl Group {
    #[inline]
    fn push(&mut self, node: u32, degree: usize, slot: usize) {
        (self.node[self.len], self.degree[self.len], self.slot[self.len]) = (node, degree as u32, slot);
        self.len += 1;
    }
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

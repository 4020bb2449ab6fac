//! The numbering of a sample: which nodes of the graph it has reached, in the order in which it did.

/// Numbers nodes in the order in which they appear. A direct map, so that looking up a node is one access; starting
/// again forgets everything without touching the map.
#[derive(Debug, Clone)]
pub(super) struct LocalIds {
    /// By node: `base` plus its number, or less than `base` if it has none.
    entry: Vec<u32>,
    base: u32,
    /// The nodes by number, `count` of them; one place more than the graph has nodes.
    nodes: Vec<u32>,
    count: usize,
}

impl LocalIds {
    /// For a graph of `nodes` nodes. Takes 8 bytes a node.
    pub fn new(nodes: usize) -> Self {
        Self { entry: vec![0; nodes], base: 1, nodes: vec![0; nodes + 1], count: 0 }
    }

    /// Forgets all numbers and gives `seeds` the first ones. Fails with the first seed that is not a node or came
    /// before.
    pub fn begin(&mut self, seeds: &[u32]) -> Result<(), BadSeed> {
        self.forget();
        for &node in seeds {
            match self.entry.get_mut(node as usize) {
                None => return Err(BadSeed::OutOfRange(node)),
                Some(entry) if *entry >= self.base => return Err(BadSeed::Duplicate(node)),
                Some(entry) => *entry = self.base + self.count as u32,
            }
            self.nodes[self.count] = node;
            self.count += 1;
        }
        Ok(())
    }

    fn forget(&mut self) {
        let used = self.count as u32;
        self.count = 0;
        // The largest number that the next sample can give must still fit.
        if u64::from(self.base) + u64::from(used) + self.entry.len() as u64 <= u64::from(u32::MAX) {
            self.base += used;
        } else {
            self.entry.fill(0);
            self.base = 1;
        }
    }

    /// The nodes by number.
    pub fn nodes(&self) -> &[u32] {
        &self.nodes[..self.count]
    }

    /// Replaces each node by its number, giving new numbers to nodes that have none. No branch depends on whether a
    /// node is new: that is about as likely as not, and a wrong guess would cost more than all the rest.
    ///
    /// # Panics
    /// If a node is not in the graph.
    pub fn number(&mut self, nodes: &mut [u32]) {
        let (base, mut count) = (self.base, self.count);
        for slot in nodes {
            let node = *slot;
            let entry = &mut self.entry[node as usize];
            let is_new = *entry < base;
            let number = if is_new { base + count as u32 } else { *entry };
            *entry = number;
            self.nodes[count] = node;
            count += usize::from(is_new);
            *slot = number - base;
        }
        self.count = count;
    }
}

/// Why seeds cannot be numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BadSeed {
    /// The graph has no such node.
    OutOfRange(u32),
    /// It came before.
    Duplicate(u32),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_numbered_as_they_appear() {
        let mut ids = LocalIds::new(10);
        ids.begin(&[7, 3]).unwrap();
        let mut nodes = [3, 9, 7, 9, 0, 3];
        ids.number(&mut nodes);
        assert_eq!(nodes, [1, 2, 0, 2, 3, 1]);
        assert_eq!(ids.nodes(), [7, 3, 9, 0]);
        ids.begin(&[9]).unwrap();
        let mut nodes = [7, 9];
        ids.number(&mut nodes);
        assert_eq!((nodes, ids.nodes()), ([1, 0], &[9, 7][..]));
    }

    #[test]
    fn every_node_can_be_reached() {
        let mut ids = LocalIds::new(3);
        ids.begin(&[2]).unwrap();
        let mut nodes = [2, 1, 0, 0, 1];
        ids.number(&mut nodes);
        assert_eq!(nodes, [0, 1, 2, 2, 1]);
    }

    #[test]
    fn bad_seeds_are_named_and_do_no_harm() {
        let mut ids = LocalIds::new(3);
        assert_eq!(ids.begin(&[2, 3]), Err(BadSeed::OutOfRange(3)));
        assert_eq!(ids.begin(&[2, 1, 2]), Err(BadSeed::Duplicate(2)));
        ids.begin(&[1, 2]).unwrap();
        assert_eq!(ids.nodes(), [1, 2]);
        assert_eq!(LocalIds::new(0).begin(&[0]), Err(BadSeed::OutOfRange(0)));
    }

    #[test]
    fn numbers_survive_the_end_of_the_counter() {
        let mut ids = LocalIds::new(3);
        ids.base = u32::MAX - 5;
        for _ in 0..5 {
            ids.begin(&[0]).unwrap();
            let mut nodes = [1, 2, 0];
            ids.number(&mut nodes);
            assert_eq!((nodes, ids.nodes()), ([1, 2, 0], &[0, 1, 2][..]));
        }
        assert!(ids.base < 100);
    }
}

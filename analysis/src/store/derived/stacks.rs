//! Stacks as people read them: the place in the program, and many of them merged as a tree.

use std::collections::BTreeMap;

use gnntop_wire::NameId;

use crate::store::contents::Store;
use crate::store::stacks::Stack;

/// Stacks that are alike up to a frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackTree {
    /// How many.
    pub count: u64,
    /// Those that go on, by the next frame inwards.
    pub calls: BTreeMap<NameId, StackTree>,
}

impl StackTree {
    /// These stacks, merged from the outermost frame on.
    pub fn of<'s>(stacks: impl IntoIterator<Item = &'s Stack>) -> Self {
        let mut tree = Self::default();
        for stack in stacks {
            let mut node = &mut tree;
            node.count += 1;
            for frame in stack.frames.iter().rev() {
                node = node.calls.entry(*frame).or_default();
                node.count += 1;
            }
        }
        tree
    }

    /// The tree in lines from the outermost frame on, each with its depth and its share (0 to 1) of all stacks. A frame that
    /// has this share or more is told; one that all those around it call stands at the same depth.
    pub fn lines(&self, least_share: f64) -> Vec<(usize, f64, NameId)> {
        let mut lines = Vec::new();
        self.write(self.count.max(1) as f64, least_share, 0, &mut lines);
        lines
    }

    fn write(&self, all: f64, least_share: f64, depth: usize, lines: &mut Vec<(usize, f64, NameId)>) {
        let mut calls: Vec<(&NameId, &Self)> = self.calls.iter().collect();
        calls.sort_by_key(|(_, tree)| std::cmp::Reverse(tree.count));
        for (frame, tree) in calls {
            let share = tree.count as f64 / all;
            if share >= least_share {
                lines.push((depth, share, *frame));
                // A chain without branches is told without steps to the right.
                let is_chain = tree.calls.len() == 1 && tree.calls.values().all(|next| next.count == tree.count);
                tree.write(all, least_share, depth + usize::from(!is_chain), lines);
            }
        }
    }
}

impl Store {
    /// Where in the program a stack is: the innermost frame that is no library's, and under which other one. A library's
    /// files have folders in their names.
    pub fn place_of_stack(&self, stack: &Stack) -> Option<String> {
        let is_own = |frame: &&str| {
            let file = frame.rsplit_once(" (").map_or("", |(_, file)| file);
            !file.is_empty() && !file.contains('/') && !file.starts_with('<')
        };
        let mut frames = stack.frames.iter().map(|frame| self.name(*frame));
        let mut own = frames.by_ref().filter(is_own);
        match (own.next(), own.next()) {
            (Some(place), Some(under)) => Some(format!("{place}, under {under}")),
            (Some(place), None) => Some(place.to_owned()),
            (None, _) => stack.frames.first().map(|frame| self.name(*frame).to_owned()),
        }
    }

    /// The places of these stacks with how many are there, the most frequent first.
    pub fn places_of_stacks<'s>(&self, stacks: impl IntoIterator<Item = &'s Stack>) -> Vec<(String, u64)> {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for place in stacks.into_iter().filter_map(|stack| self.place_of_stack(stack)) {
            *counts.entry(place).or_default() += 1;
        }
        let mut places: Vec<(String, u64)> = counts.into_iter().collect();
        places.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(frames: &[u32]) -> Stack {
        Stack { t_ns: 1, frames: frames.iter().map(|frame| NameId(*frame)).collect() }
    }

    #[test]
    fn stacks_are_merged_from_the_outermost_frame_on() {
        // Innermost first: 1 under 2 under 9, and 3 under 2 under 9.
        let stacks = [stack(&[1, 2, 9]), stack(&[1, 2, 9]), stack(&[3, 2, 9]), stack(&[1, 2, 9])];
        let tree = StackTree::of(&stacks);
        let lines: Vec<_> = tree.lines(0.0).into_iter().map(|(depth, share, name)| (depth, share, name.0)).collect();
        assert_eq!(lines, [(0, 1.0, 9), (0, 1.0, 2), (1, 0.75, 1), (1, 0.25, 3)]);
        assert_eq!(tree.lines(0.5).len(), 3);
        assert!(StackTree::of(&[]).lines(0.0).is_empty());
    }
}

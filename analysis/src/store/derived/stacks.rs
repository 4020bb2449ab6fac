//! Stacks for people: the place in the program, and many stacks merged into a tree.

use std::collections::BTreeMap;

use gnntop_wire::{NameId, StackThread, WaitingCall};

use crate::store::contents::Store;
use crate::store::sampled_stacks::SampledStacks;
use crate::store::stacks::Stack;

/// Stacks that share their outer frames.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackTree {
    /// Number of stacks.
    pub count: u64,
    /// Those that continue, by the next inner frame.
    pub calls: BTreeMap<NameId, StackTree>,
}

impl StackTree {
    /// Merges these stacks from the outermost frame.
    pub fn from_stacks<'s>(stacks: impl IntoIterator<Item = &'s Stack>) -> Self {
        let mut tree = Self::default();
        stacks.into_iter().for_each(|stack| tree.add(&stack.frames, 1));
        tree
    }

    /// All sampled stacks: the phases, and below each what ran in it.
    pub fn from_sampled(sampled: &SampledStacks) -> Self {
        let mut tree = Self::default();
        sampled.stacks().for_each(|(frames, count)| tree.add(&frames, count));
        tree
    }

    /// Adds `count` stacks with these frames, innermost first.
    fn add(&mut self, frames: &[NameId], count: u64) {
        self.count += count;
        let mut node = self;
        for frame in frames.iter().rev() {
            node = node.calls.entry(*frame).or_default();
            node.count += count;
        }
    }

    /// Stacks that end here.
    pub fn own_count(&self) -> u64 {
        self.count.saturating_sub(self.calls.values().map(|calls| calls.count).sum())
    }

    /// The tree as lines from the outermost frame, each with its depth and its share (0 to 1) of all stacks. Frames with at
    /// least the given share are listed; a frame that all stacks of its caller share has the caller's depth.
    pub fn lines(&self, least_share: f64) -> Vec<(usize, f64, NameId)> {
        let mut lines = Vec::new();
        self.write(self.count.max(1) as f64, least_share, 0, &mut lines);
        lines
    }

    /// The same for stacks whose outermost frame is a phase: a line for each phase, with what ran in it indented.
    pub fn lines_by_phase(&self, least_share: f64) -> Vec<(usize, f64, NameId)> {
        let all = self.count.max(1) as f64;
        let mut lines = Vec::new();
        for (phase, tree) in self.most_frequent() {
            let share = tree.count as f64 / all;
            if share >= least_share {
                lines.push((0, share, phase));
                tree.write(all, least_share, 1, &mut lines);
            }
        }
        lines
    }

    /// The stacks that begin with these frames, outermost first; `None` if there are none.
    pub fn get(&self, frames: &[NameId]) -> Option<&Self> {
        frames.iter().try_fold(self, |tree, frame| tree.calls.get(frame))
    }

    /// The callees, most frequent first.
    pub fn most_frequent(&self) -> Vec<(NameId, &Self)> {
        let mut calls: Vec<(NameId, &Self)> = self.calls.iter().map(|(frame, tree)| (*frame, tree)).collect();
        calls.sort_by_key(|(_, tree)| std::cmp::Reverse(tree.count));
        calls
    }

    fn write(&self, all: f64, least_share: f64, depth: usize, lines: &mut Vec<(usize, f64, NameId)>) {
        for (frame, tree) in self.most_frequent() {
            let share = tree.count as f64 / all;
            if share >= least_share {
                lines.push((depth, share, frame));
                // A chain without branches is not indented.
                let is_chain = tree.calls.len() == 1 && tree.calls.values().all(|next| next.count == tree.count);
                tree.write(all, least_share, depth + usize::from(!is_chain), lines);
            }
        }
    }
}

/// Files that PyTorch Geometric generates from its layers, in a temporary directory.
const GENERATED: &str = "torch_geometric.";

impl Store {
    /// Where in the program a stack is: the innermost frame outside libraries, and the frame below which it was called. The
    /// files of libraries have folders in their names.
    pub fn stack_place(&self, stack: &Stack) -> Option<String> {
        self.frames_place(&stack.frames)
    }

    /// The same for frames, innermost first.
    pub fn frames_place(&self, frames: &[NameId]) -> Option<String> {
        let mut own = self.own_frames(frames);
        match (own.next(), own.next()) {
            (Some(place), Some(under)) => Some(format!("{place}, under {under}")),
            (Some(place), None) => Some(place.to_owned()),
            (None, _) => {
                let mut called = frames.iter().map(|frame| self.name(*frame));
                called.find(|frame| WaitingCall::parse(frame).is_none()).map(str::to_owned)
            }
        }
    }

    /// Those of these frames that are outside libraries.
    pub fn own_frames<'s>(&'s self, frames: &'s [NameId]) -> impl Iterator<Item = &'s str> {
        let is_own = |frame: &&str| {
            let file = frame.rsplit_once(" (").map_or("", |(_, file)| file);
            !file.is_empty() && !file.contains('/') && !file.starts_with('<') && !file.starts_with(GENERATED)
        };
        frames.iter().map(|frame| self.name(*frame)).filter(is_own)
    }

    /// Whether this is a loader worker's stack, and not the training thread's.
    pub fn is_loader_stack(&self, stack: &Stack) -> bool {
        stack.thread == StackThread::LoaderWorker
    }

    /// The places of these stacks and the number of stacks at each, most frequent first.
    pub fn stack_places<'s>(&self, stacks: impl IntoIterator<Item = &'s Stack>) -> Vec<(String, u64)> {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for place in stacks.into_iter().filter_map(|stack| self.stack_place(stack)) {
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
        Stack { t_ns: 1, thread: StackThread::Training, frames: frames.iter().map(|frame| NameId(*frame)).collect() }
    }

    #[test]
    fn stacks_are_merged_from_the_outermost_frame_on() {
        // Innermost first: 1 under 2 under 9, and 3 under 2 under 9.
        let stacks = [stack(&[1, 2, 9]), stack(&[1, 2, 9]), stack(&[3, 2, 9]), stack(&[1, 2, 9])];
        let tree = StackTree::from_stacks(&stacks);
        let lines: Vec<_> = tree.lines(0.0).into_iter().map(|(depth, share, name)| (depth, share, name.0)).collect();
        assert_eq!(lines, [(0, 1.0, 9), (0, 1.0, 2), (1, 0.75, 1), (1, 0.25, 3)]);
        assert_eq!(tree.lines(0.5).len(), 3);
        assert!(StackTree::from_stacks(&[]).lines(0.0).is_empty());
    }
}
